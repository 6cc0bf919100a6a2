//! A weights file to our names and layouts, whatever it is.

use super::naming::{HUGGING_FACE, Layout, Naming, OPEN_CLIP};
use super::tensor::FileTensor;
use super::{Recipe, safetensors, torch};
use crate::config::{Activation, ClipConfig, LogitScaleConfig, TextConfig, VisionConfig};
use crate::error::ModelError;
use burn::tensor::TensorData;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The largest factor that `exp(log_logit_scale)` may be; 100 is CLIP's own bound.
const MAX_LOGIT_SCALE: f64 = 100.0;
/// Width of an attention head where [`WIDER_HEADS`] has no other; files do not say.
const HEAD_WIDTH: usize = 64;
/// Width of an image tower and of its heads, of open_clip's ViT-H, ViT-g and ViT-bigG.
const WIDER_HEADS: [(usize, usize); 3] = [(1280, 80), (1408, 88), (1664, 104)];

/// What wraps the tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// safetensors
    Safetensors,
    /// `torch.save`
    TorchZip,
    /// `torch.jit.save`
    TorchScript,
}

/// Whose names the tensors have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// This crate's.
    Ours,
    /// open_clip's, which are OpenAI's.
    OpenClip,
    /// Those of transformers' `CLIPModel`.
    HuggingFace,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Safetensors => "safetensors",
            Self::TorchZip => "torch.save archive",
            Self::TorchScript => "TorchScript archive",
        })
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "tbps",
            Self::OpenClip => "open_clip / OpenAI",
            Self::HuggingFace => "Hugging Face transformers",
        })
    }
}

/// A CLIP's weights, from a file.
#[derive(Debug, Clone)]
pub struct ClipWeights {
    /// What the file is.
    pub container: Container,
    /// Whose names its tensors had.
    pub names: Names,
    /// Number formats of the file's parameters.
    pub dtypes: BTreeSet<&'static str>,
    /// What the file says of its model, if it is ours.
    pub recipe: Option<Recipe>,
    /// f32 tensors under our names, in our layouts.
    pub tensors: BTreeMap<String, TensorData>,
}

/// Reads a weights file, by its content.
///
/// # Errors
/// What it is instead, or how it is damaged; [`ModelError::UnsafePickle`] for a pickle that asks
/// for more than tensors; [`ModelError::Unexpected`] for tensors that no CLIP has.
pub fn read(bytes: &[u8]) -> Result<ClipWeights, ModelError> {
    let (container, tensors, metadata) = match bytes {
        [] => return Err(ModelError::Empty),
        [b'P', b'K', ..] => {
            let (container, tensors) = torch::read(bytes)?;
            (container, tensors, safetensors::Metadata::new())
        }
        [_, _, _, _, _, _, _, _, b'{', ..] => {
            let (tensors, metadata) = safetensors::read(bytes)?;
            (Container::Safetensors, tensors, metadata)
        }
        _ => return Err(what_else(bytes)),
    };
    let tensors = without_prefix(tensors);
    let (names, naming) = recognise(&tensors)?;
    let dtypes = tensors.values().map(FileTensor::dtype).filter(|d| d.contains("float")).collect();
    let recipe = metadata.get("tbps").map(|json| {
        let damaged = |e| ModelError::Damaged { what: format!("its metadata `tbps`: {e}") };
        serde_json::from_str(json).map_err(damaged)
    });
    let tensors = match naming {
        Some(naming) => renamed(tensors, naming)?,
        None => as_they_are(tensors)?,
    };
    require_finite(&tensors)?;
    Ok(ClipWeights { container, names, dtypes, recipe: recipe.transpose()?, tensors })
}

/// What a file is that is no weights file.
fn what_else(bytes: &[u8]) -> ModelError {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]);
    let start = start.trim_start().to_lowercase();
    if start.starts_with("version https://git-lfs") {
        ModelError::LfsPointer
    } else if start.starts_with("<!doctype html") || start.starts_with("<html") {
        ModelError::Html
    } else if bytes.starts_with(&[0x80]) {
        ModelError::LegacyPickle
    } else {
        ModelError::UnknownFile
    }
}

