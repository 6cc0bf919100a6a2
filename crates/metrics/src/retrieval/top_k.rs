//! The best few gallery items of a query, exactly, without a similarity matrix.
//!
//! The gallery is read once, block after block on all cores; each block meets every query while it
//! is in the cache, and only what can still be among the best is kept. Nothing is approximated, and
//! the order is total (similarity, then index), so that neither blocks nor threads can change it.
//!
//! Letters: Q queries, G gallery items, D feature width.

use std::cmp::Ordering;

use half::f16;
use half::slice::HalfFloatSliceExt;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::similarity::{check_finite, check_shape};
use crate::error::{MetricsError, Side};

/// Rows that are multiplied at once: 128 KiB at D = 512, beside the queries in a core's cache.
const BLOCK: usize = 64;
/// Rows that are multiplied with two queries at once.
const ROWS: usize = 4;
/// Blocks that a thread takes at least, so that merging costs nothing beside them.
const MIN_BLOCKS: usize = 8;
/// Queries that meet a block together: their rows stay in a core's second-level cache.
const QUERIES_AT_ONCE: usize = 256;

/// Gallery features `[G, D]`, row-major, of unit length for cosine similarity.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// Single precision.
    F32(&'a [f32]),
    /// Half precision, multiplied as f32.
    F16(&'a [f16]),
}

impl Rows<'_> {
    fn len(self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
        }
    }
}

/// A gallery item that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Row of the gallery, from 0.
    pub index: usize,
    /// Dot product with the query, in f32.
    pub similarity: f32,
}

impl Hit {
    /// Similarity descending, then index ascending.
    fn ranking(&self, other: &Self) -> Ordering {
        let by_similarity = other.similarity.partial_cmp(&self.similarity);
        by_similarity.unwrap_or(Ordering::Equal).then(self.index.cmp(&other.index))
    }
}

/// The `k` best gallery items of each query, best first; all of them when the gallery has fewer.
///
/// `queries` is `[Q, D]` and `gallery` `[G, D]` with D = `dim`. Of equal similarity the lower index
/// is ahead. A gallery row that is not finite is never found.
///
/// # Errors
///
/// When a length is no multiple of `dim`, a side is empty, or a query is not finite.
pub fn top_k(
    queries: &[f32],
    gallery: Rows<'_>,
    dim: usize,
    k: usize,
) -> Result<Vec<Vec<Hit>>, MetricsError> {
    let width = dim.max(1); // a width of 0 is refused by the check
    check_shape(Side::Query, queries.len(), queries.len() / width, dim)?;
    check_shape(Side::Gallery, gallery.len(), gallery.len() / width, dim)?;
    check_finite(Side::Query, queries, dim)?;
    let num_rows = gallery.len() / dim;
    let found = queries
        .chunks(QUERIES_AT_ONCE * dim)
        .flat_map(|queries| search(queries, gallery, num_rows, dim, k.min(num_rows)));
    Ok(found.collect())
}

/// [`top_k`] of as many queries as fit the cache.
fn search(
    queries: &[f32],
    gallery: Rows<'_>,
    num_rows: usize,
    dim: usize,
    k: usize,
) -> Vec<Vec<Hit>> {
    let num_queries = queries.len() / dim;
    let arch = Arch::new();
    let found = (0..num_rows.div_ceil(BLOCK))
        .into_par_iter()
        .with_min_len(MIN_BLOCKS)
        .fold(
            || Worker::new(num_queries, k),
            |mut worker, block| {
                let first = block * BLOCK;
                let rows = first * dim..(first + BLOCK).min(num_rows) * dim;
                let rows = match gallery {
                    Rows::F32(values) => &values[rows],
                    Rows::F16(values) => {
                        let values = &values[rows];
                        worker.scratch.resize(values.len(), 0.0);
                        values.convert_to_f32_slice(&mut worker.scratch);
                        worker.scratch.as_slice()
                    }
                };
                arch.dispatch(Products { queries, rows, dim, out: &mut worker.products });
                for (best, row) in worker.best.iter_mut().zip(worker.products.chunks_exact(BLOCK)) {
                    best.offer_all(first, &row[..rows.len() / dim]);
                }
                worker
            },
        )
        .map(|worker| worker.best)
        .reduce_with(|mut left, right| {
            for (best, others) in left.iter_mut().zip(right) {
                others.hits.into_iter().for_each(|hit| best.offer(hit));
            }
            left
        });
    found.into_iter().flatten().map(Best::finish).collect()
}

/// What a thread carries from block to block.
struct Worker {
    /// `[Q, BLOCK]`
    products: Vec<f32>,
    /// A block of half precision in single.
    scratch: Vec<f32>,
    best: Vec<Best>,
}

