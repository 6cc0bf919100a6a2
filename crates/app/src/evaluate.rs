//! Features of a split and their retrieval scores, both directions.

use crate::config::{Config, SplitName};
use crate::learner::{image_size, tokens};
use anyhow::{Context, Result};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use std::path::PathBuf;
use std::sync::Arc;
use tbps_data::{Dataset, ImageSize, Tokenizer, load_images};
use tbps_metrics::retrieval::{self, Retrieval};
use tbps_model::Clip;

/// A split, ready to be embedded: image files and token ids.
pub(crate) struct EvalSet {
    images: Vec<PathBuf>,
    image_pids: Vec<i64>,
    /// `[captions, context_length]`
    token_ids: Vec<i32>,
    caption_pids: Vec<i64>,
    context_length: usize,
    image_size: ImageSize,
    batch_size: usize,
    threads: usize,
    device: Device,
}

/// Scores and per-query ranks of both directions.
#[derive(Debug, Clone)]
pub(crate) struct Evaluation {
    /// Queries are captions, the gallery is images.
    pub(crate) t2i: Retrieval,
    /// Queries are images, the gallery is captions.
    pub(crate) i2t: Retrieval,
}

/// What burn-train passes on of an evaluation.
pub(crate) struct EvalOutput(pub(crate) Result<Arc<Evaluation>>);

/// Features of images and captions, row-major, `dim` wide.
pub(crate) struct Features {
    pub(crate) images: Vec<f32>,
    pub(crate) captions: Vec<f32>,
}

impl EvalSet {
    /// # Errors
    /// When the split has no records.
    pub(crate) fn new(
        dataset: &Dataset,
        split: SplitName,
        tokenizer: &Tokenizer,
        config: &Config,
        device: &Device,
    ) -> Result<Self> {
        let name = match split {
            SplitName::Val => tbps_data::SplitName::Val,
            SplitName::Test => tbps_data::SplitName::Test,
        };
        let split = dataset.split(name)?;
        let texts: Vec<&str> = split.captions.iter().map(|c| c.text.as_str()).collect();
        let context_length = config.model.text.context_length;
        Ok(Self {
            images: split.images.iter().map(|image| dataset.image_path(image)).collect(),
            image_pids: split.images.iter().map(|image| image.pid).collect(),
            token_ids: tokenizer.encode_batch(&texts, context_length),
            caption_pids: split.captions.iter().map(|caption| caption.pid).collect(),
            context_length,
            image_size: image_size(config),
            batch_size: config.eval.batch_size,
            threads: config.data.threads,
            device: device.clone(),
        })
    }

    /// Embeds everything and ranks it.
    pub(crate) fn evaluate(&self, clip: &Clip, compute: FloatDType) -> Result<Evaluation> {
        let Features { images, captions } = self.features(clip, compute)?;
        let dim = images.len() / self.images.len();
        let (image_pids, caption_pids) = (&self.image_pids, &self.caption_pids);
        Ok(Evaluation {
            t2i: retrieval::evaluate(&captions, caption_pids, &images, image_pids, dim)?,
            i2t: retrieval::evaluate(&images, image_pids, &captions, caption_pids, dim)?,
        })
    }

    /// Features of every image and caption, batch by batch, without a tape.
    fn features(&self, clip: &Clip, compute: FloatDType) -> Result<Features> {
        let ImageSize { height, width } = self.image_size;
        let (mut images, mut captions) = (Vec::new(), Vec::new());
        for paths in self.images.chunks(self.batch_size) {
            let pixels = load_images(paths, self.image_size, self.threads)?;
            let pixels = TensorData::new(pixels, [paths.len(), 3, height, width]);
            let pixels = Tensor::from_data(pixels, &self.device);
            read(clip.encode_image(pixels, compute), &mut images)?;
        }
        for ids in self.token_ids.chunks(self.batch_size * self.context_length) {
            let ids = tokens(ids, ids.len() / self.context_length, &self.device);
            read(clip.encode_text(ids, compute), &mut captions)?;
        }
        Ok(Features { images, captions })
    }
}

/// Appends `[b, embed_dim]` to `out`.
fn read(features: Tensor<2>, out: &mut Vec<f32>) -> Result<()> {
    let data = features.into_data();
    out.extend(data.as_slice::<f32>().context("features are f32")?);
    Ok(())
}
