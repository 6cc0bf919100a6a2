//! Being asked to stop: by Ctrl-C, by SIGTERM from a scheduler, or by the end of `--max-time`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit status of a second Ctrl-C, which doesn't wait for the running cell.
const INTERRUPTED: i32 = 130;

/// Watches for the request to stop.
pub(crate) struct Stop {
    signalled: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stop {
    /// Takes the signals over: the first one is a request, the second ends this process at once,
    /// whereupon the running child sees its standard input close.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub(crate) fn watch(max_time: Option<Duration>) -> Result<Self> {
        let signalled = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the shutdown looks at the flag before this delivery of the signal sets
            // it.
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&signalled))
                .and_then(|_| flag::register(signal, Arc::clone(&signalled)))
                .context("signals cannot be handled")?;
        }
        // A time beyond what the clock can hold is no limit.
        let deadline = max_time.and_then(|time| Instant::now().checked_add(time));
        Ok(Self { signalled, deadline })
    }

    /// Why to stop, or `None` to go on.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        if self.signalled.load(Ordering::Relaxed) {
            return Some("interrupted");
        }
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        over.then_some("the time given with --max-time is over")
    }
}
