//! Medians, ranges and the interval of a median.

use serde::Serialize;

/// What the interval of a median has to cover at least, if there are values enough.
const COVERAGE: f64 = 0.95;

/// The seconds of all pieces of work of one side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
    /// In the order they were measured.
    pub(super) pieces: Vec<f64>,
}

impl Spread {
    /// `None` of no pieces.
    pub(super) fn of(pieces: &[f64]) -> Option<Self> {
        let sorted = sorted(pieces);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        Some(Self { median: median(pieces)?, min, max, pieces: pieces.to_vec() })
    }
}

/// An interval of a median between two order statistics, and the probability that it holds the
/// median of what the values are drawn from, whatever their distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) bounds: [f64; 2],
    pub(super) coverage: f64,
}

/// The middle value, or the mean of the two in the middle.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let (sorted, half) = (sorted(values), values.len() / 2);
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half]),
        _ => Some((sorted[half - 1] + sorted[half]) / 2.0),
    }
}

/// The narrowest interval from the k-th smallest to the k-th largest value that covers at least
/// 95%. Below six values none does, and the interval is their range with the coverage that it has.
/// `None` of fewer than two values.
///
/// The number of values below the true median is binomial with probability 1/2, so the interval
/// misses it with probability 2 P(Bin(n, 1/2) < k).
pub(super) fn median_interval(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let sorted = sorted(values);
    let interval =
        |k: usize| Interval { bounds: [sorted[k - 1], sorted[n - k]], coverage: coverage(n, k) };
    let narrowest = (1..=n / 2).rev().map(interval).find(|found| found.coverage >= COVERAGE);
    Some(narrowest.unwrap_or_else(|| interval(1)))
}

/// 1 - 2 P(Bin(n, 1/2) < k).
fn coverage(n: usize, k: usize) -> f64 {
    let mut probability = 0.5_f64.powi(n as i32); // P(Bin = 0)
    let mut below = 0.0;
    for i in 0..k {
        below += probability;
        probability *= (n - i) as f64 / (i + 1) as f64;
    }
    1.0 - 2.0 * below
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        let spread = Spread::of(&[3.0, 1.0, 2.5]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 3.0));
        assert_eq!(spread.pieces, [3.0, 1.0, 2.5]);
        assert_eq!(Spread::of(&[]), None);
    }

    /// Coverages by hand: of 10 values the second smallest to the second largest misses with
    /// 2 (1 + 10) / 2^10, of 15 the fourth with 2 (1 + 15 + 105 + 455) / 2^15.
    #[test]
    fn intervals_are_order_statistics_with_their_exact_coverage() {
        let check = |n: usize, bounds: [f64; 2], coverage: f64| {
            let values: Vec<f64> = (1..=n).rev().map(|value| value as f64).collect();
            let found = median_interval(&values).unwrap();
            assert_eq!(found.bounds, bounds, "{n}");
            assert!((found.coverage - coverage).abs() < 1e-12, "{n}: {}", found.coverage);
        };
        check(10, [2.0, 9.0], 1.0 - 22.0 / 1024.0);
        check(15, [4.0, 12.0], 1.0 - 1152.0 / 32768.0);
        check(6, [1.0, 6.0], 1.0 - 2.0 / 64.0);
        check(5, [1.0, 5.0], 1.0 - 2.0 / 32.0);
        check(2, [1.0, 2.0], 0.5);
        assert_eq!(median_interval(&[1.0]), None);
    }
}
