//! One run directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml::Table;

use super::Log;
use super::log;
use crate::ranks::{self, Ranks};
use crate::report::cell::CellId;

/// A run's files, as sources name them.
pub(crate) const SUMMARY: &str = "summary.json";
pub(crate) const PROVENANCE: &str = "run.json";
pub(crate) const METRICS: &str = "metrics.jsonl";
pub(crate) const CONFIG: &str = "config.toml";
pub(crate) const RANKS: &str = "checkpoints/best/ranks.json.gz";

/// One run directory, present or not.
pub(crate) struct Run {
    /// The directory's name, `<cell>.s<seed>`: what every source refers to.
    pub(crate) id: String,
    pub(crate) dir: PathBuf,
    pub(crate) cell: CellId,
    pub(crate) seed: u64,
    pub(crate) status: Status,
    /// What went wrong, where it is known.
    pub(crate) note: Option<String>,
    /// summary.json; `null` when there is none.
    pub(crate) summary: Value,
    /// run.json; `null` when there is none.
    pub(crate) provenance: Value,
    /// config.toml; empty when there is none.
    pub(crate) config: Table,
    /// What metrics.jsonl tells.
    pub(crate) log: Log,
    /// Of the best checkpoint.
    pub(crate) ranks: Option<Ranks>,
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

impl Run {
    pub(crate) fn missing(id: String, cell: CellId, seed: u64) -> Run {
        Run {
            id,
            dir: PathBuf::new(),
            cell,
            seed,
            status: Status::Missing,
            note: None,
            summary: Value::Null,
            provenance: Value::Null,
            config: Table::new(),
            log: Log::default(),
            ranks: None,
        }
    }

    /// The run in `matrix`/`id`; what cannot be read of it becomes its status.
    pub(crate) fn read(matrix: &Path, id: String, cell: CellId, seed: u64) -> Run {
        let dir = matrix.join(&id);
        let mut run = Run { dir, status: Status::Unfinished, ..Run::missing(id, cell, seed) };
        if let Err(error) = run.fill() {
            run.status = Status::Unreadable;
            run.note = Some(format!("{error:#}"));
        }
        run
    }

    fn fill(&mut self) -> Result<()> {
        self.provenance = read_json(&self.dir, PROVENANCE)?;
        let cell = self.provenance["cell"].as_str().unwrap_or_default();
        // Which of the half precisions AMP is, the whole matrix has to agree on (`super::agree`).
        if !cell.is_empty() && cell.replace("-bf16", "") != self.cell.name() {
            bail!("{PROVENANCE} is of cell {cell}");
        }
        let config = read_if_there(&self.dir, CONFIG)?.unwrap_or_default();
        self.config = toml::from_str(&config).context(CONFIG)?;
        self.log = log::parse(&read_if_there(&self.dir, METRICS)?.unwrap_or_default())?;
        self.ranks = read_ranks(&self.dir)?;
        let summary = read_json(&self.dir, SUMMARY)?;
        if summary.is_null() {
            return Ok(());
        }
        self.status = Status::deserialize(&summary["status"])
            .with_context(|| format!("{SUMMARY}: status is {}", summary["status"]))?;
        let note = ["error", "message"].iter().find_map(|key| summary[*key].as_str());
        self.note = note.map(str::to_owned);
        self.summary = summary;
        Ok(())
    }

    /// First-match rank (0-based) per query of the best checkpoint, text to image.
    pub(crate) fn t2i_ranks(&self) -> Option<&[Option<u32>]> {
        self.ranks.as_ref().map(|ranks| &ranks.t2i[..])
    }

    /// Whether f32 matrix products of its device run in TF32.
    pub(crate) fn tf32(&self) -> bool {
        self.summary["tf32"] == true
    }
}

/// The file's JSON, or `null` when the file is not there.
fn read_json(dir: &Path, name: &str) -> Result<Value> {
    let Some(text) = read_if_there(dir, name)? else { return Ok(Value::Null) };
    serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))
}

fn read_if_there(dir: &Path, name: &str) -> Result<Option<String>> {
    match fs::read_to_string(dir.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {name}")),
    }
}

fn read_ranks(dir: &Path) -> Result<Option<Ranks>> {
    match fs::read(dir.join(RANKS)) {
        Ok(bytes) => Ok(Some(ranks::unpack(&bytes).context(ranks::FILE)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(ranks::FILE),
    }
}
