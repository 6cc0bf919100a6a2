//! The backward of an affine map: over blocks of rows for the gradient at its input, and over all
//! rows for those of its parameters.
//!
//! A small weight's gradient stays in a core's cache: parts of the rows sum it up each for itself. A
//! large one would go through memory once a block: there, what the blocks make is kept for a few
//! thousand rows, and then each core sums up its own slice of the gradient over all of them.
//!
//! Letters: `r` rows, `k` width in, `m` width out.

use super::compute::{Compute, with_scratch};
use super::cut::{block_rows, even_rows};
use super::math::add_rows;
use super::product::{Into, Matrix, product};
use burn::tensor::DType;
use rayon::prelude::*;
use std::ops::Range;

/// Bytes up to which a weight counts as small: half of a common second-level cache.
pub const SMALL_WEIGHT: usize = 512 * 1024;

/// Rows whose inputs are kept at a time beside a large weight.
pub const KEPT_ROWS: usize = 2048;

/// Rows of a slice of a large weight's gradient, at least.
const SLICE: usize = 96;

/// Slices of a large weight's gradient, at most.
const SLICES: usize = 16;

/// Gradients of an affine map: `weight [k, m]`, `bias [m]`.
pub(super) struct MapGrads {
    pub(super) weight: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

/// Buffers of a block of rows, `[rows, k]` each; they hold old values.
pub(super) struct Scratch<'a> {
    /// To be filled with the map's input.
    pub(super) a: &'a mut [f32],
    pub(super) other: [&'a mut [f32]; 3],
}

/// The gradient at the map's result, `[r, m]`.
pub(super) enum ResultGrad<'a, T> {
    /// In the compute dtype.
    Own(&'a [T]),
    /// In f32, to be rounded to the compute dtype.
    ToRound(&'a [f32]),
}

impl<T: Compute> ResultGrad<'_, T> {
    /// Elements of the buffer that reading so many takes.
    fn scratch(&self, elements: usize) -> usize {
        if T::dtype() == DType::F32 { 0 } else { elements }
    }

    /// Lends elements as f32, through `scratch` where it has to.
    fn read<'s>(&'s self, elements: Range<usize>, scratch: &'s mut [f32]) -> &'s [f32] {
        match self {
            Self::Own(grad) => T::read(&grad[elements], scratch),
            Self::ToRound(grad) => T::nearest(&grad[elements], scratch),
        }
    }

    /// The same on all cores, so many elements at a time.
    fn read_in_blocks<'s>(
        &'s self,
        elements: Range<usize>,
        scratch: &'s mut [f32],
        block: usize,
    ) -> &'s [f32] {
        if scratch.is_empty() {
            return self.read(elements, scratch);
        }
        scratch.par_chunks_mut(block).enumerate().for_each(|(i, scratch)| {
            let first = elements.start + i * block;
            self.read(first..first + scratch.len(), scratch);
        });
        scratch
    }
}

