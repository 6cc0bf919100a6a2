//! The display: bars for a person who watches, plain lines for a log.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::meter::{Meter, spell};

/// How often a plain line says how far the running cell is.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// Shows every training of the matrix and the sum of their steps.
pub(crate) struct Board {
    names: Vec<String>,
    meter: Meter,
    began: Instant,
    row_began: Instant,
    view: View,
}

enum View {
    Bars { screen: MultiProgress, rows: Vec<ProgressBar>, overall: ProgressBar },
    Lines { last: Instant },
}

impl Board {
    /// A board with every training waiting; bars when standard error is a terminal.
    pub(crate) fn new(names: Vec<String>) -> Self {
        let now = Instant::now();
        let view = if stderr().is_terminal() { bars(&names) } else { View::Lines { last: now } };
        Self { meter: Meter::new(names.len()), names, began: now, row_began: now, view }
    }

    /// A training that an earlier call finished.
    pub(crate) fn skip(&mut self, row: usize, total_steps: Option<u64>) {
        self.meter.set_steps_per_cell(total_steps);
        self.meter.settle(row);
        self.say(row, "done before");
    }

    /// A training starts; `what` says how, such as "resumed".
    pub(crate) fn start(&mut self, row: usize, what: &str, initial_step: u64) {
        self.row_began = Instant::now();
        self.meter.begin(row, initial_step);
        self.say(row, what);
    }

    /// How far the running training is; `None` where it isn't known yet.
    pub(crate) fn update(&mut self, row: usize, step: Option<u64>, total_steps: Option<u64>) {
        self.meter.set_steps_per_cell(total_steps);
        let Some(step) = step else { return };
        self.meter.advance(row, step);
        let total =
            self.meter.steps_per_cell().map_or_else(|| "?".into(), |total| total.to_string());
        let left = self.meter.time_left(self.began.elapsed());
        let left = left.map_or_else(String::new, |left| format!("about {} left", spell(left)));
        match &mut self.view {
            View::Bars { rows, overall, .. } => {
                rows[row].set_message(format!("running  step {step}/{total}"));
                overall.set_length(self.meter.length().unwrap_or(0));
                overall.set_position(self.meter.position());
                overall.set_message(left);
            }
            View::Lines { last } if last.elapsed() >= LINE_EVERY => {
                *last = Instant::now();
                let percent = 100 * self.meter.position() / self.meter.length().unwrap_or(1).max(1);
                self.say(row, &format!("step {step}/{total}; matrix {percent} %, {left}"));
            }
            View::Lines { .. } => {}
        }
    }

    /// A training has ended with this result.
    pub(crate) fn end(&mut self, row: usize, result: &str) {
        self.meter.settle(row);
        let wall = spell(self.row_began.elapsed());
        self.say(row, &format!("{result}  in {wall}"));
        if let View::Bars { overall, .. } = &self.view {
            overall.set_position(self.meter.position());
        }
    }

    /// A sentence that stays on the screen.
    pub(crate) fn note(&self, text: &str) {
        match &self.view {
            // A terminal that is gone cannot be told anything.
            View::Bars { screen, .. } => drop(screen.println(text)),
            View::Lines { .. } => eprintln!("{text}"),
        }
    }

    fn say(&self, row: usize, text: &str) {
        match &self.view {
            View::Bars { rows, .. } => rows[row].set_message(text.to_string()),
            View::Lines { .. } => {
                eprintln!("[{}/{}] {}: {text}", row + 1, self.names.len(), self.names[row]);
            }
        }
    }
}

/// Leaves the display as it is, and the cursor below it.
impl Drop for Board {
    fn drop(&mut self) {
        if let View::Bars { rows, overall, .. } = &self.view {
            rows.iter().for_each(ProgressBar::abandon);
            overall.abandon();
        }
    }
}

fn bars(names: &[String]) -> View {
    let style = |template| {
        ProgressStyle::with_template(template)
            .expect("the templates below are valid, as the test shows")
    };
    let screen = MultiProgress::new();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let row = |name: &String| {
        let bar = screen.add(ProgressBar::new_spinner().with_style(style(ROW)));
        bar.set_prefix(format!("{name:width$}"));
        bar.set_message("waiting");
        bar
    };
    let rows = names.iter().map(row).collect();
    let overall = screen.add(ProgressBar::new(0).with_style(style(OVERALL)));
    // The clock goes on while a cell evaluates or compiles.
    overall.enable_steady_tick(Duration::from_secs(1));
    View::Bars { screen, rows, overall }
}

const ROW: &str = "{prefix}  {msg}";
const OVERALL: &str = "[{elapsed_precise}] {wide_bar} {pos}/{len} steps  {msg}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for template in [ROW, OVERALL] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
