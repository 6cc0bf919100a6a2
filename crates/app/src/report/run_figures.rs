//! Figures of a single run that no file states outright: how far it is, and where the time of its
//! steps and of the whole went.

use std::collections::BTreeMap;

use super::cell::CellId;
use super::figure::{Absent, Figure, Known, Measured, Source, Unit};
use super::load::{METRICS, PROVENANCE, Run, SUMMARY};
use super::notation::Notation;
use super::quantity::{over_done, unit_of};

/// By key.
pub(crate) type Figures = BTreeMap<&'static str, Figure>;

/// The parts of a step, in the order in which they happen, and what is left of it.
pub(crate) const STEP_PARTS: [&str; 4] =
    ["step_wait_ms", "step_compute_ms", "step_update_ms", "step_other_ms"];
/// Those that cells have too, as medians over their seeds.
pub(crate) const OF_CELLS: [&str; 6] =
    ["step_ms", "step_wait_ms", "step_compute_ms", "step_update_ms", "step_other_ms", "rest_s"];

/// The figures of one run.
pub(crate) fn of(run: &Run, notation: Notation) -> Figures {
    let mut figures = Figures::new();
    let mut add = |key: &'static str, value: Option<f64>, unit: Unit, source: Source| {
        let id = format!("{}:{key}", run.id);
        let known = value.map(|value| Known::new(notation, id, value, unit, source).into());
        figures.insert(key, known.unwrap_or(Figure::absent(Absent::NotMeasured)));
    };
    let record = |file, key: &str| Source::record(&run.id, file, key);
    let recorded = |file, key: &str| record(file, key).describe();

    let last_step = run.log.last_step.map(|step| step as f64);
    add("last_step", last_step, Unit::Count, record(METRICS, "step[last]"));
    let total_steps = run.provenance["total_steps"].as_f64();
    add("total_steps", total_steps, Unit::Count, record(PROVENANCE, "total_steps"));

    let summary = |key: &str| run.summary[key].as_f64();
    let step_ms = summary("train_s").zip(summary("steps").filter(|steps| *steps > 0.0));
    let step_ms = step_ms.map(|(train_s, steps)| 1000.0 * train_s / steps);
    let of = ["train_s", "steps"].map(|key| recorded(SUMMARY, key));
    add("step_ms", step_ms, Unit::Milliseconds, Source::formula("per_step_ms", of));
    let means = run.log.step_means;
    let parts = [
        ("step_wait_ms", "wait_s", means.map(|means| means.wait_s)),
        ("step_compute_ms", "compute_s", means.map(|means| means.compute_s)),
        ("step_update_ms", "update_s", means.map(|means| means.update_s)),
    ];
    for (key, record, mean_s) in parts {
        let source = Source::formula("mean_ms", [recorded(METRICS, record)]);
        add(key, mean_s.map(|mean_s| 1000.0 * mean_s), Unit::Milliseconds, source);
    }
    let mean_ms = means.map(|m| 1000.0 * m.wait_s + 1000.0 * m.compute_s + 1000.0 * m.update_s);
    let other_ms = step_ms.zip(mean_ms).map(|(step_ms, mean_ms)| step_ms - mean_ms);
    let of = ["step_ms", "step_wait_ms", "step_compute_ms", "step_update_ms"];
    let of = of.map(|key| format!("{}:{key}", run.id));
    add("step_other_ms", other_ms, Unit::Milliseconds, Source::formula("rest", of));

    let of = ["e2e_s", "train_s", "eval_s", "checkpoint_s", "warmup_s"];
    let rest = |[e2e_s, parts @ ..]: [Option<f64>; 5]| {
        let parts: Option<Vec<f64>> = parts.into_iter().collect();
        Some(e2e_s? - parts?.iter().sum::<f64>())
    };
    let source = Source::formula("rest", of.map(|key| recorded(SUMMARY, key)));
    add("rest_s", rest(of.map(summary)), Unit::Seconds, source);
    figures
}

/// The median over a cell's finished runs of each of [`OF_CELLS`].
pub(crate) fn medians(cell: CellId, runs: &[(&Run, &Figures)], notation: Notation) -> Figures {
    let all: Vec<&Run> = runs.iter().map(|(run, _)| *run).collect();
    let median = |key: &'static str| {
        over_done(&all, |done| {
            let of_done = runs.iter().filter(|(run, _)| done.iter().any(|d| d.id == run.id));
            let measured = |(run, figures): &(&Run, &Figures)| {
                let known = figures.get(key)?.known()?;
                let (value, reference) = (known.value, known.id.clone());
                Some(Measured { seed: run.seed, value, reference, source: known.source.clone() })
            };
            match of_done.map(measured).collect::<Option<Vec<_>>>() {
                Some(values) => {
                    let id = format!("{}:{key}", cell.name());
                    Figure::median(notation, id, unit_of(key), &values)
                }
                None => Figure::absent(Absent::NotMeasured),
            }
        })
    };
    OF_CELLS.map(|key| (key, median(key))).into_iter().collect()
}
