//! Sizes and choices of a CLIP model. ViT-B/16 and the small demo model differ only in these.

use crate::clip::Clip;
use crate::error::ModelError;
use crate::init::Init;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};

/// A CLIP model's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClipConfig {
    /// Width of the shared embedding space.
    pub embed_dim: usize,
    /// Non-linearity of every MLP.
    pub activation: Activation,
    /// Temperature of the similarity.
    pub logit_scale: LogitScaleConfig,
    /// The image tower.
    pub vision: VisionConfig,
    /// The text tower.
    pub text: TextConfig,
}

/// The image tower: a pre-norm vision transformer with a class token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VisionConfig {
    /// Image height in pixels, a multiple of `patch_size`.
    pub image_height: usize,
    /// Image width in pixels, a multiple of `patch_size`.
    pub image_width: usize,
    /// Side of a square patch in pixels.
    pub patch_size: usize,
    /// Width of the residual stream, a multiple of `heads`.
    pub width: usize,
    /// Number of transformer blocks.
    pub layers: usize,
    /// Attention heads.
    pub heads: usize,
}

/// The text tower: a causal transformer, pooled at the end-of-text token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextConfig {
    /// Number of token ids. The largest id is the end of text (49408 in CLIP).
    pub vocab_size: usize,
    /// Most tokens of a caption, start and end included (77 in CLIP).
    pub context_length: usize,
    /// Width of the residual stream, a multiple of `heads`.
    pub width: usize,
    /// Number of transformer blocks.
    pub layers: usize,
    /// Attention heads.
    pub heads: usize,
}

/// The factor `exp(s)` on the cosine similarity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogitScaleConfig {
    /// Initial factor, such as 1/0.07 (OpenAI's start) or 50 (IRRA).
    pub init: f64,
    /// Whether `s` is trained.
    pub learnable: bool,
    /// Upper bound of the factor after each step (100 in CLIP).
    pub max: f64,
}

/// Non-linearity of the MLPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `x * sigmoid(1.702 x)`: what OpenAI's weights were trained with.
    QuickGelu,
    /// The exact Gaussian error linear unit.
    Gelu,
}

impl ClipConfig {
    /// A model small enough for examples and unit tests: 32x16 pixels, two blocks a tower.
    pub fn tiny() -> Self {
        Self {
            embed_dim: 8,
            activation: Activation::QuickGelu,
            logit_scale: LogitScaleConfig { init: 1.0 / 0.07, learnable: true, max: 100.0 },
            vision: VisionConfig {
                image_height: 32,
                image_width: 16,
                patch_size: 8,
                width: 16,
                layers: 2,
                heads: 2,
            },
            text: TextConfig { vocab_size: 64, context_length: 12, width: 16, layers: 2, heads: 2 },
        }
    }

    /// Checks every size.
    ///
    /// # Errors
    /// [`ModelError`] names the first setting that describes no model.
    pub fn validate(&self) -> Result<(), ModelError> {
        let (v, t) = (&self.vision, &self.text);
        positive(&[
            ("embed_dim", self.embed_dim),
            ("vision.image_height", v.image_height),
            ("vision.image_width", v.image_width),
            ("vision.patch_size", v.patch_size),
            ("vision.width", v.width),
            ("vision.layers", v.layers),
            ("vision.heads", v.heads),
            ("text.width", t.width),
            ("text.layers", t.layers),
            ("text.heads", t.heads),
        ])?;
        multiple("vision.image_height", v.image_height, "vision.patch_size", v.patch_size)?;
        multiple("vision.image_width", v.image_width, "vision.patch_size", v.patch_size)?;
        multiple("vision.width", v.width, "vision.heads", v.heads)?;
        multiple("text.width", t.width, "text.heads", t.heads)?;
        let range = |field, value: f64, ok: bool, expected| match ok {
            true => Ok(()),
            false => Err(ModelError::Size { field, value, expected }),
        };
        let context = t.context_length as f64;
        range("text.context_length", context, t.context_length >= 3, "at least 3")?;
        let vocab = t.vocab_size as f64;
        range("text.vocab_size", vocab, t.vocab_size >= 3, "at least 3")?;
        let s = &self.logit_scale;
        range("logit_scale.max", s.max, s.max.is_finite() && s.max > 0.0, "a positive number")?;
        let fits = s.init > 0.0 && s.init <= s.max;
        range("logit_scale.init", s.init, fits, "positive and at most logit_scale.max")
    }

    /// A model with random parameters, drawn on the host: one seed gives one model on any device.
    ///
    /// Pass a device with autodiff to train it.
    ///
    /// # Errors
    /// As [`ClipConfig::validate`].
    pub fn init(&self, seed: u64, device: &Device) -> Result<Clip, ModelError> {
        self.validate()?;
        Ok(Clip::new(self, &mut Init::new(seed, device)))
    }
}

impl VisionConfig {
    /// Rows and columns of the patch grid.
    pub fn grid(&self) -> [usize; 2] {
        [self.image_height / self.patch_size, self.image_width / self.patch_size]
    }

    /// Positions of the tower: the class token and every patch.
    pub fn num_positions(&self) -> usize {
        let [rows, columns] = self.grid();
        rows * columns + 1
    }
}

fn positive(fields: &[(&'static str, usize)]) -> Result<(), ModelError> {
    match fields.iter().find(|(_, value)| *value == 0) {
        None => Ok(()),
        Some((field, _)) => Err(ModelError::Size { field, value: 0.0, expected: "at least 1" }),
    }
}

fn multiple(
    field: &'static str,
    value: usize,
    divisor_field: &'static str,
    divisor: usize,
) -> Result<(), ModelError> {
    match value.is_multiple_of(divisor) {
        true => Ok(()),
        false => Err(ModelError::NotMultiple { field, value, divisor_field, divisor }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked_by_name() {
        let mut config = ClipConfig::tiny();
        assert_eq!(config.validate(), Ok(()));
        config.vision.image_width = 17;
        assert_eq!(
            config.validate().unwrap_err().to_string(),
            "model.vision.image_width = 17 must be a multiple of vision.patch_size = 8"
        );
        config.vision.image_width = 16;
        config.logit_scale.init = 200.0;
        assert_eq!(
            config.validate().unwrap_err().to_string(),
            "model.logit_scale.init = 200 must be positive and at most logit_scale.max"
        );
    }
}
