//! Golden vectors, faults, chunking, and a comparison with a naive ranking.

use super::*;
use crate::random::CounterRng;

/// Percentages are given to three decimals.
const TOLERANCE: f64 = 5e-4;

fn check(similarity: &[f32], query_pids: &[i64], gallery_pids: &[i64], expected: [f64; 5]) {
    let scores = evaluate_similarity(similarity, query_pids, gallery_pids).unwrap().scores;
    let found = [scores.r1, scores.r5, scores.r10, scores.map, scores.minp];
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() < TOLERANCE, "{scores:?}");
    }
}

#[test]
fn golden_vectors() {
    #[rustfmt::skip]
    let similarity = [
        0.9, 0.8, 0.7, 0.6, 0.5,
        0.5, 0.5, 0.5, 0.4, 0.3,
        0.1, 0.9, 0.2, 0.8, 0.3,
    ];
    let expected = [33.333, 100.0, 100.0, 55.556, 50.0];
    check(&similarity, &[1, 2, 3], &[1, 2, 1, 2, 3], expected);
    check(&[0.5, 0.5], &[2], &[1, 2], [0.0, 100.0, 100.0, 50.0, 50.0]);
    check(&[0.5, 0.5], &[2], &[2, 1], [100.0; 5]);
}

#[test]
fn queries_without_a_positive_are_left_out_and_counted() {
    let found = evaluate(&[1.0, 0.0, 0.0, 1.0], &[5, 8], &[1.0, 0.1, 0.1, 1.0], &[8, 9], 2);
    let found = found.unwrap();
    assert_eq!((found.scores.queries, found.scores.excluded), (1, 1));
    assert_eq!(found.first_rank, [None, Some(1)]);
    assert_eq!(found.average_precision, [None, Some(0.5)]);
    assert_eq!(hits(&found.first_rank, 1), [0.0]);
    assert_eq!(hits(&found.first_rank, 2), [100.0]);
}

#[test]
fn faults_are_named() {
    let row = [1.0, 0.0];
    let bad = [1.0, 0.0, 0.5, f32::NAN];
    let fault = |q: &[f32], q_pids: &[i64], g: &[f32], g_pids: &[i64], dim| {
        evaluate(q, q_pids, g, g_pids, dim).unwrap_err().to_string()
    };
    let message = fault(&bad, &[1, 1], &row, &[1], 2);
    assert!(message.contains("query features are not finite in row 1, column 1"), "{message}");
    let message = fault(&row, &[1], &bad, &[1, 1], 2);
    assert!(message.contains("gallery features are not finite in row 1"), "{message}");
    let message = fault(&row, &[1], &[1.0, 0.0, 0.5], &[1], 2);
    assert!(message.contains("gallery features hold 3 values, but 1 pids"), "{message}");
    let message = fault(&row, &[1], &row, &[2], 2);
    assert!(message.contains("same pid numbering"), "{message}");
    assert!(fault(&[], &[], &row, &[1], 2).contains("the query is empty"));
    assert!(fault(&row, &[1], &row, &[1], 0).contains("width 0"));
    let nan = evaluate_similarity(&[0.0, 1.0, f32::NAN, 0.0], &[1, 1], &[1, 1]);
    assert_eq!(nan.unwrap_err(), MetricsError::NanSimilarity { query: 1, item: 0 });
    let short = evaluate_similarity(&[0.0], &[1], &[1, 1]);
    assert!(matches!(short, Err(MetricsError::SimilarityLength { values: 1, .. })));
}

/// Random features on a coarse grid, a third of them repeated so that exact ties occur.
fn random_features(rng: CounterRng, rows: usize, dim: usize) -> Vec<f32> {
    let row_seed = |row: usize| if rng.index_at(row as u64, 3) == 0 { 0 } else { row + 1 };
    (0..rows * dim)
        .map(|at| {
            let counter = (1_000 + row_seed(at / dim) * dim + at % dim) as u64;
            rng.index_at(counter, 2_001) as f32 / 1_000.0 - 1.0
        })
        .collect()
}

