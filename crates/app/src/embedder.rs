//! Images and captions to features, batch by batch, without a tape.

use crate::learner::tokens;
use anyhow::{Context, Result};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use std::path::PathBuf;
use tbps_data::cache::PixelCache;
use tbps_data::{ImageSize, load_images};
use tbps_model::Clip;

/// A model and how it is fed.
pub(crate) struct Embedder<'a> {
    pub(crate) clip: &'a Clip,
    /// What the towers' matrix products run in.
    pub(crate) compute: FloatDType,
    pub(crate) image_size: ImageSize,
    pub(crate) context_length: usize,
    pub(crate) batch_size: usize,
    /// Decoding threads.
    pub(crate) threads: usize,
    /// Without autodiff.
    pub(crate) device: &'a Device,
    /// Where resized images are read from instead of being decoded.
    pub(crate) cache: Option<&'a PixelCache>,
}

impl Embedder<'_> {
    /// Features of unit length, `[paths.len(), embed_dim]` row-major; `progress` hears how many
    /// images are done.
    pub(crate) fn images(
        &self,
        paths: &[PathBuf],
        progress: &mut dyn FnMut(usize),
    ) -> Result<Vec<f32>> {
        let mut features = Vec::new();
        for (batch, paths) in paths.chunks(self.batch_size).enumerate() {
            let pixels = load_images(paths, self.image_size, self.threads, self.cache)?;
            features.extend(self.pixels(pixels)?);
            progress(batch * self.batch_size + paths.len());
        }
        Ok(features)
    }

    /// Features of unit length, `[b, embed_dim]` row-major, of one batch of normalised pixels
    /// `[b, 3, height, width]`.
    pub(crate) fn pixels(&self, pixels: Vec<f32>) -> Result<Vec<f32>> {
        let ImageSize { height, width } = self.image_size;
        let rows = pixels.len() / self.image_size.num_elements();
        let pixels = TensorData::new(pixels, [rows, 3, height, width]);
        let pixels = Tensor::from_data(pixels, self.device);
        let mut features = Vec::new();
        read(self.clip.encode_image(pixels, self.compute), &mut features)?;
        Ok(features)
    }

    /// Features of unit length, `[rows, embed_dim]` row-major, of `token_ids [rows, context]`.
    pub(crate) fn captions(&self, token_ids: &[i32]) -> Result<Vec<f32>> {
        let mut features = Vec::new();
        for ids in token_ids.chunks(self.batch_size * self.context_length) {
            let ids = tokens(ids, ids.len() / self.context_length, self.device);
            read(self.clip.encode_text(ids, self.compute), &mut features)?;
        }
        Ok(features)
    }
}

/// Appends `[b, embed_dim]` to `out`.
fn read(features: Tensor<2>, out: &mut Vec<f32>) -> Result<()> {
    let data = features.try_into_data().context("the device fails")?;
    out.extend(data.as_slice::<f32>().context("features are f32")?);
    Ok(())
}
