//! A run's record of every time that its test split was read by hand.

use crate::cli::Which;
use crate::run_dir::{RunDir, append};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The record, open before the split is read: what cannot be recorded is not read.
pub(crate) struct TestReads {
    file: File,
}

impl TestReads {
    /// # Errors
    /// When the run's directory cannot be written.
    pub(crate) fn open(run: &Path) -> Result<Self> {
        let path = RunDir::existing(run)?.root().join("test_reads.jsonl");
        let file = append(&path).context("a reading of test is recorded in the run")?;
        Ok(Self { file })
    }

    /// Adds a line: when, which weights, on what, and the scores.
    pub(crate) fn add(
        mut self,
        which: Option<Which>,
        weights_sha256: &str,
        dataset: &Path,
        scores: &Value,
    ) -> Result<()> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let which = match which {
            None => "selected",
            Some(Which::Ema) => "ema",
            Some(Which::Raw) => "raw",
        };
        let line = json!({
            "time_s": since_1970.map_or(0, |time| time.as_secs()),
            "tbps_version": env!("CARGO_PKG_VERSION"),
            "which": which,
            "weights_sha256": weights_sha256,
            "dataset": dataset,
            "scores": scores,
        });
        self.file.write_all(format!("{line}\n").as_bytes())?;
        Ok(self.file.sync_all()?)
    }
}
