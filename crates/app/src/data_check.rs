//! The full check of a dataset, once per matrix: decoding every image takes a while, so that a clean
//! result is kept beside the runs, by fingerprint.

use crate::run_dir::write_json;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs;
use std::path::Path;
use tbps_data::check::{self, Report};
use tbps_data::{DataError, Dataset, Fingerprint};

const FILE: &str = "data-check.json";

/// Refuses a dataset with a fault; returns its fingerprint.
///
/// # Errors
/// The first fault and the number of faults, in one line.
pub(crate) fn require_clean(dataset: &Dataset, matrix: &Path) -> Result<Fingerprint> {
    let root = dataset.root.display();
    let cache = matrix.join(FILE);
    let fingerprint = match dataset.fingerprint() {
        Ok(fingerprint) => Some(fingerprint),
        Err(DataError::Io { .. }) => None, // a missing file, which the check counts by folder
        Err(error) => return Err(error.into()),
    };
    if let Some(fingerprint) = &fingerprint {
        let known = fs::read(&cache).ok();
        let known = known.and_then(|json| serde_json::from_slice::<serde_json::Value>(&json).ok());
        if known.is_some_and(|known| Some(known) == serde_json::to_value(fingerprint).ok()) {
            return Ok(fingerprint.clone());
        }
    }
    let report = full(dataset);
    match (report.faults.as_slice(), fingerprint) {
        ([], Some(fingerprint)) => {
            fs::create_dir_all(matrix)
                .with_context(|| format!("cannot write into {}", matrix.display()))?;
            write_json(&cache, &fingerprint)?;
            Ok(fingerprint)
        }
        ([], None) => bail!("{root} changed while it was checked: run the command again"),
        ([first, rest @ ..], _) => {
            let more = match rest.len() {
                0 => String::new(),
                n => format!(" (and {n} more)"),
            };
            bail!("{root}: {first}{more}; `tbps data check {root}` lists every fault")
        }
    }
}

/// Checks everything, with a progress bar where somebody watches.
pub(crate) fn full(dataset: &Dataset) -> Report {
    let style = ProgressStyle::with_template("checking images {bar:40} {pos}/{len} {eta}");
    let bar = ProgressBar::new(0);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    let report = check::check(dataset, &|done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    report
}
