//! Layer norm over the last dimension, in f32.

use burn::tensor::{FloatDType, Tensor};

/// Added to the variance (PyTorch's default, and CLIP's).
const EPSILON: f64 = 1e-5;

/// `(x - mean) / sqrt(var + 1e-5) * gamma + beta` over the width, in f32: `[b, n, w] -> [b, n, w]`.
///
/// `gamma [w]`, `beta [w]`.
pub fn layer_norm<const D: usize>(x: Tensor<D>, gamma: Tensor<1>, beta: Tensor<1>) -> Tensor<D> {
    let x = x.cast(FloatDType::F32);
    let centered = x.clone() - x.mean_dim(D - 1);
    let variance = centered.clone().square().mean_dim(D - 1);
    let normalized = centered / (variance + EPSILON).sqrt();
    normalized * gamma.unsqueeze() + beta.unsqueeze()
}
