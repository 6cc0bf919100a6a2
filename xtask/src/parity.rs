//! `cargo xtask parity`: our CLIP against three PyTorch implementations, at the size of ViT-B/16.
//!
//! `xtask/parity/parity.py` measures, from weights files as each of them writes, with our side in the
//! example `parity` of `tbps-model`; here is what the measurements have to keep to.

mod judge;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::python::{Python, succeed};
use crate::workspace;
use judge::Measured;

/// Where the packages come from, and where the measurements go.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    python: Python,
    /// Where to write the measurements [default: parity/parity.json in the target directory]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures, prints the table, writes the measurements.
///
/// # Errors
/// When a bar is missed, naming each; when the packages cannot be installed or a side fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = workspace::root()?;
    let work = workspace::target_dir(&root)?.join("parity");
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    let requirements = root.join("xtask/parity/requirements.txt");
    let python = options.python.interpreter(&work.join("venv"), &requirements)?;
    // With the app's features of burn, so that one build of it serves both.
    let args = "build --release --package tbps --package tbps-model --example parity";
    let args: Vec<String> = args.split(' ').map(String::from).collect();
    let example = workspace::build(&root, &args, "parity")?;

    let mut measure = Command::new(python);
    measure.arg(root.join("xtask/parity/parity.py")).arg("--example").arg(example);
    measure.arg("--fixtures").arg(root.join("crates/model/tests/fixtures/clip_sources"));
    succeed(measure.arg("--work").arg(&work), "the measurement")?;

    let path = work.join("measured.json");
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let measured: Measured = serde_json::from_slice(&text).context("measured.json")?;
    let json = options.json.clone().unwrap_or_else(|| work.join("parity.json"));
    let judged = serde_json::to_vec_pretty(&measured.judged())?;
    fs::write(&json, judged).with_context(|| format!("cannot write {}", json.display()))?;
    println!("{}\n\nmeasurements: {}", measured.table(), json.display());
    let misses = measured.misses();
    if !misses.is_empty() {
        bail!("{} of the bars missed: {}", misses.len(), misses.join("; "));
    }
    Ok(())
}