impl Worker {
    fn new(num_queries: usize, k: usize) -> Self {
        let best = (0..num_queries).map(|_| Best::new(k)).collect();
        Self { products: vec![0.0; num_queries * BLOCK], scratch: Vec::new(), best }
    }
}

/// The best `k` of what was offered so far, and some that may still fall out.
struct Best {
    k: usize,
    hits: Vec<Hit>,
    /// The `k`-th best at the last pruning: what ranks behind it cannot come in.
    floor: Option<Hit>,
}

impl Best {
    fn new(k: usize) -> Self {
        Self { k, hits: Vec::new(), floor: None }
    }

    /// Offers a run of similarities whose first has the index `first`.
    fn offer_all(&mut self, first: usize, similarities: &[f32]) {
        for (index, &similarity) in (first..).zip(similarities) {
            // Almost all end here. Items come in the order of their indices within a thread, but an
            // equal one may still be ahead of a floor that another thread's part will bring.
            if similarity >= self.floor.map_or(f32::NEG_INFINITY, |floor| floor.similarity) {
                self.offer(Hit { index, similarity });
            }
        }
    }

    fn offer(&mut self, hit: Hit) {
        if self.floor.is_some_and(|floor| floor.ranking(&hit) == Ordering::Less) {
            return;
        }
        self.hits.push(hit);
        if self.hits.len() >= 2 * self.k.max(1) {
            self.prune();
        }
    }

    fn prune(&mut self) {
        if self.k == 0 {
            self.hits.clear();
        } else if self.hits.len() >= self.k {
            let (_, &mut last, _) = self.hits.select_nth_unstable_by(self.k - 1, Hit::ranking);
            self.floor = Some(last);
            self.hits.truncate(self.k);
        }
    }

    fn finish(mut self) -> Vec<Hit> {
        self.prune();
        self.hits.sort_unstable_by(Hit::ranking);
        self.hits
    }
}

/// Dot products of every query with every row of a block, in the widest vectors of the processor.
///
/// A product is summed lane by lane over D in one accumulator, whatever is computed beside it, so
/// that equal rows tie exactly and a query's result does not depend on its company.
struct Products<'a> {
    /// `[Q, D]`
    queries: &'a [f32],
    /// `[up to BLOCK, D]`
    rows: &'a [f32],
    dim: usize,
    /// `[Q, BLOCK]`
    out: &'a mut [f32],
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { queries, rows, dim, out } = self;
        let num_rows = rows.len() / dim;
        let row = |index: usize| &rows[index * dim..(index + 1) * dim];
        for (queries, out) in queries.chunks(2 * dim).zip(out.chunks_mut(2 * BLOCK)) {
            let mut done = 0;
            if queries.len() == 2 * dim {
                // Six loads for eight products.
                let queries = [&queries[..dim], &queries[dim..]];
                for at in (0..num_rows / ROWS * ROWS).step_by(ROWS) {
                    let rows: [_; ROWS] = std::array::from_fn(|lane| row(at + lane));
                    for (lane, [a, b]) in dots(simd, rows, queries).into_iter().enumerate() {
                        (out[at + lane], out[BLOCK + at + lane]) = (a, b);
                    }
                }
                done = num_rows / ROWS * ROWS;
            }
            // One query waits for memory, and memory is fastest read in one stream.
            for (query, out) in queries.chunks_exact(dim).zip(out.chunks_mut(BLOCK)) {
                let rows = rows.chunks_exact(dim).skip(done);
                for (out, row) in out[done..num_rows].iter_mut().zip(rows) {
                    [[*out]] = dots(simd, [row], [query]);
                }
            }
        }
    }
}

