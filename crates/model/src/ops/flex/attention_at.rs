//! Attention of one position of each sample.
//!
//! Letters: `b` batch, `n` positions, `w` width, `h` heads, `s` positions that a query sees.

use super::attention::{softmax_rows, softmax_rows_backward};
use super::compute::{Compute, with_scratch};
use super::math::{sum, vectorised};
use rayon::prelude::*;

/// Sizes of an attention, and the last position that each sample's query sees.
pub(super) struct Queries<'a> {
    pub(super) n: usize,
    pub(super) w: usize,
    pub(super) heads: usize,
    pub(super) last: &'a [usize],
}

/// `q [b, w]` and `kv [b, n, 2w]` to `[b, w]`.
pub(super) fn forward<T: Compute>(q: &[T], kv: &[T], sizes: &Queries) -> Vec<T> {
    let Queries { n, w, heads, last } = *sizes;
    let mut out = vec![T::ZERO; q.len()];
    let samples = out.par_chunks_mut(w).zip(q.par_chunks(w)).zip(kv.par_chunks(2 * n * w));
    samples.zip(last).for_each(|(((out, q), kv), last)| {
        let seen = last + 1;
        let lengths = [w, 2 * seen * w, w, heads * seen];
        with_scratch(lengths, |[q_scratch, kv_scratch, y, p]| {
            let kv = T::read(&kv[..2 * seen * w], kv_scratch);
            sizes.probabilities::<T>(T::read(q, q_scratch), kv, p);
            T::write(out, y, |y| mix(p, kv, 1, y));
        });
    });
    out
}

/// From the gradient at the result, `[b, w]`, those at `q` and `kv`.
pub(super) fn backward<T: Compute>(
    q: &[T],
    kv: &[T],
    grad: &[T],
    sizes: &Queries,
) -> (Vec<T>, Vec<T>) {
    let Queries { n, w, heads, last } = *sizes;
    let (mut dq, mut dkv) = (vec![T::ZERO; q.len()], vec![T::ZERO; kv.len()]);
    let out = dq.par_chunks_mut(w).zip(dkv.par_chunks_mut(2 * n * w)).zip(grad.par_chunks(w));
    let samples = out.zip(q.par_chunks(w)).zip(kv.par_chunks(2 * n * w));
    samples.zip(last).for_each(|(((((dq, dkv), dy), q), kv), last)| {
        let (seen, scale) = (last + 1, sizes.scale());
        let all = 2 * seen * w;
        let lengths = [w, w, w, all, all, heads * seen, heads * seen];
        with_scratch(
            lengths,
            |[q_scratch, dy_scratch, dq_scratch, kv_scratch, dkv_scratch, p, ds]| {
                let (q, dy) = (T::read(q, q_scratch), T::read(dy, dy_scratch));
                let kv = T::read(&kv[..all], kv_scratch);
                sizes.probabilities::<T>(q, kv, p);
                dot(dy, kv, 1, ds);
                softmax_rows_backward(&*p, ds, seen, scale);
                T::round(ds);
                T::write(dq, dq_scratch, |dq| mix(ds, kv, 0, dq));
                T::write(&mut dkv[..all], dkv_scratch, |dkv| {
                    spread(ds, q, 0, dkv);
                    spread(p, dy, 1, dkv);
                });
            },
        );
    });
    (dq, dkv)
}

impl Queries<'_> {
    /// `softmax(q k^T / sqrt(d))` into `p [h, s]`, rounded to `T`.
    fn probabilities<T: Compute>(&self, q: &[f32], kv: &[f32], p: &mut [f32]) {
        dot(q, kv, 0, p);
        softmax_rows(p, p.len() / self.heads, false, self.scale());
        T::round(p);
    }

    fn scale(&self) -> f32 {
        ((self.w / self.heads) as f32).powf(-0.5)
    }
}

vectorised! {
    /// Head by head, `x [w]` times each key or value (`part` 0 or 1) of `kv [s, 2w]`: `[h, s]`.
    fn dot(x: &[f32], kv: &[f32], part: usize, out: &mut [f32]) {
        let w = x.len();
        let seen = kv.len() / (2 * w);
        let d = w * seen / out.len();
        for (j, row) in kv.chunks_exact(2 * w).enumerate() {
            let row = &row[part * w..][..w];
            for (h, (x, row)) in x.chunks_exact(d).zip(row.chunks_exact(d)).enumerate() {
                out[h * seen + j] = sum(x, row, |x, y| x * y);
            }
        }
    }
}

vectorised! {
    /// Head by head, the keys or values weighted by `p [h, s]`: `[w]`.
    fn mix(p: &[f32], kv: &[f32], part: usize, out: &mut [f32]) {
        let w = out.len();
        let seen = kv.len() / (2 * w);
        let d = w * seen / p.len();
        out.fill(0.0);
        for (j, row) in kv.chunks_exact(2 * w).enumerate() {
            let row = &row[part * w..][..w];
            for (h, (out, row)) in out.chunks_exact_mut(d).zip(row.chunks_exact(d)).enumerate() {
                let weight = p[h * seen + j];
                for (out, x) in out.iter_mut().zip(row) {
                    *out = weight.mul_add(*x, *out);
                }
            }
        }
    }
}

vectorised! {
    /// Head by head, `x [w]` times each weight of `p [h, s]` as the gradient of keys or values.
    fn spread(p: &[f32], x: &[f32], part: usize, dkv: &mut [f32]) {
        let w = x.len();
        let seen = dkv.len() / (2 * w);
        let d = w * seen / p.len();
        for (j, row) in dkv.chunks_exact_mut(2 * w).enumerate() {
            let row = &mut row[part * w..][..w];
            for (h, (out, x)) in row.chunks_exact_mut(d).zip(x.chunks_exact(d)).enumerate() {
                let weight = p[h * seen + j];
                for (out, x) in out.iter_mut().zip(x) {
                    *out = weight * x;
                }
            }
        }
    }
}
