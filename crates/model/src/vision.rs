//! The image tower: patches, a class token, pre-norm blocks, and a projection of the class token.
//!
//! Of the last block nothing but the class token is read, so nothing else is computed.
//!
//! Letters: `b` batch, `n` positions (class token and patches), `w` width, `p` patch side.

use crate::block::{Block, BlockConfig, LayerNorm};
use crate::config::{ClipConfig, VisionConfig};
use crate::init::Init;
use crate::ops;
use burn::module::{Module, Param};
use burn::tensor::{DType, FloatDType, Tensor};

/// A vision transformer, open as its three stages.
#[derive(Module, Debug)]
pub struct VisionTower {
    /// Pixels to the first block's input.
    pub stem: VisionStem,
    /// The blocks.
    pub blocks: Vec<Block>,
    /// The last block's output to the embedding.
    pub head: VisionHead,
}

/// Patch embedding, class token, positions and the norm before the first block.
#[derive(Module, Debug)]
pub struct VisionStem {
    /// The patch convolution as a matrix, `[3 * p * p, w]`, its rows in channel, row, column order.
    pub patch_embed: Param<Tensor<2>>,
    /// `[w]`
    pub class_embedding: Param<Tensor<1>>,
    /// `[n, w]`, the class token's first.
    pub pos_embed: Param<Tensor<2>>,
    /// Norm before the first block.
    pub ln_pre: LayerNorm,
    #[module(skip)]
    patch_size: usize,
}

/// Norm and projection of the class token.
#[derive(Module, Debug)]
pub struct VisionHead {
    /// Norm after the last block.
    pub ln_post: LayerNorm,
    /// `[w, embed_dim]`
    pub proj: Param<Tensor<2>>,
}

impl VisionTower {
    pub(crate) fn new(config: &ClipConfig, init: &mut Init) -> Self {
        let VisionConfig { width, layers, heads, .. } = config.vision;
        let block =
            BlockConfig { width, layers, heads, causal: false, activation: config.activation };
        Self {
            stem: VisionStem::new(&config.vision, init),
            blocks: (0..layers).map(|_| Block::new(block, init)).collect(),
            head: VisionHead {
                ln_post: LayerNorm::new(width, init),
                proj: init.normal([width, config.embed_dim], (width as f64).powf(-0.5)),
            },
        }
    }

    /// `[b, 3, height, width]` f32 to `[b, embed_dim]` f32, not yet normalised.
    pub fn forward(&self, pixels: Tensor<4>, compute: FloatDType) -> Tensor<2> {
        let x = self.stem.forward(pixels, compute);
        let x = self.body().iter().fold(x, |x, block| block.forward(x, compute));
        self.finish(x, compute)
    }

    /// The blocks that are computed at every position: all but the last.
    pub fn body(&self) -> &[Block] {
        &self.blocks[..self.blocks.len() - 1]
    }

    /// The last block at the class token, and the head: `[b, n, w]` f32 to `[b, embed_dim]` f32, not
    /// yet normalised.
    pub fn finish(&self, x: Tensor<3>, compute: FloatDType) -> Tensor<2> {
        let last = &self.blocks[self.blocks.len() - 1];
        let at = Tensor::zeros([x.dims()[0]], (&x.device().without_autodiff(), DType::I32));
        self.head.forward(last.forward_at(x, at, compute))
    }
}

impl VisionStem {
    fn new(config: &VisionConfig, init: &mut Init) -> Self {
        let (p, w) = (config.patch_size, config.width);
        let (patch_std, std) = ((3.0 * (p * p) as f64).powf(-0.5), (w as f64).powf(-0.5));
        Self {
            patch_embed: init.normal([3 * p * p, w], patch_std),
            class_embedding: init.normal([w], std),
            pos_embed: init.normal([config.num_positions(), w], std),
            ln_pre: LayerNorm::new(w, init),
            patch_size: p,
        }
    }

    /// `[b, 3, height, width]` f32 to `[b, n, w]` f32.
    pub fn forward(&self, pixels: Tensor<4>, compute: FloatDType) -> Tensor<3> {
        let [b, channels, height, width] = pixels.dims();
        let p = self.patch_size;
        let (rows, columns) = (height / p, width / p);
        let patches = pixels
            .reshape([b, channels, rows, p, columns, p])
            .permute([0, 2, 4, 1, 3, 5])
            .reshape([b * rows * columns, channels * p * p])
            .cast(compute); // [b * patches, 3 p p]
        let x = ops::embed(patches, self.patch_embed.val());
        let w = x.dims()[1];
        let x = x.reshape([b, rows * columns, w]);
        let class = self.class_embedding.val().reshape([1, 1, w]).expand([b, 1, w]);
        let x = Tensor::cat(vec![class, x], 1) + self.pos_embed.val().unsqueeze(); // [b, n, w]
        self.ln_pre.forward(x)
    }
}

impl VisionHead {
    /// `[b, w]`, the class tokens, to `[b, embed_dim]` f32, not yet normalised.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = self.ln_post.forward(x);
        ops::used("projection", x.dtype(), x.matmul(self.proj.val()))
    }
}
