//! The run on a terminal, in place: curves, the latest figures, and a bar with the time left.

use super::spark::Spark;
use super::{Extent, Pace};
use crate::records::{EvalRecord, StepRecord};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Half the width of a curve in characters.
const CURVE_WIDTH: usize = 20;

const ROW: &str = "{prefix:>9}  {msg}";
const BAR: &str = "[{elapsed_precise}] {wide_bar} {pos}/{len} steps  {msg}";

pub(super) struct Dashboard {
    title: ProgressBar,
    loss: (ProgressBar, Spark),
    r1: (ProgressBar, Spark),
    /// The highest R@1 and the epochs at which it was.
    best: Option<(f64, f64)>,
    skipped: u64,
    figures: ProgressBar,
    bar: ProgressBar,
}

impl Dashboard {
    pub(super) fn new(extent: &Extent, step: u64) -> Self {
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let style = |template| {
            ProgressStyle::with_template(template)
                .expect("the templates above are valid, as the test shows")
        };
        let row = |name: &str, text: &str| {
            let row = screen.add(ProgressBar::new_spinner().with_style(style(ROW)));
            row.set_prefix(name.to_owned());
            row.set_message(text.to_owned());
            row
        };
        let title = row("run", &extent.title);
        let loss = (row("loss", ""), Spark::new(CURVE_WIDTH));
        let r1 = (row("val R@1", "not evaluated yet"), Spark::new(CURVE_WIDTH));
        let figures = row("step", "warming up");
        let bar = screen.add(ProgressBar::new(extent.total_steps).with_style(style(BAR)));
        bar.set_position(step);
        // The clock goes on while the run evaluates.
        bar.enable_steady_tick(Duration::from_secs(1));
        Self { title, loss, r1, best: None, skipped: 0, figures, bar }
    }

    pub(super) fn step(&mut self, extent: &Extent, record: &StepRecord, pace: &Pace) {
        let (row, curve) = &mut self.loss;
        curve.push(record.loss.into());
        row.set_message(format!("{:<10.4} {}", record.loss, curve.line()));
        self.skipped += u64::from(record.skipped);
        let norm = record.grad_norm.map_or_else(|| "overflow".into(), |norm| format!("{norm:.3}"));
        let scale = record.scale.map_or_else(String::new, |scale| {
            format!(", loss scale {scale}, {} steps skipped", self.skipped)
        });
        self.figures.set_message(format!(
            "{:.0} pairs/s, lr {:.1e}, gradient norm {norm}{scale}",
            pace.pairs_per_s, record.lr
        ));
        self.bar.set_position(record.step);
        let (epoch, epochs) = (record.epoch, extent.epochs);
        self.bar.set_message(format!("epoch {epoch}/{epochs}  {}", pace.left_in_words()));
    }

    pub(super) fn evaluation(&mut self, record: &EvalRecord) {
        let r1 = record.val.r1;
        if record.best {
            self.best = Some((r1, record.epoch.0));
        }
        let (row, curve) = &mut self.r1;
        curve.push(r1);
        let best = self.best.map_or_else(String::new, |(r1, epoch)| {
            format!("  best {r1:.2} % at epoch {}", (epoch * 100.0).round() / 100.0)
        });
        row.set_message(format!("{:<10} {}{best}", format!("{r1:.2} %"), curve.line()));
    }
}

/// Leaves the last figures on the screen, and the cursor below them.
impl Drop for Dashboard {
    fn drop(&mut self) {
        for row in [&self.title, &self.loss.0, &self.r1.0, &self.figures, &self.bar] {
            row.abandon();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for template in [ROW, BAR] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
