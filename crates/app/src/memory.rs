//! What a run holds: on the host to the byte, and on the device as its pool and driver see it.

use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tbps_metrics::memory::nvml::{self, Sampler};
use tbps_metrics::memory::pool::PoolUsage;
use tbps_metrics::memory::{alloc, gib, rss};

/// Peaks in bytes, kept over attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peaks {
    /// Allocated on the host, training and evaluation.
    pub(crate) alloc: u64,
    /// Allocated on the host during evaluation.
    pub(crate) eval: u64,
    /// Allocated on the host between two steps, with no batch in flight.
    pub(crate) resident: u64,
    /// Activation memory of a step.
    pub(crate) tape: u64,
    pub(crate) rss: u64,
    pub(crate) pool_in_use: u64,
    pub(crate) pool_reserved: u64,
    pub(crate) vram: u64,
}

/// The memory part of `summary.json`; null where the device or system has no such figure.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryRecord {
    pub(crate) peak_vram_gib: Option<f64>,
    pub(crate) peak_pool_in_use_gib: Option<f64>,
    pub(crate) peak_pool_reserved_gib: Option<f64>,
    pub(crate) peak_host_gib: Option<f64>,
    pub(crate) peak_alloc_gib: Option<f64>,
    pub(crate) resident_alloc_gib: Option<f64>,
    pub(crate) tape_gib: Option<f64>,
    pub(crate) peak_eval_gib: Option<f64>,
}

impl From<Peaks> for MemoryRecord {
    fn from(p: Peaks) -> Self {
        let known = |bytes: u64| (bytes > 0).then(|| gib(bytes));
        Self {
            peak_vram_gib: known(p.vram),
            peak_pool_in_use_gib: known(p.pool_in_use),
            peak_pool_reserved_gib: known(p.pool_reserved),
            peak_host_gib: known(p.rss),
            peak_alloc_gib: known(p.alloc),
            resident_alloc_gib: known(p.resident),
            tape_gib: known(p.tape),
            peak_eval_gib: known(p.eval),
        }
    }
}

/// The activation memory of one step: the most that is held on the host during forward and backward,
/// less what was held before and less the parameter gradients that are there by then.
///
/// A gradient counts as there once its part of the network is done: until then it is one of the
/// temporaries of that part.
#[derive(Debug)]
pub(crate) struct TapeMeter {
    before: u64,
    gathered: AtomicU64,
    peak: AtomicU64,
}

impl TapeMeter {
    fn start() -> Self {
        alloc::reset_peak();
        let before = alloc::current_bytes();
        Self { before, gathered: AtomicU64::new(0), peak: AtomicU64::new(0) }
    }

    /// Hears that gradients of `bytes` in all are there.
    pub(crate) fn gathered(&self, bytes: u64) {
        let there = self.gathered.swap(bytes, Relaxed);
        let held = alloc::peak_bytes().saturating_sub(self.before);
        self.peak.fetch_max(held.saturating_sub(there), Relaxed);
        alloc::reset_peak();
    }

    fn peak_bytes(&self) -> u64 {
        self.peak.load(Relaxed)
    }
}

/// Reads the probes into [`Peaks`].
pub(crate) struct Probe {
    device: Device,
    driver: Option<Sampler>,
    pub(crate) peaks: Peaks,
}

impl Probe {
    /// Starts watching the device; what is in use by then counts as other processes'.
    pub(crate) fn new(device: &Device, driver: Option<&nvml::DeviceId>) -> Self {
        let (driver, peaks) = (driver.and_then(nvml::watch), Peaks::default());
        Self { device: device.clone(), driver, peaks }
    }

    /// Begins a new device peak: the warm-up's throw-away state is no part of training.
    pub(crate) fn forget_warm_up(&self) {
        if let Some(driver) = &self.driver {
            driver.reset();
        }
    }

    /// Bytes of live tensors and buffers now: the device pool's where it has one, else the host's.
    fn held(&self) -> u64 {
        self.pool().map_or_else(alloc::current_bytes, |pool| pool.in_use_bytes)
    }

    fn pool(&self) -> Option<PoolUsage> {
        let usage = self.device.memory_pool_usage()?;
        Some(PoolUsage { in_use_bytes: usage.bytes_in_use, reserved_bytes: usage.bytes_reserved })
    }

    /// The activation memory of `step`, whose gradients the meter hears of. Exact on the host, where
    /// nothing else may run meanwhile.
    pub(crate) fn tape<T>(&mut self, step: impl FnOnce(Arc<TapeMeter>) -> T) -> T {
        let meter = Arc::new(TapeMeter::start());
        let result = step(Arc::clone(&meter));
        if self.pool().is_none() {
            self.peaks.tape = meter.peak_bytes();
        }
        result
    }

    /// Begins a new stretch of training or evaluation.
    pub(crate) fn begin(&self) {
        alloc::reset_peak();
    }

    /// Ends a stretch of training.
    pub(crate) fn end_training(&mut self) {
        self.peaks.alloc = self.peaks.alloc.max(alloc::peak_bytes());
        self.sample();
    }

    /// Ends a stretch of evaluation.
    pub(crate) fn end_evaluation(&mut self) {
        let peak = alloc::peak_bytes();
        self.peaks.eval = self.peaks.eval.max(peak);
        self.peaks.alloc = self.peaks.alloc.max(peak);
        self.peaks.resident = self.held();
        self.sample();
    }

    /// Notes the highest figures so far.
    pub(crate) fn sample(&mut self) {
        let p = &mut self.peaks;
        p.rss = p.rss.max(rss::peak_bytes().unwrap_or(0));
        let vram = self.driver.as_ref().and_then(Sampler::peak).map_or(0, |peak| peak.bytes);
        p.vram = p.vram.max(vram);
        if let Some(pool) = self.pool() {
            self.peaks.pool_in_use = self.peaks.pool_in_use.max(pool.in_use_bytes);
            self.peaks.pool_reserved = self.peaks.pool_reserved.max(pool.reserved_bytes);
        }
    }
}
