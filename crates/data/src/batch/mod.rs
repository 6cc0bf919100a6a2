//! Batches: shuffled caption-image pairs as arrays, ready for a device.

mod load;
mod loader;
mod sample;
mod sampler;

pub(crate) use load::thread_pool;
pub use load::{load_images, load_readable};
pub use loader::{Batches, TrainLoader};
pub use sampler::{Sampler, epoch_order, same_pid_pairs};

use crate::augment::AugmentConfig;
use crate::error::DataError;
use crate::image::ImageSize;

/// One training batch of caption-image pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Pairs in the batch.
    pub len: usize,
    /// Augmented and normalised images, `[len, 3, height, width]`.
    pub pixels: Vec<f32>,
    /// Token ids, `[len, context_length]`.
    pub token_ids: Vec<i32>,
    /// Dense train labels, `[len]`: indices into [`Dataset::train_pids`](crate::Dataset).
    pub pids: Vec<i64>,
    /// Caption indices in the train split, `[len]`.
    pub index: Vec<u32>,
    /// A hash of all of the above: equal batches have equal digests.
    pub digest: [u8; 32],
}

/// How training batches are made.
#[derive(Debug, Clone, PartialEq)]
pub struct LoaderConfig {
    /// Pairs in a batch; the last pairs of an epoch that fill no batch are dropped.
    pub batch_size: usize,
    /// Model input size in pixels.
    pub image_size: ImageSize,
    /// Token ids per caption, at least 2: start and end.
    pub context_length: usize,
    /// Which pairs share a batch.
    pub sampler: Sampler,
    /// Root of the order and augmentation streams.
    pub seed: u64,
    /// Worker threads, at least 1; the batches do not depend on it.
    pub threads: usize,
    /// Random changes of the images.
    pub augment: AugmentConfig,
}

impl LoaderConfig {
    /// Refuses values without a meaning.
    ///
    /// # Errors
    ///
    /// [`DataError::Setting`] naming the first bad one.
    pub fn validate(&self) -> Result<(), DataError> {
        let at_least = |name, value: usize, least, expected| match value < least {
            true => Err(DataError::Setting { name, value: value.to_string(), expected }),
            false => Ok(()),
        };
        at_least("batch_size", self.batch_size, 1, "at least 1")?;
        at_least("threads", self.threads, 1, "at least 1")?;
        at_least("context_length", self.context_length, 2, "at least 2: start and end of text")?;
        self.image_size.validate()?;
        self.augment.validate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_named() {
        let good = LoaderConfig {
            batch_size: 2,
            image_size: ImageSize { height: 8, width: 4 },
            context_length: 8,
            sampler: Sampler::Shuffle,
            seed: 0,
            threads: 1,
            augment: AugmentConfig::default(),
        };
        good.validate().unwrap();
        let check = |name: &str, change: fn(&mut LoaderConfig)| {
            let mut config = good.clone();
            change(&mut config);
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name} = ")), "{error}");
        };
        check("batch_size", |config| config.batch_size = 0);
        check("threads", |config| config.threads = 0);
        check("context_length", |config| config.context_length = 1);
        check("image size", |config| config.image_size.width = 0);
        check("augment.pad_px", |config| config.augment.pad_px = 100_000);
    }
}
