//! How sure a difference between two systems is: the paired percentile bootstrap over queries.
//!
//! Both systems answer the same queries, so each query gives a pair. Queries are drawn with
//! replacement, pairs staying together, and the 2.5th and 97.5th percentiles of the resampled mean
//! differences bound the interval (Efron and Tibshirani, 1993, chapter 13). An interval that holds
//! zero reads "no difference".

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::MetricsError;
use crate::random::CounterRng;

/// The quantiles that bound a 95% interval.
const BOUNDS: (f64, f64) = (0.025, 0.975);

/// A mean difference and its 95% interval, in the unit of the values compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Mean of a - b over the queries.
    pub mean: f64,
    /// 2.5th percentile of the resampled means.
    pub low: f64,
    /// 97.5th percentile of the resampled means.
    pub high: f64,
}

impl Interval {
    /// Whether zero lies in the interval: the two systems cannot be told apart.
    pub fn contains_zero(&self) -> bool {
        self.low <= 0.0 && 0.0 <= self.high
    }
}

/// The mean of `a - b` over queries and its 95% interval, from `resamples` draws.
///
/// `a` and `b` are `[Q]`, one value per query, in the same order of queries; for R@1 in percent
/// pass [`hits`](crate::retrieval::hits). The result depends on `seed` but not on the number of
/// threads.
///
/// # Errors
///
/// When the two lengths differ, there is no pair, a value is not finite, or `resamples` is 0.
pub fn paired_difference(
    a: &[f64],
    b: &[f64],
    resamples: usize,
    seed: u64,
) -> Result<Interval, MetricsError> {
    let differences = differences(a, b)?;
    let rng = CounterRng::new(seed);
    let num_pairs = differences.len();
    let means = (0..resamples)
        .into_par_iter()
        .map(|resample| {
            let first = (resample * num_pairs) as u64;
            let draw = |i: usize| differences[rng.index_at(first + i as u64, num_pairs)];
            mean((0..num_pairs).map(draw))
        })
        .collect();
    interval(&differences, means)
}

/// The indices that [`paired_difference`] draws for one resample of `num_pairs` pairs: with them
/// anybody can compute its interval again.
pub fn draws(resample: usize, num_pairs: usize, seed: u64) -> Vec<u32> {
    let (rng, first) = (CounterRng::new(seed), (resample * num_pairs) as u64);
    (0..num_pairs as u64).map(|i| rng.index_at(first + i, num_pairs) as u32).collect()
}

/// [`paired_difference`] with the draws given: each of `resamples` holds Q indices into the pairs.
///
/// # Errors
///
/// As for [`paired_difference`], and when a resample does not hold Q indices below Q.
pub fn paired_difference_of<R: AsRef<[u32]>>(
    a: &[f64],
    b: &[f64],
    resamples: &[R],
) -> Result<Interval, MetricsError> {
    let differences = differences(a, b)?;
    let means = resamples
        .iter()
        .enumerate()
        .map(|(resample, indices)| {
            let drawn: Option<Vec<f64>> =
                indices.as_ref().iter().map(|&i| differences.get(i as usize).copied()).collect();
            drawn
                .filter(|drawn| drawn.len() == differences.len())
                .map(|drawn| mean(drawn.into_iter()))
                .ok_or(MetricsError::BadResample { resample, pairs: differences.len() })
        })
        .collect::<Result<_, _>>()?;
    interval(&differences, means)
}

fn differences(a: &[f64], b: &[f64]) -> Result<Vec<f64>, MetricsError> {
    if a.len() != b.len() {
        return Err(MetricsError::UnequalPairs { a: a.len(), b: b.len() });
    }
    if a.is_empty() {
        return Err(MetricsError::NoPairs);
    }
    let difference = |(pair, (&a, &b)): (usize, (&f64, &f64))| {
        let difference = a - b;
        if difference.is_finite() {
            Ok(difference)
        } else {
            Err(MetricsError::NotFinitePair { pair, a, b })
        }
    };
    a.iter().zip(b).enumerate().map(difference).collect()
}

fn interval(differences: &[f64], mut means: Vec<f64>) -> Result<Interval, MetricsError> {
    if means.is_empty() {
        return Err(MetricsError::NoResamples);
    }
    means.sort_unstable_by(f64::total_cmp);
    Ok(Interval {
        mean: mean(differences.iter().copied()),
        low: quantile(&means, BOUNDS.0),
        high: quantile(&means, BOUNDS.1),
    })
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// The quantile `q` in `0..=1` of ascending values, interpolated linearly between the two
/// neighbours: definition 7 of Hyndman and Fan (1996), NumPy's default.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * q;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let (low, high) = (sorted[below], sorted[above]);
    low + (high - low) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_linearly() {
        let check = |values: &[f64], q, expected: f64| {
            let found = quantile(values, q);
            assert!((found - expected).abs() < 1e-12, "{q} of {values:?} is {found}");
        };
        check(&[7.0], 0.975, 7.0);
        check(&[1.0, 2.0, 4.0, 8.0], 0.0, 1.0);
        check(&[1.0, 2.0, 4.0, 8.0], 1.0, 8.0);
        check(&[1.0, 2.0, 4.0, 8.0], 0.5, 3.0);
        check(&[1.0, 2.0, 4.0, 8.0], 0.9, 6.8);
    }

    #[test]
    fn given_resamples_are_used_as_they_are() {
        let (a, b) = ([4.0, 2.0], [1.0, 1.0]); // differences 3 and 1
        let found = paired_difference_of(&a, &b, &[[0, 0], [1, 1], [0, 1]]).unwrap();
        // Means 3, 1, 2: sorted 1, 2, 3; the quantiles stand 0.05 inside either end.
        assert_eq!(found.mean, 2.0);
        assert!((found.low - 1.05).abs() < 1e-12 && (found.high - 2.95).abs() < 1e-12);
        assert!(!found.contains_zero());
    }

    #[test]
    fn seed_decides_and_threads_do_not() {
        let a: Vec<f64> = (0..50).map(|i| f64::from(i % 7)).collect();
        let b: Vec<f64> = (0..50).map(|i| f64::from(i % 5)).collect();
        let draw = |seed| paired_difference(&a, &b, 500, seed).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(draw(1), pool.install(|| draw(1)));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1).mean, draw(2).mean);
    }

    #[test]
    fn equal_systems_do_not_differ() {
        let a = [100.0, 0.0, 100.0];
        let found = paired_difference(&a, &a, 100, 0).unwrap();
        assert_eq!(found, Interval { mean: 0.0, low: 0.0, high: 0.0 });
        assert!(found.contains_zero());
    }

    #[test]
    fn faults_are_named() {
        let fault =
            |a: &[f64], b: &[f64], resamples| paired_difference(a, b, resamples, 0).unwrap_err();
        assert_eq!(fault(&[1.0], &[1.0, 2.0], 9), MetricsError::UnequalPairs { a: 1, b: 2 });
        assert_eq!(fault(&[], &[], 9), MetricsError::NoPairs);
        assert_eq!(fault(&[1.0], &[0.0], 0), MetricsError::NoResamples);
        let nan = fault(&[1.0, f64::NAN], &[1.0, 0.0], 9);
        assert!(matches!(nan, MetricsError::NotFinitePair { pair: 1, .. }));
        for resamples in [[vec![0, 1], vec![0]], [vec![0, 1], vec![0, 2]]] {
            let bad = paired_difference_of(&[1.0, 2.0], &[0.0, 0.0], &resamples);
            assert_eq!(bad, Err(MetricsError::BadResample { resample: 1, pairs: 2 }));
        }
    }
}
