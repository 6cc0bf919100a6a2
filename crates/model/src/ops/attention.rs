//! Multi-head self-attention on packed projections.

use super::matmul;
use burn::tensor::{Bool, FloatDType, Tensor};

/// Softmax attention of every position over all positions, or over itself and those before it.
///
/// `qkv [b, n, 3w]` holds queries, keys and values side by side in the compute dtype; the result is
/// `[b, n, w]` in the same dtype. Products run in it, the softmax in f32.
pub fn attention(qkv: Tensor<3>, heads: usize, causal: bool) -> Tensor<3> {
    let [b, n, w3] = qkv.dims();
    let d = w3 / 3 / heads;
    let dtype = qkv.dtype();
    let packed = qkv.reshape([b, n, 3, heads, d]).permute([2, 0, 3, 1, 4]); // [3, b, h, n, d]
    let part = |i: usize| packed.clone().slice([i..i + 1]).reshape([b, heads, n, d]);
    let (q, k, v) = (part(0) * (d as f64).powf(-0.5), part(1), part(2)); // [b, h, n, d]
    let scores = matmul(q, k.swap_dims(2, 3)).cast(FloatDType::F32); // [b, h, n, n]
    let scores = match causal {
        false => scores,
        true => {
            let future = Tensor::<2, Bool>::tril_mask([n, n], 0, &scores.device());
            scores.mask_fill(future.unsqueeze(), f32::NEG_INFINITY)
        }
    };
    let y = matmul(softmax(scores).cast(dtype), v); // [b, h, n, d]
    y.swap_dims(1, 2).reshape([b, n, heads * d]) // [b, n, w]
}

/// Softmax over the last dimension, written out so that it is one sequence of operations with and
/// without a tape: recomputation is bitwise only then.
fn softmax(x: Tensor<4>) -> Tensor<4> {
    let shifted = x.clone() - x.detach().max_dim(3);
    let exp = shifted.exp();
    exp.clone() / exp.sum_dim(3)
}
