//! `cargo xtask bench`: train steps of the eight cells and the encoding of images, at the size of
//! ViT-B/16, beside the same work in PyTorch.
//!
//! `tbps bench` is our side and `xtask/bench/peer.py` PyTorch's, each a process per case. Where both
//! compute on the host they take turns, so that slow minutes of the machine hit both. The script and
//! the configuration are part of this executable: with `--binary` it also works where there is no
//! checkout and no cargo (`benchmarks/gpu`).

mod budget;
mod case;
mod machine;
mod measure;
mod record;
mod side;
mod stats;
mod writer;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{ArgAction, Args};

use crate::cell::Cell;
use crate::halt::Halt;
use crate::python::Python;
use crate::workspace;
use budget::Budget;
use case::{Case, Peer, Work};
use measure::Setup;
use record::{Record, TABLE_HEAD};
use writer::{Report, Writer};

const PEER: &str = include_str!("../bench/peer.py");
const REQUIREMENTS: &str = include_str!("../bench/requirements.txt");
const CONFIG: &str = include_str!("../../configs/base.toml");

/// What to measure, against what, for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// The device: flex (the CPU), cuda or cuda:1
    #[arg(long, value_name = "D", default_value = "flex")]
    device: String,
    /// Measures PyTorch beside it, with open_clip, and prints ratios
    #[arg(long)]
    peer: bool,
    /// Records why there is no PyTorch to measure
    #[arg(long, value_name = "REASON", conflicts_with = "peer")]
    without_peer: Option<String>,
    #[command(flatten)]
    python: Python,
    /// Images and captions of a batch [default: 8 on flex, else 64]
    // A contrastive loss takes two.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    batch: Option<u32>,
    /// Pieces of work that each side does per case
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Cells to measure, such as fp32,amp-ema-gc [default: all eight]
    // `Set`, as for the other lists: a second list replaces the first.
    #[arg(long, value_name = "LIST", value_delimiter = ',', action = ArgAction::Set)]
    #[arg(value_parser = case::cell)]
    cells: Vec<Cell>,
    /// Tokens of the captions: all positions, and the mean of CUHK-PEDES (29), rounded up
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "77,32")]
    #[arg(action = ArgAction::Set, value_parser = clap::value_parser!(u32).range(2..=77))]
    caption_lengths: Vec<u32>,
    /// Kinds of work
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "train,encode")]
    #[arg(action = ArgAction::Set)]
    work: Vec<Work>,
    /// Uses this tbps executable instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Gives up after so many seconds; what was not reached by then is recorded as that
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    max_seconds: Option<u64>,
    /// Where to write the figures [default: bench/bench.json in the target directory]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures every case, prints a row for each and writes the figures after each.
///
/// # Errors
/// When a case could not be measured, naming each, after the others; when nothing can be started.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.python.is_given() && !options.peer {
        return Err(Halt::usage("--python and --venv are PyTorch's: add --peer"));
    }
    let budget = Budget::new(options.max_seconds.map(Duration::from_secs));
    let work = work_dir(options.binary.is_some())?;
    let setup = setup(options, &work)?;
    let cases = cases(options);
    let records: Vec<Record> = cases.iter().map(Record::not_reached).collect();
    let writer = Writer::new(options.json.clone().unwrap_or_else(|| work.join("bench.json")));
    let mut report = Report::new(options, records);
    writer.write(&report)?;

    println!("{TABLE_HEAD}");
    for (index, case) in cases.iter().enumerate() {
        let Some(budget) = budget.of_case(Instant::now(), cases.len() - index) else { break };
        let outcome = setup.measure(case, budget);
        report.versions_of(&outcome);
        report.cases[index] = Record::new(case, &outcome);
        println!("{}", report.cases[index].row());
        writer.write(&report)?;
    }
    println!("\nfigures: {}", writer.path().display());
    conclude(&report.cases)
}

fn cases(options: &Options) -> Vec<Case> {
    let cells = match options.cells.is_empty() {
        true => Cell::all().collect(),
        false => options.cells.clone(),
    };
    let batch = options.batch.unwrap_or(if options.device == "flex" { 8 } else { 64 });
    Case::all(&options.work, &cells, &options.caption_lengths, batch, &options.device)
}

/// Where files of this command go: `bench` in the target directory, or in the current directory
/// where there is no checkout and nothing needs to be built.
fn work_dir(is_built: bool) -> Result<PathBuf> {
    let target = workspace::root().and_then(|root| workspace::target_dir(&root));
    let parent = match target {
        Ok(target) => target,
        Err(_) if is_built => std::env::current_dir()?,
        Err(error) => return Err(error.context("without a checkout, --binary FILE is needed")),
    };
    let work = parent.join("bench");
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    Ok(work)
}

fn setup(options: &Options, work: &Path) -> Result<Setup> {
    let file = |name: &str, text: &str| {
        let path = work.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok::<_, anyhow::Error>(path)
    };
    let config = file("base.toml", CONFIG)?;
    let tbps = match &options.binary {
        Some(binary) if !binary.is_file() => {
            let shown = binary.display();
            return Err(Halt::usage(format!(
                "--binary {shown} is no file: name a tbps executable"
            )));
        }
        Some(binary) => std::path::absolute(binary)?,
        None => workspace::build_tbps(&workspace::root()?, &options.device)?,
    };
    let peer = match options.peer {
        false => None,
        true => {
            let requirements = file("requirements.txt", REQUIREMENTS)?;
            let python = options.python.interpreter(&work.join("venv"), &requirements)?;
            Some(Peer { python, script: file("peer.py", PEER)? })
        }
    };
    Ok(Setup { tbps, config, peer, num_pairs: options.pairs as usize })
}

fn conclude(records: &[Record]) -> Result<()> {
    let failed: Vec<&str> =
        records.iter().filter(|record| record.failed.is_some()).map(Record::name).collect();
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} of {} cases failed: {}", failed.len(), records.len(), failed.join(", "))
}