/// Without the `module.` of torch's parallel wrappers, and the `text.` that open_clip's custom
/// text towers add.
fn without_prefix(tensors: BTreeMap<String, FileTensor>) -> BTreeMap<String, FileTensor> {
    let wrapped = !tensors.is_empty() && tensors.keys().all(|name| name.starts_with("module."));
    let custom_text = tensors.keys().any(|name| name.ends_with("text.token_embedding.weight"));
    let strip = |name: String| {
        let name = name.strip_prefix("module.").filter(|_| wrapped).unwrap_or(&name);
        name.strip_prefix("text.").filter(|_| custom_text).unwrap_or(name).to_owned()
    };
    tensors.into_iter().map(|(name, tensor)| (strip(name), tensor)).collect()
}

/// Whose names these are, by the patch embedding's.
fn recognise(
    tensors: &BTreeMap<String, FileTensor>,
) -> Result<(Names, Option<&'static Naming>), ModelError> {
    let has = |name| tensors.contains_key(name);
    if has("visual.stem.patch_embed") {
        Ok((Names::Ours, None))
    } else if has("visual.conv1.weight") {
        Ok((Names::OpenClip, Some(&OPEN_CLIP)))
    } else if has("vision_model.embeddings.patch_embedding.weight") {
        Ok((Names::HuggingFace, Some(&HUGGING_FACE)))
    } else {
        Err(ModelError::NotClip { names: tensors.keys().cloned().collect() })
    }
}

fn renamed(
    tensors: BTreeMap<String, FileTensor>,
    naming: &Naming,
) -> Result<BTreeMap<String, TensorData>, ModelError> {
    let mut ours = BTreeMap::new();
    let mut thirds: BTreeMap<String, [Option<TensorData>; 3]> = BTreeMap::new();
    let mut unexpected = Vec::new();
    for (theirs, FileTensor { shape, numbers }) in tensors {
        if naming.buffers.contains(&theirs.as_str()) {
            continue;
        }
        match (naming.ours(&theirs), numbers.floats) {
            (Some((name, layout)), Some(floats)) => {
                let data = layout.to_ours(&theirs, &shape, floats)?;
                match layout {
                    Layout::Third(third, _) => {
                        thirds.entry(name).or_default()[third] = Some(data);
                    }
                    _ => drop(ours.insert(name, data)),
                }
            }
            _ => unexpected.push(theirs),
        }
    }
    if !unexpected.is_empty() {
        return Err(ModelError::Unexpected { names: unexpected });
    }
    for (name, parts) in thirds {
        let data = joint(&parts).ok_or_else(|| ModelError::Damaged {
            what: format!("its queries, keys and values do not make one {name}"),
        })?;
        ours.insert(name, data);
    }
    Ok(ours)
}

/// Queries, keys and values side by side: `[.., w]` three times to `[.., 3 w]`.
fn joint(parts: &[Option<TensorData>; 3]) -> Option<TensorData> {
    let [Some(q), Some(k), Some(v)] = parts else { return None };
    if q.shape() != k.shape() || k.shape() != v.shape() {
        return None;
    }
    let mut shape = q.shape().to_vec();
    let width = *shape.last().filter(|width| **width > 0)?;
    let rows = [q, k, v].map(|part| part.as_slice::<f32>().map(|s| s.chunks(width)));
    let [Ok(q), Ok(k), Ok(v)] = rows else { return None };
    let joint: Vec<f32> = q.zip(k).zip(v).flat_map(|((q, k), v)| [q, k, v].concat()).collect();
    *shape.last_mut()? = 3 * width;
    Some(TensorData::new(joint, shape))
}

/// Our own names, which are left alone.
fn as_they_are(
    tensors: BTreeMap<String, FileTensor>,
) -> Result<BTreeMap<String, TensorData>, ModelError> {
    let data = |(name, tensor): (String, FileTensor)| match tensor.numbers.floats {
        Some(floats) => Ok((name, TensorData::new(floats, tensor.shape))),
        None => Err(ModelError::Unexpected { names: vec![name] }),
    };
    tensors.into_iter().map(data).collect()
}

