//! Attention of one image or caption at a time, in scratch memory.
//!
//! Letters: `b` batch, `n` positions, `w` width, `h` heads, `d` width of a head.

use super::compute::{Compute, with_scratch};
use super::math::{exp, max, sum, vectorised};
use super::product::{Into, Matrix, product};
use rayon::prelude::*;

/// Sizes of an attention.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub(super) n: usize,
    pub(super) w: usize,
    pub(super) heads: usize,
    pub(super) causal: bool,
}

/// `[b, n, 3w] -> [b, n, w]`.
pub(super) fn forward<T: Compute>(qkv: &[T], sizes: Heads) -> Vec<T> {
    let Heads { n, w, heads, .. } = sizes;
    let mut out = vec![T::ZERO; qkv.len() / 3];
    out.par_chunks_mut(n * w).zip(qkv.par_chunks(3 * n * w)).for_each(|(out, qkv)| {
        with_scratch([3 * n * w, n * w, n * n], |[packed, y, scores]| {
            let qkv = T::read(qkv, packed);
            T::write(out, y, |y| {
                for head in 0..heads {
                    let [_, _, v] = sizes.parts(qkv, head);
                    sizes.probabilities::<T>(qkv, head, scores);
                    let probabilities = Matrix::new(scores, n); // [n, n]
                    product(&mut y[head * sizes.d()..], w, Into::Replaced, probabilities, v);
                }
            });
        });
    });
    out
}

/// From the gradient at the result, `[b, n, w]`, the one at `qkv`.
pub(super) fn backward<T: Compute>(qkv: &[T], grad: &[T], sizes: Heads) -> Vec<T> {
    let Heads { n, w, heads, .. } = sizes;
    let mut out = vec![T::ZERO; qkv.len()];
    let batch = out.par_chunks_mut(3 * n * w).zip(qkv.par_chunks(3 * n * w));
    batch.zip(grad.par_chunks(n * w)).for_each(|((out, qkv), grad)| {
        let lengths = [3 * n * w, n * w, 3 * n * w, n * n, n * n];
        with_scratch(lengths, |[packed, dy, d_packed, p, ds]| {
            let (qkv, dy) = (T::read(qkv, packed), T::read(grad, dy));
            T::write(out, d_packed, |d_qkv| {
                for head in 0..heads {
                    sizes.head_backward::<T>(head, qkv, dy, d_qkv, p, ds);
                }
            });
        });
    });
    out
}

impl Heads {
    /// Sizes for `qkv [b, n, 3w]`.
    pub(super) fn new(shape: &[usize], heads: usize, causal: bool) -> Self {
        Self { n: shape[1], w: shape[2] / 3, heads, causal }
    }

    fn d(self) -> usize {
        self.w / self.heads
    }

    /// Queries, keys and values of a head, `[n, d]` each.
    fn parts(self, qkv: &[f32], head: usize) -> [Matrix<'_>; 3] {
        let part = |i: usize| &qkv[i * self.w + head * self.d()..];
        [0, 1, 2].map(|i| Matrix::strided(part(i), self.n, self.d(), 3 * self.w))
    }

    /// `softmax(q k^T / sqrt(d))` into `p [n, n]`, rounded to `T`.
    fn probabilities<T: Compute>(self, qkv: &[f32], head: usize, p: &mut [f32]) {
        let [q, k, _] = self.parts(qkv, head);
        product(p, self.n, Into::Replaced, q, k.t());
        softmax_rows(p, self.n, self.causal, self.scale());
        T::round(p);
    }

    /// Writes one head's part of `d_qkv`. `p` and `ds` are scratch, `[n, n]`.
    fn head_backward<T: Compute>(
        self,
        head: usize,
        qkv: &[f32],
        dy: &[f32],
        d_qkv: &mut [f32],
        p: &mut [f32],
        ds: &mut [f32],
    ) {
        let Heads { n, w, .. } = self;
        let d = self.d();
        let [q, k, v] = self.parts(qkv, head);
        let dy = Matrix::strided(&dy[head * d..], n, d, w);
        self.probabilities::<T>(qkv, head, p);
        product(ds, n, Into::Replaced, dy, v.t());
        product(&mut d_qkv[2 * w + head * d..], 3 * w, Into::Replaced, Matrix::new(p, n).t(), dy);
        softmax_rows_backward(&*p, ds, n, self.scale());
        T::round(ds);
        let ds = Matrix::new(ds, n);
        product(&mut d_qkv[head * d..], 3 * w, Into::Replaced, ds, k);
        product(&mut d_qkv[w + head * d..], 3 * w, Into::Replaced, ds.t(), q);
    }

    fn scale(self) -> f32 {
        (self.d() as f32).powf(-0.5)
    }
}

vectorised! {
    /// `softmax(scale * row)` of each row of `n` scores in place; zero for those that are not seen.
    pub(super) fn softmax_rows(scores: &mut [f32], n: usize, causal: bool, scale: f32) {
        for (i, row) in scores.chunks_exact_mut(n).enumerate() {
            let (seen, future) = row.split_at_mut(if causal { i + 1 } else { n });
            let highest = max(seen);
            for x in &mut *seen {
                *x = exp((*x - highest) * scale);
            }
            let inverse = 1.0 / sum(seen, seen, |x, _| x);
            for x in seen {
                *x *= inverse;
            }
            future.fill(0.0);
        }
    }
}

vectorised! {
    /// From the gradient at each row's probabilities `p` the one at its scores, in place.
    pub(super) fn softmax_rows_backward(p: &[f32], grad: &mut [f32], n: usize, scale: f32) {
        for (p, grad) in p.chunks_exact(n).zip(grad.chunks_exact_mut(n)) {
            let mean = sum(p, grad, |p, g| p * g);
            for (g, p) in grad.iter_mut().zip(p) {
                *g = (*g - mean) * p * scale;
            }
        }
    }
}
