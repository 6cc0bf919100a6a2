//! Affine maps with what comes before and after them, block of rows by block of rows, so that
//! everything between reading the input and writing the output stays in a core's cache.
//!
//! Letters: `r` rows, `k` width in, `m` width out.

use super::activation;
use super::compute::{Compute, rounded, transposed, with_scratch};
use super::cut::{BLOCK, even_rows};
use super::math::{add_rows, add_to_rows, multiply};
use super::norm::Norm;
use super::product::{Into, Matrix, product};
use crate::config::Activation;
use rayon::prelude::*;

/// The `[k, m]` matrix of an affine map.
#[derive(Clone, Copy)]
pub(super) struct Weight<'a> {
    pub(super) values: &'a [f32],
    pub(super) k: usize,
    pub(super) m: usize,
}

/// Gradients of an affine map: `weight [k, m]`, `bias [m]`.
pub(super) struct MapGrads {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

/// `norm(x) @ weight + bias`: `[r, k]` to `[r, m]`.
pub(super) fn norm_linear<T: Compute>(
    x: &[f32],
    norm: Norm<&[f32]>,
    weight: Weight,
    bias: &[f32],
) -> Vec<T> {
    let Weight { values, k, m } = weight;
    let values = rounded::<T>(values);
    let mut out = vec![T::ZERO; x.len() / k * m];
    let blocks = out.par_chunks_mut(BLOCK * m).zip(x.par_chunks(BLOCK * k));
    blocks.for_each(|(out, x)| {
        with_scratch([x.len(), out.len()], |[a, y]| {
            norm.rows(x, a);
            T::round(a);
            T::write(out, y, |y| {
                y.chunks_exact_mut(m).for_each(|y| y.copy_from_slice(bias));
                product(y, m, Into::Increased, Matrix::new(a, k), Matrix::new(&values, m));
            });
        });
    });
    out
}

/// Gradients of [`norm_linear`] at `x`, the norm and the map, from the one at its result.
pub(super) fn norm_linear_backward<T: Compute>(
    x: &[f32],
    norm: Norm<&[f32]>,
    weight: Weight,
    grad: &[T],
) -> (Vec<f32>, Norm<Vec<f32>>, MapGrads) {
    let Weight { values, k, m } = weight;
    let turned = transposed(&rounded::<T>(values), m); // [m, k]
    let mut dx = vec![0.0; x.len()];
    let (rows, block) = even_rows(x.len() / k);
    let parts = dx.par_chunks_mut(rows * k).zip(x.par_chunks(rows * k));
    let parts = parts.zip(grad.par_chunks(rows * m)).map(|((dx, x), grad)| {
        let (mut norm_grads, mut grads) = (Norm::zero(k), MapGrads::zero(k, m));
        let blocks = dx.chunks_mut(block * k).zip(x.chunks(block * k));
        for ((dx, x), grad) in blocks.zip(grad.chunks(block * m)) {
            with_scratch([x.len(), grad.len()], |[a, dy]| {
                let dy = T::read(grad, dy);
                norm.rows(x, a);
                T::round(a);
                grads.add_rows(a, dy);
                product(a, k, Into::Replaced, Matrix::new(dy, m), Matrix::new(&turned, k));
                norm_grads.add_rows(norm.gamma, x, a, dx);
            });
        }
        (norm_grads, grads)
    });
    let (mut norm_sums, mut sums) = (Norm::zero(k), MapGrads::zero(k, m));
    for (norm_part, part) in parts.collect::<Vec<_>>() {
        norm_sums.merge(&norm_part);
        sums.merge(&part);
    }
    (dx, norm_sums, sums)
}

/// `residual + activation(x) @ weight + bias`: `[r, k]` onto `[r, m]`.
pub(super) fn linear_onto<T: Compute>(
    residual: &[f32],
    x: &[T],
    activation: Option<Activation>,
    weight: Weight,
    bias: &[f32],
) -> Vec<f32> {
    let Weight { values, k, m } = weight;
    let values = rounded::<T>(values);
    let mut out = vec![0.0; residual.len()];
    let blocks = out.par_chunks_mut(BLOCK * m).zip(residual.par_chunks(BLOCK * m));
    blocks.zip(x.par_chunks(BLOCK * k)).for_each(|((y, residual), x)| {
        with_scratch([x.len(), x.len()], |[x_scratch, a]| {
            let mut x = T::read(x, x_scratch);
            if let Some(activation) = activation {
                activation::forward(activation, x, a);
                T::round(a);
                x = a;
            }
            y.copy_from_slice(residual);
            add_to_rows(y, bias);
            product(y, m, Into::Increased, Matrix::new(x, k), Matrix::new(&values, m));
        });
    });
    out
}

/// Gradients of [`linear_onto`] at `x` and the map; the one at `residual` is `grad` itself.
pub(super) fn linear_onto_backward<T: Compute>(
    x: &[T],
    activation: Option<Activation>,
    weight: Weight,
    grad: &[f32],
) -> (Vec<T>, MapGrads) {
    let Weight { values, k, m } = weight;
    let turned = transposed(&rounded::<T>(values), m); // [m, k]
    let mut dx = vec![T::ZERO; x.len()];
    let (rows, block) = even_rows(x.len() / k);
    let parts = dx.par_chunks_mut(rows * k).zip(x.par_chunks(rows * k));
    let parts = parts.zip(grad.par_chunks(rows * m)).map(|((dx, x), grad)| {
        let mut grads = MapGrads::zero(k, m);
        let blocks = dx.chunks_mut(block * k).zip(x.chunks(block * k));
        for ((dx, x), grad) in blocks.zip(grad.chunks(block * m)) {
            let lengths = [x.len(), x.len(), x.len(), x.len(), grad.len()];
            with_scratch(lengths, |[x_scratch, a, slope, dx_scratch, dy]| {
                let mut x = T::read(x, x_scratch);
                if let Some(activation) = activation {
                    activation::forward_and_slope(activation, x, a, slope);
                    T::round(a);
                    x = a;
                }
                dy.copy_from_slice(grad);
                T::round(dy);
                grads.add_rows(x, dy);
                T::write(dx, dx_scratch, |dx| {
                    product(dx, k, Into::Replaced, Matrix::new(dy, m), Matrix::new(&turned, k));
                    if activation.is_some() {
                        multiply(dx, slope);
                    }
                });
            });
        }
        grads
    });
    let mut sums = MapGrads::zero(k, m);
    parts.collect::<Vec<_>>().iter().for_each(|part| sums.merge(part));
    (dx, sums)
}

impl MapGrads {
    fn zero(k: usize, m: usize) -> Self {
        Self { weight: vec![0.0; k * m], bias: vec![0.0; m] }
    }

    /// Adds what some rows contribute: inputs `a [r, k]`, gradients at the outputs `dy [r, m]`.
    fn add_rows(&mut self, a: &[f32], dy: &[f32]) {
        let m = self.bias.len();
        let k = self.weight.len() / m;
        product(&mut self.weight, m, Into::Increased, Matrix::new(a, k).t(), Matrix::new(dy, m));
        add_rows(&mut self.bias, dy);
    }

    fn merge(&mut self, part: &Self) {
        add_rows(&mut self.weight, &part.weight);
        add_rows(&mut self.bias, &part.bias);
    }
}
