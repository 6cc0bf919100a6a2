//! The names and layouts that others give CLIP's parameters.
//!
//! open_clip, OpenAI and Hugging Face keep affine maps as `[out, in]`; ours are `[in, out]`.

use crate::error::ModelError;
use burn::tensor::TensorData;

/// How a tensor of theirs becomes one of ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Layout {
    /// The same numbers in the same order; a scalar becomes `[1]`.
    Same,
    /// `[out, in]` to `[in, out]`.
    Transposed,
    /// A patch convolution `[w, 3, p, p]` to a matrix `[3 * p * p, w]`.
    Patches,
    /// Queries (0), keys (1) or values (2), `[w, w]` or `[w]`, of a joint map.
    Third(usize, &'static Layout),
}

/// One scheme of names.
#[derive(Debug)]
pub(super) struct Naming {
    /// Their name, ours, and the layout, outside the blocks.
    outside: &'static [(&'static str, &'static str, Layout)],
    /// Their prefix of a block's number, and ours.
    towers: [(&'static str, &'static str); 2],
    /// Their name, ours, and the layout, in a block.
    block: &'static [(&'static str, &'static str, Layout)],
    /// What belongs to no parameter and is not read.
    pub(super) buffers: &'static [&'static str],
}

use Layout::{Patches, Same, Third, Transposed};

/// open_clip's, which are OpenAI's.
pub(super) const OPEN_CLIP: Naming = Naming {
    outside: &[
        ("visual.conv1.weight", "visual.stem.patch_embed", Patches),
        ("visual.class_embedding", "visual.stem.class_embedding", Same),
        ("visual.positional_embedding", "visual.stem.pos_embed", Same),
        ("visual.ln_pre.weight", "visual.stem.ln_pre.gamma", Same),
        ("visual.ln_pre.bias", "visual.stem.ln_pre.beta", Same),
        ("visual.ln_post.weight", "visual.head.ln_post.gamma", Same),
        ("visual.ln_post.bias", "visual.head.ln_post.beta", Same),
        ("visual.proj", "visual.head.proj", Same),
        ("token_embedding.weight", "text.stem.token_embedding", Same),
        ("positional_embedding", "text.stem.pos_embed", Same),
        ("ln_final.weight", "text.head.ln_final.gamma", Same),
        ("ln_final.bias", "text.head.ln_final.beta", Same),
        ("text_projection", "text.head.proj", Same),
        ("logit_scale", "log_logit_scale", Same),
    ],
    towers: [
        ("visual.transformer.resblocks.", "visual.blocks."),
        ("transformer.resblocks.", "text.blocks."),
    ],
    block: &[
        ("ln_1.weight", "ln_1.gamma", Same),
        ("ln_1.bias", "ln_1.beta", Same),
        ("attn.in_proj_weight", "qkv.weight", Transposed),
        ("attn.in_proj_bias", "qkv.bias", Same),
        ("attn.out_proj.weight", "attn_out.weight", Transposed),
        ("attn.out_proj.bias", "attn_out.bias", Same),
        ("ln_2.weight", "ln_2.gamma", Same),
        ("ln_2.bias", "ln_2.beta", Same),
        ("mlp.c_fc.weight", "mlp_fc.weight", Transposed),
        ("mlp.c_fc.bias", "mlp_fc.bias", Same),
        ("mlp.c_proj.weight", "mlp_out.weight", Transposed),
        ("mlp.c_proj.bias", "mlp_out.bias", Same),
    ],
    // Sizes that OpenAI's archive keeps as tensors, and the causal mask.
    buffers: &["input_resolution", "context_length", "vocab_size", "attn_mask"],
};

