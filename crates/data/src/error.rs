//! Everything that can be wrong with the data or with a setting of this crate.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::annotation::{DatasetName, SplitName};

/// An error of this crate; its message says what is wrong, where, and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file or folder cannot be read or written.
    #[error("cannot access {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The data set folder is absent.
    #[error("the data set folder {} does not exist or is not a folder", root.display())]
    RootNotFound {
        /// The folder that was asked for.
        root: PathBuf,
    },

    /// The folder holds no annotation file.
    #[error("{} has no {expected}; point to the folder that holds it beside imgs/", root.display())]
    AnnotationNotFound {
        /// The data set folder.
        root: PathBuf,
        /// The file names it was looked for under.
        expected: String,
    },

    /// The folder holds the annotation files of several data sets.
    #[error("{} has annotation files of {first} and of {second}; say which one by --dataset, or by data.dataset in a configuration", root.display())]
    AmbiguousDataset {
        /// The data set folder.
        root: PathBuf,
        /// A data set it holds.
        first: DatasetName,
        /// Another one.
        second: DatasetName,
    },

    /// The annotation is there under two names.
    #[error("{} and {} differ; remove the one that is not meant", first.display(), second.display())]
    AnnotationsDiffer {
        /// The one.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },

    /// The folder holds the captions without the official splits.
    #[error(
        "{} has caption_all.json, which says nothing of train, val and test; ask the authors of \
         CUHK-PEDES for reid_raw.json (it comes apart from the images) and put it there",
        root.display()
    )]
    SplitsNotFound {
        /// The data set folder.
        root: PathBuf,
    },

    /// The annotation is there, the images are not.
    #[error("{} has no imgs/ folder; unpack the images of the data set there", root.display())]
    ImagesNotFound {
        /// The data set folder.
        root: PathBuf,
    },

    /// The annotation file is not UTF-8.
    #[error("{} is not UTF-8 at byte {offset}; save it as UTF-8", path.display())]
    NotUtf8 {
        /// The annotation file.
        path: PathBuf,
        /// The first byte that is not UTF-8.
        offset: usize,
    },

    /// The annotation file is not a JSON list.
    #[error("{} is not a JSON list of records: {source}; download it again", path.display())]
    Json {
        /// The annotation file.
        path: PathBuf,
        /// Line, column and reason.
        source: serde_json::Error,
    },

    /// One record of the annotation file is wrong.
    #[error("{}: record {index} (counted from 0): {fault}; correct or remove it", path.display())]
    Record {
        /// The annotation file.
        path: PathBuf,
        /// Position in the list, counted from 0.
        index: usize,
        /// What is wrong with it.
        fault: RecordFault,
    },

    /// A split that is needed has no record.
    #[error("{} has no record of split \"{split}\"; choose another split or add one", path.display())]
    EmptySplit {
        /// The annotation file.
        path: PathBuf,
        /// The split without records.
        split: SplitName,
    },

    /// People would be held out of train where there is a val split.
    #[error("{} has a val split, beside which holdout_ids = {num_ids} has no effect; set it to 0", path.display())]
    HoldOutWithoutEffect {
        /// The annotation file.
        path: PathBuf,
        /// People asked for.
        num_ids: usize,
    },

    /// Nobody, or everybody, would be held out of train.
    #[error("holdout_ids = {num_ids}, but train in {} has {num_train_ids} people; hold out at least one and leave one", path.display())]
    HoldOutTooLarge {
        /// The annotation file.
        path: PathBuf,
        /// People asked for.
        num_ids: usize,
        /// People in the train split.
        num_train_ids: usize,
    },

    /// An image file has no valid content.
    #[error("cannot decode {}: {source}; download it again", path.display())]
    Decode {
        /// The image file.
        path: PathBuf,
        /// What the decoder said.
        source: image::ImageError,
    },

    /// A JPEG file ends before its image does.
    #[error("{} is cut short: its JPEG data has no end; download it again", path.display())]
    Truncated {
        /// The image file.
        path: PathBuf,
    },

    /// An image cannot be written.
    #[error("cannot write the image {}: {source}", path.display())]
    Encode {
        /// The image file.
        path: PathBuf,
        /// What the encoder said.
        source: image::ImageError,
    },

    /// A data set would be written over something.
    #[error("{} already holds files; choose a new folder or empty this one", path.display())]
    OutputNotEmpty {
        /// The folder that was to be written.
        path: PathBuf,
    },

    /// The resized images do not fit on the disk.
    #[error(
        "the resized images need {} MiB in {}, but only {} MiB are free there: free some or choose \
         a folder on another disk",
        needed_bytes.div_ceil(1 << 20),
        dir.display(),
        free_bytes >> 20
    )]
    NoRoom {
        /// The folder of the cache.
        dir: PathBuf,
        /// Bytes of the cache.
        needed_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
    },

    /// Somebody changed the file of resized images as soon as it was written.
    #[error("{} was changed while it was written; use a folder that nobody else writes to", path.display())]
    CacheLost {
        /// The file of the cache.
        path: PathBuf,
    },

    /// A setting is out of its range.
    #[error("{name} = {value}: expected {expected}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// The value it was given.
        value: String,
        /// The values it may have.
        expected: &'static str,
    },

    /// Not even one batch can be filled.
    #[error(
        "batch_size = {batch_size}, but the train split has only {num_pairs} captions; use a \
         batch of at most that many"
    )]
    BatchTooLarge {
        /// The batch size asked for.
        batch_size: usize,
        /// Captions in the train split.
        num_pairs: usize,
    },

    /// Worker threads cannot be started.
    #[error("cannot start {threads} loader threads: {reason}; use fewer")]
    Threads {
        /// The number of threads asked for.
        threads: usize,
        /// What the operating system or the pool said.
        reason: String,
    },

    /// A worker thread died without saying why; its own message is on standard error.
    #[error("a loader thread died; this is a bug, please report it with the message above")]
    WorkerDied,
}

impl DataError {
    /// For `map_err` on file access: an [`DataError::Io`] that names the path.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// What is wrong with one record of an annotation file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// The record is no object.
    #[error("{}", without_place(_0))]
    Malformed(serde_json::Error),

    /// A field is missing.
    #[error("missing field `{0}`")]
    MissingField(&'static str),

    /// A field has the wrong type.
    #[error("{field}: {}", without_place(source))]
    Field {
        /// The field's name.
        field: &'static str,
        /// What it is, and what was expected.
        source: serde_json::Error,
    },

    /// The list of captions is empty.
    #[error("it has no caption")]
    NoCaption,

    /// The person id is below zero.
    #[error("id {0} is negative")]
    NegativePid(i64),

    /// The image path is empty, absolute or climbs out of `imgs/`.
    #[error("{field} {path:?} is not a path inside imgs/")]
    OutsideImages {
        /// The field's name.
        field: &'static str,
        /// The path in the record.
        path: String,
    },

    /// Another record already describes this image.
    #[error("{field} {path:?} is already in record {first}")]
    Duplicate {
        /// The field's name.
        field: &'static str,
        /// The path in both records.
        path: String,
        /// The earlier record, counted from 0.
        first: usize,
    },
}

/// The message without line and column: they count from the record's own beginning, which nobody
/// sees in the file.
fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what).to_owned()
}
