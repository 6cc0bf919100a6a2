//! The clocks of the protocol: training, evaluation, checkpoint, warm-up and end to end.
//!
//! A [`Chrono`] is always in one [`Phase`] or in none. Time in no phase is on no clock but the
//! end-to-end one, which has everything. A clock is only as honest as its edges: work that a device
//! does asynchronously has to be waited for before the phase is left.
//!
//! ```
//! use tbps_metrics::chrono::{Chrono, Monotonic, Phase};
//!
//! let mut chrono = Chrono::new(Monotonic::start());
//! chrono.enter(Phase::Train);
//! let answer = chrono.measure(Phase::Eval, || 6 * 7); // off the train clock, then back on it
//! chrono.leave();
//! assert_eq!(answer, 42);
//! assert!(chrono.e2e_s() >= chrono.train_s() + chrono.eval_s());
//! ```

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A source of time.
pub trait Clock {
    /// Time since an origin that is fixed for the clock's life; never less than before.
    fn now(&self) -> Duration;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for Box<C> {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// The operating system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Monotonic {
    origin: Instant,
}

impl Monotonic {
    /// A clock that reads zero now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// What the time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Data wait, forward, backward, optimizer, EMA (its swap too) and logging.
    Train,
    /// Features and scores of a split.
    Eval,
    /// Writing and reading checkpoints.
    Checkpoint,
    /// Kernel compilation and autotuning on throw-away state.
    Warmup,
}

/// Seconds on every clock, as saved with a checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elapsed {
    /// Seconds in [`Phase::Train`].
    pub train_s: f64,
    /// Seconds in [`Phase::Eval`].
    pub eval_s: f64,
    /// Seconds in [`Phase::Checkpoint`].
    pub checkpoint_s: f64,
    /// Seconds in [`Phase::Warmup`].
    pub warmup_s: f64,
    /// Seconds end to end: all phases, and what belongs to none.
    pub e2e_s: f64,
}

impl Elapsed {
    fn of(&mut self, phase: Phase) -> &mut f64 {
        match phase {
            Phase::Train => &mut self.train_s,
            Phase::Eval => &mut self.eval_s,
            Phase::Checkpoint => &mut self.checkpoint_s,
            Phase::Warmup => &mut self.warmup_s,
        }
    }
}

/// The stopwatch of a run. Readings include the span that is still running.
#[derive(Debug, Clone)]
pub struct Chrono<C> {
    clock: C,
    /// What had been measured when the running span began.
    elapsed: Elapsed,
    since: Duration,
    phase: Option<Phase>,
}

impl<C: Clock> Chrono<C> {
    /// Starts the end-to-end clock, in no phase.
    pub fn new(clock: C) -> Self {
        Self::resume(clock, Elapsed::default())
    }

    /// Starts from the times saved before an interruption; the time between does not count.
    pub fn resume(clock: C, saved: Elapsed) -> Self {
        let since = clock.now();
        Self { clock, elapsed: saved, since, phase: None }
    }

    /// Ends the running span, begins one of `phase`, and returns the phase that was left.
    pub fn enter(&mut self, phase: Phase) -> Option<Phase> {
        self.switch(Some(phase))
    }

    /// Ends the running span; from here on only the end-to-end clock runs.
    pub fn leave(&mut self) -> Option<Phase> {
        self.switch(None)
    }

    /// Ends the running span and begins one of `phase`, or of none; returns what was left, so that
    /// a later `switch` can go back to it.
    pub fn switch(&mut self, phase: Option<Phase>) -> Option<Phase> {
        let now = self.clock.now();
        self.elapsed = self.elapsed_at(now);
        self.since = now;
        std::mem::replace(&mut self.phase, phase)
    }

    /// Runs `work` on the clock of `phase` and goes back to the phase before.
    pub fn measure<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T {
        let before = self.enter(phase);
        let result = work();
        self.switch(before);
        result
    }

