//! The non-linearities of CLIP's MLPs, in the dtype of their input.

use burn::tensor::{Tensor, activation};

/// `x * sigmoid(1.702 x)`, what OpenAI trained CLIP with.
pub fn quick_gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * activation::sigmoid(x * 1.702)
}

/// The exact `x * Phi(x)`.
pub fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::gelu(x)
}
