//! How far a run is, on standard output: a dashboard for a person at a terminal, a line every so
//! often and per evaluation for a log.
//!
//! burn-train's own dashboard is not used: it takes the terminal into raw mode, where Ctrl-C no longer
//! is a signal, and ends a run from its menu by a panic; here a stopped run finishes its step and saves.

mod dashboard;
mod spark;

use crate::records::{EvalRecord, Record, StepRecord};
use dashboard::Dashboard;
use indicatif::HumanDuration;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use tbps_metrics::chrono::Elapsed;

/// How often a line says how far the run is.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// The sizes of a run that figures are relative to.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    /// Such as `fp32-ema, seed 0, flex`.
    pub(crate) title: String,
    pub(crate) total_steps: u64,
    pub(crate) epochs: usize,
    pub(crate) batch_size: usize,
}

/// Shows the records of a run.
pub(crate) struct Progress {
    extent: Extent,
    /// Where this attempt began: steps done, and the clocks.
    from: (u64, Elapsed),
    view: View,
}

enum View {
    Dashboard(Box<Dashboard>),
    Lines { last: Instant },
}

impl Progress {
    /// A run that goes on after `step`, when the clocks show `elapsed`.
    pub(crate) fn new(extent: Extent, step: u64, elapsed: Elapsed) -> Self {
        let view = match std::io::stdout().is_terminal() {
            true => View::Dashboard(Box::new(Dashboard::new(&extent, step))),
            false => View::Lines { last: Instant::now() },
        };
        Self { extent, from: (step, elapsed), view }
    }

    pub(crate) fn show(&mut self, record: &Record) {
        let pace = Pace::new(&self.extent, self.from, record);
        match (&mut self.view, record) {
            (View::Dashboard(board), Record::Step(step)) => board.step(&self.extent, step, &pace),
            (View::Dashboard(board), Record::Eval(eval)) => board.evaluation(eval),
            (View::Lines { last }, Record::Step(step)) if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                print(&step_line(&self.extent, step, &pace));
            }
            (View::Lines { .. }, Record::Step(_)) => {}
            (View::Lines { .. }, Record::Eval(eval)) => print(&evaluation_line(eval)),
        }
    }
}

/// Progress is not worth stopping a training for.
fn print(line: &str) {
    drop(crate::print(&format!("{line}\n")));
}

/// How fast this attempt goes.
struct Pace {
    pairs_per_s: f64,
    /// Until the last step, evaluations and checkpoints included.
    left: Duration,
}

impl Pace {
    fn new(extent: &Extent, (from, began): (u64, Elapsed), record: &Record) -> Self {
        let (step, now) = match record {
            Record::Step(record) => (record.step, record.clocks),
            Record::Eval(record) => (record.step, record.clocks),
        };
        let done = step.saturating_sub(from) as f64;
        let pairs = done * extent.batch_size as f64;
        let remaining = extent.total_steps.saturating_sub(step) as f64;
        let left_s = (now.e2e_s - began.e2e_s) * remaining / done.max(1.0);
        Self {
            pairs_per_s: pairs / (now.train_s - began.train_s).max(f64::MIN_POSITIVE),
            left: Duration::try_from_secs_f64(left_s).unwrap_or(Duration::MAX),
        }
    }

    fn left_in_words(&self) -> String {
        format!("about {} left", HumanDuration(self.left))
    }
}

/// Such as `step 129/774, epoch 2/6: loss 3.2145, lr 1.0e-4, 409 pairs/s, about 3 minutes left`.
fn step_line(extent: &Extent, record: &StepRecord, pace: &Pace) -> String {
    let skipped = if record.skipped { " (skipped)" } else { "" };
    format!(
        "step {}/{}, epoch {}/{}: loss {:.4}{skipped}, lr {:.1e}, {:.0} pairs/s, {}",
        record.step,
        extent.total_steps,
        record.epoch,
        extent.epochs,
        record.loss,
        record.lr,
        pace.pairs_per_s,
        pace.left_in_words()
    )
}

/// Such as `step 129, epoch 1: val R@1 12.34 %, the best so far`.
fn evaluation_line(record: &EvalRecord) -> String {
    let best = if record.best { ", the best so far" } else { "" };
    let (step, epoch, r1) = (record.step, record.epoch.0, record.val.r1);
    let epoch = format!("{epoch:.2}");
    let epoch = epoch.trim_end_matches('0').trim_end_matches('.');
    format!("step {step}, epoch {epoch}: val R@1 {r1:.2} %{best}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Epochs, Percent, StepParts};

    const PERCENT: Percent = Percent { r1: 12.345, r5: 0.0, r10: 0.0, map: 0.0, minp: 0.0 };

    fn step(step: u64, train_s: f64, e2e_s: f64) -> StepRecord {
        let clocks = Elapsed { train_s, e2e_s, ..Elapsed::default() };
        let (epoch, loss, lr) = (2, 3.21449, 1e-4);
        let (grad_norm, scale, skipped) = (Some(1.0), None, false);
        let parts = StepParts { wait_s: 0.0, compute_s: 0.0, update_s: 0.0 };
        StepRecord { step, epoch, loss, lr, grad_norm, scale, skipped, parts, clocks }
    }

    #[test]
    fn a_line_counts_this_attempts_pace() {
        let extent = Extent { title: String::new(), total_steps: 774, epochs: 6, batch_size: 64 };
        let began = Elapsed { train_s: 1000.0, e2e_s: 2000.0, ..Elapsed::default() };
        let record = step(129, 1010.0, 2020.0);
        let pace = Pace::new(&extent, (29, began), &Record::Step(record));
        assert_eq!(
            step_line(&extent, &step(129, 1010.0, 2020.0), &pace),
            "step 129/774, epoch 2/6: loss 3.2145, lr 1.0e-4, 640 pairs/s, about 2 minutes left"
        );
    }

    #[test]
    fn an_evaluation_within_an_epoch_says_where() {
        let line = |epoch, best| {
            evaluation_line(&EvalRecord {
                step: 129,
                epoch: Epochs(epoch),
                val: PERCENT,
                val_raw: PERCENT,
                val_i2t: PERCENT,
                best,
                same_pid_pairs: 0,
                resident_bytes: 0,
                batch_hash: String::new(),
                clocks: Elapsed::default(),
            })
        };
        assert_eq!(line(1.0, true), "step 129, epoch 1: val R@1 12.35 %, the best so far");
        assert_eq!(line(1.3333, false), "step 129, epoch 1.33: val R@1 12.35 %");
    }
}
