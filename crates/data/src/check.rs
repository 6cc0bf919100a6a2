//! Everything that is wrong with a data set, found before any training.
//!
//! Downloads of person search data often lack whole folders or hold files cut short. Each image is
//! decoded in full, since a JPEG cut in the middle still has a good header.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use crate::annotation::{Dataset, SplitName};
use crate::error::DataError;
use crate::image::decode;

/// What [`check`] found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Images that the annotation names.
    pub num_images: usize,
    /// Everything that is wrong; empty means ready to train.
    pub faults: Vec<Fault>,
}

/// One thing that is wrong with a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// Image files are missing from a folder.
    MissingFiles {
        /// The folder, below `imgs/`.
        folder: PathBuf,
        /// How many of its files are missing.
        num_missing: usize,
        /// How many of its files the annotation names.
        num_listed: usize,
        /// The first of the missing files, below `imgs/`.
        example: PathBuf,
    },
    /// An image file is there but cannot be decoded.
    Undecodable {
        /// The file, below `imgs/`.
        path: PathBuf,
        /// Why, in the decoder's words.
        reason: String,
    },
    /// A caption has nothing but white space.
    BlankCaption {
        /// The split it is in.
        split: String,
        /// The image it describes, below `imgs/`.
        path: PathBuf,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingFiles { folder, num_missing, num_listed, example } => write!(
                f,
                "imgs/{}: {num_missing} of {num_listed} files missing, first {}",
                folder.display(),
                example.display()
            ),
            Self::Undecodable { path, reason } => {
                write!(f, "imgs/{} {reason}", path.display())
            }
            Self::BlankCaption { split, path } => {
                write!(f, "imgs/{}: blank caption in split {split}", path.display())
            }
        }
    }
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }
}

/// The state of one image file.
enum State {
    Good,
    Missing,
    Undecodable(String),
}

/// Opens and decodes every image of every split, on all cores.
///
/// `progress(done, total)` is called after each image, from any thread. The faults come in a fixed
/// order: missing files by folder, undecodable files and blank captions in annotation order.
pub fn check(dataset: &Dataset, progress: &(dyn Fn(usize, usize) + Sync)) -> Report {
    let paths: Vec<&Path> = dataset.images().map(|image| image.path.as_path()).collect();
    let images_dir = dataset.images_dir();
    let done = AtomicUsize::new(0);
    let states: Vec<State> = paths
        .par_iter()
        .map(|path| {
            let state = state_of(&images_dir.join(path));
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, paths.len());
            state
        })
        .collect();

    let mut faults = missing_by_folder(&paths, &states);
    faults.extend(paths.iter().zip(states).filter_map(|(path, state)| match state {
        State::Undecodable(reason) => Some(Fault::Undecodable { path: path.to_path_buf(), reason }),
        State::Good | State::Missing => None,
    }));
    faults.extend(blank_captions(dataset));
    Report { num_images: paths.len(), faults }
}

fn state_of(path: &Path) -> State {
    if !path.is_file() {
        return State::Missing;
    }
    match decode(path) {
        Ok(_) => State::Good,
        Err(error) => State::Undecodable(reason(error)),
    }
}

/// What the error says besides the path, which its fault names already.
fn reason(error: DataError) -> String {
    match error {
        DataError::Io { source, .. } => format!("cannot be read: {source}"),
        DataError::Decode { source, .. } => {
            format!("cannot be decoded: {source}; download it again")
        }
        DataError::Truncated { .. } => {
            "is cut short: its JPEG data has no end; download it again".to_owned()
        }
        other => other.to_string(),
    }
}

fn missing_by_folder(paths: &[&Path], states: &[State]) -> Vec<Fault> {
    // Per folder: files listed, files missing, first file missing.
    let mut folders: BTreeMap<&Path, (usize, usize, Option<&Path>)> = BTreeMap::new();
    for (path, state) in paths.iter().zip(states) {
        let folder = path.parent().unwrap_or(Path::new(""));
        let (num_listed, num_missing, example) = folders.entry(folder).or_default();
        *num_listed += 1;
        if matches!(state, State::Missing) {
            *num_missing += 1;
            example.get_or_insert(path);
        }
    }
    let fault = |(folder, (num_listed, num_missing, example)): (&Path, (_, _, Option<&Path>))| {
        Some(Fault::MissingFiles {
            folder: folder.to_path_buf(),
            num_missing,
            num_listed,
            example: example?.to_path_buf(),
        })
    };
    folders.into_iter().filter_map(fault).collect()
}

fn blank_captions(dataset: &Dataset) -> Vec<Fault> {
    let splits = [
        (SplitName::Train, &dataset.train),
        (SplitName::Val, &dataset.val),
        (SplitName::Test, &dataset.test),
    ];
    let mut faults = Vec::new();
    for (name, split) in splits {
        for caption in split.captions.iter().filter(|caption| caption.text.trim().is_empty()) {
            faults.push(Fault::BlankCaption {
                split: name.to_string(),
                path: split.images[caption.image].path.clone(),
            });
        }
    }
    faults
}
