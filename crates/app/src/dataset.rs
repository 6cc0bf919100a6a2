//! The data set of a configuration: found, read, and with a split to select on.

use crate::config::{Config, DataConfig, SplitName};
use crate::failure::Failure;
use anyhow::Result;
use tbps_data::Dataset;

/// Opens the data set that a run is trained on or was trained on, with the people that it holds out.
///
/// # Errors
/// A usage failure when none is named; when it cannot be read, or its hold-out has no effect or leaves
/// nobody to train on.
pub(crate) fn open(config: &DataConfig) -> Result<Dataset> {
    if config.root.as_os_str().is_empty() {
        return Err(Failure::usage(
            "no data set: add --set data.root=DIR, the folder that holds the annotation file and imgs/",
        ));
    }
    let dataset = Dataset::open_as(&config.root, config.dataset.name())?;
    Ok(match config.holdout_ids {
        0 => dataset,
        num_ids => dataset.hold_out(num_ids, config.holdout_seed)?,
    })
}

/// Refuses to train where there is nothing to train or to select on: nobody selects on test by
/// accident.
///
/// # Errors
/// For the lack of a val split, a usage failure that names the setting.
pub(crate) fn require_selection(dataset: &Dataset, config: &Config) -> Result<()> {
    dataset.split(tbps_data::SplitName::Train)?;
    if config.eval.split == SplitName::Test || !dataset.val.images.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} has no record of split \"val\" to select on: set data.holdout_ids to a number of \
         people of train to hold out for it",
        dataset.annotation.display()
    )))
}
