//! The random streams of the generator: one per (seed, purpose, index), so that what is drawn for
//! one person or image never depends on how many others were drawn before it, nor on the thread.

use crate::rng;

/// What a stream is for. Two purposes never share a stream, whatever the index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Plan,
    Person,
    View,
    Sensor,
    Caption,
}

/// A stream of random draws. The distributions are spelled out here instead of taken from a
/// library, because a data set is named by its seed and must not change with a dependency.
pub(crate) struct Stream(rng::Stream);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        Self(rng::Stream::new(seed, rng::Purpose::Synth, &[purpose as u64, index]))
    }

    /// A stream of its own, from bits drawn elsewhere.
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(rng::Stream::new(bits, rng::Purpose::Synth, &[]))
    }

    /// 64 uniform bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f32 {
        // 24 bits are what an f32 mantissa holds; rounding an f64 could give 1.
        (self.bits() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// Uniform in `[low, high)`.
    pub(crate) fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Bell-shaped with mean 0 and standard deviation 1, within ±3.5.
    pub(crate) fn bell(&mut self) -> f32 {
        bell_of(self.bits())
    }

    pub(crate) fn chance(&mut self, probability: f32) -> bool {
        self.unit() < probability
    }

    /// Uniform in `0..n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0.below(n as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// One item, with probability in proportion to its weight.
    pub(crate) fn weighted<T: Copy>(&mut self, items: &[(T, f32)]) -> T {
        let total: f32 = items.iter().map(|item| item.1).sum();
        let mut left = self.unit() * total;
        for (item, weight) in items {
            left -= weight;
            if left < 0.0 {
                return *item;
            }
        }
        items[items.len() - 1].0
    }
}

/// The four 16-bit quarters of `bits`, summed and scaled to mean 0 and standard deviation 1.
pub(crate) fn bell_of(bits: u64) -> f32 {
    let sum: u64 = (0..4).map(|quarter| (bits >> (16 * quarter)) & 0xFFFF).sum();
    // Four uniforms on [0, 1): mean 2, variance 4/12, so that 3.5 deviations are the most.
    (sum as f32 / 65_536.0 - 2.0) * 3.0_f32.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_stated_moments() {
        let mut stream = Stream::new(1, Purpose::Plan, 0);
        let draws: Vec<f32> = (0..20_000).map(|_| stream.bell()).collect();
        let mean = draws.iter().sum::<f32>() / 20_000.0;
        let variance = draws.iter().map(|x| x * x).sum::<f32>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn weights_are_proportions() {
        let mut stream = Stream::new(1, Purpose::Plan, 1);
        let heavy = (0..1000).filter(|_| stream.weighted(&[(true, 3.0), (false, 1.0)])).count();
        assert!((700..800).contains(&heavy), "{heavy}");
    }
}
