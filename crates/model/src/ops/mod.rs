//! The differentiable operations of a block, each one node of the tape.
//!
//! A block is five operations: norm and map, attention, map onto the residual stream; norm and map,
//! activation and map onto the residual stream. Each keeps its inputs for the backward and computes
//! everything else again there, so that the tape holds neither attention scores nor norms nor
//! activations. [`BlockOps`] is the same from a backend's side.
//!
//! burn does not promote dtypes, and a matrix product of two dtypes reads one as the other on some
//! backends: every product asserts that it has one, and records it for [`take_matmul_dtypes`].
//!
//! Letters: `r` rows (positions of all samples), `k` width in, `m` width out, `b` batch, `n`
//! positions, `w` width.

mod attention_at;
mod backend;
mod composed;
mod flex;
mod matmul;
mod tape;
#[cfg(test)]
mod tests;

pub use attention_at::attention_at;
pub use backend::BlockOps;
pub use matmul::{MatmulDtypes, matmul, take_matmul_dtypes};

use crate::config::Activation;
use burn::backend::Dispatch;
use burn::tensor::{FloatDType, Tensor};

/// Added to a layer norm's variance (PyTorch's default, and CLIP's).
const EPSILON: f64 = 1e-5;

/// `(x - mean) / sqrt(var + 1e-5) * gamma + beta` over the last dimension, in f32.
///
/// `x [.., w]` f32, `gamma [w]`, `beta [w]`.
pub fn layer_norm<const D: usize>(x: Tensor<D>, gamma: Tensor<1>, beta: Tensor<1>) -> Tensor<D> {
    let dims = x.dims();
    let rows = x.reshape([-1, dims[D - 1] as i64]); // [r, w]
    let y = Dispatch::norm(rows.into_dispatch(), gamma.into_dispatch(), beta.into_dispatch());
    Tensor::<2>::from_dispatch(y).reshape(dims)
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
    Tensor::from_dispatch(Dispatch::norm_linear(
        x.into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        compute,
    ))
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
    Tensor::from_dispatch(Dispatch::linear_onto(
        residual.into_dispatch(),
        x.into_dispatch(),
        activation,
        weight.into_dispatch(),
        bias.into_dispatch(),
    ))
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
    Tensor::from_dispatch(Dispatch::self_attention(qkv.into_dispatch(), heads, causal))
}
