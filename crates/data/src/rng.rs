//! Seeded random streams: every random choice comes from a seed, a purpose and a place.
//!
//! Two streams that differ in the purpose or in any key share nothing, so that, say, one more
//! augmentation does not change the order of the data.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// What a stream is used for; streams of different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The order of the caption-image pairs in an epoch.
    Order,
    /// Flip, shift and erasing of one sample.
    Augment,
    /// The synthetic data set.
    Synth,
    /// Which people of train are held out.
    HoldOut,
}

/// A stream of random numbers that is the same on every machine.
#[derive(Debug, Clone)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `seed` for a purpose at a place, such as `[epoch, index]`.
    #[must_use]
    pub fn new(seed: u64, purpose: Purpose, place: &[u64]) -> Self {
        let start = mix(seed ^ mix(purpose as u64 + 1));
        Self(Xoshiro256PlusPlus::seed_from_u64(place.iter().fold(start, |state, &key| {
            // The addition keeps (0, 1) apart from (1, 0) and from (0,).
            mix(state.wrapping_add(GOLDEN) ^ mix(key))
        })))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A uniform number in `[low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A uniform whole number in `0..bound`, without bias; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Widening multiplication with rejection of the short last interval (Lemire 2019).
        let threshold = if bound == 0 { 0 } else { bound.wrapping_neg() % bound };
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Fisher-Yates shuffle.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// 2^64 divided by the golden ratio, the usual increment of SplitMix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The output function of SplitMix64 (Steele, Lea and Flood 2014): a bijection that spreads bits.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, purpose: Purpose, place: &[u64]) -> u64 {
        Stream::new(seed, purpose, place).below(u64::MAX)
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_place() {
        let streams = [
            first(0, Purpose::Order, &[0]),
            first(1, Purpose::Order, &[0]),
            first(0, Purpose::Augment, &[0]),
            first(0, Purpose::Augment, &[0, 0]),
            first(0, Purpose::Augment, &[0, 1]),
            first(0, Purpose::Augment, &[1, 0]),
        ];
        for (i, a) in streams.iter().enumerate() {
            assert!(streams[i + 1..].iter().all(|b| a != b), "stream {i} repeats");
        }
        assert_eq!(streams[4], first(0, Purpose::Augment, &[0, 1]));
    }

    #[test]
    fn below_reaches_every_value_about_equally() {
        let mut stream = Stream::new(7, Purpose::Order, &[]);
        let mut counts = [0; 5];
        for _ in 0..10_000 {
            counts[stream.below(5) as usize] += 1;
        }
        // 2,000 expected; the standard deviation is 40, so 200 is five of them.
        assert!(counts.iter().all(|count| (1_800..=2_200).contains(count)), "{counts:?}");
        assert_eq!(stream.below(1), 0);
        assert_eq!(stream.below(0), 0);
    }

    #[test]
    fn uniform_stays_in_its_range() {
        let mut stream = Stream::new(7, Purpose::Augment, &[]);
        let values: Vec<f64> = (0..1_000).map(|_| stream.uniform(-1.0, 3.0)).collect();
        assert!(values.iter().all(|value| (-1.0..3.0).contains(value)));
        let mean = values.iter().sum::<f64>() / 1_000.0;
        assert!((mean - 1.0).abs() < 0.2, "mean {mean}");
    }
}