/// Those of `CLIPModel` of Hugging Face's transformers.
pub(super) const HUGGING_FACE: Naming = Naming {
    outside: &[
        ("vision_model.embeddings.patch_embedding.weight", "visual.stem.patch_embed", Patches),
        ("vision_model.embeddings.class_embedding", "visual.stem.class_embedding", Same),
        ("vision_model.embeddings.position_embedding.weight", "visual.stem.pos_embed", Same),
        // The missing letter is theirs.
        ("vision_model.pre_layrnorm.weight", "visual.stem.ln_pre.gamma", Same),
        ("vision_model.pre_layrnorm.bias", "visual.stem.ln_pre.beta", Same),
        ("vision_model.post_layernorm.weight", "visual.head.ln_post.gamma", Same),
        ("vision_model.post_layernorm.bias", "visual.head.ln_post.beta", Same),
        ("visual_projection.weight", "visual.head.proj", Transposed),
        ("text_model.embeddings.token_embedding.weight", "text.stem.token_embedding", Same),
        ("text_model.embeddings.position_embedding.weight", "text.stem.pos_embed", Same),
        ("text_model.final_layer_norm.weight", "text.head.ln_final.gamma", Same),
        ("text_model.final_layer_norm.bias", "text.head.ln_final.beta", Same),
        ("text_projection.weight", "text.head.proj", Transposed),
        ("logit_scale", "log_logit_scale", Same),
    ],
    towers: [
        ("vision_model.encoder.layers.", "visual.blocks."),
        ("text_model.encoder.layers.", "text.blocks."),
    ],
    block: &[
        ("layer_norm1.weight", "ln_1.gamma", Same),
        ("layer_norm1.bias", "ln_1.beta", Same),
        ("self_attn.q_proj.weight", "qkv.weight", Third(0, &Transposed)),
        ("self_attn.k_proj.weight", "qkv.weight", Third(1, &Transposed)),
        ("self_attn.v_proj.weight", "qkv.weight", Third(2, &Transposed)),
        ("self_attn.q_proj.bias", "qkv.bias", Third(0, &Same)),
        ("self_attn.k_proj.bias", "qkv.bias", Third(1, &Same)),
        ("self_attn.v_proj.bias", "qkv.bias", Third(2, &Same)),
        ("self_attn.out_proj.weight", "attn_out.weight", Transposed),
        ("self_attn.out_proj.bias", "attn_out.bias", Same),
        ("layer_norm2.weight", "ln_2.gamma", Same),
        ("layer_norm2.bias", "ln_2.beta", Same),
        ("mlp.fc1.weight", "mlp_fc.weight", Transposed),
        ("mlp.fc1.bias", "mlp_fc.bias", Same),
        ("mlp.fc2.weight", "mlp_out.weight", Transposed),
        ("mlp.fc2.bias", "mlp_out.bias", Same),
    ],
    buffers: &["text_model.embeddings.position_ids", "vision_model.embeddings.position_ids"],
};

impl Naming {
    /// Our name and the layout of a tensor of theirs.
    pub(super) fn ours(&self, theirs: &str) -> Option<(String, Layout)> {
        for (prefix, our_prefix) in self.towers {
            let Some((block, rest)) = theirs.strip_prefix(prefix).and_then(|r| r.split_once('.'))
            else {
                continue;
            };
            let (_, name, layout) = self.block.iter().find(|(name, _, _)| *name == rest)?;
            return is_number(block).then(|| (format!("{our_prefix}{block}.{name}"), *layout));
        }
        let (_, name, layout) = self.outside.iter().find(|(name, _, _)| *name == theirs)?;
        Some(((*name).to_owned(), *layout))
    }

    /// Their name and the layout of a tensor of ours.
    pub(super) fn theirs(&self, ours: &str) -> Option<(String, Layout)> {
        for (prefix, our_prefix) in self.towers {
            let Some((block, rest)) = ours.strip_prefix(our_prefix).and_then(|r| r.split_once('.'))
            else {
                continue;
            };
            let (name, _, layout) = self.block.iter().find(|(_, name, _)| *name == rest)?;
            return Some((format!("{prefix}{block}.{name}"), *layout));
        }
        let (name, _, layout) = self.outside.iter().find(|(_, name, _)| *name == ours)?;
        Some(((*name).to_owned(), *layout))
    }
}

/// A block's number as it is written: `0`, `7`, `11`, and not `07`.
fn is_number(text: &str) -> bool {
    text.parse::<u16>().is_ok_and(|number| number.to_string() == text)
}

