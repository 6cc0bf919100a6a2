//! Scores and intervals against those that NumPy and SciPy compute (`tests/fixtures`).

use std::collections::BTreeMap;

use serde::Deserialize;
use tbps_metrics::bootstrap::{self, Interval};
use tbps_metrics::retrieval::{self, Retrieval, Scores};

/// Both sides average at most 300 values in f64, in orders of their own.
const F64_TOLERANCE: f64 = 1e-11;

#[track_caller]
fn assert_close(found: &[f64], expected: &[f64]) {
    let close = |(f, e): (&f64, &f64)| (f - e).abs() < F64_TOLERANCE;
    assert!(found.iter().zip(expected).all(close), "found {found:?}, expected {expected:?}");
}

#[derive(Deserialize)]
struct Bootstrap {
    ranks_a: Vec<u32>,
    ranks_b: Vec<u32>,
    resamples: Vec<Vec<u32>>,
    expected: ExpectedIntervals,
}

#[derive(Deserialize)]
struct ExpectedIntervals {
    hit_at_1: Interval,
    reciprocal_rank: Interval,
}

#[test]
fn intervals_equal_scipys_for_the_same_draws() {
    let text = include_str!("fixtures/bootstrap/bootstrap.json");
    let fixture: Bootstrap = serde_json::from_str(text).unwrap();
    let check = |measure: &dyn Fn(&[u32]) -> Vec<f64>, expected: Interval| {
        let (a, b) = (measure(&fixture.ranks_a), measure(&fixture.ranks_b));
        let found = bootstrap::paired_difference_of(&a, &b, &fixture.resamples).unwrap();
        assert_close(
            &[found.mean, found.low, found.high],
            &[expected.mean, expected.low, expected.high],
        );
    };
    let hits =
        |ranks: &[u32]| retrieval::hits(&ranks.iter().copied().map(Some).collect::<Vec<_>>(), 1);
    check(&hits, fixture.expected.hit_at_1);
    let reciprocals = |ranks: &[u32]| ranks.iter().map(|&r| 1.0 / f64::from(r + 1)).collect();
    check(&reciprocals, fixture.expected.reciprocal_rank);
}

#[derive(Deserialize)]
struct Recorded {
    ranks: BTreeMap<String, Vec<Option<u32>>>,
    draws: BTreeMap<usize, Vec<u32>>,
    pairs: Vec<RecordedPair>,
}

#[derive(Deserialize)]
struct RecordedPair {
    cell: String,
    base: String,
    expected: Interval,
}

/// What a report computes, from recorded ranks to the interval, with its own draws.
#[test]
fn a_recorded_matrix_has_the_intervals_that_scipy_finds_for_the_same_draws() {
    let fixture: Recorded =
        serde_json::from_str(include_str!("fixtures/recorded/recorded.json")).unwrap();
    let num_queries = fixture.ranks["fp32"].len();
    assert_eq!((num_queries, fixture.draws.len(), fixture.pairs.len()), (1_000, 2, 9));
    for (resample, expected) in &fixture.draws {
        assert_eq!(&bootstrap::draws(*resample, num_queries, 0), expected);
    }
    for RecordedPair { cell, base, expected } in &fixture.pairs {
        let [a, b] = [cell, base].map(|cell| retrieval::hits(&fixture.ranks[cell], 1));
        let found = bootstrap::paired_difference(&a, &b, 10_000, 0).unwrap();
        assert_close(
            &[found.mean, found.low, found.high],
            &[expected.mean, expected.low, expected.high],
        );
    }
}

#[derive(Deserialize)]
struct Search {
    dim: usize,
    text_features: Vec<f32>,
    text_pids: Vec<i64>,
    image_features: Vec<f32>,
    image_pids: Vec<i64>,
    t2i: ExpectedScores,
    i2t: ExpectedScores,
}

#[derive(Deserialize)]
struct ExpectedScores {
    scores: Scores,
    first_rank: Vec<Option<u32>>,
}

#[test]
fn scores_equal_those_of_a_full_sort() {
    let check = |found: Retrieval, expected: &ExpectedScores| {
        assert_eq!(found.first_rank, expected.first_rank);
        let counts = |s: &Scores| (s.queries, s.excluded);
        assert_eq!(counts(&found.scores), counts(&expected.scores));
        let percents = |s: &Scores| [s.r1, s.r5, s.r10, s.map, s.minp];
        assert_close(&percents(&found.scores), &percents(&expected.scores));
    };
    let f: Search =
        serde_json::from_str(include_str!("fixtures/retrieval/retrieval.json")).unwrap();
    let (text, image) = (&f.text_features, &f.image_features);
    let t2i = retrieval::evaluate(text, &f.text_pids, image, &f.image_pids, f.dim).unwrap();
    check(t2i, &f.t2i);
    let i2t = retrieval::evaluate(image, &f.image_pids, text, &f.text_pids, f.dim).unwrap();
    check(i2t, &f.i2t);
}
