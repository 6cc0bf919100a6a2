//! One batch from its caption indices, on a thread pool.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Batch, LoaderConfig};
use crate::annotation::Dataset;
use crate::augment::Augmentation;
use crate::error::DataError;
use crate::image::{decode, normalize, resize};
use crate::rng::{Purpose, Stream};
use crate::tokenizer::Tokenizer;

/// What every worker needs to make samples.
pub(super) struct Source {
    pub(super) dataset: Arc<Dataset>,
    pub(super) tokenizer: Arc<Tokenizer>,
    pub(super) config: LoaderConfig,
    /// Dense train label of every caption.
    pub(super) labels: Vec<i64>,
}

impl Source {
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
        };
        let results: Vec<Result<(), DataError>> = batch
            .pixels
            .par_chunks_exact_mut(self.config.image_size.num_elements())
            .zip(batch.token_ids.par_chunks_exact_mut(self.config.context_length))
            .zip(index)
            .map(|((pixels, token_ids), &caption)| self.sample(epoch, caption, pixels, token_ids))
            .collect();
        results.into_iter().collect::<Result<(), _>>()?;
        Ok(batch)
    }

    /// Fills `pixels [3, height, width]` and `token_ids [context_length]` of one caption.
    fn sample(
        &self,
        epoch: u64,
        caption: u32,
        pixels: &mut [f32],
        token_ids: &mut [i32],
    ) -> Result<(), DataError> {
        let LoaderConfig { image_size, seed, augment, .. } = &self.config;
        let record = &self.dataset.train.captions[caption as usize];
        let path = self.dataset.image_path(&self.dataset.train.images[record.image]);
        // The place is the caption, not its position in the batch: resuming changes nothing.
        let mut stream = Stream::new(*seed, Purpose::Augment, &[epoch, u64::from(caption)]);
        let augmentation = Augmentation::draw(augment, *image_size, &mut stream);
        let image = augmentation.move_pixels(&resize(&decode(&path)?, *image_size));
        normalize(&image, pixels);
        augmentation.erase(*image_size, pixels);
        token_ids.copy_from_slice(&self.tokenizer.encode(&record.text, token_ids.len()));
        Ok(())
    }
}