impl Layout {
    /// Their numbers in our order, and our shape.
    ///
    /// # Errors
    /// [`ModelError::Damaged`] when a tensor has not the dimensions of its name.
    pub(super) fn to_ours(
        self,
        name: &str,
        shape: &[usize],
        floats: Vec<f32>,
    ) -> Result<TensorData, ModelError> {
        let misshapen = |expected: &str| ModelError::Damaged {
            what: format!("{name} is {shape:?}, not {expected}"),
        };
        match (self, shape) {
            (Same, []) => Ok(TensorData::new(floats, [1])),
            (Same, shape) => Ok(TensorData::new(floats, shape.to_vec())),
            (Transposed, &[rows, columns]) => {
                Ok(TensorData::new(transpose(&floats, rows, columns), [columns, rows]))
            }
            (Transposed, _) => Err(misshapen("[out, in]")),
            (Patches, &[w, 3, p, q]) if p == q => {
                Ok(TensorData::new(transpose(&floats, w, 3 * p * p), [3 * p * p, w]))
            }
            (Patches, _) => Err(misshapen("[width, 3, patch, patch]")),
            (Third(_, layout), shape) => layout.to_ours(name, shape, floats),
        }
    }

    /// Our numbers in their order, and their shape; `None` when ours have not the dimensions.
    pub(super) fn to_theirs(self, data: &[f32], shape: &[usize]) -> Option<(Vec<f32>, Vec<usize>)> {
        match (self, shape) {
            (Same, shape) => Some((data.to_vec(), shape.to_vec())),
            (Transposed, &[rows, columns]) => {
                Some((transpose(data, rows, columns), vec![columns, rows]))
            }
            (Patches, &[rows, w]) => {
                let p = (rows / 3).isqrt();
                let shape = vec![w, 3, p, p];
                (3 * p * p == rows).then(|| (transpose(data, rows, w), shape))
            }
            _ => None,
        }
    }
}

/// `[rows, columns]` to `[columns, rows]`.
fn transpose(data: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| data[r * columns + c])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for theirs in [
            "visual.conv1.weight",
            "positional_embedding",
            "visual.transformer.resblocks.11.attn.in_proj_weight",
            "transformer.resblocks.0.mlp.c_proj.bias",
        ] {
            let (ours, layout) = OPEN_CLIP.ours(theirs).unwrap();
            assert_eq!(OPEN_CLIP.theirs(&ours), Some((theirs.to_owned(), layout)));
        }
        assert_eq!(OPEN_CLIP.ours("visual.transformer.resblocks.01.ln_1.bias"), None);
        assert_eq!(OPEN_CLIP.ours("visual.transformer.resblocks.1.ln_3.bias"), None);
        assert_eq!(OPEN_CLIP.ours("visual.layer1.0.conv1.weight"), None);
        assert_eq!(
            HUGGING_FACE.ours("text_model.encoder.layers.3.self_attn.v_proj.bias"),
            Some(("text.blocks.3.qkv.bias".to_owned(), Third(2, &Same)))
        );
    }

    #[test]
    fn layouts_go_both_ways() {
        let floats: Vec<f32> = (0..6).map(|i| i as f32).collect();
        let ours = Transposed.to_ours("x", &[2, 3], floats.clone()).unwrap();
        assert_eq!(ours, TensorData::from([[0.0f32, 3.0], [1.0, 4.0], [2.0, 5.0]]));
        let back = Transposed.to_theirs(ours.as_slice().unwrap(), &[3, 2]);
        assert_eq!(back, Some((floats, vec![2, 3])));
        let kernel: Vec<f32> = (0..24).map(|i| i as f32).collect();
        let ours = Patches.to_ours("x", &[2, 3, 2, 2], kernel.clone()).unwrap();
        assert_eq!(ours.shape().to_vec(), [12, 2]);
        let back = Patches.to_theirs(ours.as_slice().unwrap(), &[12, 2]);
        assert_eq!(back, Some((kernel, vec![2, 3, 2, 2])));
    }
}
