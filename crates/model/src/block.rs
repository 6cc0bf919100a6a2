//! The pre-norm residual block that both towers are stacks of.

use crate::config::Activation;
use crate::init::Init;
use crate::ops;
use burn::module::{Module, Param};
use burn::tensor::{FloatDType, Int, IntDType, Tensor};

/// A pre-norm transformer block: `x + attention(norm(x))`, then `x + mlp(norm(x))`.
///
/// The residual stream is f32; the matrix products run in the compute dtype.
#[derive(Module, Debug)]
pub struct Block {
    /// Norm before attention.
    pub ln_1: LayerNorm,
    /// Queries, keys and values in one map, `[w, 3w]`.
    pub qkv: Linear,
    /// Output projection of attention, `[w, w]`.
    pub attn_out: Linear,
    /// Norm before the MLP.
    pub ln_2: LayerNorm,
    /// First map of the MLP, `[w, 4w]`.
    pub mlp_fc: Linear,
    /// Second map of the MLP, `[4w, w]`.
    pub mlp_out: Linear,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    causal: bool,
    #[module(skip)]
    activation: Activation,
}

/// What a block needs besides its width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockConfig {
    pub(crate) width: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) causal: bool,
    pub(crate) activation: Activation,
}

impl Block {
    /// CLIP's initialisation: maps into the residual stream shrink with the depth.
    pub(crate) fn new(config: BlockConfig, init: &mut Init) -> Self {
        let w = config.width;
        let attn_std = (w as f64).powf(-0.5);
        let proj_std = attn_std * (2.0 * config.layers as f64).powf(-0.5);
        let fc_std = (2.0 * w as f64).powf(-0.5);
        Self {
            ln_1: LayerNorm::new(w, init),
            qkv: Linear::new(w, 3 * w, attn_std, init),
            attn_out: Linear::new(w, w, proj_std, init),
            ln_2: LayerNorm::new(w, init),
            mlp_fc: Linear::new(w, 4 * w, fc_std, init),
            mlp_out: Linear::new(4 * w, w, proj_std, init),
            heads: config.heads,
            causal: config.causal,
            activation: config.activation,
        }
    }

    /// `[b, n, w]` f32 to `[b, n, w]` f32, with matrix products in `compute`.
    pub fn forward(&self, x: Tensor<3>, compute: FloatDType) -> Tensor<3> {
        self.forward_mlp(self.forward_attention(x, compute), compute)
    }

    /// [`Block::forward`] at position `at` of each sample only, `[b, n, w]` and `[b]` to `[b, w]`.
    ///
    /// Keys and values are those of all positions; queries and all that follows are computed where
    /// they are read, which is all that a tower's last block is asked for.
    pub fn forward_at(&self, x: Tensor<3>, at: Tensor<1, Int>, compute: FloatDType) -> Tensor<2> {
        let [b, n, w] = x.dims();
        let x = x.reshape([b * n, w]);
        let starts = Tensor::arange(0..b as i64, &at.device()).cast(IntDType::I32) * n as i64;
        let own = ops::take_rows(x.clone(), at.clone() + starts); // [b, w]
        let (weight, bias) = (self.qkv.weight.val(), self.qkv.bias.val());
        let map = |x: Tensor<2>, first: usize, width: usize| {
            let weight = weight.clone().narrow(1, first, width); // [w, width]
            let bias = bias.clone().narrow(0, first, width);
            ops::norm_linear(x, self.ln_1.parameters(), weight, bias, compute)
        };
        let kv = map(x, w, 2 * w).reshape([b, n, 2 * w]);
        let q = map(own.clone(), 0, w); // [b, w]
        let last = if self.causal { at } else { at.full_like(n as i64 - 1) };
        let mixed = ops::attention_at(q, kv, last, self.heads);
        self.mlp(self.attn_out.onto(own, mixed, None), compute)
    }

    /// The first half: `x + attention(norm(x))`, shapes and types as of [`Block::forward`].
    pub fn forward_attention(&self, x: Tensor<3>, compute: FloatDType) -> Tensor<3> {
        let dims = x.dims();
        let (x, mixed) = self.mixed(x, compute);
        self.attn_out.onto(x, mixed, None).reshape(dims)
    }

    /// The second half: `x + mlp(norm(x))`, shapes and types as of [`Block::forward`].
    pub fn forward_mlp(&self, x: Tensor<3>, compute: FloatDType) -> Tensor<3> {
        let [b, n, w] = x.dims();
        self.mlp(x.reshape([b * n, w]), compute).reshape([b, n, w])
    }

