//! Models from weights files, and to them.

use crate::checkpoint::sha256;
use crate::config::WeightsConfig;
use crate::failure::Failure;
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::Path;
use tbps_data::image::{CLIP_MEAN, CLIP_STD};
use tbps_model::config::{Activation, ClipConfig};
use tbps_model::pos_embed::PosEmbedResize;
use tbps_model::weights::{self, ClipWeights, OPENAI_VIT_B_16_SHA256, Recipe};
use tbps_model::{Clip, ModelError};

/// A weights file that has been read.
#[derive(Debug)]
pub(crate) struct ModelFile {
    pub(crate) weights: ClipWeights,
    pub(crate) sha256: String,
    /// The file's path, as messages have it.
    pub(crate) shown: String,
}

/// What a run was started from, for its `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct WeightsRecord {
    pub(crate) sha256: String,
    /// Whose published file it is, if it is one that is known.
    pub(crate) published_as: Option<&'static str>,
    pub(crate) container: String,
    pub(crate) names: String,
    pub(crate) dtypes: Vec<&'static str>,
    /// The activation that the file says it was made with; null: it does not say.
    pub(crate) stored_activation: Option<Activation>,
    /// What differs from what the file says, as `weights.allow_mismatch` lets it.
    pub(crate) mismatch: Option<String>,
    /// Rows and columns of the patch grid that the position embedding was resized from.
    pub(crate) pos_embed_from: Option<[usize; 2]>,
    pub(crate) pos_embed_to: [usize; 2],
    /// How, if it was.
    pub(crate) pos_embed_resize: Option<PosEmbedResize>,
}

impl WeightsRecord {
    /// What was found and what was chosen, for the person at the terminal.
    pub(crate) fn in_words(&self, model: &ClipConfig) -> String {
        let activation = quoted(&model.activation);
        let [rows, columns] = self.pos_embed_to;
        let mut words = vec![
            format!("{}, names of {}", self.container, self.names),
            match (self.stored_activation, &self.mismatch) {
                (_, Some(mismatch)) => format!("{mismatch} (allowed)"),
                (Some(_), None) => format!("activation {activation}"),
                (None, None) => format!("activation {activation} (the file does not say)"),
            },
        ];
        words.extend(self.published_as.map(|name| format!("{name} as published")));
        if let (Some([from_rows, from_columns]), Some(how)) =
            (self.pos_embed_from, self.pos_embed_resize)
        {
            let how = quoted(&how);
            words.push(format!("positions {from_rows}x{from_columns} to {rows}x{columns} {how}"));
        }
        words.join("; ")
    }
}

impl ModelFile {
    /// Reads any weights file.
    ///
    /// # Errors
    /// One line with the path and what is wrong with the file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
        Self::of_bytes(&bytes, shown)
    }

    /// As [`ModelFile::read`], of bytes that messages call `shown`.
    pub(crate) fn of_bytes(bytes: &[u8], shown: String) -> Result<Self> {
        let weights = weights::read(bytes).with_context(|| shown.clone())?;
        Ok(Self { weights, sha256: sha256(bytes), shown })
    }

    /// The model that the file is of.
    pub(crate) fn model(&self) -> Result<ClipConfig> {
        self.weights.config().with_context(|| self.shown.clone())
    }

    /// Whose published file it is.
    pub(crate) fn published_as(&self) -> Option<&'static str> {
        (self.sha256 == OPENAI_VIT_B_16_SHA256).then_some("OpenAI ViT-B-16.pt")
    }

    /// `clip`, which is of the configuration `model`, with these weights.
    ///
    /// # Errors
    /// A usage failure when the file says that it needs another activation or preprocessing and
    /// `settings` do not allow that; tensors that are not the model's.
    pub(crate) fn load_into(
        self,
        clip: Clip,
        model: &ClipConfig,
        settings: &WeightsConfig,
    ) -> Result<(Clip, WeightsRecord)> {
        let mismatch = self.weights.recipe.as_ref().and_then(|recipe| mismatch(recipe, model));
        if let Some(mismatch) = mismatch.as_ref().filter(|_| !settings.allow_mismatch) {
            return Err(Failure::usage(format!(
                "{}: {mismatch}; change the setting, or allow it with weights.allow_mismatch = true",
                self.shown
            )));
        }
        let mut record = WeightsRecord {
            published_as: self.published_as(),
            sha256: self.sha256,
            container: self.weights.container.to_string(),
            names: self.weights.names.to_string(),
            dtypes: self.weights.dtypes.iter().copied().collect(),
            stored_activation: self.weights.recipe.as_ref().map(|r| r.model.activation),
            mismatch,
            pos_embed_from: None,
            pos_embed_to: model.vision.grid(),
            pos_embed_resize: None,
        };
        let load = || -> Result<Clip, ModelError> {
            let fitted = self.weights.fit(model, settings.pos_embed)?;
            record.pos_embed_from = fitted.resized_from;
            record.pos_embed_resize = fitted.resized_from.map(|_| settings.pos_embed);
            weights::load(clip, fitted.tensors)
        };
        let clip = load().with_context(|| self.shown)?;
        Ok((clip, record))
    }
}

/// What of a file's recipe is not the model's or not this program's, in words.
fn mismatch(recipe: &Recipe, model: &ClipConfig) -> Option<String> {
    let (stored, set) = (recipe.model.activation, model.activation);
    if stored != set {
        return Some(format!(
            "these weights were made with activation = {}, and model.activation is {}",
            quoted(&stored),
            quoted(&set)
        ));
    }
    let ours = recipe_of(model);
    ((recipe.pixel_mean, recipe.pixel_std) != (ours.pixel_mean, ours.pixel_std)).then(|| {
        format!(
            "these weights were made for pixels of mean {:?} and deviation {:?}, and tbps gives \
             {CLIP_MEAN:?} and {CLIP_STD:?}",
            recipe.pixel_mean, recipe.pixel_std
        )
    })
}

/// What our files say of a model.
pub(crate) fn recipe_of(model: &ClipConfig) -> Recipe {
    Recipe { model: model.clone(), pixel_mean: CLIP_MEAN, pixel_std: CLIP_STD }
}

/// A model's parameters as a file of ours.
pub(crate) fn of(clip: &Clip, model: &ClipConfig) -> Result<Vec<u8>> {
    let tensors = weights::state_dict(clip);
    let tensors = tensors.iter().map(|(name, data)| (name, data));
    Ok(weights::serialize(tensors, &recipe_of(model))?)
}

/// A setting's value as it is written: `"quick-gelu"`.
pub(crate) fn quoted(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
