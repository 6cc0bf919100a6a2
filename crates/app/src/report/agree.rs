//! Whether the runs may stand in one report: same data, configuration, code and protocol, and the
//! same batches. On what hardware each ran is no condition, but it is marked.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;
use toml::Table;

use super::cell::Technique;
use super::load::{CONFIG, Matrix, PROVENANCE, Run};
use super::provenance::{flatten, leaf};

/// Keys of run.json that must agree: data, code and protocol.
const RECORDS: [&str; 12] = [
    "dataset",
    "dataset_layout",
    "holdout_pids",
    "limited",
    "selection_split",
    "weights_sha256",
    "total_steps",
    "protocol",
    "tbps_version",
    "git_commit",
    "git_dirty",
    "cargo_lock_sha256",
];
/// Settings that may differ: the seed, and where things are on each machine. What is there has a
/// fingerprint in run.json.
const FREE_SETTINGS: [&str; 4] = ["seed", "data.root", "data.cache", "weights.file"];
/// The setting of each axis: it must agree among the cells that have the technique on, and among
/// those that have not.
const AXES: [(Technique, &str); 3] =
    [(Technique::Amp, "precision"), (Technique::Ema, "ema.enabled"), (Technique::Gc, "recompute")];
/// Keys of run.json that tell hardware apart. The device's index does not.
const HARDWARE: [&str; 6] = ["backend", "device_name", "driver", "cpu", "num_cpus", "os"];

/// Refuses runs that must not be compared.
///
/// # Errors
/// The first two runs that differ, or the run whose attempts do, in what, and what to do.
pub(crate) fn require(matrix: &Matrix) -> Result<()> {
    let mut first: BTreeMap<String, (&Run, String)> = BTreeMap::new();
    for run in &matrix.runs {
        for (key, value) in traits(run) {
            match first.get(&key) {
                Some((other, expected)) if *expected != value => {
                    let who = match other.id == run.id {
                        true => format!("the attempts of {}", run.id),
                        false => format!("{} and {}", other.id, run.id),
                    };
                    bail!(
                        "{who} differ in {key} ({expected} and {value}): a report compares runs of \
                         one data set, configuration, code version and protocol; move those of \
                         another kind into a directory of their own"
                    )
                }
                Some(_) => {}
                None => drop(first.insert(key, (run, value))),
            }
        }
    }
    require_same_batches(matrix)
}

/// The record of a run, and those of its attempts: a resumed run is trained by several processes.
fn records(run: &Run) -> impl Iterator<Item = &Value> {
    let attempts = run.provenance["attempts"].as_array().into_iter().flatten();
    std::iter::once(&run.provenance).chain(attempts)
}

/// What a run must share with the others, by name; nothing of what it did not record.
fn traits(run: &Run) -> Vec<(String, String)> {
    let mut traits = Vec::new();
    for (record, key) in records(run).flat_map(|record| RECORDS.map(|key| (record, key))) {
        if let Some(value) = record.get(key) {
            flatten(value, key, &mut |key, value| {
                traits.push((format!("{PROVENANCE}: {key}"), leaf(value)));
            });
        }
    }
    settings(&run.config, "", &mut |key, value| {
        let axis = AXES.iter().find(|(_, axis)| *axis == key);
        let side = axis.map(|(technique, _)| match technique.set(run.cell, true) == run.cell {
            true => format!(" with {}", technique.label()),
            false => format!(" without {}", technique.label()),
        });
        if !FREE_SETTINGS.contains(&key.as_str()) {
            traits.push((format!("{CONFIG}: {key}{}", side.unwrap_or_default()), value));
        }
    });
    // Where the cache is says nothing, whether there is one says what is timed.
    if let Some(cache) = run.config.get("data").and_then(|data| data.get("cache")?.as_str()) {
        let used = if cache.is_empty() { "none" } else { "used" };
        traits.push((format!("{CONFIG}: data.cache"), used.to_owned()));
    }
    traits
}

/// Calls `visit` with the dotted key and the TOML of every setting.
fn settings(table: &Table, prefix: &str, visit: &mut dyn FnMut(String, String)) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value.as_table() {
            Some(table) => settings(table, &key, visit),
            None => visit(key, value.to_string()),
        }
    }
}

/// All cells of a seed must have consumed the same batches in the same order.
fn require_same_batches(matrix: &Matrix) -> Result<()> {
    let mut first: BTreeMap<(u64, u64), (&Run, &str)> = BTreeMap::new();
    for run in &matrix.runs {
        for evaluation in &run.log.evaluations {
            let Some(hash) = evaluation.batch_hash.as_deref() else { continue };
            let (other, expected) =
                *first.entry((run.seed, evaluation.step)).or_insert((run, hash));
            if expected != hash {
                bail!(
                    "{} and {} trained on other batches in epoch {} (batch_hash {}… and {}… at \
                     step {}): order, captions or augmentation differ, so that they cannot be \
                     compared; train them again from one version of code and data",
                    other.id,
                    run.id,
                    evaluation.epoch,
                    head(expected),
                    head(hash),
                    evaluation.step
                );
            }
        }
    }
    Ok(())
}

/// Enough of a hash to tell it from another.
fn head(hash: &str) -> String {
    hash.chars().take(12).collect()
}

/// How many evaluations have a batch hash that another cell's of the same seed and step equals.
pub(crate) fn num_equal_batches(matrix: &Matrix) -> usize {
    let mut counts: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for run in &matrix.runs {
        let hashed = run.log.evaluations.iter().filter(|e| e.batch_hash.is_some());
        hashed.for_each(|e| *counts.entry((run.seed, e.step)).or_default() += 1);
    }
    counts.values().filter(|&&count| count > 1).sum()
}

/// The runs of one kind of machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Hardware {
    /// `A`, `B` and so on, where there are several.
    pub(crate) letter: char,
    /// What the records say of it.
    pub(crate) description: String,
    pub(crate) runs: Vec<String>,
}

/// The kinds of machines that the runs with a record ran on; a run that was resumed elsewhere is of
/// several.
pub(crate) fn hardware(runs: &[Run]) -> Vec<Hardware> {
    let mut kinds: Vec<Hardware> = Vec::new();
    for run in runs.iter().filter(|run| run.provenance.is_object()) {
        for record in records(run) {
            let description = machine(record, &run.provenance);
            let kind = kinds.iter().position(|kind| kind.description == description);
            let kind = kind.unwrap_or_else(|| {
                let letter = (b'A' + (kinds.len() % 26) as u8) as char;
                kinds.push(Hardware { letter, description, runs: Vec::new() });
                kinds.len() - 1
            });
            if kinds[kind].runs.last() != Some(&run.id) {
                kinds[kind].runs.push(run.id.clone());
            }
        }
    }
    kinds
}

/// The machine of a record; what an attempt does not say, its run does.
fn machine(record: &Value, run: &Value) -> String {
    let known = |key: &str| {
        let found = record.get(key).or_else(|| run.get(key)).filter(|value| !value.is_null())?;
        Some(if key == "num_cpus" { format!("{found} CPUs") } else { leaf(found) })
    };
    HARDWARE.iter().filter_map(|key| known(key)).collect::<Vec<String>>().join(", ")
}
