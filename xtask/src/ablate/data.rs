//! The matrix's data: generated once, and checked before any cell is started. The check keeps its
//! result beside the runs, so that neither they nor the next call decode every picture again.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::plan::Plan;
use super::stop::Stop;
use super::{child, command, lock};

/// The annotation file of generated data. Generation renames the finished folder into place, so
/// where this file is, everything is.
const ANNOTATION: &str = "reid_raw.json";

/// Whether the data set is still to be generated.
pub(crate) fn is_missing(plan: &Plan) -> bool {
    plan.generate_data && !plan.data.join(ANNOTATION).is_file()
}

/// Beside what is generated, or among the runs, where the check keeps its result.
fn lock_file(plan: &Plan) -> PathBuf {
    match plan.generate_data {
        true => plan.data.with_extension("lock"),
        false => plan.out.join(".lock-data"),
    }
}

/// Generates the data set if it is ours to generate, and checks it.
///
/// # Errors
/// When generation or check fail, and with `Halt::Interrupted` when they are stopped.
pub(crate) fn prepare(plan: &Plan, tbps: &Path, stop: &Stop) -> Result<()> {
    // Shards begin at the same time, and matrices may share generated data.
    let _alone = lock::wait(&lock_file(plan), stop)?;
    if is_missing(plan) {
        eprintln!("generating {}", plan.data.display());
        let status = child::run_whole(command::synth(tbps, plan).process(&plan.root), stop)?;
        if !status.success() {
            bail!("the {} data cannot be generated: {}", plan.preset, child::describe(status));
        }
    }
    eprintln!("checking {}", plan.data.display());
    let status = child::run_whole(command::check(tbps, plan).process(&plan.root), stop)?;
    if !status.success() {
        bail!("{} did not pass its check; the faults are listed above", plan.data.display());
    }
    Ok(())
}
