//! Attention of one position of each sample.

use super::{matmul, used};
use burn::tensor::{FloatDType, Int, Tensor};

/// Multi-head softmax attention of one query a sample, `q [b, w]`, over keys and values side by side
/// in `kv [b, n, 2w]`, to `[b, w]`.
///
/// `last [b]` is the last position that a sample's query sees; without it, it sees all. Products run
/// in the dtype of `q` and `kv`, the softmax in f32. The cost is a share of `1 / n` of that of
/// [`attention`](super::attention), so that it is composed of the backend's own operations.
pub fn attention_at(
    q: Tensor<2>,
    kv: Tensor<3>,
    heads: usize,
    last: Option<Tensor<1, Int>>,
) -> Tensor<2> {
    let ([b, w], n) = (q.dims(), kv.dims()[1]);
    let (d, reads) = (w / heads, q.dtype());
    let q = q.reshape([b, heads, 1, d]);
    let kv = kv.reshape([b, n, 2, heads, d]).permute([2, 0, 3, 1, 4]); // [2, b, h, n, d]
    let part = |i: usize| kv.clone().narrow(0, i, 1).reshape([b, heads, n, d]);
    let (k, v) = (part(0), part(1));
    let scores = matmul(q, k.transpose()).cast(FloatDType::F32); // [b, h, 1, n]
    let scores = scores.mul_scalar((d as f64).powf(-0.5));
    let scores = match last {
        None => scores,
        Some(last) => {
            let positions = Tensor::arange(0..n as i64, &last.device()).cast(last.dtype());
            let future = positions.reshape([1, 1, 1, n]).greater(last.reshape([b, 1, 1, 1]));
            scores.mask_fill(future.expand([b, heads, 1, n]), f32::NEG_INFINITY)
        }
    };
    // Not the backend's softmax: it may be another without a tape than with one, by a last bit.
    let exp = (scores.clone() - scores.detach().max_dim(3)).exp();
    let p = (exp.clone() / exp.sum_dim(3)).cast(FloatDType::from(reads));
    used("attention_at", reads, matmul(p, v).reshape([b, w]))
}
