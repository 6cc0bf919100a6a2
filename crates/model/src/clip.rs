//! The two towers and the temperature.

use crate::config::ClipConfig;
use crate::init::Init;
use crate::text::TextTower;
use crate::vision::VisionTower;
use burn::module::{Module, Param};
use burn::tensor::{FloatDType, Int, Tensor};

/// CLIP: an image tower and a text tower into one embedding space.
#[derive(Module, Debug)]
pub struct Clip {
    /// Images to features.
    pub visual: VisionTower,
    /// Captions to features.
    pub text: TextTower,
    /// `s` of the factor `exp(s)`, `[1]`.
    pub log_logit_scale: Param<Tensor<1>>,
}

impl Clip {
    pub(crate) fn new(config: &ClipConfig, init: &mut Init) -> Self {
        let scale = init.constant([1], config.logit_scale.init.ln() as f32);
        Self {
            visual: VisionTower::new(config, init),
            text: TextTower::new(config, init),
            log_logit_scale: scale.set_require_grad(config.logit_scale.learnable),
        }
    }

    /// `[b, 3, height, width]` normalised pixels to `[b, embed_dim]` features of unit length, f32.
    pub fn encode_image(&self, pixels: Tensor<4>, compute: FloatDType) -> Tensor<2> {
        normalize(self.visual.forward(pixels, compute))
    }

    /// `[b, n]` token ids to `[b, embed_dim]` features of unit length, f32.
    pub fn encode_text(&self, token_ids: Tensor<2, Int>, compute: FloatDType) -> Tensor<2> {
        normalize(self.text.forward(token_ids, compute))
    }

    /// The factor on the cosine similarity, `[1]`, f32.
    pub fn logit_scale(&self) -> Tensor<1> {
        self.log_logit_scale.val().exp()
    }
}

/// Rows of `[b, embed_dim]` to unit length, in f32.
///
/// The floor is `torch.nn.functional.normalize`'s: a zero row stays zero.
pub fn normalize(features: Tensor<2>) -> Tensor<2> {
    let norm = features.clone().square().sum_dim(1).sqrt().clamp_min(1e-12);
    features / norm
}
