//! Images without augmentation, for evaluation and search.

use std::path::PathBuf;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::cache::{PixelCache, resized};
use crate::error::DataError;
use crate::image::{ImageSize, normalize, pixels};

/// Decodes, squashes and normalises images on `threads` threads: `[paths.len(), 3, height, width]`,
/// in the order of the paths. What `cache` holds is not decoded.
///
/// An image takes `12 * height * width` bytes, so a large gallery is loaded in chunks.
///
/// # Errors
///
/// When the size is out of range, `threads` is 0, or a file cannot be read or decoded: of several
/// bad files, the first.
pub fn load_images(
    paths: &[PathBuf],
    size: ImageSize,
    threads: usize,
    cache: Option<&PixelCache>,
) -> Result<Vec<f32>, DataError> {
    size.validate()?;
    let mut pixels = vec![0.0; paths.len() * size.num_elements()];
    let results: Vec<Result<(), DataError>> = thread_pool(threads)?.install(|| {
        pixels
            .par_chunks_exact_mut(size.num_elements())
            .zip(paths)
            .map(|(out, path)| {
                normalize(&resized(path, size, cache)?, out);
                Ok(())
            })
            .collect()
    });
    results.into_iter().collect::<Result<(), _>>()?;
    Ok(pixels)
}

/// As [`load_images`], but file by file: `[3, height, width]` of each, or why there is none.
///
/// # Errors
///
/// When the size is out of range or `threads` is 0.
pub fn load_readable(
    paths: &[PathBuf],
    size: ImageSize,
    threads: usize,
) -> Result<Vec<Result<Vec<f32>, DataError>>, DataError> {
    size.validate()?;
    let load = |path: &PathBuf| pixels(path, size);
    Ok(thread_pool(threads)?.install(|| paths.par_iter().map(load).collect()))
}

/// A pool of exactly `threads` threads.
pub(crate) fn thread_pool(threads: usize) -> Result<ThreadPool, DataError> {
    if threads == 0 {
        // rayon would take 0 as "one per core", which is no answer to "how many".
        return Err(DataError::Setting {
            name: "threads",
            value: threads.to_string(),
            expected: "at least 1",
        });
    }
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("images-{index}"))
        .build()
        .map_err(|error| DataError::Threads { threads, reason: error.to_string() })
}