fn random_pids(rng: CounterRng, rows: usize, identities: usize) -> Vec<i64> {
    (0..rows).map(|row| rng.index_at(row as u64, identities) as i64).collect()
}

/// D = 600 needs more than one of the matrix product's blocks along D (256), where rounding
/// could come to depend on the chunk.
#[test]
fn chunk_size_and_thread_count_do_not_change_the_result() {
    let (num_queries, num_items, dim) = (131, 77, 600);
    let queries = random_features(CounterRng::new(1), num_queries, dim);
    let gallery = random_features(CounterRng::new(2), num_items, dim);
    let query_pids = random_pids(CounterRng::new(3), num_queries, 20);
    let gallery_pids = random_pids(CounterRng::new(4), num_items, 20);
    let queries = Features::normalised(Side::Query, &queries, num_queries, dim).unwrap();
    let gallery = Features::normalised(Side::Gallery, &gallery, num_items, dim).unwrap();

    let whole = queries.similarity(0..num_queries, &gallery);
    let by_row: Vec<f32> =
        (0..num_queries).flat_map(|row| queries.similarity(row..row + 1, &gallery)).collect();
    assert_eq!(whole, by_row);

    let score = |chunk| score_in_chunks(&queries, &query_pids, &gallery, &gallery_pids, chunk);
    let expected = score(64).unwrap();
    for chunk in [1, 7, 64, 1_000] {
        assert_eq!(score(chunk).unwrap(), expected, "chunk of {chunk}");
    }
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| score(7)).unwrap(), expected, "{threads} threads");
    }
}

/// The rank of every match by comparing it with every item, straight from the definition.
fn naive_ranks(similarity: &[f32], query_pid: i64, gallery_pids: &[i64]) -> Vec<u32> {
    let rank = |m: usize| {
        let ahead =
            |&j: &usize| similarity[j] > similarity[m] || (similarity[j] == similarity[m] && j < m);
        (0..similarity.len()).filter(ahead).count() as u32
    };
    let mut ranks: Vec<u32> =
        (0..similarity.len()).filter(|&m| gallery_pids[m] == query_pid).map(rank).collect();
    ranks.sort_unstable();
    ranks
}

/// Average precision and INP by walking down the list, as the definition reads.
fn naive_score(ranks: &[u32], num_items: usize) -> (f64, f64) {
    let (mut seen, mut precision_sum, mut last) = (0.0, 0.0, 0.0);
    for position in 0..num_items {
        if ranks.contains(&(position as u32)) {
            seen += 1.0;
            last = position as f64 + 1.0;
            precision_sum += seen / last;
        }
    }
    (precision_sum / seen, seen / last)
}

#[test]
fn ranks_equal_the_naive_ones_under_random_ties() {
    for case in 0..400_u64 {
        let rng = CounterRng::new(case);
        let num_items = 1 + rng.index_at(0, 40);
        let levels = 1 + rng.index_at(1, 12);
        let similarity: Vec<f32> = (0..num_items)
            .map(|j| rng.index_at(100 + j as u64, levels) as f32 / levels as f32 - 0.5)
            .collect();
        let identities = 1 + rng.index_at(2, 6);
        let gallery_pids = random_pids(CounterRng::new(case + 1_000), num_items, identities);

        let ranks = rank_row(&similarity, 0, &gallery_pids);
        assert_eq!(ranks, naive_ranks(&similarity, 0, &gallery_pids), "case {case}");
        if let Some(score) = RowScore::of(&ranks) {
            let (average_precision, penalty) = naive_score(&ranks, num_items);
            assert!((score.average_precision - average_precision).abs() < 1e-12, "case {case}");
            assert!((score.inverse_negative_penalty - penalty).abs() < 1e-12, "case {case}");
        }
    }
}
