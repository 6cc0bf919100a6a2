//! `cargo xtask ablate`: trains the eight cells, each in its own process, and reports them.
//!
//! The command can be stopped and called again at any time: what is done is left alone, what was
//! interrupted goes on from its checkpoint, what failed is kept aside and tried again.

mod child;
mod command;
mod data;
mod emit;
mod lock;
mod matrix;
mod oom;
mod plan;
mod preset;
mod progress;
mod report;
mod run_dir;
mod shard;
mod stop;
mod train;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use crate::halt::Halt;
use crate::workspace;
use emit::Engine;
use plan::{Job, Plan};
use preset::Preset;
use run_dir::Action;
use shard::Shard;
use stop::Stop;

/// What to train, where, and for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// The matrix's size: it names the configuration configs/PRESET.toml
    #[arg(long, value_enum, default_value_t = Preset::Demo)]
    preset: Preset,
    /// The data set's folder (default: generated, under data/)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Pretrained weights (default: a random initialisation)
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Trains every cell with the seeds 0 to N-1
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The device to train on: flex (the CPU), cuda or cuda:1
    #[arg(long, value_name = "D", default_value = "flex")]
    device: String,
    /// The matrix directory (default: runs/PRESET)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Stops resumably after so many hours
    #[arg(long, value_name = "H", value_parser = hours)]
    max_time: Option<Duration>,
    /// A further setting for all cells, such as train.epochs=2; may be given many times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Trains a part only, such as 1/3: another machine has the others. Part by part into one
    /// directory, or into several that are then merged by copying; `tbps report` makes the report
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Prints a job for a cluster, which trains the matrix in shards, instead of training it
    #[arg(long, value_enum, conflicts_with_all = ["shard", "dry_run"])]
    emit: Option<Engine>,
    /// How many shards the job has (default: one per training)
    #[arg(long, value_name = "N", requires = "emit")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    shards: Option<u64>,
    /// The container image of --emit k8s
    #[arg(long, value_name = "NAME", requires = "emit")]
    image: Option<String>,
    /// The persistent volume claim with this workspace, of --emit k8s
    #[arg(long, value_name = "NAME", requires = "emit")]
    claim: Option<String>,
    /// Uses this tbps executable instead of building one
    #[arg(long, value_name = "PATH")]
    tbps: Option<PathBuf>,
    /// Prints the commands instead of running them
    #[arg(long)]
    dry_run: bool,
}

/// Trains what is missing of a matrix and reports it.
///
/// # Errors
/// When a cell has no result at the end, when something around the cells fails, and with [`Halt`]
/// when the command line makes no sense or the matrix was stopped.
pub(crate) fn run(options: Options) -> Result<()> {
    let plan = Plan::new(workspace::root()?, &options)?;
    if let Some(engine) = options.emit {
        print!("{}", emit::job(engine, &plan, &options)?);
        return Ok(());
    }
    matrix::refuse_other(&plan)?;
    let jobs = plan.jobs();
    if options.dry_run {
        return print_commands(&plan, &jobs);
    }
    let stop = Stop::watch(options.max_time)?;
    train_and_report(&plan, &jobs, &stop).map_err(say_how_to_resume)
}

fn train_and_report(plan: &Plan, jobs: &[Job], stop: &Stop) -> Result<()> {
    let _locks = lock::matrix(&plan.out, plan.shard)?;
    let num_open = num_open(jobs)?;
    matrix::require_disk(plan, num_open)?;
    matrix::record(plan)?;
    let tbps = match &plan.tbps {
        Some(path) => path.clone(),
        None => workspace::build_tbps(&plan.root, &plan.device)
            .or_else(|error| not_if_stopped(error, stop))?,
    };
    if num_open > 0 {
        examine(plan, &tbps, stop)?;
        data::prepare(plan, &tbps, stop)?;
    }
    let failed = train::train_all(&tbps, plan, jobs, stop)?;
    let reported = match plan.shard {
        None => report::write(&tbps, plan, stop),
        Some(shard) => {
            let line = command::report(&tbps, plan);
            println!("shard {shard} is over; once all are, report them: {line}");
            Ok(())
        }
    };
    conclude(&failed, jobs.len(), reported)
}

/// Refuses a device that computes wrongly.
fn examine(plan: &Plan, tbps: &Path, stop: &Stop) -> Result<()> {
    let Some(doctor) = command::doctor(tbps, plan) else { return Ok(()) };
    eprintln!("examining {}", plan.device);
    let status = child::run_whole(doctor.process(&plan.root), stop)?;
    if !status.success() {
        bail!("{} did not pass its examination; what failed stands above", plan.device);
    }
    Ok(())
}

