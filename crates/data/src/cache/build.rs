//! Decodes all images into the file of a cache.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::Mmap;
use rayon::prelude::*;

use super::layout::Layout;
use super::{Found, Observer, find};
use crate::batch::thread_pool;
use crate::error::DataError;
use crate::image::{decode, resize};

/// Images that are made before they are written: work for all threads, and not much memory.
const CHUNK: usize = 64;

/// Writes the cache `file` and opens it; the caller holds its lock.
pub(super) fn build(
    file: &Path,
    layout: &Layout,
    paths: &[PathBuf],
    threads: usize,
    observer: &Observer<'_>,
) -> Result<Mmap, DataError> {
    let dir = file.parent().unwrap_or(Path::new("."));
    let free = fs4::available_space(dir).map_err(DataError::io(dir))?;
    require_room(dir, layout.num_bytes(), free)?;
    // What a killed process left there is overwritten.
    let partial = file.with_extension("partial");
    let written = write(&partial, layout, paths, threads, observer)
        .and_then(|()| fs::rename(&partial, file).map_err(DataError::io(file)))
        .and_then(|()| sync_folder(dir));
    if let Err(error) = written {
        // The first error is the one to report.
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    match find(file, layout)? {
        Found::Whole(map) => Ok(map),
        Found::Nothing | Found::Damaged(_) => {
            Err(DataError::CacheLost { path: file.to_path_buf() })
        }
    }
}

/// Writes and syncs header, images and checksums.
fn write(
    partial: &Path,
    layout: &Layout,
    paths: &[PathBuf],
    threads: usize,
    observer: &Observer<'_>,
) -> Result<(), DataError> {
    let pool = thread_pool(threads)?;
    let mut out = File::create(partial).map_err(DataError::io(partial))?;
    out.write_all(layout.header_bytes()).map_err(DataError::io(partial))?;
    let mut crcs = Vec::with_capacity(paths.len());
    let mut images = vec![0; CHUNK.min(paths.len()) * layout.image_bytes()];
    let done = AtomicUsize::new(0);
    for paths_of_chunk in paths.chunks(CHUNK) {
        let images = &mut images[..paths_of_chunk.len() * layout.image_bytes()];
        let results: Vec<Result<u32, DataError>> = pool.install(|| {
            let slots = images.par_chunks_exact_mut(layout.image_bytes()).zip(paths_of_chunk);
            slots
                .map(|(slot, path)| {
                    slot.copy_from_slice(&resize(&decode(path)?, layout.size));
                    (observer.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, paths.len());
                    Ok(crc32fast::hash(slot))
                })
                .collect()
        });
        for crc in results {
            crcs.extend(crc?.to_le_bytes());
        }
        out.write_all(images).map_err(DataError::io(partial))?;
    }
    out.write_all(&crcs).map_err(DataError::io(partial))?;
    out.sync_all().map_err(DataError::io(partial))
}

/// Makes the renaming last, where folders can be synced.
fn sync_folder(dir: &Path) -> Result<(), DataError> {
    match cfg!(unix) {
        true => File::open(dir).and_then(|dir| dir.sync_all()).map_err(DataError::io(dir)),
        false => Ok(()),
    }
}

fn require_room(dir: &Path, needed_bytes: u64, free_bytes: u64) -> Result<(), DataError> {
    match needed_bytes > free_bytes {
        true => Err(DataError::NoRoom { dir: dir.to_path_buf(), needed_bytes, free_bytes }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_too_few_is_refused() {
        let dir = Path::new("cache");
        assert!(require_room(dir, 6 << 30, 6 << 30).is_ok());
        assert_eq!(
            require_room(dir, 6 << 30, (6 << 30) - 1).unwrap_err().to_string(),
            "the resized images need 6144 MiB in cache, but only 6143 MiB are free there: free some \
             or choose a folder on another disk"
        );
    }
}
