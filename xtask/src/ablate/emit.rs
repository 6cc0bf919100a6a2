//! `--emit`: a job for somebody else's cluster that runs the shards of a matrix there.

mod k8s;
mod slurm;

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use super::command::quote;
use super::plan::Plan;
use super::{Options, command};
use crate::halt::Halt;
use crate::workspace;

/// Whose jobs to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// A batch script with a job array
    Slurm,
    /// An indexed Job
    K8s,
}

/// What the jobs need to know of the matrix.
struct Work<'a> {
    plan: &'a Plan,
    /// How many jobs share it.
    num_shards: u64,
    max_time: Option<Duration>,
}

/// The job as text, ready to be submitted.
///
/// # Errors
/// [`Halt::Usage`] when something that the engine needs is not given or makes no sense on a cluster.
pub(crate) fn job(engine: Engine, plan: &Plan, options: &Options) -> Result<String> {
    if plan.device.contains(':') {
        return Err(Halt::usage(format!(
            "--device {}: the cluster gives each job a card of its own; write --device cuda",
            plan.device
        )));
    }
    let num_jobs = plan.jobs().len() as u64;
    let num_shards = options.shards.unwrap_or(num_jobs);
    if num_shards > num_jobs {
        return Err(Halt::usage(format!(
            "--shards {num_shards}: the matrix has {num_jobs} trainings"
        )));
    }
    let work = Work { plan, num_shards, max_time: options.max_time };
    match (engine, &options.image, &options.claim) {
        (Engine::Slurm, None, None) => Ok(slurm::script(&work)),
        (Engine::Slurm, _, _) => Err(Halt::usage("--image and --claim are for --emit k8s")),
        (Engine::K8s, Some(image), Some(claim)) => k8s::manifest(&work, image, claim),
        (Engine::K8s, _, _) => Err(Halt::usage(
            "--emit k8s needs --image NAME, with a Rust toolchain and what the device needs, and \
             --claim NAME, the volume claim that holds this workspace",
        )),
    }
}

impl Work<'_> {
    fn name(&self) -> String {
        format!("tbps-{}", self.plan.preset)
    }

    fn on_gpu(&self) -> bool {
        self.plan.device != "flex"
    }

    /// The call of one shard; `shard` is what the shell puts in its place.
    fn ablate(&self, shard: &str) -> String {
        let args = command::ablate(self.plan, self.max_time);
        let words: Vec<String> = args.iter().map(|arg| quote(arg)).collect();
        format!("cargo xtask ablate {} --shard {shard}", words.join(" "))
    }

    /// What builds the executable once, before the shards ask for it all at the same time.
    fn build(&self) -> String {
        format!("cargo {}", workspace::build_args(&self.plan.device).join(" "))
    }

    /// What merges the shards.
    fn report(&self) -> String {
        format!("target/release/tbps report {}", quote(self.plan.out.as_os_str()))
    }
}
