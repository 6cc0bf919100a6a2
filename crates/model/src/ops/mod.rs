//! The differentiable operations of a tower, each one node of the tape.
//!
//! A block is five operations: norm and map, attention, map onto the residual stream; norm and map,
//! activation and map onto the residual stream. Each keeps its inputs for the backward and computes
//! everything else again there, so that the tape holds neither attention scores nor norms nor
//! activations. A tower's last block, read at one position, has attention of its own.
//! [`BlockOps`] is the same from a backend's side.
//!
//! burn does not promote dtypes, and a matrix product of two dtypes reads one as the other on some
//! backends: every product asserts that it has one, and records it for [`take_matmul_dtypes`].
//!
//! Letters: `r` rows (positions of all samples), `k` width in, `m` width out, `b` batch, `n`
//! positions, `w` width.

mod backend;
mod composed;
mod dtypes;
mod flex;
mod matmul;
mod tape;
#[cfg(test)]
mod tests;

pub use backend::BlockOps;
pub(crate) use dtypes::used;
pub use dtypes::{Used, take_used};
pub use matmul::{MatmulDtypes, take_matmul_dtypes};

/// How the fused CPU kernels cut their work, for whoever predicts what they hold.
pub mod cpu {
    pub use super::flex::{BLOCK, KEPT_ROWS, PARTS, SMALL_WEIGHT, block_rows};
}

/// How operations that are composed of a backend's own cut their work.
pub mod composite {
    pub use super::composed::{KEPT_ROWS, KEPT_SCORES};
}

use crate::config::Activation;
use burn::backend::Dispatch;
use burn::tensor::{FloatDType, Int, Tensor};

/// Added to a layer norm's variance (PyTorch's default, and CLIP's).
const EPSILON: f64 = 1e-5;

/// `(x - mean) / sqrt(var + 1e-5) * gamma + beta` over the last dimension, in f32.
///
/// `x [.., w]` f32, `gamma [w]`, `beta [w]`.
pub fn layer_norm<const D: usize>(x: Tensor<D>, gamma: Tensor<1>, beta: Tensor<1>) -> Tensor<D> {
    let dims = x.dims();
    let rows = x.reshape([-1, dims[D - 1] as i64]); // [r, w]
    let reads = rows.dtype();
    let y = Dispatch::norm(rows.into_dispatch(), gamma.into_dispatch(), beta.into_dispatch());
    used("layer_norm", reads, Tensor::<2>::from_dispatch(y)).reshape(dims)
}

/// Rows of a table, `[v, w]` and `[r]` to `[r, w]`, in the table's dtype. A row may be taken more than
/// once: its gradient is the sum, added up in the order of `index`.
pub fn take_rows(table: Tensor<2>, index: Tensor<1, Int>) -> Tensor<2> {
    let reads = table.dtype();
    let rows = Dispatch::take_rows(table.into_dispatch(), index.into_dispatch());
    used("take_rows", reads, Tensor::from_dispatch(rows))
}

/// Mean cross-entropy of rows of logits, `[r, m]` f32, whose right classes are `labels [r]`: `[1]`.
///
/// One node of the tape, which keeps the logits and computes their softmax again.
pub fn cross_entropy(logits: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    let reads = logits.dtype();
    let mean = Dispatch::cross_entropy(logits.into_dispatch(), labels.into_dispatch());
    used("cross_entropy", reads, Tensor::from_dispatch(mean))
}

/// `x @ weight` in the dtype of `x`, as f32: `[r, k] -> [r, m]`, of inputs that have no gradient.
///
/// `weight [k, m]` is f32 and cast at use.
pub fn embed(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    let reads = x.dtype();
    let y = Dispatch::embed(x.into_dispatch(), weight.into_dispatch());
    used("patch_embed", reads, Tensor::from_dispatch(y))
}

/// `layer_norm(x) @ weight + bias` in `compute`, `[r, k] -> [r, m]`.
///
/// `x`, `gamma [k]`, `beta [k]`, `weight [k, m]` and `bias [m]` are f32. The latter two are cast
/// here, at use, so that their gradients come back in f32 and no cast outlives the operation.
pub fn norm_linear(
    x: Tensor<2>,
    [gamma, beta]: [Tensor<1>; 2],
    weight: Tensor<2>,
    bias: Tensor<1>,
    compute: FloatDType,
) -> Tensor<2> {
    let reads = x.dtype();
    let y = Dispatch::norm_linear(
        x.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        compute,
    );
    used("norm_linear", reads, Tensor::from_dispatch(y))
}

/// `residual + activation(x) @ weight + bias`, `[r, k]` onto `[r, m]`.
///
/// The product runs in the dtype of `x`, the sum in that of `residual`, f32. `weight [k, m]` and
/// `bias [m]` are f32 and cast at use.
pub fn linear_onto(
    residual: Tensor<2>,
    x: Tensor<2>,
    activation: Option<Activation>,
    weight: Tensor<2>,
    bias: Tensor<1>,
) -> Tensor<2> {
    let reads = x.dtype();
    let y = Dispatch::linear_onto(
        residual.into_dispatch(),
        x.into_dispatch(),
        activation,
        weight.into_dispatch(),
        bias.into_dispatch(),
    );
    used("linear_onto", reads, Tensor::from_dispatch(y))
}

/// [`linear_onto`] for its backward alone: the root of a tape on which the gradient at its result is
/// `gradient [r, m]`. The result itself is not computed, which its backward has no use for.
pub fn linear_onto_root(
    residual: Tensor<2>,
    x: Tensor<2>,
    activation: Option<Activation>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    gradient: Tensor<2>,
) -> Tensor<1> {
    Tensor::from_dispatch(Dispatch::linear_onto_root(
        residual.into_dispatch(),
        x.into_dispatch(),
        activation,
        weight.into_dispatch(),
        bias.into_dispatch(),
        gradient.inner().into_dispatch(),
    ))
}

/// Multi-head softmax attention of every position over all positions, or over itself and those
/// before it.
///
/// `qkv [b, n, 3w]` holds queries, keys and values side by side in the compute dtype; the result is
/// `[b, n, w]` in the same dtype. Products run in it, the softmax in f32.
pub fn attention(qkv: Tensor<3>, heads: usize, causal: bool) -> Tensor<3> {
    let reads = qkv.dtype();
    let y = Dispatch::self_attention(qkv.into_dispatch(), heads, causal);
    used("attention", reads, Tensor::from_dispatch(y))
}

/// Multi-head softmax attention of one query a sample, `q [b, w]`, over keys and values side by side
/// in `kv [b, n, 2w]`, to `[b, w]`.
///
/// `last [b]` is the last position that a sample's query sees. Products run in the dtype of `q` and
/// `kv`, the softmax in f32.
pub fn attention_at(q: Tensor<2>, kv: Tensor<3>, last: Tensor<1, Int>, heads: usize) -> Tensor<2> {
    let reads = q.dtype();
    let (q, kv, last) = (q.into_dispatch(), kv.into_dispatch(), last.into_dispatch());
    used("attention_at", reads, Tensor::from_dispatch(Dispatch::attention_at(q, kv, last, heads)))
}
