//! The device allocator's pool, read through a closure so that no tensor library is needed here.

/// One reading of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes that live tensors occupy.
    pub in_use_bytes: u64,
    /// Bytes that the pool holds from the device, free pages included.
    pub reserved_bytes: u64,
}

/// The highest readings of a pool among those sampled.
///
/// ```
/// use tbps_metrics::memory::pool::{PoolPeak, PoolUsage};
///
/// let mut held = [3, 8, 5].into_iter();
/// let mut peak = PoolPeak::new(|| {
///     held.next().map(|bytes| PoolUsage { in_use_bytes: bytes, reserved_bytes: 16 })
/// });
/// while peak.sample().is_some() {}
/// assert_eq!(peak.peak(), Some(PoolUsage { in_use_bytes: 8, reserved_bytes: 16 }));
/// ```
#[derive(Debug)]
pub struct PoolPeak<F> {
    probe: F,
    peak: Option<PoolUsage>,
}

impl<F: FnMut() -> Option<PoolUsage>> PoolPeak<F> {
    /// Tracks what `probe` reads; it returns `None` where the device has no pool.
    pub fn new(probe: F) -> Self {
        Self { probe, peak: None }
    }

    /// Reads the pool, lets the peak follow, and returns the reading.
    pub fn sample(&mut self) -> Option<PoolUsage> {
        let usage = (self.probe)()?;
        let peak = self.peak.get_or_insert(usage);
        peak.in_use_bytes = peak.in_use_bytes.max(usage.in_use_bytes);
        peak.reserved_bytes = peak.reserved_bytes.max(usage.reserved_bytes);
        Some(usage)
    }

    /// The highest of each figure since the start or the last [`PoolPeak::reset`]; the two need not
    /// be of the same moment. `None` before the first reading.
    pub fn peak(&self) -> Option<PoolUsage> {
        self.peak
    }

    /// Forgets the peak and returns it.
    pub fn reset(&mut self) -> Option<PoolUsage> {
        self.peak.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(in_use_bytes: u64, reserved_bytes: u64) -> PoolUsage {
        PoolUsage { in_use_bytes, reserved_bytes }
    }

    #[test]
    fn each_figure_has_its_own_peak() {
        let mut readings =
            [usage(1, 8), usage(5, 6), usage(2, 7), usage(1, 1)].map(Some).into_iter();
        let mut peak = PoolPeak::new(|| readings.next().flatten());
        assert_eq!(peak.peak(), None);
        assert_eq!(peak.sample(), Some(usage(1, 8)));
        peak.sample();
        peak.sample();
        assert_eq!(peak.peak(), Some(usage(5, 8)));
        assert_eq!(peak.reset(), Some(usage(5, 8)));
        peak.sample();
        assert_eq!(peak.peak(), Some(usage(1, 1)));
    }

    #[test]
    fn a_device_without_a_pool_has_no_peak() {
        let mut peak = PoolPeak::new(|| None);
        assert_eq!(peak.sample(), None);
        assert_eq!(peak.peak(), None);
    }
}
