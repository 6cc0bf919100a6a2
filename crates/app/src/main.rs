//! `tbps`: trains text-based person search and measures what it costs.

mod allocator;
mod bench_command;
mod checkpoint;
mod cli;
mod config;
mod data_check;
mod data_commands;
mod data_stats;
mod dataset;
mod device;
mod disk;
mod doctor;
mod embed_command;
mod embedder;
mod eval_command;
mod evaluate;
mod failure;
mod feed;
mod hardest;
mod hold;
mod index;
mod lap;
mod learner;
mod learner_metrics;
mod manual;
mod memory;
mod model_file;
mod model_source;
mod optimizer;
mod pixel_cache;
mod plan;
mod progress;
mod provenance;
mod ranks;
mod records;
mod renderer;
mod report;
mod run_dir;
mod run_weights;
mod search;
mod serve;
mod session;
mod state;
mod tensorboard;
mod test_reads;
mod tower;
mod train;
mod weights_commands;

use anyhow::Result;
use cli::{Cli, Command};
use config::Config;
use failure::Failure;
use std::io::{Read, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::keep_freed_memory();
    die_with_parent();
    match Cli::read().and_then(|cli| run(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {}", failure::line(&error)));
            ExitCode::from(Failure::exit_status(&error))
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Train(args) => {
            let config = Config::load(&args.config, &args.overrides)?;
            session::run(config, &args.out, args.device, args.resume)
        }
        Command::Eval(args) => eval_command::run(&args),
        Command::Embed(args) => embed_command::run(&args),
        Command::Search(args) => search::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Data(command) => data_commands::run(command),
        Command::Weights(command) => weights_commands::run(command),
        Command::Plan(args) => plan::run(&args),
        Command::Bench(args) => bench_command::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::man(&folder),
        Command::RecordOom { run, device } => session::record_oom(&run, device),
        Command::Report(args) => {
            let (out, examples) = (args.out.as_deref(), args.examples.into());
            report::write(&args.runs, out, args.lang, examples)?;
            let page = out.unwrap_or(&args.runs[0]).join("report.html");
            print(&format!("{}\n", page.display()))
        }
    }
}

/// A child of `cargo xtask ablate` ends with its parent, also when that is killed: its standard
/// input is a pipe that only the parent holds open.
fn die_with_parent() {
    if std::env::var_os("TBPS_DIE_WITH_STDIN").is_none() {
        return;
    }
    std::thread::spawn(|| {
        let mut sink = [0; 64];
        while std::io::stdin().read(&mut sink).is_ok_and(|n| n > 0) {}
        std::process::exit(130);
    });
}

/// Writes to standard output; a reader that has gone away is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(()),
    }
}

/// A line for the person at the terminal.
pub(crate) fn say(line: &str) {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
