//! Sharing out a time limit among cases of which the first may have kernels to compile.

use std::time::{Duration, Instant};

/// What is left of a time limit; without one everything is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    end: Option<Instant>,
}

/// Of a side's time, the part after which no further piece of work is begun: the rest is for the
/// piece that is under way and for the process to end.
const WORK_SHARE: f64 = 0.8;

/// Of a case's time, ours where the sides run one after the other: it compiles and tunes kernels.
const OUR_SHARE: f64 = 2.0 / 3.0;

impl Budget {
    /// A limit from now on.
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self { end: limit.map(|limit| Instant::now() + limit) }
    }

    /// The budget of the next of `num_left` cases: all that is left, less half of an even share for
    /// each of the later ones. `None` when there is nothing left.
    pub(super) fn of_case(self, now: Instant, num_left: usize) -> Option<Self> {
        let Some(end) = self.end else { return Some(self) };
        let left = end.saturating_duration_since(now);
        let n = num_left.max(1) as f64;
        let share = left.mul_f64((n + 1.0) / (2.0 * n));
        (share > Duration::from_secs(1)).then(|| Self { end: Some(now + share) })
    }

    /// The part of ours of a case, when the other side follows.
    pub(super) fn of_first_side(self, now: Instant) -> Self {
        let part = |end: Instant| now + end.saturating_duration_since(now).mul_f64(OUR_SHARE);
        Self { end: self.end.map(part) }
    }

    /// When a side is killed.
    pub(super) fn deadline(self) -> Option<Instant> {
        self.end
    }

    /// When no further piece of work is begun.
    pub(super) fn last_call(self, now: Instant) -> Option<Instant> {
        self.end.map(|end| now + end.saturating_duration_since(now).mul_f64(WORK_SHARE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_cases_keep_half_of_an_even_share() {
        let now = Instant::now();
        let limit = |seconds| Budget { end: Some(now + Duration::from_secs(seconds)) };
        let seconds = |budget: Budget| budget.deadline().unwrap().duration_since(now).as_secs_f64();
        let check = |left: u64, num_left: usize, expected: f64| {
            let case = limit(left).of_case(now, num_left).unwrap();
            assert!((seconds(case) - expected).abs() < 1e-6, "{}", seconds(case));
        };
        check(400, 10, 220.0); // 400 less nine times 20
        check(400, 1, 400.0);
        check(60, 2, 45.0);
        assert!(limit(0).of_case(now, 3).is_none());
        let case = limit(90);
        assert!((seconds(case.of_first_side(now)) - 60.0).abs() < 1e-6);
        assert_eq!(case.last_call(now), Some(now + Duration::from_secs(72)));
    }

    #[test]
    fn without_a_limit_nothing_ends() {
        let budget = Budget::new(None).of_case(Instant::now(), 8).unwrap();
        let first = budget.of_first_side(Instant::now());
        assert_eq!((first.deadline(), first.last_call(Instant::now())), (None, None));
    }
}