fn require_finite(tensors: &BTreeMap<String, TensorData>) -> Result<(), ModelError> {
    let is_finite = |data: &TensorData| {
        data.as_slice::<f32>().is_ok_and(|floats| floats.iter().all(|x| x.is_finite()))
    };
    match tensors.iter().find(|(_, data)| !is_finite(data)) {
        None => Ok(()),
        Some((name, _)) => Err(ModelError::NotFinite { name: name.clone() }),
    }
}

impl ClipWeights {
    /// The model that the file is of: as it says, or by the sizes of its tensors, with QuickGELU,
    /// CLIP's heads and a square image.
    ///
    /// # Errors
    /// [`ModelError::NotClip`] when a tensor is missing that the sizes are read off;
    /// [`ModelError::Damaged`] when the file says another model than its tensors are; sizes that
    /// are no model's.
    pub fn config(&self) -> Result<ClipConfig, ModelError> {
        let mut by_tensors = self.by_tensors()?;
        let Some(Recipe { model, .. }) = &self.recipe else {
            by_tensors.validate()?;
            return Ok(by_tensors);
        };
        model.validate()?;
        // What no size of a tensor tells.
        by_tensors.activation = model.activation;
        by_tensors.logit_scale = model.logit_scale.clone();
        (by_tensors.vision.heads, by_tensors.text.heads) = (model.vision.heads, model.text.heads);
        (by_tensors.vision.image_height, by_tensors.vision.image_width) =
            (model.vision.image_height, model.vision.image_width);
        let [positions, _] = self.matrix("visual.stem.pos_embed")?;
        match by_tensors == *model && positions == model.vision.num_positions() {
            true => Ok(by_tensors),
            false => Err(ModelError::Damaged {
                what: "its metadata `tbps` is of another model than its tensors".to_owned(),
            }),
        }
    }

    /// The model that the sizes of the tensors are of.
    fn by_tensors(&self) -> Result<ClipConfig, ModelError> {
        let [patch_rows, width] = self.matrix("visual.stem.patch_embed")?;
        let [positions, _] = self.matrix("visual.stem.pos_embed")?;
        let [_, embed_dim] = self.matrix("visual.head.proj")?;
        let [vocab_size, text_width] = self.matrix("text.stem.token_embedding")?;
        let [context_length, _] = self.matrix("text.stem.pos_embed")?;
        let patch_size = (patch_rows / 3).isqrt();
        let side = positions.saturating_sub(1).isqrt() * patch_size;
        let wider = WIDER_HEADS.iter().find(|(tower, _)| *tower == width);
        let head_width = wider.map_or(HEAD_WIDTH, |(_, head)| *head);
        Ok(ClipConfig {
            embed_dim,
            activation: Activation::QuickGelu,
            logit_scale: LogitScaleConfig {
                init: MAX_LOGIT_SCALE,
                learnable: true,
                max: MAX_LOGIT_SCALE,
            },
            vision: VisionConfig {
                image_height: side,
                image_width: side,
                patch_size,
                width,
                layers: self.blocks("visual.blocks."),
                heads: (width / head_width).max(1),
            },
            text: TextConfig {
                vocab_size,
                context_length,
                width: text_width,
                layers: self.blocks("text.blocks."),
                heads: (text_width / HEAD_WIDTH).max(1),
            },
        })
    }

    fn matrix(&self, name: &str) -> Result<[usize; 2], ModelError> {
        let found = self.tensors.get(name).map(|data| data.shape().to_vec());
        found
            .and_then(|shape| shape.try_into().ok())
            .ok_or_else(|| ModelError::NotClip { names: self.tensors.keys().cloned().collect() })
    }

    /// Number of blocks under a prefix.
    fn blocks(&self, prefix: &str) -> usize {
        let number =
            |name: &'_ String| Some(name.strip_prefix(prefix)?.split('.').next()?.to_owned());
        self.tensors.keys().filter_map(number).collect::<BTreeSet<_>>().len()
    }
}
