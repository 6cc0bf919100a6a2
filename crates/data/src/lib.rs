//! Text-based person search data, from the files on disk to arrays a model can take.
//!
//! A batch is made in this order: an annotation file becomes a [`Dataset`]; [`check::check`] finds
//! every missing or broken image before any training; [`Sampler`] orders the caption-image pairs;
//! [`TrainLoader`] decodes, resizes, augments and normalises images on worker threads;
//! [`Tokenizer`] turns captions into CLIP's token ids. The crate knows no model and no tensor
//! library: images are `f32` vectors, token ids are `i32` vectors.
//!
//! ```
//! use tbps_data::Tokenizer;
//!
//! let tokenizer = Tokenizer::new(Tokenizer::CLIP_VOCAB_SIZE)?;
//! let ids = tokenizer.encode("A woman with a red bag", 77);
//! assert_eq!(ids[..8], [49406, 320, 2308, 593, 320, 736, 3365, 49407]);
//! assert_eq!(ids[8..], [0; 69]);
//! # Ok::<(), tbps_data::DataError>(())
//! ```

pub mod annotation;
pub mod augment;
pub mod batch;
pub mod cache;
pub mod check;
pub mod error;
pub mod image;
pub mod rng;
pub mod stats;
pub mod synth;
pub mod tokenizer;

pub use annotation::{
    CaptionRecord, Counts, Dataset, DatasetName, Fingerprint, ImageRecord, Split, SplitName,
};
pub use augment::AugmentConfig;
pub use batch::{
    Batch, LoaderConfig, Sampler, TrainLoader, epoch_order, load_images, load_readable,
};
pub use error::{DataError, RecordFault};
pub use image::{ImageSize, pixels};
pub use tokenizer::Tokenizer;
