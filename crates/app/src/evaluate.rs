//! Features of a split and their retrieval scores, both directions.

use crate::config::{Config, SplitName};
use crate::embedder::Embedder;
use crate::hold::{self, Place};
use crate::learner::image_size;
use anyhow::Result;
use burn::tensor::{Device, FloatDType};
use std::path::PathBuf;
use std::sync::Arc;
use tbps_data::cache::PixelCache;
use tbps_data::{Dataset, ImageSize, Tokenizer};
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
    cache: Option<Arc<PixelCache>>,
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
        split: impl Into<tbps_data::SplitName>,
        tokenizer: &Tokenizer,
        config: &Config,
        device: &Device,
    ) -> Result<Self> {
        let split = dataset.split(split.into())?;
        let images = first(&split.images, config.eval.max_images);
        let captions = first(&split.captions, config.eval.max_queries);
        let texts: Vec<&str> = captions.iter().map(|c| c.text.as_str()).collect();
        let context_length = config.model.text.context_length;
        Ok(Self {
            images: images.iter().map(|image| dataset.image_path(image)).collect(),
            image_pids: images.iter().map(|image| image.pid).collect(),
            token_ids: tokenizer.encode_batch(&texts, context_length),
            caption_pids: captions.iter().map(|caption| caption.pid).collect(),
            context_length,
            image_size: image_size(config),
            batch_size: config.eval.batch_size,
            threads: config.data.threads,
            cache: None,
            device: device.clone(),
        })
    }

    /// Reads images from a cache, if there is one, instead of decoding them.
    pub(crate) fn with_cache(self, cache: Option<Arc<PixelCache>>) -> Self {
        Self { cache, ..self }
    }

    /// Embeds everything and ranks it.
    pub(crate) fn evaluate(&self, clip: &Clip, compute: FloatDType) -> Result<Evaluation> {
        Ok(self.evaluate_whole(clip, compute)?.0)
    }

    /// As [`EvalSet::evaluate`], with the features that were ranked.
    pub(crate) fn evaluate_whole(
        &self,
        clip: &Clip,
        compute: FloatDType,
    ) -> Result<(Evaluation, Features)> {
        hold::at(Place::Evaluation);
        let features = self.features(clip, compute)?;
        let Features { images, captions } = &features;
        let dim = images.len() / self.images.len();
        let (image_pids, caption_pids) = (&self.image_pids, &self.caption_pids);
        let evaluation = Evaluation {
            t2i: retrieval::evaluate(captions, caption_pids, images, image_pids, dim)?,
            i2t: retrieval::evaluate(images, image_pids, captions, caption_pids, dim)?,
        };
        Ok((evaluation, features))
    }

    /// Features of every image and caption, batch by batch, without a tape.
    fn features(&self, clip: &Clip, compute: FloatDType) -> Result<Features> {
        let embedder = Embedder {
            clip,
            compute,
            image_size: self.image_size,
            context_length: self.context_length,
            batch_size: self.batch_size,
            threads: self.threads,
            device: &self.device,
            cache: self.cache.as_deref(),
        };
        let images = embedder.images(&self.images, &mut |_| ())?;
        Ok(Features { images, captions: embedder.captions(&self.token_ids)? })
    }
}

impl From<SplitName> for tbps_data::SplitName {
    fn from(split: SplitName) -> Self {
        match split {
            SplitName::Val => Self::Val,
            SplitName::Test => Self::Test,
        }
    }
}

/// The first `most` of a split, or all of it when that is 0.
fn first<T>(all: &[T], most: usize) -> &[T] {
    match most {
        0 => all,
        most => &all[..most.min(all.len())],
    }
}
