//! Fused kernels of the CPU backend, in f32, f16 and bf16; f64 takes the composed operations.
//!
//! Work is cut by shape alone and sums are added in a fixed order: results depend on no number of
//! threads.

mod activation;
mod attention;
mod attention_at;
mod compute;
mod cut;
mod linear;
mod map_grads;
mod math;
mod narrow;
mod norm;
mod product;

pub use cut::{BLOCK, PARTS, block_rows};
pub use map_grads::{KEPT_ROWS, SMALL_WEIGHT};

use super::backend::BlockOps;
use super::composed;
use super::matmul::record;
use crate::config::Activation;
use attention::Heads;
use attention_at::Queries;
use burn::backend::flex::FlexTensor as Tensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{DType, FloatDType, bf16, f16};
use compute::{Compute, tensor};
use linear::Weight;
use norm::Norm;

/// Picks the kernel's element type by a run-time dtype.
macro_rules! by_dtype {
    ($dtype:expr, $T:ident => $fused:expr, _ => $composed:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                record(DType::F32);
                $fused
            }
            DType::F16 => {
                type $T = f16;
                record(DType::F16);
                $fused
            }
            DType::BF16 => {
                type $T = bf16;
                record(DType::BF16);
                $fused
            }
            _ => $composed,
        }
    };
}

impl BlockOps for Flex {
    fn norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor {
        let [x, gamma, beta] = [x, gamma, beta].map(contiguous);
        let y = norm::forward(slice(&x), Norm { gamma: slice(&gamma), beta: slice(&beta) });
        tensor(y, &x.shape())
    }

    fn norm_backward(x: Tensor, gamma: Tensor, grad: Tensor) -> (Tensor, Tensor, Tensor) {
        let [x, gamma, grad] = [x, gamma, grad].map(contiguous);
        let (dx, grads) = norm::backward(slice(&x), slice(&gamma), slice(&grad));
        (tensor(dx, &x.shape()), vector(grads.gamma), vector(grads.beta))
    }

    fn take_rows_backward(rows: usize, index: Tensor, grad: Tensor) -> Tensor {
        let [index, grad] = [index, grad].map(contiguous);
        match grad.dtype() {
            DType::F32 => {
                let w = grad.shape()[1];
                let mut sums = vec![0.0; rows * w];
                for (row, grad) in indices(&index).zip(slice::<f32>(&grad).chunks_exact(w)) {
                    math::add_rows(&mut sums[row * w..(row + 1) * w], grad);
                }
                tensor(sums, &[rows, w])
            }
            _ => composed::take_rows_backward::<Flex>(rows, index, grad),
        }
    }

    fn embed(x: Tensor, weight: Tensor) -> Tensor {
        let [x, weight] = [x, weight].map(contiguous);
        by_dtype!(x.dtype(), T => {
            let map = matrix(&weight);
            tensor(linear::embed::<T>(slice(&x), map), &[x.shape()[0], map.m])
        }, _ => composed::embed::<Flex>(x, weight))
    }

    fn embed_backward(x: Tensor, grad: Tensor) -> Tensor {
        let [x, grad] = [x, grad].map(contiguous);
        let sizes = [x.shape()[1], grad.shape()[1]];
        by_dtype!(x.dtype(), T => {
            tensor(linear::embed_backward::<T>(slice(&x), sizes, slice(&grad)), &sizes)
        }, _ => composed::embed_backward::<Flex>(x, grad))
    }

    fn norm_linear(
        x: Tensor,
        gamma: Tensor,
        beta: Tensor,
        weight: Tensor,
        bias: Tensor,
        compute: FloatDType,
    ) -> Tensor {
        let [x, gamma, beta, weight, bias] = [x, gamma, beta, weight, bias].map(contiguous);
        by_dtype!(compute.into(), T => {
            let norm = Norm { gamma: slice(&gamma), beta: slice(&beta) };
            let map = matrix(&weight);
            let y = linear::norm_linear::<T>(slice(&x), norm, map, slice(&bias));
            tensor(y, &[x.shape()[0], map.m])
        }, _ => composed::norm_linear::<Flex>(x, gamma, beta, weight, bias, compute))
    }

    fn norm_linear_backward(
        x: Tensor,
        gamma: Tensor,
        beta: Tensor,
        weight: Tensor,
        grad: Tensor,
    ) -> (Tensor, Tensor, Tensor, Tensor, Tensor) {
        let [x, gamma, beta, weight, grad] = [x, gamma, beta, weight, grad].map(contiguous);
        by_dtype!(grad.dtype(), T => {
            let norm = Norm { gamma: slice(&gamma), beta: slice(&beta) };
            let (dx, norm_grads, grads) = linear::norm_linear_backward::<T>(
                slice(&x), norm, matrix(&weight), slice(&grad),
            );
            let d_weight = tensor(grads.weight, &weight.shape());
            let (d_gamma, d_beta) = (vector(norm_grads.gamma), vector(norm_grads.beta));
            (tensor(dx, &x.shape()), d_gamma, d_beta, d_weight, vector(grads.bias))
        }, _ => composed::norm_linear_backward::<Flex>(x, gamma, beta, weight, grad))
    }

