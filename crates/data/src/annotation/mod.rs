//! Annotations: which image shows whom, and how people describe it.
//!
//! One module per data set reads its files as published; all give a [`Dataset`].

mod cuhk_pedes;
mod fingerprint;

use std::fmt;
use std::path::{Path, PathBuf};

pub use fingerprint::Fingerprint;

use crate::error::DataError;

/// The name of a split, as annotation files spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitName {
    /// Seen in training.
    Train,
    /// For choosing among checkpoints.
    Val,
    /// Read once, for the chosen checkpoint.
    Test,
}

impl fmt::Display for SplitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        })
    }
}

/// A data set on disk: its records, not its pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// The folder that holds the annotation file and `imgs/`.
    pub root: PathBuf,
    /// The annotation file.
    pub annotation: PathBuf,
    /// Images and captions for training.
    pub train: Split,
    /// Images and captions for choosing a checkpoint; may be empty.
    pub val: Split,
    /// Images and captions for the final score; may be empty.
    pub test: Split,
    /// Dense train label to person id as on disk, ascending: label `i` is person `train_pids[i]`.
    pub train_pids: Vec<i64>,
}

/// The images and captions of one split, each in file order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// The gallery.
    pub images: Vec<ImageRecord>,
    /// The queries: every caption of every image.
    pub captions: Vec<CaptionRecord>,
}

/// One image of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRecord {
    /// Person id as on disk.
    pub pid: i64,
    /// Path below `imgs/`, which it never leaves.
    pub path: PathBuf,
}

/// One sentence about one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptionRecord {
    /// Index into [`Split::images`].
    pub image: usize,
    /// Person id as on disk.
    pub pid: i64,
    /// The sentence, exactly as on disk.
    pub text: String,
}

impl Dataset {
    /// Reads the annotation of the data set in `root`: `reid_raw.json` beside `imgs/`, as
    /// CUHK-PEDES is published.
    ///
    /// No image is opened; [`check::check`](crate::check::check) does that.
    ///
    /// # Errors
    ///
    /// When the folder, the annotation or `imgs/` is missing, when only `caption_all.json` is there
    /// (it has no splits), when the annotation is not UTF-8 JSON, or when a record is malformed,
    /// repeats an image or names a file outside `imgs/`.
    pub fn open(root: &Path) -> Result<Self, DataError> {
        cuhk_pedes::open(root)
    }

    /// Where the file of an image is.
    #[must_use]
    pub fn image_path(&self, image: &ImageRecord) -> PathBuf {
        self.images_dir().join(&image.path)
    }

    /// A split that must have records.
    ///
    /// # Errors
    ///
    /// [`DataError::EmptySplit`] when it has none.
    pub fn split(&self, name: SplitName) -> Result<&Split, DataError> {
        let split = match name {
            SplitName::Train => &self.train,
            SplitName::Val => &self.val,
            SplitName::Test => &self.test,
        };
        if split.images.is_empty() {
            return Err(DataError::EmptySplit { path: self.annotation.clone(), split: name });
        }
        Ok(split)
    }

    /// The dense label, in `0..train_pids.len()`, of a person of the train split.
    #[must_use]
    pub fn train_label(&self, pid: i64) -> Option<usize> {
        self.train_pids.binary_search(&pid).ok()
    }

    /// What identifies this copy of the data set in a run's record.
    ///
    /// # Errors
    ///
    /// [`DataError::Io`] naming the annotation or the first image that cannot be read.
    pub fn fingerprint(&self) -> Result<Fingerprint, DataError> {
        fingerprint::of(self)
    }

    /// All images, split after split.
    pub fn images(&self) -> impl Iterator<Item = &ImageRecord> {
        [&self.train, &self.val, &self.test].into_iter().flat_map(|split| &split.images)
    }

    /// The folder that all image paths start from.
    #[must_use]
    pub fn images_dir(&self) -> PathBuf {
        self.root.join("imgs")
    }
}
