//! Places where a test holds a run up, to see on which clocks the time lands. The program as it is
//! built for use has nothing of it: there, a place is an empty function.

/// Where a run can be held up.
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
pub(crate) use armed::{HOLD, arm, at};

#[cfg(test)]
mod armed {
    use super::Place;
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    /// How long a run is held up.
    pub(crate) const HOLD: Duration = Duration::from_secs(2);

    static ARMED: Mutex<Option<Place>> = Mutex::new(None);

    /// The next run to pass `place` is held up there, once.
    pub(crate) fn arm(place: Place) {
        *ARMED.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
    }

    pub(crate) fn at(place: Place) {
        let mut armed = ARMED.lock().unwrap_or_else(PoisonError::into_inner);
        if armed.take_if(|it| *it == place).is_some() {
            drop(armed);
            std::thread::sleep(HOLD);
        }
    }
}
