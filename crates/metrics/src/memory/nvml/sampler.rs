//! A thread that follows the peak of device memory.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time between two readings; a device pool keeps what it reserves for longer.
const INTERVAL: Duration = Duration::from_millis(20);

/// What a device peak was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The driver's account of this process.
    Process,
    /// The whole device's use less its use when sampling began: other processes are in it.
    DeviceMinusBaseline,
}

/// The most device memory seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicePeak {
    /// Bytes.
    pub bytes: u64,
    /// What they were read from.
    pub source: Source,
}

/// One reading of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    /// Bytes that the driver accounts to this process, where it does.
    pub(super) process_bytes: Option<u64>,
    /// Bytes in use on the device by anyone.
    pub(super) device_bytes: u64,
}

/// Samples device memory on a thread of its own until dropped.
pub struct Sampler {
    tracker: Arc<Mutex<Tracker>>,
    /// Dropping it ends the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts with the first reading as baseline; `read` returns `None` when it gets no answer.
    pub(super) fn start(read: impl FnMut() -> Option<Reading> + Send + 'static) -> Self {
        let mut tracker =
            Tracker { read: Box::new(read), baseline: None, process: None, device: None };
        tracker.sample();
        let tracker = Arc::new(Mutex::new(tracker));
        let (stop, stopped) = mpsc::channel::<()>();
        let sampled = Arc::clone(&tracker);
        let thread = thread::Builder::new().name("device-memory".into()).spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                lock(&sampled).sample();
            }
        });
        // Without a thread, the peak is that of the moments at which it is asked for.
        Self { tracker, stop: Some(stop), thread: thread.ok() }
    }

    /// Takes a reading and returns the peak since the start or the last [`Sampler::reset`]; `None`
    /// when the driver has not answered since.
    pub fn peak(&self) -> Option<DevicePeak> {
        let mut tracker = lock(&self.tracker);
        tracker.sample();
        tracker.peak()
    }

    /// Begins a new peak at what is in use now. The baseline stays.
    pub fn reset(&self) {
        let mut tracker = lock(&self.tracker);
        (tracker.process, tracker.device) = (None, None);
        tracker.sample();
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the sampler costs a figure, not the run.
            let _ = thread.join();
        }
    }
}

/// The tracker is plain numbers, sound even where a panic interrupted a reading.
fn lock(tracker: &Mutex<Tracker>) -> MutexGuard<'_, Tracker> {
    tracker.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The peaks of both sources. Which one counts shows only later, since a process has no account
/// before it first uses the device.
struct Tracker {
    read: Box<dyn FnMut() -> Option<Reading> + Send>,
    baseline: Option<u64>,
    process: Option<u64>,
    device: Option<u64>,
}

impl Tracker {
    fn sample(&mut self) {
        let Some(reading) = (self.read)() else { return };
        self.baseline.get_or_insert(reading.device_bytes);
        self.device = self.device.max(Some(reading.device_bytes));
        self.process = self.process.max(reading.process_bytes);
    }

    fn peak(&self) -> Option<DevicePeak> {
        match self.process {
            Some(bytes) => Some(DevicePeak { bytes, source: Source::Process }),
            None => Some(DevicePeak {
                bytes: self.device?.saturating_sub(self.baseline?),
                source: Source::DeviceMinusBaseline,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

    use super::*;

    /// A sampler that reads whatever `readings` gives in turn, and its last for good.
    fn tracker(readings: &'static [Option<Reading>]) -> Tracker {
        let mut left = readings.iter();
        let mut last = None;
        let read = move || {
            last = left.next().copied().unwrap_or(last);
            last
        };
        Tracker { read: Box::new(read), baseline: None, process: None, device: None }
    }

    const fn reading(device_bytes: u64, process_bytes: Option<u64>) -> Option<Reading> {
        Some(Reading { process_bytes, device_bytes })
    }

    fn check(readings: &'static [Option<Reading>], expected: Option<(u64, Source)>) {
        let mut tracker = tracker(readings);
        readings.iter().for_each(|_| tracker.sample());
        assert_eq!(tracker.peak(), expected.map(|(bytes, source)| DevicePeak { bytes, source }));
    }

    #[test]
    fn the_process_counts_where_the_driver_accounts_for_it() {
        use Source::{DeviceMinusBaseline, Process};
        const ACCOUNTED: [Option<Reading>; 4] =
            [reading(100, None), reading(190, Some(70)), reading(150, Some(40)), None];
        check(&ACCOUNTED, Some((70, Process)));
        const SHARED: [Option<Reading>; 3] =
            [reading(100, None), reading(190, None), reading(150, None)];
        check(&SHARED, Some((90, DeviceMinusBaseline)));
        // Another process ended meanwhile: less than at the start is nothing, not a wrap-around.
        const FREED: [Option<Reading>; 1] = [reading(100, None)];
        check(&FREED, Some((0, DeviceMinusBaseline)));
        check(&[None], None);
    }

    #[test]
    fn the_thread_sees_a_peak_that_nobody_asked_for_and_ends_with_its_owner() {
        let used = Arc::new(AtomicU64::new(10));
        let reads = Arc::new(AtomicUsize::new(0));
        let sampler = {
            let (used, reads) = (Arc::clone(&used), Arc::clone(&reads));
            Sampler::start(move || {
                reads.fetch_add(1, SeqCst);
                reading(used.load(SeqCst), None)
            })
        };
        let wait_for_a_read = || {
            let before = reads.load(SeqCst);
            // Two more, as one may have loaded the old value already; 10 s for a busy machine.
            let seen = (0..10_000).any(|_| {
                thread::sleep(Duration::from_millis(1));
                reads.load(SeqCst) >= before + 2
            });
            assert!(seen, "the thread takes no readings");
        };
        used.store(500, SeqCst);
        wait_for_a_read();
        used.store(30, SeqCst);
        wait_for_a_read();
        let peak = |bytes| Some(DevicePeak { bytes, source: Source::DeviceMinusBaseline });
        assert_eq!(sampler.peak(), peak(490));
        sampler.reset();
        assert_eq!(sampler.peak(), peak(20));

        drop(sampler);
        // The thread held the second handle.
        assert_eq!(Arc::strong_count(&used), 1);
    }
}
