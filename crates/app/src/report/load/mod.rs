//! Reads the runs of a matrix, from one directory or from the several that its shards wrote:
//! `<cell>.s<seed>/` with summary.json, metrics.jsonl, run.json, config.toml and
//! checkpoints/best/ranks.json.gz. A file that cannot be read makes its run `unreadable`, with the
//! reason; it never stops the report on the others.

mod log;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

pub(crate) use log::{Evaluation, Log, Scaler};
pub(crate) use run::{CONFIG, METRICS, PROVENANCE, RANKS, Run, SUMMARY, Status};

use super::cell::CellId;

/// Every run of a matrix: all eight cells for each seed, in the cells' order.
pub(crate) struct Matrix {
    pub(crate) name: String,
    pub(crate) seeds: Vec<u64>,
    pub(crate) runs: Vec<Run>,
}

impl Matrix {
    /// The runs that are done.
    pub(crate) fn done(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.status == Status::Done)
    }

    /// The runs of one cell, in the seeds' order.
    pub(crate) fn of(&self, cell: CellId) -> Vec<&Run> {
        self.runs.iter().filter(|run| run.cell == cell).collect()
    }
}

/// Reads the matrix whose runs are in `dirs`; it has the first one's name.
///
/// # Errors
/// When one cannot be listed or holds no run directory at all, or when a run is in two of them.
pub(crate) fn read_matrix(dirs: &[PathBuf]) -> Result<Matrix> {
    let mut found: BTreeMap<(CellId, u64), &Path> = BTreeMap::new();
    for dir in dirs {
        let runs = run_directories(dir)?;
        if runs.is_empty() {
            bail!(
                "no run directory in {}: give the directory that holds <cell>.s<seed>, such as \
                 fp32.s0",
                dir.display()
            );
        }
        for key in runs {
            if let Some(other) = found.insert(key, dir) {
                let (id, other, dir) = (run_id(key.0, key.1), other.display(), dir.display());
                bail!("{id} is in {other} and in {dir}: a report has each run once");
            }
        }
    }
    let seeds: BTreeSet<u64> = found.keys().map(|&(_, seed)| seed).collect();
    let mut runs = Vec::new();
    for cell in CellId::ALL {
        for &seed in &seeds {
            let (id, dir) = (run_id(cell, seed), found.get(&(cell, seed)));
            runs.push(match dir {
                Some(dir) => Run::read(dir, id, cell, seed),
                None => Run::missing(id, cell, seed),
            });
        }
    }
    let name = fs::canonicalize(&dirs[0])?
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
