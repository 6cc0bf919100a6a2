//! Annotations: which image shows whom, and how people describe it.
//!
//! One module per data set says how its files are published; all give a [`Dataset`]. Person ids are
//! those on disk in every split, whether they start at 0 or at 1: no split is renumbered on its own.

mod cuhk_pedes;
mod find;
mod fingerprint;
mod hold_out;
mod icfg_pedes;
mod layout;
mod read;
mod rstpreid;

use std::fmt;
use std::path::{Path, PathBuf};

pub use fingerprint::Fingerprint;
pub use layout::{Counts, DatasetName};

use crate::error::DataError;
use read::Splits;

/// The name of a split, as annotation files spell it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum SplitName {
    /// Seen in training.
    Train,
    /// For choosing among checkpoints.
    Val,
    /// Read once, for the chosen checkpoint.
    Test,
}

impl SplitName {
    /// Every split, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Train, Self::Val, Self::Test];
}

impl fmt::Display for SplitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        })
    }
}

/// A data set on disk: its records, not its pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// Which one it is, and so how it was read.
    pub name: DatasetName,
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

impl Split {
    /// The people, each once, ascending.
    #[must_use]
    pub fn pids(&self) -> Vec<i64> {
        let mut pids: Vec<i64> = self.images.iter().map(|image| image.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }
}

impl Dataset {
    /// Reads the annotation of the data set in `root`; which one it is, the name of its file says.
    ///
    /// No image is opened; [`check::check`](crate::check::check) does that.
    ///
    /// # Errors
    ///
    /// As [`Dataset::open_as`], and when there are annotation files of several data sets.
    pub fn open(root: &Path) -> Result<Self, DataError> {
        Self::open_as(root, None)
    }

    /// As [`Dataset::open`], of the data set of that name, if there is a name.
    ///
    /// # Errors
    ///
    /// When the folder, the annotation or `imgs/` is missing, when only CUHK-PEDES's
    /// `caption_all.json` is there (it has no splits), when the annotation is there twice and
    /// differs, when it is not UTF-8 JSON, or when a record is malformed, repeats an image or names
    /// a file outside `imgs/`.
    pub fn open_as(root: &Path, name: Option<DatasetName>) -> Result<Self, DataError> {
        let (name, annotation) = find::find(root, name)?;
        let Splits { train, val, test, .. } = read::read(&annotation, name.layout())?;
        let train_pids = train.pids();
        Ok(Self { name, root: root.to_path_buf(), annotation, train, val, test, train_pids })
    }

    /// Moves `num_ids` people of train into a val split, which there must not be yet; `seed` and
    /// the ids of train alone decide who.
    ///
    /// # Errors
    ///
    /// When there is a val split, `num_ids` is 0, or nobody would be left in train.
    pub fn hold_out(self, num_ids: usize, seed: u64) -> Result<Self, DataError> {
        hold_out::hold_out(self, num_ids, seed)
    }

    /// Where the file of an image is.
    #[must_use]
    pub fn image_path(&self, image: &ImageRecord) -> PathBuf {
        self.images_dir().join(&image.path)
    }

    /// A split, which may be empty.
    #[must_use]
    pub fn records(&self, name: SplitName) -> &Split {
        match name {
            SplitName::Train => &self.train,
            SplitName::Val => &self.val,
            SplitName::Test => &self.test,
        }
    }

    /// A split that must have records.
    ///
    /// # Errors
    ///
    /// [`DataError::EmptySplit`] when it has none.
    pub fn split(&self, name: SplitName) -> Result<&Split, DataError> {
        let split = self.records(name);
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
