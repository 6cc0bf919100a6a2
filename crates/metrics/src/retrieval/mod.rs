//! Retrieval scores: R@1, R@5, R@10, mAP and mINP, in percent.
//!
//! The definitions are those of IRRA's evaluation (Jiang and Ye, CVPR 2023): a gallery item is a
//! match when its person id equals the query's, average precision runs over the full ranking, and
//! INP is the number of matches over the (1-based) rank of the last one. Ties are settled as in
//! open_clip: equal score and lower index ranks ahead, so that a score never depends on the sort.
//!
//! Both directions are the same function: text to image passes captions as queries and images as
//! gallery, image to text the other way round.
//!
//! Letters: Q queries, G gallery items, D feature width.

mod rank;
mod similarity;
mod top_k;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use rank::{RowScore, rank_row, top_of_row};
pub use similarity::normalise_rows;
pub use top_k::{Hit, Rows, top_k};

use crate::error::{MetricsError, Side};
use similarity::Features;

/// Queries whose similarities are held at once by one thread: 128 x 6,000 items are 3 MB.
const QUERIES_PER_CHUNK: usize = 128;

/// Gallery items that are kept of each query's ranking.
pub const TOP: usize = 5;

/// Scores of one direction, in percent, over the queries that have a positive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Queries with a match at the top, in percent.
    pub r1: f64,
    /// Queries with a match among the first 5, in percent.
    pub r5: f64,
    /// Queries with a match among the first 10, in percent.
    pub r10: f64,
    /// Mean average precision over the full ranking, in percent.
    pub map: f64,
    /// Mean inverse negative penalty, in percent.
    pub minp: f64,
    /// Number of queries that the means are taken over.
    pub queries: usize,
    /// Number of queries left out because no gallery item has their person id.
    pub excluded: usize,
}

/// What one direction of retrieval found, overall and query by query.
#[derive(Debug, Clone, PartialEq)]
pub struct Retrieval {
    /// The scores over all counted queries.
    pub scores: Scores,
    /// Per query, `[Q]`: the 0-based rank of its first match, `None` when it has no positive.
    pub first_rank: Vec<Option<u32>>,
    /// Per query, `[Q]`: its average precision in `0..=1`, `None` when it has no positive.
    pub average_precision: Vec<Option<f64>>,
    /// Per query, `[Q][min(TOP, G)]`: indices of the gallery items that rank highest, first to last.
    pub top: Vec<Vec<u32>>,
}

/// What one query found.
#[derive(Debug, Clone)]
struct Row {
    /// `None` when it has no positive.
    score: Option<RowScore>,
    top: Vec<u32>,
}

/// Searches every query in the gallery by cosine similarity, in f32, and scores the rankings.
///
/// `query_features` is `[Q, D]` and `gallery_features` `[G, D]`, both row-major with D = `dim`;
/// `query_pids` is `[Q]` and `gallery_pids` `[G]`. Rows need no normalisation beforehand: each is
/// divided by its L2 norm here. The result is the same for any number of threads.
///
/// # Errors
///
/// When lengths disagree, a side is empty, a feature is not finite, or no query has a positive.
pub fn evaluate(
    query_features: &[f32],
    query_pids: &[i64],
    gallery_features: &[f32],
    gallery_pids: &[i64],
    dim: usize,
) -> Result<Retrieval, MetricsError> {
    let queries = Features::normalised(Side::Query, query_features, query_pids.len(), dim)?;
    let gallery = Features::normalised(Side::Gallery, gallery_features, gallery_pids.len(), dim)?;
    score_in_chunks(&queries, query_pids, &gallery, gallery_pids, QUERIES_PER_CHUNK)
}

/// Scores a finished similarity matrix `[Q, G]` (row-major, higher is more alike).
///
/// # Errors
///
/// When lengths disagree, a side is empty, a similarity is NaN, or no query has a positive.
pub fn evaluate_similarity(
    similarity: &[f32],
    query_pids: &[i64],
    gallery_pids: &[i64],
) -> Result<Retrieval, MetricsError> {
    let (queries, gallery) = (query_pids.len(), gallery_pids.len());
    for (side, rows) in [(Side::Query, queries), (Side::Gallery, gallery)] {
        if rows == 0 {
            return Err(MetricsError::Empty { side });
        }
    }
    if queries.checked_mul(gallery) != Some(similarity.len()) {
        return Err(MetricsError::SimilarityLength { values: similarity.len(), queries, gallery });
    }
    if let Some(at) = similarity.iter().position(|s| s.is_nan()) {
        return Err(MetricsError::NanSimilarity { query: at / gallery, item: at % gallery });
    }
    summarise(score_rows(similarity, query_pids, gallery_pids), gallery)
}

/// Per-query hits among the first `k`, as 100.0 or 0.0, over the queries that have a positive.
///
/// Their mean is R@k in percent; two runs' hits on one split are pairs for
/// [`paired_difference`](crate::bootstrap::paired_difference).
pub fn hits(first_rank: &[Option<u32>], k: u32) -> Vec<f64> {
    first_rank.iter().flatten().map(|&rank| if rank < k { 100.0 } else { 0.0 }).collect()
}

/// [`evaluate`] after normalisation, with the similarities of `chunk` queries held per thread.
fn score_in_chunks(
    queries: &Features,
    query_pids: &[i64],
    gallery: &Features,
    gallery_pids: &[i64],
    chunk: usize,
) -> Result<Retrieval, MetricsError> {
    let rows: Vec<Vec<Row>> = query_pids
        .par_chunks(chunk)
        .enumerate()
        .map(|(n, pids)| {
            let first = n * chunk;
            let similarity = queries.similarity(first..first + pids.len(), gallery); // [chunk, G]
            score_rows(&similarity, pids, gallery_pids)
        })
        .collect();
    summarise(rows.concat(), gallery_pids.len())
}

fn score_rows(similarity: &[f32], query_pids: &[i64], gallery_pids: &[i64]) -> Vec<Row> {
    let row = |(row, &pid): (&[f32], &i64)| Row {
        score: RowScore::of(&rank_row(row, pid, gallery_pids)),
        top: top_of_row(row, TOP),
    };
    similarity.chunks_exact(gallery_pids.len()).zip(query_pids).map(row).collect()
}

/// Averages in query order, one addition after another, so that the sums are reproducible.
fn summarise(rows: Vec<Row>, gallery: usize) -> Result<Retrieval, MetricsError> {
    let counted: Vec<RowScore> = rows.iter().filter_map(|row| row.score).collect();
    if counted.is_empty() {
        return Err(MetricsError::NoPositives { queries: rows.len(), gallery });
    }
    let percent = |value: &dyn Fn(&RowScore) -> f64| {
        100.0 * counted.iter().map(value).sum::<f64>() / counted.len() as f64
    };
    let recall = |k| percent(&|row: &RowScore| f64::from(u8::from(row.first_rank < k)));
    let scores = Scores {
        r1: recall(1),
        r5: recall(5),
        r10: recall(10),
        map: percent(&|row| row.average_precision),
        minp: percent(&|row| row.inverse_negative_penalty),
        queries: counted.len(),
        excluded: rows.len() - counted.len(),
    };
    Ok(Retrieval {
        scores,
        first_rank: rows.iter().map(|row| Some(row.score?.first_rank)).collect(),
        average_precision: rows.iter().map(|row| Some(row.score?.average_precision)).collect(),
        top: rows.into_iter().map(|row| row.top).collect(),
    })
}

#[cfg(test)]
mod tests;
