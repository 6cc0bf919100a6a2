//! A counter-based random stream: the n-th number is a function of the seed and n alone, so that
//! work split over threads draws the same numbers in any order.

/// The odd constant nearest to 2^64 / golden ratio, SplitMix64's step (Steele et al., 2014).
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The stream of one seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterRng {
    key: u64,
}

impl CounterRng {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds would otherwise give streams that are shifted copies of each other.
        Self { key: mix(seed) }
    }

    /// The number at position `counter`, uniform over all 64-bit values.
    pub(crate) fn at(self, counter: u64) -> u64 {
        mix(self.key.wrapping_add(counter.wrapping_add(1).wrapping_mul(GAMMA)))
    }

    /// The number at position `counter`, uniform over `0..bound` (`bound` > 0).
    ///
    /// The high half of a 128-bit product; its bias is below `bound` / 2^64.
    pub(crate) fn index_at(self, counter: u64, bound: usize) -> usize {
        ((u128::from(self.at(counter)) * bound as u128) >> 64) as usize
    }
}

/// SplitMix64's output function.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64's published first outputs for state 0, with the key taken as that state.
    #[test]
    fn stream_is_splitmix64() {
        let rng = CounterRng { key: 0 };
        let first = [rng.at(0), rng.at(1), rng.at(2)];
        assert_eq!(first, [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]);
    }

    #[test]
    fn indices_cover_the_range_evenly() {
        let rng = CounterRng::new(3);
        let mut counts = [0_u32; 7];
        for n in 0..70_000 {
            counts[rng.index_at(n, 7)] += 1;
        }
        // 10,000 expected of each, with a standard deviation of 93: five of those either way.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 465), "{counts:?}");
    }
}
