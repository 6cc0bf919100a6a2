//! Places where a test steps into a run: to hold it up and see on which clocks the time lands, or to
//! stop it there. The program as it is built for use has nothing of it: there, a place is an empty
//! function.

/// Where a test can step in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where the loop waits for a batch.
    Loader,
    /// Within a step.
    Step,
    /// Where a split is embedded and ranked.
    Evaluation,
    /// Where a checkpoint is written.
    Checkpoint,
}

/// Passes a place.
#[cfg(not(test))]
pub(crate) fn at(_: Place) {}

#[cfg(test)]
pub(crate) use armed::{alone, arm, at};

#[cfg(test)]
mod armed {
    use super::Place;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    type Action = Box<dyn FnOnce() + Send>;

    static ARMED: Mutex<Option<(Place, Action)>> = Mutex::new(None);
    static ALONE: Mutex<()> = Mutex::new(());

    /// Keeps other tests that step in from running meanwhile.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next run to pass `place` does `action` there, once.
    pub(crate) fn arm(place: Place, action: impl FnOnce() + Send + 'static) {
        *ARMED.lock().unwrap_or_else(PoisonError::into_inner) = Some((place, Box::new(action)));
    }

    pub(crate) fn at(place: Place) {
        let mut armed = ARMED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, action)) = armed.take_if(|(armed, _)| *armed == place) {
            drop(armed);
            action();
        }
    }
}
