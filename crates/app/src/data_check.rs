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
    if let Some(fingerprint) = known(dataset, matrix)? {
        return Ok(fingerprint);
    }
    let root = dataset.root.display();
    match full(dataset).faults.as_slice() {
        [] => {
            let changed = || format!("{root} changed while it was checked: run the command again");
            let fingerprint = dataset.fingerprint().with_context(changed)?;
            keep(&fingerprint, matrix)?;
            Ok(fingerprint)
        }
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                n => format!(" (and {n} more)"),
            };
            bail!("{root}: {first}{more}; `tbps data check {root}` lists every fault")
        }
    }
}

/// The dataset's fingerprint, if the check of the same files found no fault before.
///
/// # Errors
/// When the dataset cannot be read.
pub(crate) fn known(dataset: &Dataset, matrix: &Path) -> Result<Option<Fingerprint>> {
    let fingerprint = match dataset.fingerprint() {
        Ok(fingerprint) => fingerprint,
        // A missing file, which the check counts by folder.
        Err(DataError::Io { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let kept = fs::read(matrix.join(FILE)).ok();
    let kept = kept.and_then(|json| serde_json::from_slice::<serde_json::Value>(&json).ok());
    let same = kept.is_some() && kept == serde_json::to_value(&fingerprint).ok();
    Ok(same.then_some(fingerprint))
}

/// Keeps a clean result for the runs of a matrix.
pub(crate) fn keep(fingerprint: &Fingerprint, matrix: &Path) -> Result<()> {
    fs::create_dir_all(matrix)
        .with_context(|| format!("cannot write into {}", matrix.display()))?;
    write_json(&matrix.join(FILE), fingerprint)
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
