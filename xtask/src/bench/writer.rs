//! The file of figures: whole at any time, also while cases are still to come.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use super::Options;
use super::machine::{self, Machine};
use super::measure::Outcome;
use super::record::Record;

/// Everything that is written.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    date: String,
    machine: Machine,
    /// Version and commit of our side.
    tbps: Value,
    /// Versions of PyTorch's side; null when it was not measured.
    peer: Value,
    /// Why it was not, if there is a reason.
    peer_absent: Option<String>,
    /// What the command was asked for beside the cases.
    settings: Value,
    /// A record per case, in order of measurement.
    pub(super) cases: Vec<Record>,
}

impl Report {
    pub(super) fn new(options: &Options, cases: Vec<Record>) -> Self {
        Self {
            date: machine::today(),
            machine: Machine::here(&options.device),
            tbps: Value::Null,
            peer: Value::Null,
            peer_absent: options.without_peer.clone(),
            settings: json!({ "pairs": options.pairs, "max_seconds": options.max_seconds }),
            cases,
        }
    }

    /// Takes the versions from what the sides said of themselves.
    pub(super) fn versions_of(&mut self, outcome: &Outcome) {
        if let Some(ours) = &outcome.ours {
            let ready = &ours.told.ready;
            self.tbps = json!({ "version": ready["tbps_version"], "commit": ready["git_commit"] });
        }
        if let Some(peer) = &outcome.peer {
            self.peer = peer.told.ready["versions"].clone();
        }
    }
}

/// Writes a report to its place.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
}

impl Writer {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file: under another name first, so that it is never half there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, report: &Report) -> Result<()> {
        let cannot = || format!("cannot write {}", self.path.display());
        let mut text = serde_json::to_vec_pretty(report)?;
        text.push(b'\n');
        let mut beside = self.path.clone().into_os_string();
        beside.push(".part");
        fs::write(&beside, text).with_context(cannot)?;
        fs::rename(&beside, &self.path).with_context(cannot)
    }
}
