//! Affine maps with what comes before and after them, block of rows by block of rows, so that
//! everything between reading the input and writing the output stays in a core's cache.
//!
//! Letters: `r` rows, `k` width in, `m` width out.

use super::activation;
use super::compute::{Compute, rounded, transposed, with_scratch};
use super::cut::block_rows;
use super::map_grads::{MapGrads, ResultGrad, Scratch, backward_by_rows};
use super::math::{add_to_rows, multiply};
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
    let rows = block_rows(x.len() / k);
    let blocks = out.par_chunks_mut(rows * m).zip(x.par_chunks(rows * k));
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
    let (parts, grads) = backward_by_rows(
        [k, m],
        &mut dx,
        &ResultGrad::Own(grad),
        |rows, dy, dx, scratch, sums: &mut Option<Norm<Vec<f32>>>| {
            let x = &x[rows.start * k..rows.end * k];
            let Scratch { a, other: [da, ..] } = scratch;
            norm.rows(x, a);
            T::round(a);
            product(da, k, Into::Replaced, Matrix::new(dy, m), Matrix::new(&turned, k));
            sums.get_or_insert_with(|| Norm::zero(k)).add_rows(norm.gamma, x, da, dx);
        },
    );
    let mut sums = Norm::zero(k);
    parts.iter().flatten().for_each(|part| sums.merge(part));
    (dx, sums, grads)
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
    let rows = block_rows(residual.len() / m);
    let blocks = out.par_chunks_mut(rows * m).zip(residual.par_chunks(rows * m));
    blocks.zip(x.par_chunks(rows * k)).for_each(|((y, residual), x)| {
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
    let (_, grads) = backward_by_rows(
        [k, m],
        &mut dx,
        &ResultGrad::<T>::ToRound(grad),
        |rows, dy, dx, scratch, (): &mut ()| {
            let x = &x[rows.start * k..rows.end * k];
            let Scratch { a, other: [dx_scratch, slope, x_scratch] } = scratch;
            match activation {
                Some(activation) => {
                    activation::forward_and_slope(activation, T::read(x, x_scratch), a, slope);
                    T::round(a);
                }
                None => a.copy_from_slice(T::read(x, x_scratch)),
            }
            T::write(dx, dx_scratch, |dx| {
                product(dx, k, Into::Replaced, Matrix::new(dy, m), Matrix::new(&turned, k));
                if activation.is_some() {
                    multiply(dx, slope);
                }
            });
        },
    );
    (dx, grads)
}

/// `x @ weight`: `[r, k]` to `[r, m]`.
pub(super) fn embed<T: Compute>(x: &[T], weight: Weight) -> Vec<f32> {
    let Weight { values, k, m } = weight;
    let values = rounded::<T>(values);
    let mut out = vec![0.0; x.len() / k * m];
    let rows = block_rows(x.len() / k);
    out.par_chunks_mut(rows * m).zip(x.par_chunks(rows * k)).for_each(|(y, x)| {
        with_scratch([x.len()], |[scratch]| {
            let x = Matrix::new(T::read(x, scratch), k);
            product(y, m, Into::Replaced, x, Matrix::new(&values, m));
        });
    });
    out
}

/// The gradient of [`embed`] at its weight `[k, m]`.
pub(super) fn embed_backward<T: Compute>(x: &[T], sizes: [usize; 2], grad: &[f32]) -> Vec<f32> {
    let k = sizes[0];
    let mut no_dx = vec![(); x.len()];
    let (_, grads) = backward_by_rows(
        sizes,
        &mut no_dx,
        &ResultGrad::<T>::ToRound(grad),
        |rows, _, _, Scratch { a, other: [x_scratch, ..] }, (): &mut ()| {
            a.copy_from_slice(T::read(&x[rows.start * k..rows.end * k], x_scratch));
        },
    );
    grads.weight
}
