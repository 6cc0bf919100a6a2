//! Resized images in one file, mapped into memory, so that they are decoded once and not in every
//! epoch of every run.
//!
//! The file is a header, the 8-bit images `[num_images, height, width, 3]` in the order of their
//! paths, which no choice of splits changes, and a CRC-32 of each. The header says which copy of which data set it was made of and in
//! what size; the name is a hash of the header. It is written under another name, synced and
//! renamed, so that a file with the right name is whole; all of it is checked nevertheless when it
//! is opened, and built again if it is damaged.

mod build;
mod layout;

use std::borrow::Cow;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use rayon::prelude::*;

use crate::annotation::{Dataset, Fingerprint};
use crate::error::DataError;
use crate::image::{ImageSize, decode, resize};
use layout::Layout;

/// The resized images of a data set.
#[derive(Debug)]
pub struct PixelCache {
    map: Mmap,
    layout: Layout,
    /// The image files, in the order of the images.
    paths: Vec<PathBuf>,
}

/// Who is told how the building of a cache goes.
pub struct Observer<'a> {
    /// Images done and images in all, after each, from any thread.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// A line about something that is wrong and was put right.
    pub warn: &'a dyn Fn(&str),
}

/// What was found where the cache should be.
enum Found {
    Whole(Mmap),
    Nothing,
    Damaged(String),
}

impl PixelCache {
    /// Opens the cache of a data set in the folder `dir`, and builds it first, on `threads` threads,
    /// if it is absent or damaged. Of several processes one builds; the others wait for it.
    ///
    /// A cache of CUHK-PEDES at 384x128 takes 5.5 GiB.
    ///
    /// # Errors
    ///
    /// When `size` or `threads` is out of range, an image cannot be read or decoded, or the folder
    /// cannot be written or has no room.
    pub fn open_or_build(
        dataset: &Dataset,
        fingerprint: &Fingerprint,
        size: ImageSize,
        dir: &Path,
        threads: usize,
        observer: &Observer<'_>,
    ) -> Result<Self, DataError> {
        size.validate()?;
        // Below `imgs/`, so that a data set can be moved.
        let mut paths: Vec<&Path> = dataset.images().map(|image| image.path.as_path()).collect();
        paths.sort_unstable();
        paths.dedup();
        let layout = Layout::new(fingerprint, size, &paths);
        let paths: Vec<PathBuf> =
            paths.into_iter().map(|path| dataset.images_dir().join(path)).collect();
        fs::create_dir_all(dir).map_err(DataError::io(dir))?;
        let file = dir.join(layout.file_name());
        let map = match find(&file, &layout)? {
            Found::Whole(map) => map,
            Found::Nothing | Found::Damaged(_) => {
                let _lock = lock(&file.with_extension("lock"), observer)?;
                // Somebody else may have built it meanwhile.
                match find(&file, &layout)? {
                    Found::Whole(map) => map,
                    Found::Nothing => build::build(&file, &layout, &paths, threads, observer)?,
                    Found::Damaged(why) => {
                        let shown = file.display();
                        (observer.warn)(&format!("{shown} is damaged ({why}); building it again"));
                        build::build(&file, &layout, &paths, threads, observer)?
                    }
                }
            }
        };
        Ok(Self { map, layout, paths })
    }

    /// The image of a file of the data set in `size`, `[height, width, 3]`; nothing when the cache
    /// is of another size or data set.
    #[must_use]
    pub fn get(&self, path: &Path, size: ImageSize) -> Option<&[u8]> {
        if size != self.layout.size {
            return None;
        }
        let index = self.paths.binary_search_by(|other| other.as_path().cmp(path)).ok()?;
        self.map.get(self.layout.image(index))
    }
}

/// The image of a file in `size`, `[height, width, 3]`: from the cache if it has it, else decoded.
pub(crate) fn resized<'a>(
    path: &Path,
    size: ImageSize,
    cache: Option<&'a PixelCache>,
) -> Result<Cow<'a, [u8]>, DataError> {
    match cache.and_then(|cache| cache.get(path, size)) {
        Some(image) => Ok(Cow::Borrowed(image)),
        None => Ok(Cow::Owned(resize(&decode(path)?, size).into_raw())),
    }
}

/// Maps the file and checks all of it.
fn find(path: &Path, layout: &Layout) -> Result<Found, DataError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(DataError::io(path)(error)),
    };
    let len = file.metadata().map_err(DataError::io(path))?.len();
    if len != layout.num_bytes() {
        return Ok(Found::Damaged(format!("{len} bytes instead of {}", layout.num_bytes())));
    }
    #[expect(unsafe_code, reason = "nobody writes into a file of that name: it is only renamed to")]
    // SAFETY: the bytes do not change while they are mapped, since a cache is written under another
    // name and replaced as a whole; a replaced file stays alive until it is unmapped.
    let map = unsafe { Mmap::map(&file) }.map_err(DataError::io(path))?;
    if map[layout.header()] != *layout.header_bytes() {
        return Ok(Found::Damaged("another header".to_owned()));
    }
    let bad = (0..layout.num_images)
        .into_par_iter()
        .find_first(|&index| crc32fast::hash(&map[layout.image(index)]) != layout.crc(&map, index));
    Ok(match bad {
        Some(index) => Found::Damaged(format!("image {index} has another checksum")),
        None => Found::Whole(map),
    })
}

/// Holds the lock of a cache until it is dropped, or nothing where the file system has no locks.
fn lock(path: &Path, observer: &Observer<'_>) -> Result<Option<File>, DataError> {
    let file = File::create(path).map_err(DataError::io(path))?;
    let waited = match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            (observer.warn)(&format!("another process holds {}; waiting for it", path.display()));
            file.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
    };
    match waited {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(DataError::io(path)(error)),
    }
}
