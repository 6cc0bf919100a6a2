//! Galleries embedded once: an index file holds a feature per image, and where the image is.
//!
//! `gallery` lists the images of a folder or a split; `build` embeds what an index does not have
//! yet; `journal` keeps what a build has done so far, so that a killed one goes on; `file` is the
//! file itself, written whole and mapped into memory.

mod build;
mod file;
mod gallery;
mod journal;
mod layout;

pub(crate) use build::{BATCH, Made, Maker, open_or_update};
pub(crate) use file::Index;
pub(crate) use gallery::{Gallery, Source, media_type};

use crate::model_source::ModelSource;
use serde::{Deserialize, Serialize};

/// What decides a feature besides the image: an index made with another one is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    pub(crate) weights_sha256: String,
    /// `HEIGHTxWIDTH`
    pub(crate) image_size: String,
    pub(crate) activation: String,
    /// How the position embedding was resized, if it was.
    pub(crate) pos_embed: Option<String>,
    /// The dtype of the towers' products.
    pub(crate) compute: String,
    pub(crate) embed_dim: usize,
    /// What the features are stored in.
    pub(crate) precision: Precision,
}

impl Identity {
    pub(crate) fn new(source: &ModelSource, precision: Precision) -> Self {
        let word = |value: String| value.trim_matches('"').to_owned();
        Self {
            weights_sha256: source.record.sha256.clone(),
            image_size: source.image_size().to_string(),
            activation: word(crate::model_file::quoted(&source.model.activation)),
            pos_embed: source
                .record
                .pos_embed_resize
                .map(|how| word(crate::model_file::quoted(&how))),
            compute: format!("{:?}", source.compute).to_lowercase(),
            embed_dim: source.model.embed_dim,
            precision,
        }
    }

    /// What of `self`, an index's, is not as `wanted`, in words; nothing when it is.
    pub(crate) fn difference(&self, wanted: &Self) -> Option<String> {
        let short = |sha: &str| sha.chars().take(12).collect::<String>();
        let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let [ours, theirs] = [self, wanted].map(|id| {
            [
                ("weights", short(&id.weights_sha256)),
                ("image size", id.image_size.clone()),
                ("activation", id.activation.clone()),
                ("resize of positions", optional(&id.pos_embed)),
                ("compute dtype", id.compute.clone()),
                ("embedding width", id.embed_dim.to_string()),
                ("precision", id.precision.to_string()),
            ]
        });
        let differing = ours.into_iter().zip(theirs).filter(|(ours, theirs)| ours != theirs);
        let words: Vec<String> = differing
            .map(|((what, ours), (_, theirs))| format!("{what} {ours}, not {theirs}"))
            .collect();
        (self != wanted).then(|| words.join("; "))
    }
}

/// What features are stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Precision {
    F32,
    /// Half the space; similarities move in their fifth decimal.
    F16,
}

impl Precision {
    pub(crate) fn num_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 => 2,
        }
    }
}

impl std::fmt::Display for Precision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
        })
    }
}
