//! Batches: shuffled caption-image pairs as arrays, ready for a device.

mod load;
mod loader;
mod sample;

pub use load::load_images;
pub use loader::{Batches, TrainLoader};

use crate::augment::AugmentConfig;
use crate::error::DataError;
use crate::image::ImageSize;
use crate::rng::{Purpose, Stream};

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

/// The order of the caption-image pairs in an epoch: a shuffle of `0..num_pairs` that depends on
/// seed and epoch alone.
///
/// # Panics
///
/// When there are more than 2^32 pairs.
#[must_use]
pub fn epoch_order(num_pairs: usize, seed: u64, epoch: u64) -> Vec<u32> {
    let end = u32::try_from(num_pairs).expect("an annotation has fewer than 2^32 captions");
    let mut order: Vec<u32> = (0..end).collect();
    Stream::new(seed, Purpose::Order, &[epoch]).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_visits_every_pair_once() {
        let mut order = epoch_order(1_000, 1, 2);
        assert_ne!(order, (0..1_000).collect::<Vec<u32>>());
        order.sort_unstable();
        assert_eq!(order, (0..1_000).collect::<Vec<u32>>());
        assert_eq!(epoch_order(0, 1, 2), [0; 0]);
    }

    #[test]
    fn the_order_depends_on_seed_and_epoch() {
        assert_eq!(epoch_order(100, 1, 2), epoch_order(100, 1, 2));
        assert_ne!(epoch_order(100, 1, 2), epoch_order(100, 1, 3));
        assert_ne!(epoch_order(100, 1, 2), epoch_order(100, 2, 2));
    }

    #[test]
    fn bad_settings_are_named() {
        let good = LoaderConfig {
            batch_size: 2,
            image_size: ImageSize { height: 8, width: 4 },
            context_length: 8,
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