/// Goes over blocks of the rows of `dx [r, k]`, filled by `block`, and sums up the map's gradients.
///
/// The weight is `[k, m]`. `block` takes a range of rows and the gradient at their result, `[rows, m]`, fills its part of `dx`
/// and the map's input, and may sum up what it likes in an `S`; these sums are returned in order.
pub(super) fn backward_by_rows<T, D, S>(
    [k, m]: [usize; 2],
    dx: &mut [D],
    grad: &ResultGrad<T>,
    block: impl Fn(Range<usize>, &[f32], &mut [D], Scratch<'_>, &mut S) + Sync,
) -> (Vec<S>, MapGrads)
where
    T: Compute,
    D: Send,
    S: Send + Default,
{
    match k * m * size_of::<f32>() <= SMALL_WEIGHT {
        true => small(k, m, dx, grad, block),
        false => large(k, m, dx, grad, block),
    }
}

fn small<T: Compute, D: Send, S: Send + Default>(
    k: usize,
    m: usize,
    dx: &mut [D],
    grad: &ResultGrad<T>,
    block: impl Fn(Range<usize>, &[f32], &mut [D], Scratch<'_>, &mut S) + Sync,
) -> (Vec<S>, MapGrads) {
    let (part_rows, rows) = even_rows(dx.len() / k);
    let parts = dx.par_chunks_mut(part_rows * k).enumerate().map(|(part, dx)| {
        let (mut own, mut grads) = (S::default(), MapGrads::zero(k, m));
        for (i, dx) in dx.chunks_mut(rows * k).enumerate() {
            let (first, count) = (part * part_rows + i * rows, dx.len() / k);
            let lengths = [grad.scratch(count * m), dx.len(), dx.len(), dx.len(), dx.len()];
            with_scratch(lengths, |[dy_scratch, a, other @ ..]| {
                let dy = grad.read(first * m..(first + count) * m, dy_scratch);
                let scratch = Scratch { a: &mut *a, other };
                block(first..first + count, dy, dx, scratch, &mut own);
                grads.add(Matrix::new(a, k), dy);
            });
        }
        (own, grads)
    });
    let mut sums = MapGrads::zero(k, m);
    let merged = parts.collect::<Vec<_>>().into_iter().map(|(own, part)| {
        add_rows(&mut sums.weight, &part.weight);
        add_rows(&mut sums.bias, &part.bias);
        own
    });
    (merged.collect(), sums)
}

fn large<T: Compute, D: Send, S: Send + Default>(
    k: usize,
    m: usize,
    dx: &mut [D],
    grad: &ResultGrad<T>,
    block: impl Fn(Range<usize>, &[f32], &mut [D], Scratch<'_>, &mut S) + Sync,
) -> (Vec<S>, MapGrads) {
    let rows = dx.len() / k;
    let kept = rows.div_ceil(rows.div_ceil(KEPT_ROWS));
    let (mut a, mut dy_scratch) = (vec![0.0; kept * k], vec![0.0; grad.scratch(kept * m)]);
    let (mut sums, mut own) = (MapGrads::zero(k, m), Vec::new());
    for (i, dx) in dx.chunks_mut(kept * k).enumerate() {
        let (first, count) = (i * kept, dx.len() / k);
        let a = &mut a[..dx.len()];
        let dy_scratch = &mut dy_scratch[..grad.scratch(count * m)];
        let rows = block_rows(count);
        let dy = grad.read_in_blocks(first * m..(first + count) * m, dy_scratch, rows * m);
        let blocks = dx.par_chunks_mut(rows * k).zip(a.par_chunks_mut(rows * k)).enumerate();
        let blocks = blocks.map(|(i, (dx, a))| {
            let (own_first, count) = (i * rows, dx.len() / k);
            let dy = &dy[own_first * m..(own_first + count) * m];
            let first = first + own_first;
            let mut own = S::default();
            with_scratch([dx.len(); 3], |other| {
                block(first..first + count, dy, dx, Scratch { a, other }, &mut own);
            });
            own
        });
        own.extend(blocks.collect::<Vec<_>>());
        sums.add_in_slices(a, dy);
    }
    (own, sums)
}

impl MapGrads {
    fn zero(k: usize, m: usize) -> Self {
        Self { weight: vec![0.0; k * m], bias: vec![0.0; m] }
    }

    /// Adds what some rows contribute: inputs `a [r, k]`, gradients at the outputs `dy [r, m]`.
    fn add(&mut self, a: Matrix, dy: &[f32]) {
        let m = self.bias.len();
        product(&mut self.weight, m, Into::Increased, a.t(), Matrix::new(dy, m));
        add_rows(&mut self.bias, dy);
    }

    /// The same with a core for each slice of the weight.
    fn add_in_slices(&mut self, a: &[f32], dy: &[f32]) {
        let m = self.bias.len();
        let (k, r) = (self.weight.len() / m, dy.len() / m);
        let slice = k.div_ceil(SLICES).max(SLICE);
        let slices = self.weight.par_chunks_mut(slice * m).enumerate();
        let weight = || {
            slices.for_each(|(i, out)| {
                let a = Matrix::strided(&a[i * slice..], r, out.len() / m, k); // [r, slice]
                product(out, m, Into::Increased, a.t(), Matrix::new(dy, m));
            });
        };
        rayon::join(weight, || add_rows(&mut self.bias, dy));
    }
}
