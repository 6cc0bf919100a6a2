//! Reads a matrix directory: `<cell>.s<seed>/` with summary.json, metrics.jsonl, run.json and
//! checkpoints/best/ranks.json.gz. A file that cannot be read makes its run `unreadable`, with the
//! reason; it never stops the report on the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cell::CellId;
use crate::ranks;

/// Every run of a matrix: all eight cells for each seed, in the cells' order.
pub(crate) struct Matrix {
    pub(crate) name: String,
    pub(crate) seeds: Vec<u64>,
    pub(crate) runs: Vec<Run>,
}

/// One run directory, present or not.
pub(crate) struct Run {
    /// The directory's name, `<cell>.s<seed>`: what every source refers to.
    pub(crate) id: String,
    pub(crate) cell: CellId,
    pub(crate) seed: u64,
    pub(crate) status: Status,
    /// What went wrong, where it is known.
    pub(crate) note: Option<String>,
    /// summary.json; `null` when there is none.
    pub(crate) summary: Value,
    /// run.json; `null` when there is none.
    pub(crate) provenance: Value,
    /// The evaluations in metrics.jsonl, by step.
    pub(crate) evaluations: Vec<Evaluation>,
    /// First-match rank (0-based) per validation query of the best checkpoint, text to image.
    pub(crate) t2i_ranks: Option<Vec<Option<u32>>>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Done,
    Failed,
    Oom,
    Diverged,
    /// The directory is there, its summary.json is not: interrupted, or still training.
    Unfinished,
    /// A file of the run is there but cannot be understood.
    Unreadable,
    /// There is no such run directory.
    Missing,
}

/// One evaluation during training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Evaluation {
    pub(crate) step: u64,
    pub(crate) epoch: f64,
    /// On the train clock.
    pub(crate) train_s: f64,
    /// Validation text-to-image R@1 in percent.
    pub(crate) r1: f64,
}

/// Reads the matrix in `dir`.
///
/// # Errors
/// When `dir` cannot be listed or holds no run directory at all.
pub(crate) fn read_matrix(dir: &Path) -> Result<Matrix> {
    let found = run_directories(dir)?;
    if found.is_empty() {
        bail!(
            "no run directory in {}: give the directory that holds <cell>.s<seed>, such as fp32.s0",
            dir.display()
        );
    }
    let seeds: BTreeSet<u64> = found.iter().map(|&(_, seed)| seed).collect();
    let mut runs = Vec::new();
    for cell in CellId::ALL {
        for &seed in &seeds {
            let present = found.contains(&(cell, seed));
            runs.push(if present { read_run(dir, cell, seed) } else { missing(cell, seed) });
        }
    }
    let name = fs::canonicalize(dir)?
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Ok(Matrix { name, seeds: seeds.into_iter().collect(), runs })
}

fn run_directories(dir: &Path) -> Result<BTreeSet<(CellId, u64)>> {
    let mut found = BTreeSet::new();
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", dir.display()))?;
        let name = entry.file_name();
        let parsed = name.to_str().and_then(parse_run_id);
        found.extend(parsed.filter(|_| entry.path().is_dir()));
    }
    Ok(found)
}

/// `amp-ema.s3` is cell `amp-ema`, seed 3; `amp-ema.s03` is nobody's run.
fn parse_run_id(name: &str) -> Option<(CellId, u64)> {
    let (cell, seed) = name.rsplit_once(".s")?;
    let parsed = (CellId::parse(cell)?, seed.parse().ok()?);
    (run_id(parsed.0, parsed.1) == name).then_some(parsed)
}

fn run_id(cell: CellId, seed: u64) -> String {
    format!("{}.s{seed}", cell.name())
}

fn missing(cell: CellId, seed: u64) -> Run {
    Run {
        id: run_id(cell, seed),
        cell,
        seed,
        status: Status::Missing,
        note: None,
        summary: Value::Null,
        provenance: Value::Null,
        evaluations: Vec::new(),
        t2i_ranks: None,
    }
}

fn read_run(dir: &Path, cell: CellId, seed: u64) -> Run {
    let mut run = missing(cell, seed);
    let dir = dir.join(&run.id);
    run.status = Status::Unfinished;
    if let Err(error) = fill(&mut run, &dir) {
        run.status = Status::Unreadable;
        run.note = Some(format!("{error:#}"));
    }
    run
}

fn fill(run: &mut Run, dir: &Path) -> Result<()> {
    run.provenance = read_json(&dir.join("run.json"))?;
    run.evaluations = read_evaluations(&dir.join("metrics.jsonl"))?;
    run.t2i_ranks = read_ranks(&dir.join("checkpoints/best"))?;
    let summary = read_json(&dir.join("summary.json"))?;
    if summary.is_null() {
        return Ok(());
    }
    run.status = Status::deserialize(&summary["status"])
        .with_context(|| format!("summary.json: status is {}", summary["status"]))?;
    run.note =
        ["error", "message"].iter().find_map(|key| summary[*key].as_str()).map(str::to_owned);
    run.summary = summary;
    Ok(())
}

/// The file's JSON, or `null` when the file is not there.
fn read_json(path: &Path) -> Result<Value> {
    let Some(text) = read_if_there(path)? else { return Ok(Value::Null) };
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file_name(path)))
}

fn read_if_there(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file_name(path))),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The evaluations of metrics.jsonl in step order. A resumed run repeats the steps since its last
/// checkpoint: the later record of a step stands. A torn last line is what a killed run leaves.
fn read_evaluations(path: &Path) -> Result<Vec<Evaluation>> {
    #[derive(Deserialize)]
    struct Record {
        kind: String,
        step: u64,
        #[serde(default)]
        epoch: f64,
        train_s: f64,
        val: Option<Scores>,
    }
    #[derive(Deserialize)]
    struct Scores {
        r1: f64,
    }
    let text = read_if_there(path)?.unwrap_or_default();
    let mut by_step = BTreeMap::new();
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let record: Record = match serde_json::from_str(line) {
            Ok(record) => record,
            Err(_) if !line.ends_with('\n') || line.trim().is_empty() => continue,
            Err(error) => return Err(error).with_context(|| format!("metrics.jsonl:{}", i + 1)),
        };
        if let (true, Some(val)) = (record.kind == "eval", record.val) {
            let Record { step, epoch, train_s, .. } = record;
            by_step.insert(step, Evaluation { step, epoch, train_s, r1: val.r1 });
        }
    }
    Ok(by_step.into_values().collect())
}

/// First-match ranks of the best checkpoint, whichever split it was selected on.
fn read_ranks(best: &Path) -> Result<Option<Vec<Option<u32>>>> {
    match fs::read(best.join(ranks::FILE)) {
        Ok(bytes) => Ok(Some(ranks::unpack(&bytes).context(ranks::FILE)?.t2i)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(ranks::FILE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_are_exact() {
        let gc = CellId { amp: true, ema: false, gc: true };
        assert_eq!(parse_run_id("amp-gc.s12"), Some((gc, 12)));
        for stranger in ["amp-gc", "amp-gc.s", "amp-gc.s012", "bf16.s0", "amp-gc.s1.old"] {
            assert_eq!(parse_run_id(stranger), None, "{stranger}");
        }
    }
}
