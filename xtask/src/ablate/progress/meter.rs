//! Counting steps over the whole matrix, and the time that is left.

use std::time::Duration;

/// One training's part in the count.
#[derive(Clone, Copy, Default)]
struct Row {
    /// Steps that an earlier call had done.
    initial: u64,
    step: u64,
    /// Done, skipped or failed: no further step will come.
    settled: bool,
}

/// Steps of all trainings. Every cell has the same number of steps, known from the first
/// `run.json`.
pub(crate) struct Meter {
    rows: Vec<Row>,
    steps_per_cell: Option<u64>,
}

impl Meter {
    pub(crate) fn new(num_cells: usize) -> Self {
        Self { rows: vec![Row::default(); num_cells], steps_per_cell: None }
    }

    /// Takes the total of any one cell as that of all.
    pub(crate) fn set_steps_per_cell(&mut self, total: Option<u64>) {
        self.steps_per_cell = total.or(self.steps_per_cell);
    }

    pub(crate) fn steps_per_cell(&self) -> Option<u64> {
        self.steps_per_cell
    }

    /// A training goes on from a step that an earlier call reached.
    pub(crate) fn begin(&mut self, row: usize, initial: u64) {
        self.rows[row] = Row { initial, step: initial, settled: false };
    }

    pub(crate) fn advance(&mut self, row: usize, step: u64) {
        let row = &mut self.rows[row];
        row.step = step;
        // A resumed training may go back behind the last line it wrote, to its checkpoint.
        row.initial = row.initial.min(step);
    }

    pub(crate) fn settle(&mut self, row: usize) {
        self.rows[row].settled = true;
    }

    /// Steps of the whole matrix, once known.
    pub(crate) fn length(&self) -> Option<u64> {
        Some(self.steps_per_cell? * self.rows.len() as u64)
    }

    /// Steps that need no more work: those done, and all steps of settled trainings.
    pub(crate) fn position(&self) -> u64 {
        self.length().unwrap_or(0).saturating_sub(self.remaining())
    }

    /// The time left, if any, when the rest goes at this call's average pace; evaluations and
    /// starts are in the average.
    pub(crate) fn time_left(&self, elapsed: Duration) -> Option<Duration> {
        let done: u64 = self.rows.iter().map(|row| row.step - row.initial).sum();
        let remaining = self.remaining();
        (done > 0 && remaining > 0).then(|| elapsed.mul_f64(remaining as f64 / done as f64))
    }

    fn remaining(&self) -> u64 {
        let total = self.steps_per_cell.unwrap_or(0);
        let open = self.rows.iter().filter(|row| !row.settled);
        open.map(|row| total.saturating_sub(row.step)).sum()
    }
}

/// A duration as a person says it.
pub(crate) fn spell(time: Duration) -> String {
    let s = time.as_secs();
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, min, s) => format!("{min} min {s:02} s"),
        (h, min, _) => format!("{h} h {min:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_counts_this_calls_steps_only() {
        let mut meter = Meter::new(3);
        assert_eq!((meter.length(), meter.position()), (None, 0));
        meter.set_steps_per_cell(Some(100));
        meter.settle(0); // skipped: an earlier call trained it
        meter.begin(1, 60);
        assert_eq!((meter.length(), meter.position()), (Some(300), 160));
        assert_eq!(meter.time_left(Duration::from_secs(1)), None, "nothing done yet");

        // 20 steps in 10 s; 20 + 100 are left.
        meter.advance(1, 80);
        assert_eq!(meter.position(), 180);
        assert_eq!(meter.time_left(Duration::from_secs(10)), Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_failed_training_leaves_no_work_and_adds_no_pace() {
        let mut meter = Meter::new(2);
        meter.set_steps_per_cell(Some(100));
        meter.advance(0, 50);
        meter.settle(0);
        assert_eq!(meter.position(), 100);
        assert_eq!(meter.time_left(Duration::from_secs(5)), Some(Duration::from_secs(10)));
    }

    #[test]
    fn a_resume_that_goes_back_does_not_underflow() {
        let mut meter = Meter::new(1);
        meter.set_steps_per_cell(Some(10));
        meter.begin(0, 8);
        meter.advance(0, 6);
        meter.advance(0, 7);
        assert_eq!(meter.position(), 7);
        assert_eq!(meter.time_left(Duration::from_secs(2)), Some(Duration::from_secs(6)));
    }

    #[test]
    fn durations_are_spelled_with_their_two_largest_units() {
        let spelled = [42, 185, 7620].map(|s| spell(Duration::from_secs(s)));
        assert_eq!(spelled, ["42 s", "3 min 05 s", "2 h 07 min"]);
    }
}