    /// The phase that is running.
    pub fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// All clocks now: what a checkpoint saves and [`Chrono::resume`] takes.
    pub fn elapsed(&self) -> Elapsed {
        self.elapsed_at(self.clock.now())
    }

    /// Seconds of training.
    pub fn train_s(&self) -> f64 {
        self.elapsed().train_s
    }

    /// Seconds of evaluation.
    pub fn eval_s(&self) -> f64 {
        self.elapsed().eval_s
    }

    /// Seconds of reading and writing checkpoints.
    pub fn checkpoint_s(&self) -> f64 {
        self.elapsed().checkpoint_s
    }

    /// Seconds of warm-up.
    pub fn warmup_s(&self) -> f64 {
        self.elapsed().warmup_s
    }

    /// Seconds end to end.
    pub fn e2e_s(&self) -> f64 {
        self.elapsed().e2e_s
    }

    fn elapsed_at(&self, now: Duration) -> Elapsed {
        let span_s = now.saturating_sub(self.since).as_secs_f64();
        let mut elapsed = self.elapsed;
        elapsed.e2e_s += span_s;
        if let Some(phase) = self.phase {
            *elapsed.of(phase) += span_s;
        }
        elapsed
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that stands still until it is told to go on.
    #[derive(Default)]
    struct Fake(Cell<u64>);

    impl Fake {
        fn pass(&self, seconds: u64) {
            self.0.set(self.0.get() + seconds);
        }
    }

    impl Clock for Fake {
        fn now(&self) -> Duration {
            Duration::from_secs(self.0.get())
        }
    }

    #[test]
    fn each_phase_has_its_own_clock_and_end_to_end_has_everything() {
        let clock = Fake::default();
        let mut chrono = Chrono::new(&clock);
        clock.pass(1); // in no phase
        assert_eq!(chrono.enter(Phase::Warmup), None);
        clock.pass(2);
        assert_eq!(chrono.enter(Phase::Train), Some(Phase::Warmup));
        clock.pass(4);
        chrono.measure(Phase::Eval, || clock.pass(8));
        assert_eq!(chrono.phase(), Some(Phase::Train));
        chrono.measure(Phase::Checkpoint, || clock.pass(16));
        clock.pass(32);
        let running = chrono.elapsed();
        assert_eq!(chrono.leave(), Some(Phase::Train));
        assert_eq!(chrono.elapsed(), running);
        clock.pass(64);
        assert_eq!(
            chrono.elapsed(),
            Elapsed { train_s: 36.0, eval_s: 8.0, checkpoint_s: 16.0, warmup_s: 2.0, e2e_s: 127.0 }
        );
        assert_eq!(chrono.train_s() + chrono.eval_s() + chrono.checkpoint_s(), 60.0);
        assert_eq!((chrono.warmup_s(), chrono.e2e_s()), (2.0, 127.0));
    }

    #[test]
    fn time_before_an_interruption_counts_after_it() {
        let clock = Fake::default();
        let mut chrono = Chrono::new(&clock);
        chrono.enter(Phase::Train);
        clock.pass(10);
        let saved = serde_json::to_string(&chrono.elapsed()).unwrap();
        clock.pass(1_000); // lost with the crash, and while the machine was down

        let mut chrono = Chrono::resume(&clock, serde_json::from_str(&saved).unwrap());
        clock.pass(3);
        chrono.enter(Phase::Train);
        clock.pass(5);
        assert_eq!(chrono.train_s(), 15.0);
        assert_eq!(chrono.e2e_s(), 18.0);
    }

    #[test]
    fn a_clock_behind_a_pointer_is_a_clock() {
        let boxed: Box<dyn Clock> = Box::new(Fake(Cell::new(7)));
        let mut chrono = Chrono::new(boxed);
        chrono.enter(Phase::Train);
        assert_eq!(chrono.e2e_s(), 0.0);
    }

    #[test]
    fn the_monotonic_clock_goes_on() {
        let clock = Monotonic::start();
        let before = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(clock.now() - before >= Duration::from_millis(2));
    }
}
