//! The text tower: token and position embeddings, causal blocks, and a projection of the
//! end-of-text position.
//!
//! Letters: `b` batch, `n` positions, `w` width.

use crate::block::{Block, BlockConfig, LayerNorm};
use crate::config::{ClipConfig, TextConfig};
use crate::init::Init;
use crate::ops;
use burn::module::{Module, Param};
use burn::tensor::{FloatDType, Int, IntDType, Tensor};

/// A causal transformer over token ids, open as its three stages.
///
/// Under the causal mask a position sees nothing after it, so a batch may be cut to its longest
/// caption without changing a feature.
#[derive(Module, Debug)]
pub struct TextTower {
    /// Token ids to the first block's input.
    pub stem: TextStem,
    /// The blocks.
    pub blocks: Vec<Block>,
    /// The last block's output to the embedding.
    pub head: TextHead,
}

/// Token and position embeddings.
#[derive(Module, Debug)]
pub struct TextStem {
    /// `[vocab_size, w]`
    pub token_embedding: Param<Tensor<2>>,
    /// `[context_length, w]`
    pub pos_embed: Param<Tensor<2>>,
}

/// Norm and projection of the end-of-text position.
#[derive(Module, Debug)]
pub struct TextHead {
    /// Norm after the last block.
    pub ln_final: LayerNorm,
    /// `[w, embed_dim]`
    pub proj: Param<Tensor<2>>,
}

impl TextTower {
    pub(crate) fn new(config: &ClipConfig, init: &mut Init) -> Self {
        let TextConfig { vocab_size, context_length, width, layers, heads } = config.text;
        let block =
            BlockConfig { width, layers, heads, causal: true, activation: config.activation };
        Self {
            stem: TextStem {
                // 0.02 and 0.01 are CLIP's.
                token_embedding: init.normal([vocab_size, width], 0.02),
                pos_embed: init.normal([context_length, width], 0.01),
            },
            blocks: (0..layers).map(|_| Block::new(block, init)).collect(),
            head: TextHead {
                ln_final: LayerNorm::new(width, init),
                proj: init.normal([width, config.embed_dim], (width as f64).powf(-0.5)),
            },
        }
    }

    /// `[b, n]` ids, `n` at most the context length, to `[b, embed_dim]` f32, not yet normalised.
    pub fn forward(&self, token_ids: Tensor<2, Int>, compute: FloatDType) -> Tensor<2> {
        let x = self.stem.forward(token_ids.clone());
        let x = self.body().iter().fold(x, |x, block| block.forward(x, compute));
        self.finish(x, token_ids, compute)
    }

    /// The blocks that are computed at every position: all but the last.
    pub fn body(&self) -> &[Block] {
        &self.blocks[..self.blocks.len() - 1]
    }

    /// The last block at the end of text, and the head: `[b, n, w]` f32 and the ids `[b, n]` to
    /// `[b, embed_dim]` f32, not yet normalised.
    ///
    /// The end of text is the largest id of a row: id 0 is both padding and a real token.
    pub fn finish(
        &self,
        x: Tensor<3>,
        token_ids: Tensor<2, Int>,
        compute: FloatDType,
    ) -> Tensor<2> {
        let last = &self.blocks[self.blocks.len() - 1];
        let b = token_ids.dims()[0];
        // Backends differ in the integer that `argmax` returns.
        let end = token_ids.argmax(1).reshape([b]).cast(IntDType::I32);
        self.head.forward(last.forward_at(x, end, compute))
    }
}

impl TextStem {
    /// `[b, n]` ids, `n` at most the context length, to `[b, n, w]` f32.
    pub fn forward(&self, token_ids: Tensor<2, Int>) -> Tensor<3> {
        let n = token_ids.dims()[1];
        let positions = self.pos_embed.val().narrow(0, 0, n); // [n, w]
        let [b, n] = token_ids.dims();
        let rows = ops::take_rows(self.token_embedding.val(), token_ids.reshape([b * n])); // [b * n, w]
        let w = rows.dims()[1];
        rows.reshape([b, n, w]) + positions.unsqueeze()
    }
}

impl TextHead {
    /// `[b, w]`, the ends of text, to `[b, embed_dim]` f32, not yet normalised.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = self.ln_final.forward(x);
        ops::used("projection", x.dtype(), x.matmul(self.proj.val()))
    }
}