fn num_open(jobs: &[Job]) -> Result<usize> {
    let actions = jobs.iter().map(|job| run_dir::action(&job.dir)).collect::<Result<Vec<_>>>()?;
    Ok(actions.iter().filter(|&action| *action != Action::Skip).count())
}

/// A Ctrl-C reaches cargo too, so that a stopped build looks like a failed one.
fn not_if_stopped<T>(error: anyhow::Error, stop: &Stop) -> Result<T> {
    match stop.reason() {
        Some(reason) => Err(Halt::Interrupted(reason.into()).into()),
        None => Err(error),
    }
}

/// The end of the matrix: anything without a result is an error, whether or not there is a report.
fn conclude(failed: &[String], num_jobs: usize, reported: Result<()>) -> Result<()> {
    if failed.is_empty() {
        return reported;
    }
    let also = reported.err().map_or_else(String::new, |error| format!("; {error:#}"));
    bail!(
        "{} of {num_jobs} cells are not done ({}); the same command tries them again{also}",
        failed.len(),
        failed.join(", ")
    )
}

/// Adds the command that goes on to an interruption.
fn say_how_to_resume(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Halt>() {
        Ok(Halt::Interrupted(reason)) => {
            let args: Vec<String> =
                std::env::args_os().skip(1).map(|arg| command::quote(&arg)).collect();
            let resume =
                format!("{reason}; the same command resumes: cargo xtask {}", args.join(" "));
            Halt::Interrupted(resume).into()
        }
        Ok(other) => other.into(),
        Err(error) => error,
    }
}

/// Prints what a call would run, given what is there now, as lines for a shell in the workspace
/// root.
fn print_commands(plan: &Plan, jobs: &[Job]) -> Result<()> {
    let tbps = match &plan.tbps {
        Some(path) => path.clone(),
        None => {
            println!("cargo {}", workspace::build_args(&plan.device).join(" "));
            workspace::expected_tbps(&plan.root)?
        }
    };
    if let Some(doctor) = command::doctor(&tbps, plan) {
        println!("{doctor}");
    }
    if data::is_missing(plan) {
        println!("{}", command::synth(&tbps, plan));
    }
    println!("{}", command::check(&tbps, plan));
    jobs.iter().try_for_each(|job| print_job(&tbps, plan, job))?;
    if plan.shard.is_none() {
        println!("{}", command::report(&tbps, plan));
    }
    Ok(())
}

fn print_job(tbps: &Path, plan: &Plan, job: &Job) -> Result<()> {
    let action = run_dir::action(&job.dir)?;
    if action == Action::Skip {
        println!("# {} is done", job.name);
        return Ok(());
    }
    if matches!(action, Action::Retry(_)) {
        let aside = run_dir::failed_name(&job.dir);
        println!(
            "mv {} {}",
            command::quote(job.dir.as_os_str()),
            command::quote(aside.as_os_str())
        );
    }
    println!("{}", command::train(tbps, plan, job, action == Action::Resume)?);
    Ok(())
}

/// Hours on the command line, such as 1.5.
fn hours(text: &str) -> Result<Duration, String> {
    let hours: f64 =
        text.parse().map_err(|_| "a number of hours is needed, such as 1.5".to_string())?;
    let time = Duration::try_from_secs_f64(hours * 3600.0).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("more than zero hours are needed".into()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_positive_numbers() {
        assert_eq!(hours("1.5"), Ok(Duration::from_secs(5400)));
        for nonsense in ["0", "-1", "nan", "soon"] {
            assert!(hours(nonsense).is_err(), "{nonsense}");
        }
    }

    #[test]
    fn a_failed_cell_fails_the_command_whether_or_not_there_is_a_report() {
        let failed = ["amp.s0".to_string()];
        assert!(conclude(&[], 8, Ok(())).is_ok());
        let error = conclude(&failed, 8, Ok(())).unwrap_err().to_string();
        assert_eq!(error, "1 of 8 cells are not done (amp.s0); the same command tries them again");
        let error = conclude(&failed, 8, Err(anyhow::anyhow!("no report"))).unwrap_err();
        assert!(error.to_string().ends_with("; no report"), "{error:#}");
        assert!(conclude(&[], 8, Err(anyhow::anyhow!("no report"))).is_err());
    }
}
