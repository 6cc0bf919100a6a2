//! What is read from summary.json: one table of figure keys, where they stand, and their unit.
//! The tables, report.json and report.csv are all drawn from these keys.

use serde_json::Value;

use super::cell::CellId;
use super::figure::{Absent, Figure, Measured, Source, Unit};
use super::load::{Run, SUMMARY, Status};
use super::notation::Notation;

/// One figure that a run's summary may hold.
pub(crate) struct Quantity {
    /// The figure's key in report.json and its column in report.csv.
    pub(crate) key: &'static str,
    /// Where it stands in summary.json; dots go into tables.
    path: &'static str,
    pub(crate) unit: Unit,
    /// Which cells can have it.
    of: fn(CellId) -> bool,
}

const fn any(key: &'static str, path: &'static str, unit: Unit) -> Quantity {
    Quantity { key, path, unit, of: |_| true }
}

/// Every figure read from a summary, in the order of report.csv.
pub(crate) const QUANTITIES: &[Quantity] = &[
    any("val_r1", "val.r1", Unit::Percent),
    any("val_r5", "val.r5", Unit::Percent),
    any("val_r10", "val.r10", Unit::Percent),
    any("val_map", "val.map", Unit::Percent),
    any("val_minp", "val.minp", Unit::Percent),
    any("val_raw_r1", "val_raw.r1", Unit::Percent),
    any("test_r1", "test.r1", Unit::Percent),
    any("test_r5", "test.r5", Unit::Percent),
    any("test_r10", "test.r10", Unit::Percent),
    any("test_map", "test.map", Unit::Percent),
    any("test_minp", "test.minp", Unit::Percent),
    any("best_epoch", "best_epoch", Unit::Count),
    any("epochs", "epochs", Unit::Count),
    any("train_s_to_best", "train_s_to_best", Unit::Seconds),
    any("e2e_s_to_best", "e2e_s_to_best", Unit::Seconds),
    any("train_s", "train_s", Unit::Seconds),
    any("e2e_s", "e2e_s", Unit::Seconds),
    any("eval_s", "eval_s", Unit::Seconds),
    any("checkpoint_s", "checkpoint_s", Unit::Seconds),
    any("warmup_s", "warmup_s", Unit::Seconds),
    any("samples_per_s", "samples_per_s", Unit::SamplesPerSecond),
    any("peak_vram_gib", "peak_vram_gib", Unit::Gib),
    any("peak_pool_in_use_gib", "peak_pool_in_use_gib", Unit::Gib),
    any("peak_pool_reserved_gib", "peak_pool_reserved_gib", Unit::Gib),
    any("peak_host_gib", "peak_host_gib", Unit::Gib),
    any("peak_alloc_gib", "peak_alloc_gib", Unit::Gib),
    any("resident_alloc_gib", "resident_alloc_gib", Unit::Gib),
    any("tape_gib", "tape_gib", Unit::Gib),
    any("peak_eval_gib", "peak_eval_gib", Unit::Gib),
    any("steps", "steps", Unit::Count),
    any("executed_steps", "executed_steps", Unit::Count),
    any("skipped_steps", "skipped_steps", Unit::Count),
    Quantity { key: "final_scale", path: "final_scale", unit: Unit::Count, of: |cell| cell.amp },
];

impl Quantity {
    /// The figure over the finished runs of one cell: its median and range, or why there is none.
    /// A figure that only some of the seeds recorded is not a figure of the cell.
    pub(crate) fn figure(&self, cell: CellId, runs: &[&Run], notation: Notation) -> Figure {
        if !(self.of)(cell) {
            return Figure::absent(Absent::NotApplicable);
        }
        over_done(runs, |done| {
            let value = |run: &&Run| {
                let value = lookup(&run.summary, self.path)?.as_f64()?;
                let source = Source::record(&run.id, SUMMARY, self.path);
                Some(Measured::recorded(run.seed, value, source))
            };
            let id = format!("{}:{}", cell.name(), self.key);
            match done.iter().map(value).collect::<Option<Vec<_>>>() {
                Some(values) => Figure::median(notation, id, self.unit, &values),
                None => Figure::absent(Absent::NotMeasured),
            }
        })
    }
}

/// `figure` of the runs that are done, or the status that stands in the way when none is.
pub(crate) fn over_done(runs: &[&Run], figure: impl FnOnce(&[&Run]) -> Figure) -> Figure {
    let done: Vec<&Run> = runs.iter().copied().filter(|run| run.status == Status::Done).collect();
    match (done.is_empty(), runs.first()) {
        (false, _) => figure(&done),
        (true, Some(run)) => Figure::absent(Absent::NotDone(run.status)),
        (true, None) => Figure::absent(Absent::NotDone(Status::Missing)),
    }
}

/// The value at a dotted path.
pub(crate) fn lookup<'a>(json: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(json, |json, key| json.get(key))
}

/// The unit of a figure, read or derived.
pub(crate) fn unit_of(key: &str) -> Unit {
    match QUANTITIES.iter().find(|quantity| quantity.key == key) {
        Some(quantity) => quantity.unit,
        None if key.ends_with("_less") => Unit::PercentLess,
        None if key.ends_with("_more") => Unit::PercentMore,
        None if key.ends_with("_ms") => Unit::Milliseconds,
        None if key.ends_with("_s") => Unit::Seconds,
        None => Unit::Gib, // `peak_memory`, the only other derived figure
    }
}