    fn linear_onto(
        residual: Tensor,
        x: Tensor,
        activation: Option<Activation>,
        weight: Tensor,
        bias: Tensor,
    ) -> Tensor {
        let [residual, x, weight, bias] = [residual, x, weight, bias].map(contiguous);
        by_dtype!(x.dtype(), T => {
            let y = linear::linear_onto::<T>(
                slice(&residual), slice(&x), activation, matrix(&weight), slice(&bias),
            );
            tensor(y, &residual.shape())
        }, _ => composed::linear_onto::<Flex>(residual, x, activation, weight, bias))
    }

    fn linear_onto_backward(
        x: Tensor,
        activation: Option<Activation>,
        weight: Tensor,
        grad: Tensor,
    ) -> (Tensor, Tensor, Tensor) {
        let [x, weight, grad] = [x, weight, grad].map(contiguous);
        by_dtype!(x.dtype(), T => {
            let (dx, grads) = linear::linear_onto_backward::<T>(
                slice(&x), activation, matrix(&weight), slice(&grad),
            );
            let d_weight = tensor(grads.weight, &weight.shape());
            (tensor(dx, &x.shape()), d_weight, vector(grads.bias))
        }, _ => composed::linear_onto_backward::<Flex>(x, activation, weight, grad))
    }

    fn self_attention(qkv: Tensor, heads: usize, causal: bool) -> Tensor {
        let qkv = contiguous(qkv);
        let sizes = Heads::new(&qkv.shape(), heads, causal);
        by_dtype!(qkv.dtype(), T => {
            let y = attention::forward::<T>(slice(&qkv), sizes);
            tensor(y, &[qkv.shape()[0], sizes.n, sizes.w])
        }, _ => composed::attention::<Flex>(qkv, heads, causal))
    }

    fn self_attention_backward(qkv: Tensor, heads: usize, causal: bool, grad: Tensor) -> Tensor {
        let [qkv, grad] = [qkv, grad].map(contiguous);
        let sizes = Heads::new(&qkv.shape(), heads, causal);
        by_dtype!(qkv.dtype(), T => {
            tensor(attention::backward::<T>(slice(&qkv), slice(&grad), sizes), &qkv.shape())
        }, _ => composed::attention_backward::<Flex>(qkv, heads, causal, grad))
    }

    fn attention_at(q: Tensor, kv: Tensor, last: Tensor, heads: usize) -> Tensor {
        let [q, kv, last] = [q, kv, last].map(contiguous);
        by_dtype!(q.dtype(), T => {
            let last: Vec<_> = indices(&last).collect();
            let sizes = queries(&kv, heads, &last);
            tensor(attention_at::forward::<T>(slice(&q), slice(&kv), &sizes), &q.shape())
        }, _ => composed::attention_at::<Flex>(q, kv, last, heads))
    }

    fn attention_at_backward(
        q: Tensor,
        kv: Tensor,
        last: Tensor,
        heads: usize,
        grad: Tensor,
    ) -> (Tensor, Tensor) {
        let [q, kv, last, grad] = [q, kv, last, grad].map(contiguous);
        by_dtype!(q.dtype(), T => {
            let last: Vec<_> = indices(&last).collect();
            let (dq, dkv) = attention_at::backward::<T>(
                slice(&q), slice(&kv), slice(&grad), &queries(&kv, heads, &last),
            );
            (tensor(dq, &q.shape()), tensor(dkv, &kv.shape()))
        }, _ => composed::attention_at_backward::<Flex>(q, kv, last, heads, grad))
    }
}

fn contiguous(tensor: Tensor) -> Tensor {
    tensor.to_contiguous()
}

/// The elements of a tensor that [`contiguous`] returned.
///
/// # Panics
/// If the tensor has another dtype: a broken invariant of the caller.
fn slice<T: Compute>(tensor: &Tensor) -> &[T] {
    let dtype = tensor.dtype();
    T::slice(tensor).unwrap_or_else(|| panic!("{dtype:?} instead of {:?}", T::dtype()))
}

/// Whole numbers of a tensor that [`contiguous`] returned.
///
/// # Panics
/// If the tensor is neither i32 nor i64, which are what burn makes: a broken invariant.
fn indices(tensor: &Tensor) -> Box<dyn Iterator<Item = usize> + '_> {
    match (tensor.as_slice::<i32>(), tensor.as_slice::<i64>()) {
        (Some(values), _) => Box::new(values.iter().map(|i| *i as usize)),
        (_, Some(values)) => Box::new(values.iter().map(|i| *i as usize)),
        _ => panic!("{:?} are no indices", tensor.dtype()),
    }
}

fn matrix(weight: &Tensor) -> Weight<'_> {
    let shape = weight.shape();
    Weight { values: slice(weight), k: shape[0], m: shape[1] }
}

fn queries<'a>(kv: &Tensor, heads: usize, last: &'a [usize]) -> Queries<'a> {
    let shape = kv.shape();
    Queries { n: shape[1], w: shape[2] / 2, heads, last }
}

fn vector(elements: Vec<f32>) -> Tensor {
    let length = elements.len();
    tensor(elements, &[length])
}