/// The dot products of `R` rows with `C` queries, all of one length.
#[inline(always)]
fn dots<S: Simd, const R: usize, const C: usize>(
    simd: S,
    rows: [&[f32]; R],
    queries: [&[f32]; C],
) -> [[f32; C]; R] {
    let rows = rows.map(S::as_simd_f32s);
    let queries = queries.map(S::as_simd_f32s);
    let mut sums = [[simd.splat_f32s(0.0); C]; R];
    for step in 0..rows[0].0.len() {
        for (sums, row) in sums.iter_mut().zip(&rows) {
            for (sum, query) in sums.iter_mut().zip(&queries) {
                *sum = simd.mul_add_e_f32s(row.0[step], query.0[step], *sum);
            }
        }
    }
    let mut out = [[0.0; C]; R];
    for ((out, sums), row) in out.iter_mut().zip(sums).zip(&rows) {
        for ((out, sum), query) in out.iter_mut().zip(sums).zip(&queries) {
            let tail: f32 = row.1.iter().zip(query.1).map(|(a, b)| a * b).sum();
            *out = simd.reduce_sum_f32s(sum) + tail;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::CounterRng;

    /// What f32 sums over a width of up to 600 differ by from f64.
    const TOLERANCE: f64 = 1e-6;

    fn random(seed: u64, rows: usize, dim: usize) -> Vec<f32> {
        let rng = CounterRng::new(seed);
        let mut values: Vec<f32> = (0..rows * dim)
            .map(|at| rng.index_at(at as u64, 20_001) as f32 / 10_000.0 - 1.0)
            .collect();
        super::super::normalise_rows(&mut values, dim);
        values
    }

    fn oracle(query: &[f32], gallery: &[f32]) -> Vec<f64> {
        let dot = |row: &[f32]| -> f64 {
            row.iter().zip(query).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
        };
        gallery.chunks_exact(query.len()).map(dot).collect()
    }

    /// The order is the oracle's: each hit is as good as the oracle's at its rank, to the tolerance.
    fn check(queries: &[f32], rows: Rows<'_>, gallery: &[f32], dim: usize, k: usize) {
        let found = top_k(queries, rows, dim, k).unwrap();
        assert_eq!(found.len(), queries.len() / dim);
        for (query, hits) in queries.chunks_exact(dim).zip(&found) {
            let exact = oracle(query, gallery);
            let mut sorted = exact.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            assert_eq!(hits.len(), k.min(exact.len()));
            for (hit, best) in hits.iter().zip(sorted) {
                assert!((exact[hit.index] - best).abs() < TOLERANCE, "{hit:?} is not {best}");
                assert!((f64::from(hit.similarity) - exact[hit.index]).abs() < TOLERANCE);
            }
            let mut indices: Vec<usize> = hits.iter().map(|hit| hit.index).collect();
            indices.sort_unstable();
            indices.dedup();
            assert_eq!(indices.len(), hits.len(), "an item was found twice");
        }
    }

    #[test]
    fn hits_are_those_of_a_sum_in_f64() {
        for (num_queries, num_rows, dim, k) in
            [(1, 5_000, 600, 10), (3, 1_001, 96, 50), (300, 130, 7, 3), (2, 3, 512, 10)]
        {
            let queries = random(1, num_queries, dim);
            let gallery = random(2, num_rows, dim);
            check(&queries, Rows::F32(&gallery), &gallery, dim, k);
            let half: Vec<f16> = gallery.iter().map(|&x| f16::from_f32(x)).collect();
            let rounded: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
            check(&queries, Rows::F16(&half), &rounded, dim, k);
        }
    }

    #[test]
    fn equal_rows_come_in_index_order_for_any_number_of_threads() {
        let dim = 33;
        let distinct = random(3, 4, dim);
        let gallery: Vec<f32> =
            (0..3_000).flat_map(|row| &distinct[row % 4 * dim..][..dim]).copied().collect();
        let query = &distinct[..dim];
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| top_k(query, Rows::F32(&gallery), dim, 20).unwrap());
            let indices: Vec<usize> = found[0].iter().map(|hit| hit.index).collect();
            assert_eq!(indices, (0..20).map(|n| 4 * n).collect::<Vec<_>>(), "{threads} threads");
        }
    }

    #[test]
    fn a_query_finds_the_same_alone_and_in_company() {
        let (dim, queries, gallery) = (130, random(5, 7, 130), random(6, 1_003, 130));
        let together = top_k(&queries, Rows::F32(&gallery), dim, 25).unwrap();
        for (query, expected) in queries.chunks_exact(dim).zip(together) {
            assert_eq!(top_k(query, Rows::F32(&gallery), dim, 25).unwrap(), [expected]);
        }
    }

    #[test]
    fn damaged_rows_are_not_found_and_damaged_queries_refused() {
        let gallery = [f32::NAN, 0.0, 1.0, 0.0, 0.5, 0.5];
        let found = top_k(&[1.0, 0.0], Rows::F32(&gallery), 2, 9).unwrap();
        let hits: Vec<(usize, f32)> = found[0].iter().map(|h| (h.index, h.similarity)).collect();
        assert_eq!(hits, [(1, 1.0), (2, 0.5)]);
        let fault = |queries: &[f32], gallery: &[f32], dim| {
            top_k(queries, Rows::F32(gallery), dim, 1).unwrap_err().to_string()
        };
        assert!(
            fault(&[f32::INFINITY, 0.0], &gallery, 2).contains("query features are not finite")
        );
        assert!(fault(&[1.0], &gallery, 2).contains("query"));
        assert!(fault(&[1.0, 0.0], &[], 2).contains("gallery is empty"));
        assert!(fault(&[1.0], &[1.0], 0).contains("width 0"));
        assert_eq!(top_k(&[1.0, 0.0], Rows::F32(&gallery), 2, 0).unwrap(), [vec![]]);
    }
}
