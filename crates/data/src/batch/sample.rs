//! One batch from its caption indices, on a thread pool.

use std::sync::Arc;

use pulp::bytemuck::cast_slice;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::{Batch, LoaderConfig};
use crate::annotation::Dataset;
use crate::augment::Augmentation;
use crate::cache::{PixelCache, resized};
use crate::error::DataError;
use crate::rng::{Purpose, Stream};
use crate::tokenizer::Tokenizer;

/// What every worker needs to make samples.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) dataset: Arc<Dataset>,
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) config: LoaderConfig,
    /// Dense train label of every caption.
    pub(super) labels: Vec<i64>,
    /// Images that need no decoding.
    pub(super) cache: Option<Arc<PixelCache>>,
}

impl Source {
    /// The order of the pairs in an epoch.
    pub(super) fn order(&self, epoch: u64) -> Vec<u32> {
        let LoaderConfig { sampler, batch_size, seed, .. } = self.config;
        sampler.order(&self.labels, batch_size, seed, epoch)
    }

    /// The batch of these captions in this epoch; of several errors, the first in batch order.
    ///
    /// Runs on the current rayon pool.
    pub(super) fn batch(&self, epoch: u64, index: &[u32]) -> Result<Batch, DataError> {
        let mut batch = Batch {
            len: index.len(),
            pixels: vec![0.0; index.len() * self.config.image_size.num_elements()],
            token_ids: vec![0; index.len() * self.config.context_length],
            pids: index.iter().map(|&caption| self.labels[caption as usize]).collect(),
            index: index.to_vec(),
            digest: [0; 32],
        };
        let sums: Vec<Result<u32, DataError>> = batch
            .pixels
            .par_chunks_exact_mut(self.config.image_size.num_elements())
            .zip(batch.token_ids.par_chunks_exact_mut(self.config.context_length))
            .zip(index)
            .map(|((pixels, token_ids), &caption)| self.sample(epoch, caption, pixels, token_ids))
            .collect();
        let sums: Vec<u32> = sums.into_iter().collect::<Result<_, _>>()?;
        let parts: [&[u8]; 3] = [cast_slice(index), cast_slice(&batch.pids), cast_slice(&sums)];
        batch.digest = Sha256::digest(parts.concat()).into();
        Ok(batch)
    }

    /// Fills `pixels [3, height, width]` and `token_ids [context_length]` of one caption, and gives
    /// their checksum. It is made here, on the worker that has them in its cache.
    fn sample(
        &self,
        epoch: u64,
        caption: u32,
        pixels: &mut [f32],
        token_ids: &mut [i32],
    ) -> Result<u32, DataError> {
        let LoaderConfig { image_size, seed, augment, .. } = &self.config;
        let record = &self.dataset.train.captions[caption as usize];
        let path = self.dataset.image_path(&self.dataset.train.images[record.image]);
        // The place is the caption, not its position in the batch: resuming changes nothing.
        let mut stream = Stream::new(*seed, Purpose::Augment, &[epoch, u64::from(caption)]);
        let augmentation = Augmentation::draw(augment, *image_size, &mut stream);
        let image = resized(&path, *image_size, self.cache.as_deref())?;
        augmentation.apply(&image, *image_size, pixels);
        token_ids.copy_from_slice(&self.tokenizer.encode(&record.text, token_ids.len()));
        let mut sum = crc32fast::Hasher::new();
        sum.update(cast_slice(pixels));
        sum.update(cast_slice(token_ids));
        Ok(sum.finalize())
    }
}
