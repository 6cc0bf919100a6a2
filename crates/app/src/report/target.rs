//! Time to a target: when R@1 on the selection split first reached a given score.

use serde::Serialize;
use serde_json::Value;

use super::cell::CellId;
use super::figure::{Absent, Figure, Known, Measured, Source, Unit};
use super::load::{CONFIG, Matrix, Run, SUMMARY};
use super::notation::Notation;
use super::quantity::over_done;

/// A target score of the matrix.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Score {
    /// Text-to-image R@1 in percent.
    pub(crate) r1: f64,
    pub(crate) figure: Figure,
}

/// When a cell reached one target score.
#[derive(Debug, Serialize)]
pub(crate) struct Target {
    /// Text-to-image R@1 in percent.
    pub(crate) r1: f64,
    pub(crate) train_s: Figure,
    pub(crate) e2e_s: Figure,
    pub(crate) epoch: Figure,
}

/// Every target score that any run was given, ascending.
pub(crate) fn scores(matrix: &Matrix, notation: Notation) -> Vec<Score> {
    let mut found: Vec<(f64, Source)> = Vec::new();
    for run in &matrix.runs {
        let config = run.config.get("eval").and_then(|eval| eval.get("targets")?.as_array());
        for (i, target) in config.into_iter().flatten().enumerate() {
            let r1 = target.as_float().or_else(|| Some(target.as_integer()? as f64));
            let source = Source::record(&run.id, CONFIG, format!("eval.targets[{i}]"));
            found.extend(r1.map(|r1| (r1, source)));
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.dedup_by(|a, b| a.0 == b.0);
    let score = |(r1, source): (f64, Source)| {
        let known = Known::new(notation, format!("target:r1_{r1}"), r1, Unit::Count, source);
        Score { r1, figure: known.into() }
    };
    found.into_iter().map(score).collect()
}

/// When the finished runs of one cell reached each of `scores`.
pub(crate) fn of(cell: CellId, runs: &[&Run], scores: &[Score], notation: Notation) -> Vec<Target> {
    let time = |r1: f64, key: &str, unit| time_to(cell, r1, key, unit, runs, notation);
    let target = |score: &Score| Target {
        r1: score.r1,
        train_s: time(score.r1, "train_s", Unit::Seconds),
        e2e_s: time(score.r1, "e2e_s", Unit::Seconds),
        epoch: time(score.r1, "epoch", Unit::Count),
    };
    scores.iter().map(target).collect()
}

/// The median over the finished runs; one that did not reach the target counts as infinite.
fn time_to(
    cell: CellId,
    r1: f64,
    key: &str,
    unit: Unit,
    runs: &[&Run],
    notation: Notation,
) -> Figure {
    over_done(runs, |done| {
        let measured = |run: &&Run| {
            let value = record(run, r1)?[key].as_f64().unwrap_or(f64::INFINITY);
            let source = Source::record(&run.id, SUMMARY, format!("time_to_target[r1={r1}].{key}"));
            Some(Measured::recorded(run.seed, value, source))
        };
        match done.iter().map(measured).collect::<Option<Vec<_>>>() {
            Some(values) => {
                let id = format!("{}:{key}_to_r1_{r1}", cell.name());
                Figure::median(notation, id, unit, &values)
            }
            None => Figure::absent(Absent::NotMeasured),
        }
    })
}

fn record(run: &Run, r1: f64) -> Option<&Value> {
    run.summary["time_to_target"].as_array()?.iter().find(|target| target["r1"] == r1)
}
