//! The affine map.

use super::matmul;
use burn::tensor::{FloatDType, Tensor};

/// `x @ weight + bias` in the dtype `compute`: `[b, n, w_in] -> [b, n, w_out]`.
///
/// `weight [w_in, w_out]` and `bias [w_out]` are f32 and cast here, at use, so that their gradients
/// come back in f32 and no cast outlives a step.
pub fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Tensor<1>, compute: FloatDType) -> Tensor<3> {
    let [b, n, w_in] = x.dims();
    let [_, w_out] = weight.dims();
    let rows = x.cast(compute).reshape([b * n, w_in]);
    let y = matmul(rows, weight.cast(compute)) + bias.cast(compute).unsqueeze::<2>();
    y.reshape([b, n, w_out]) // [b, n, w_out]
}
