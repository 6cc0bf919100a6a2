//! The cache of resized images that `data.cache` asks for.

use crate::config::Config;
use crate::learner::image_size;
use crate::say;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::sync::Arc;
use tbps_data::cache::{Observer, PixelCache};
use tbps_data::{Dataset, Fingerprint, ImageSize};

/// The cache of a run, if it wants one.
///
/// # Errors
/// As [`open_or_build`].
pub(crate) fn of_run(
    config: &Config,
    dataset: &Dataset,
    fingerprint: &Fingerprint,
) -> Result<Option<Arc<PixelCache>>> {
    let (dir, threads) = (&config.data.cache, config.data.threads);
    if dir.as_os_str().is_empty() {
        return Ok(None);
    }
    let cache = open_or_build(dataset, fingerprint, image_size(config), dir, threads)?;
    Ok(Some(Arc::new(cache)))
}

/// Opens the cache in `dir`; builds it, with a progress bar, where it is absent or damaged.
///
/// # Errors
/// When an image cannot be decoded, or the folder cannot be written or has no room.
pub(crate) fn open_or_build(
    dataset: &Dataset,
    fingerprint: &Fingerprint,
    size: ImageSize,
    dir: &Path,
    threads: usize,
) -> Result<PixelCache> {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("resizing images {bar:40} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    let progress = |done: usize, total: usize| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    };
    let warn = |line: &str| say(&format!("warning: {line}"));
    let observer = Observer { progress: &progress, warn: &warn };
    let cache = PixelCache::open_or_build(dataset, fingerprint, size, dir, threads, &observer);
    bar.finish_and_clear();
    Ok(cache?)
}
