//! Layer norm of rows.
//!
//! Letters: `r` rows, `w` width.

use super::cut::{block_rows, even_rows};
use super::math::{add_rows, sum, vectorised};
use crate::ops::EPSILON;
use rayon::prelude::*;

/// Scale and shift of a layer norm, `[w]` each: parameters, or their gradients.
#[derive(Clone, Copy)]
pub(super) struct Norm<V> {
    pub(super) gamma: V,
    pub(super) beta: V,
}

/// The layer norm of `x [r, w]`.
pub(super) fn forward(x: &[f32], norm: Norm<&[f32]>) -> Vec<f32> {
    let w = norm.gamma.len();
    let rows = block_rows(x.len() / w) * w;
    let mut y = vec![0.0; x.len()];
    y.par_chunks_mut(rows).zip(x.par_chunks(rows)).for_each(|(y, x)| norm.rows(x, y));
    y
}

/// Its gradients at `x` and the parameters, from the one at its result.
pub(super) fn backward(x: &[f32], gamma: &[f32], grad: &[f32]) -> (Vec<f32>, Norm<Vec<f32>>) {
    let w = gamma.len();
    let rows = even_rows(x.len() / w).0 * w;
    let mut dx = vec![0.0; x.len()];
    let parts = dx.par_chunks_mut(rows).zip(x.par_chunks(rows)).zip(grad.par_chunks(rows));
    let parts = parts.map(|((dx, x), grad)| {
        let mut grads = Norm::zero(w);
        grads.add_rows(gamma, x, grad, dx);
        grads
    });
    let mut sums = Norm::zero(w);
    parts.collect::<Vec<_>>().iter().for_each(|part| sums.merge(part));
    (dx, sums)
}

impl Norm<&[f32]> {
    /// The norm of rows `x`, scaled and shifted, into `y`; both `[r, w]`.
    pub(super) fn rows(self, x: &[f32], y: &mut [f32]) {
        norm_rows(self, x, y);
    }
}

impl Norm<Vec<f32>> {
    pub(super) fn zero(w: usize) -> Self {
        Self { gamma: vec![0.0; w], beta: vec![0.0; w] }
    }

    /// Adds the parameters' gradients from rows `x` and `grad`, the gradient at the norm's result,
    /// and writes the one at `x` into `dx`; all `[r, w]`.
    pub(super) fn add_rows(&mut self, gamma: &[f32], x: &[f32], grad: &[f32], dx: &mut [f32]) {
        norm_rows_backward(self, gamma, x, grad, dx);
    }

    pub(super) fn merge(&mut self, part: &Self) {
        add_rows(&mut self.gamma, &part.gamma);
        add_rows(&mut self.beta, &part.beta);
    }
}

vectorised! {
    fn norm_rows(norm: Norm<&[f32]>, x: &[f32], y: &mut [f32]) {
        let w = norm.gamma.len();
        let beta = &norm.beta[..w];
        for (x, y) in x.chunks_exact(w).zip(y.chunks_exact_mut(w)) {
            let (mean, scale) = statistics(x);
            for i in 0..w {
                y[i] = ((x[i] - mean) * scale).mul_add(norm.gamma[i], beta[i]);
            }
        }
    }
}

vectorised! {
    fn norm_rows_backward(
        sums: &mut Norm<Vec<f32>>,
        gamma: &[f32],
        x: &[f32],
        grad: &[f32],
        dx: &mut [f32]
    ) {
        let w = gamma.len();
        let (d_gamma, d_beta) = (&mut sums.gamma[..w], &mut sums.beta[..w]);
        for ((x, grad), dx) in x.chunks_exact(w).zip(grad.chunks_exact(w)).zip(dx.chunks_exact_mut(w)) {
            let (mean, scale) = statistics(x);
            for i in 0..w {
                d_gamma[i] += grad[i] * ((x[i] - mean) * scale);
                d_beta[i] += grad[i];
                dx[i] = grad[i] * gamma[i];
            }
            let level = sum(dx, dx, |g, _| g) / w as f32;
            let slope = sum(dx, x, |g, x| g * (x - mean)) * scale * scale / w as f32;
            for i in 0..w {
                dx[i] = (dx[i] - level - (x[i] - mean) * slope) * scale;
            }
        }
    }
}

/// Mean and inverse standard deviation of a row.
#[inline(always)]
fn statistics(x: &[f32]) -> (f32, f32) {
    let count = x.len() as f32;
    let mean = sum(x, x, |x, _| x) / count;
    let variance = sum(x, x, |x, _| (x - mean) * (x - mean)) / count;
    (mean, 1.0 / (variance + EPSILON as f32).sqrt())
}
