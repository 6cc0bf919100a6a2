//! What a backend does for a tower: operations and their gradients.

#![expect(
    clippy::type_complexity,
    reason = "the extension macro reads tuples of tensors, no alias"
)]

use super::composed;
use crate::config::Activation;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata, backend_extension};
use burn::tensor::{FloatDType, Shape};

/// The operations of a tower, forward and backward, on a backend's own tensors.
///
/// Each has a body of the backend's basic operations, so that a backend takes part by an empty
/// `impl`; a backend with fused kernels overrides it. Forward and backward of a backend belong
/// together: an override of one needs the other's rounding.
///
/// Letters: `r` rows, `k` width in, `m` width out, `b` batch, `n` positions, `w` width. Parameters,
/// their gradients and the residual stream are f32; activations inside a block have the compute
/// dtype, and matrix products run in it.
#[backend_extension(Flex, Cube: cfg(feature = "cuda"), Autodiff)]
pub trait BlockOps: Backend {
    /// Layer norm of `x [r, k]` in f32, scaled by `gamma [k]` and shifted by `beta [k]`.
    fn norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        composed::norm::<Self>(x, gamma, beta)
    }

    /// Gradients of [`BlockOps::norm`] at `x`, `gamma` and `beta`.
    fn norm_backward(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        composed::norm_backward::<Self>(x, gamma, grad)
    }

    /// Rows `index [r]` of `table [v, w]`.
    fn take_rows(table: FloatTensor<Self>, index: IntTensor<Self>) -> FloatTensor<Self> {
        Self::float_select(table, 0, index)
    }

    /// The gradient of [`BlockOps::take_rows`] at a table of `rows` rows, `[rows, w]`.
    fn take_rows_backward(
        rows: usize,
        index: IntTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        composed::take_rows_backward::<Self>(rows, index, grad)
    }

    /// Mean cross-entropy of `logits [r, m]` f32 with `labels [r]`, `[1]`.
    fn cross_entropy(logits: FloatTensor<Self>, labels: IntTensor<Self>) -> FloatTensor<Self> {
        composed::cross_entropy::<Self>(logits, labels)
    }

    /// The gradient of [`BlockOps::cross_entropy`] at `logits`; `grad [1]` is the one at the mean.
    fn cross_entropy_backward(
        logits: FloatTensor<Self>,
        labels: IntTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        composed::cross_entropy_backward::<Self>(logits, labels, grad)
    }

    /// `x @ weight` in the dtype of `x [r, k]`, as f32: `weight [k, m]`. `x` has no gradient.
    fn embed(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self> {
        composed::embed::<Self>(x, weight)
    }

    /// The gradient of [`BlockOps::embed`] at `weight`.
    fn embed_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        composed::embed_backward::<Self>(x, grad)
    }

    /// `norm(x) @ weight + bias` in `compute`: `x [r, k]` f32, `weight [k, m]`, `bias [m]`.
    fn norm_linear(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        compute: FloatDType,
    ) -> FloatTensor<Self> {
        composed::norm_linear::<Self>(x, gamma, beta, weight, bias, compute)
    }

    /// Gradients of [`BlockOps::norm_linear`] at `x`, `gamma`, `beta`, `weight` and `bias`.
    fn norm_linear_backward(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> (
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
        FloatTensor<Self>,
    ) {
        composed::norm_linear_backward::<Self>(x, gamma, beta, weight, grad)
    }

    /// `residual + activation(x) @ weight + bias` in f32: `x [r, k]` in the compute dtype,
    /// `weight [k, m]`, `bias [m]`, `residual [r, m]`.
    fn linear_onto(
        residual: FloatTensor<Self>,
        x: FloatTensor<Self>,
        activation: Option<Activation>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        composed::linear_onto::<Self>(residual, x, activation, weight, bias)
    }

    /// Gradients of [`BlockOps::linear_onto`] at `x`, `weight` and `bias`; the one at `residual` is
    /// `grad` itself.
    fn linear_onto_backward(
        x: FloatTensor<Self>,
        activation: Option<Activation>,
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        composed::linear_onto_backward::<Self>(x, activation, weight, grad)
    }

    /// A scalar whose gradients at `residual`, `x`, `weight` and `bias` are those of
    /// [`BlockOps::linear_onto`] when `gradient` is the one at its result.
    fn linear_onto_root(
        residual: FloatTensor<Self>,
        x: FloatTensor<Self>,
        activation: Option<Activation>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let _without_a_tape = (residual, activation, weight, bias, gradient);
        Self::float_zeros(Shape::new([1]), &x.device(), FloatDType::F32)
    }

    /// Softmax attention over packed projections, `[b, n, 3w]` to `[b, n, w]`; softmax in f32.
    fn self_attention(qkv: FloatTensor<Self>, heads: usize, causal: bool) -> FloatTensor<Self> {
        composed::attention::<Self>(qkv, heads, causal)
    }

    /// The gradient of [`BlockOps::self_attention`] at `qkv`.
    fn self_attention_backward(
        qkv: FloatTensor<Self>,
        heads: usize,
        causal: bool,
        grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        composed::attention_backward::<Self>(qkv, heads, causal, grad)
    }

    /// Softmax attention of one query a sample, `q [b, w]`, over the keys and values `0..=last` of
    /// `kv [b, n, 2w]`, to `[b, w]`; `last [b]`, softmax in f32.
    fn attention_at(
        q: FloatTensor<Self>,
        kv: FloatTensor<Self>,
        last: IntTensor<Self>,
        heads: usize,
    ) -> FloatTensor<Self> {
        composed::attention_at::<Self>(q, kv, last, heads)
    }

    /// The gradients of [`BlockOps::attention_at`] at `q` and `kv`.
    fn attention_at_backward(
        q: FloatTensor<Self>,
        kv: FloatTensor<Self>,
        last: IntTensor<Self>,
        heads: usize,
        grad: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::attention_at_backward::<Self>(q, kv, last, heads, grad)
    }
}

// Fused or not, by burn's feature of that name.
#[cfg(feature = "cuda")]
impl BlockOps for burn::backend::Cube {}