    /// [`Block::forward`] of `x [b, n, w]` once more for its backward: the root of a tape on which
    /// the gradient at the output is `gradient [b, n, w]`. The output itself is not computed.
    pub fn root(&self, x: Tensor<3>, gradient: Tensor<3>, compute: FloatDType) -> Tensor<1> {
        let [b, n, w] = x.dims();
        let x = self.forward_attention(x, compute).reshape([b * n, w]);
        let hidden = self.mlp_fc.after_norm(&self.ln_2, x.clone(), compute); // [b * n, 4w]
        let gradient = gradient.reshape([b * n, w]);
        self.mlp_out.onto_root(x, hidden, Some(self.activation), gradient)
    }

    /// As [`Block::root`], of [`Block::forward_attention`].
    pub fn root_attention(
        &self,
        x: Tensor<3>,
        gradient: Tensor<3>,
        compute: FloatDType,
    ) -> Tensor<1> {
        let [b, n, w] = x.dims();
        let (x, mixed) = self.mixed(x, compute);
        self.attn_out.onto_root(x, mixed, None, gradient.reshape([b * n, w]))
    }

    /// The input's rows and what attention makes of them, `[b * n, w]` each.
    fn mixed(&self, x: Tensor<3>, compute: FloatDType) -> (Tensor<2>, Tensor<2>) {
        let [b, n, w] = x.dims();
        let x = x.reshape([b * n, w]);
        let qkv = self.qkv.after_norm(&self.ln_1, x.clone(), compute).reshape([b, n, 3 * w]);
        let mixed = ops::attention(qkv, self.heads, self.causal).reshape([b * n, w]);
        (x, mixed)
    }

    /// `x + mlp(norm(x))` of rows, `[r, w]`.
    fn mlp(&self, x: Tensor<2>, compute: FloatDType) -> Tensor<2> {
        let hidden = self.mlp_fc.after_norm(&self.ln_2, x.clone(), compute); // [r, 4w]
        self.mlp_out.onto(x, hidden, Some(self.activation))
    }
}

/// An affine map, `x @ weight + bias`.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[w_in, w_out]`
    pub weight: Param<Tensor<2>>,
    /// `[w_out]`
    pub bias: Param<Tensor<1>>,
}

impl Linear {
    fn new(w_in: usize, w_out: usize, std: f64, init: &mut Init) -> Self {
        Self { weight: init.normal([w_in, w_out], std), bias: init.constant([w_out], 0.0) }
    }

    /// `norm(x) @ weight + bias` in `compute`, `[r, w_in] -> [r, w_out]`.
    fn after_norm(&self, norm: &LayerNorm, x: Tensor<2>, compute: FloatDType) -> Tensor<2> {
        ops::norm_linear(x, norm.parameters(), self.weight.val(), self.bias.val(), compute)
    }

    /// `residual + activation(x) @ weight + bias`: `x [r, w_in]` in the compute dtype onto
    /// `residual [r, w_out]` f32.
    fn onto(&self, residual: Tensor<2>, x: Tensor<2>, activation: Option<Activation>) -> Tensor<2> {
        ops::linear_onto(residual, x, activation, self.weight.val(), self.bias.val())
    }

    /// [`Linear::onto`] for its backward alone; see [`ops::linear_onto_root`].
    fn onto_root(
        &self,
        residual: Tensor<2>,
        x: Tensor<2>,
        activation: Option<Activation>,
        gradient: Tensor<2>,
    ) -> Tensor<1> {
        let (weight, bias) = (self.weight.val(), self.bias.val());
        ops::linear_onto_root(residual, x, activation, weight, bias, gradient)
    }
}

/// Layer norm over the width, in f32.
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// Scale, `[w]`.
    pub gamma: Param<Tensor<1>>,
    /// Shift, `[w]`.
    pub beta: Param<Tensor<1>>,
}

impl LayerNorm {
    pub(crate) fn new(width: usize, init: &Init) -> Self {
        Self { gamma: init.constant([width], 1.0), beta: init.constant([width], 0.0) }
    }

    /// `[.., w] -> [.., w]` in f32.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        ops::layer_norm(x, self.gamma.val(), self.beta.val())
    }

    fn parameters(&self) -> [Tensor<1>; 2] {
        [self.gamma.val(), self.beta.val()]
    }
}
