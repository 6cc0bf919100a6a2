//! The crate's one error type.

use std::fmt;

use thiserror::Error;

/// Which input of a retrieval a fault lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What is searched for.
    Query,
    /// What is searched in.
    Gallery,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Query => "query",
            Side::Gallery => "gallery",
        })
    }
}

/// Why a measure cannot be taken of the data at hand.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MetricsError {
    /// The feature matrix does not have one row of `dim` values per person id.
    #[error(
        "{side} features hold {values} values, but {rows} pids of width {dim} need {}: \
         pass one row of {dim} values per pid",
        rows.saturating_mul(*dim)
    )]
    FeatureLength {
        /// The side whose lengths disagree.
        side: Side,
        /// Values found.
        values: usize,
        /// Rows expected: the number of person ids.
        rows: usize,
        /// Width of one row.
        dim: usize,
    },

    /// Features of width 0.
    #[error("features of width 0 cannot be compared: pass the embedding width")]
    ZeroWidth,

    /// One side has no rows at all.
    #[error("the {side} is empty: give at least one row")]
    Empty {
        /// The side without rows.
        side: Side,
    },

    /// A feature is NaN or infinite.
    #[error(
        "{side} features are not finite in row {row}, column {column} ({value}): \
         the model has diverged or the file is damaged"
    )]
    NotFiniteFeature {
        /// The side the row belongs to.
        side: Side,
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The value found.
        value: f32,
    },

    /// A similarity is NaN.
    #[error("the similarity of query {query} and gallery item {item} is NaN and cannot be ranked")]
    NanSimilarity {
        /// Row of the similarity matrix, from 0.
        query: usize,
        /// Column of the similarity matrix, from 0.
        item: usize,
    },

    /// The similarity matrix does not have the shape that the person ids tell.
    #[error("the similarity matrix holds {values} values, but {queries} queries x {gallery} gallery items need {}",
        queries.saturating_mul(*gallery))]
    SimilarityLength {
        /// Values found.
        values: usize,
        /// Number of query person ids.
        queries: usize,
        /// Number of gallery person ids.
        gallery: usize,
    },

    /// No query shares its person id with any gallery item, so no score is defined.
    #[error(
        "none of the {queries} queries has its pid among the {gallery} gallery items: \
         check that both sides use the same pid numbering"
    )]
    NoPositives {
        /// Number of queries.
        queries: usize,
        /// Number of gallery items.
        gallery: usize,
    },

    /// The two halves of a paired comparison differ in length.
    #[error(
        "a paired comparison needs the same queries on both sides, but got {a} and {b} values: \
         compare runs of the same split"
    )]
    UnequalPairs {
        /// Number of values of the first system.
        a: usize,
        /// Number of values of the second system.
        b: usize,
    },

    /// A paired comparison without any pair.
    #[error("a paired comparison needs at least one query")]
    NoPairs,

    /// A value in a paired comparison is NaN or infinite.
    #[error("pair {pair} of the comparison is not finite ({a} against {b})")]
    NotFinitePair {
        /// Position of the pair, from 0.
        pair: usize,
        /// The first system's value.
        a: f64,
        /// The second system's value.
        b: f64,
    },

    /// A bootstrap without any resample.
    #[error("a bootstrap interval needs at least one resample: 1000 or more are usual")]
    NoResamples,

    /// A given resample does not draw as many pairs as there are, or draws one that is not there.
    #[error("resample {resample} does not consist of {pairs} indices below {pairs}")]
    BadResample {
        /// Position of the resample, from 0.
        resample: usize,
        /// Number of pairs.
        pairs: usize,
    },
}
