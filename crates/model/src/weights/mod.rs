//! Weights: a model's parameters as named tensors, and the files that hold them.
//!
//! [`read`] takes what people have, by content and not by name: open_clip's and Hugging Face's
//! safetensors and pickled state dicts, OpenAI's TorchScript archive, and our own. Nothing that a
//! pickle asks for is ever executed. [`ClipWeights::fit`] makes the tensors a given model's, with
//! the position embedding resized; [`export`] writes open_clip's safetensors.
//!
//! Our names are field names and indices from the model's root, joined by dots, such as
//! `visual.blocks.0.qkv.weight`.

mod export;
mod fit;
mod import;
mod naming;
mod params;
mod safetensors;
mod stream;
mod tensor;
mod torch;

pub use export::{export, serialize};
pub use fit::Fitted;
pub use import::{ClipWeights, Container, Names, read};
pub use params::{load, state_dict};
pub use stream::{See, visit, write};

use crate::config::ClipConfig;
use serde::{Deserialize, Serialize};

/// SHA-256 of the `ViT-B-16.pt` that OpenAI publishes.
pub const OPENAI_VIT_B_16_SHA256: &str =
    "5806e77cd80f8b59890b7e101eabd078d9fb84e6937f9e85e4ecb61988df416f";

/// What a file of ours says besides its tensors, under the metadata key `tbps`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The model, its activation included.
    pub model: ClipConfig,
    /// Mean of the pixels' normalisation, red, green and blue, of values in 0 ..= 1.
    pub pixel_mean: [f32; 3],
    /// Standard deviation of the same.
    pub pixel_std: [f32; 3],
}
