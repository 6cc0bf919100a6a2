//! The command lines of search: what is searched for, where, and by which model.

use crate::cli::{AnySplit, ModelArgs};
use crate::device::DeviceName;
use clap::Args;
use std::path::PathBuf;
use tbps_data::DatasetName;

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    /// Whom to look for, in a sentence; may be repeated.
    #[arg(long = "query", value_name = "TEXT",
          required_unless_present_any = ["queries", "image"])]
    pub(crate) query: Vec<String>,
    /// Queries, one a line, UTF-8.
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    pub(crate) queries: Option<PathBuf>,
    /// Looks for images like this one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["query", "queries"])]
    pub(crate) image: Option<PathBuf>,
    /// Images to show for each query.
    #[arg(short, value_name = "N", default_value = "10", value_parser = at_least_one)]
    pub(crate) k: usize,
    /// Prints JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes the images found as a page that needs no other file.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// A model and the images it searches.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// A folder: all images below it are searched.
    #[arg(long, value_name = "DIR", conflicts_with = "split", required_unless_present = "split")]
    pub(crate) gallery: Option<PathBuf>,
    /// Searches the images of a split of the run's data set instead.
    #[arg(long, value_enum)]
    pub(crate) split: Option<AnySplit>,
    /// The split is of this data set's folder instead of the run's own.
    #[arg(long, value_name = "DIR", requires = "split")]
    pub(crate) data: Option<PathBuf>,
    /// Which data set the folder holds: cuhk-pedes, icfg-pedes or rstpreid; default: by its files.
    #[arg(long, value_name = "NAME", requires = "data")]
    pub(crate) dataset: Option<DatasetName>,
    /// Where the features are kept; default: a file in the run's folder `index`.
    #[arg(long, value_name = "FILE")]
    pub(crate) index: Option<PathBuf>,
    /// Embeds all images again.
    #[arg(long)]
    pub(crate) reindex: bool,
    /// Keeps the features in half precision: half the space.
    #[arg(long)]
    pub(crate) half: bool,
    /// `flex` (CPU) or `cuda[:index]`.
    #[arg(long, default_value = "flex")]
    pub(crate) device: DeviceName,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number, at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}
