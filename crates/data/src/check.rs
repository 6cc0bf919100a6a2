//! Everything that is wrong with a data set, found before any training.
//!
//! Downloads of person search data often lack whole folders or hold files cut short. Each image is
//! decoded in full, since a JPEG cut in the middle still has a good header.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::annotation::{Dataset, SplitName};
use crate::error::DataError;
use crate::image::decode;

/// What [`check`] found.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Images that the annotation names.
    pub num_images: usize,
    /// Everything that is wrong; empty means ready to train.
    pub faults: Vec<Fault>,
}

/// One thing that is wrong with a data set.
///
/// As JSON it has its `kind`, `folder`, `path` and `message`, the last as [`fmt::Display`] writes
/// it, and the numbers and the list of files of missing ones.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Image files are missing from a folder.
    MissingFiles {
        /// The folder, below `imgs/`.
        folder: PathBuf,
        /// How many of its files the annotation names.
        num_listed: usize,
        /// The missing files, at least one, below `imgs/`, in annotation order.
        files: Vec<PathBuf>,
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
        split: SplitName,
        /// The image it describes, below `imgs/`.
        path: PathBuf,
    },
}

impl Fault {
    /// The image file it is about, below `imgs/`; of several the first.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::MissingFiles { folder, files, .. } => files.first().unwrap_or(folder),
            Self::Undecodable { path, .. } | Self::BlankCaption { path, .. } => path,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path().display();
        match self {
            Self::MissingFiles { folder, num_listed, files } => write!(
                f,
                "imgs/{}: {} of {num_listed} files missing, first {path}",
                folder.display(),
                files.len()
            ),
            Self::Undecodable { reason, .. } => write!(f, "imgs/{path} {reason}"),
            Self::BlankCaption { split, .. } => {
                write!(f, "imgs/{path}: blank caption in split {split}")
            }
        }
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = match self {
            Self::MissingFiles { .. } => "missing_files",
            Self::Undecodable { .. } => "undecodable",
            Self::BlankCaption { .. } => "blank_caption",
        };
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("kind", kind)?;
        fields.serialize_entry("folder", self.path().parent().unwrap_or(Path::new("")))?;
        fields.serialize_entry("path", self.path())?;
        fields.serialize_entry("message", &self.to_string())?;
        if let Self::MissingFiles { num_listed, files, .. } = self {
            fields.serialize_entry("num_missing", &files.len())?;
            fields.serialize_entry("num_listed", num_listed)?;
            fields.serialize_entry("files", files)?;
        }
        fields.end()
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
    // Per folder: files listed, and those of them that are missing.
    let mut folders: BTreeMap<&Path, (usize, Vec<PathBuf>)> = BTreeMap::new();
    for (path, state) in paths.iter().zip(states) {
        let (num_listed, files) =
            folders.entry(path.parent().unwrap_or(Path::new(""))).or_default();
        *num_listed += 1;
        if matches!(state, State::Missing) {
            files.push(path.to_path_buf());
        }
    }
    let folders = folders.into_iter().filter(|(_, (_, files))| !files.is_empty());
    let fault = |(folder, (num_listed, files)): (&Path, (_, _))| Fault::MissingFiles {
        folder: folder.to_path_buf(),
        num_listed,
        files,
    };
    folders.map(fault).collect()
}

fn blank_captions(dataset: &Dataset) -> Vec<Fault> {
    let mut faults = Vec::new();
    for name in SplitName::ALL {
        let split = dataset.records(name);
        for caption in split.captions.iter().filter(|caption| caption.text.trim().is_empty()) {
            let path = split.images[caption.image].path.clone();
            faults.push(Fault::BlankCaption { split: name, path });
        }
    }
    faults
}
