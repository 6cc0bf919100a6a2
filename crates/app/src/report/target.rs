//! Time to a target: when validation R@1 first reached a given score.

use serde::Serialize;
use serde_json::Value;

use super::figure::{Absent, Figure, Notation, Unit};
use super::load::Run;
use super::quantity::over_done;

/// When a cell reached one target score.
#[derive(Debug, Serialize)]
pub(crate) struct Target {
    /// Validation text-to-image R@1 in percent.
    pub(crate) r1: f64,
    pub(crate) train_s: Figure,
    pub(crate) e2e_s: Figure,
    pub(crate) epoch: Figure,
}

/// Every target score that any run was given, ascending.
pub(crate) fn scores(runs: &[Run]) -> Vec<f64> {
    let mut scores: Vec<f64> = runs
        .iter()
        .filter_map(|run| run.summary["time_to_target"].as_array())
        .flatten()
        .filter_map(|target| target["r1"].as_f64())
        .collect();
    scores.sort_by(f64::total_cmp);
    scores.dedup();
    scores
}

/// When the finished runs of one cell reached each of `scores`.
pub(crate) fn of(runs: &[&Run], scores: &[f64], notation: Notation) -> Vec<Target> {
    let target = |&r1: &f64| Target {
        r1,
        train_s: time_to(r1, "train_s", Unit::Seconds, runs, notation),
        e2e_s: time_to(r1, "e2e_s", Unit::Seconds, runs, notation),
        epoch: time_to(r1, "epoch", Unit::Count, runs, notation),
    };
    scores.iter().map(target).collect()
}

fn time_to(r1: f64, key: &str, unit: Unit, runs: &[&Run], notation: Notation) -> Figure {
    over_done(runs, |done| {
        let records: Vec<(&Run, &Value)> =
            done.iter().filter_map(|run| Some((*run, record(run, r1)?))).collect();
        if records.len() < done.len() {
            return Figure::absent(Absent::NotMeasured);
        }
        let times: Vec<(f64, String, String)> = records
            .iter()
            .filter_map(|(run, record)| {
                let source_key = format!("time_to_target[r1={r1}].{key}");
                Some((record[key].as_f64()?, run.id.clone(), source_key))
            })
            .collect();
        match times.len() == done.len() {
            true => notation.median(&times, unit),
            false => Figure::absent(Absent::NotReached { reached: times.len(), seeds: done.len() }),
        }
    })
}

fn record(run: &Run, r1: f64) -> Option<&Value> {
    run.summary["time_to_target"].as_array()?.iter().find(|target| target["r1"] == r1)
}
