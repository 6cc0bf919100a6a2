//! A stopwatch for the parts of a step. The protocol's clocks are elsewhere; this only says where
//! within a step the time goes.

use std::time::Instant;

/// Measures from one split to the next.
pub(crate) struct Lap {
    since: Instant,
}

impl Lap {
    pub(crate) fn start() -> Self {
        Self { since: Instant::now() }
    }

    /// Seconds since the last split, or since the start.
    pub(crate) fn split(&mut self) -> f64 {
        let now = Instant::now();
        let seconds = now.duration_since(self.since).as_secs_f64();
        self.since = now;
        seconds
    }
}
