//! What the numbers do not say: always in the report, so that none of them travels further than
//! it was measured.

use serde::Serialize;

use super::cell::CellId;
use super::compare::{BOOTSTRAP_SEED, RESAMPLES};
use super::lang::{Words, fill};
use super::load::{Matrix, Run, Status};
use super::model::{Cell, MemoryBasis};
use super::provenance::facts;

/// The limits as facts, and the sentences that state them.
#[derive(Debug, Serialize)]
pub(crate) struct Limits {
    /// From run.json `device`, `device_name`, `driver` and `cpu`.
    pub(crate) devices: Vec<String>,
    /// From run.json `dataset_name` and `dataset`.
    pub(crate) datasets: Vec<String>,
    /// From run.json `limited`: parts of the dataset that the configuration leaves out.
    pub(crate) partial: Vec<String>,
    pub(crate) seeds: Vec<u64>,
    /// Validation queries ranked by the first finished run.
    pub(crate) num_queries: Option<usize>,
    pub(crate) bootstrap_resamples: usize,
    pub(crate) bootstrap_seed: u64,
    pub(crate) tf32_cells: Vec<CellId>,
    /// Runs that are not done, with their status.
    pub(crate) not_done: Vec<(String, Status)>,
    /// From run.json `selection_split`.
    pub(crate) selection_splits: Vec<String>,
    pub(crate) sentences: Vec<String>,
}

/// Gathers the limits of `matrix`.
pub(crate) fn of(matrix: &Matrix, cells: &[Cell], basis: MemoryBasis, words: &Words) -> Limits {
    let runs = &matrix.runs;
    let done = |run: &&Run| run.status == Status::Done;
    let mut limits = Limits {
        devices: facts(runs, &["device", "device_name", "driver", "cpu"]),
        datasets: facts(runs, &["dataset_name", "dataset"]),
        partial: facts(runs, &["limited"]),
        seeds: matrix.seeds.clone(),
        num_queries: runs.iter().filter(done).find_map(|r| Some(r.t2i_ranks.as_ref()?.len())),
        bootstrap_resamples: RESAMPLES,
        bootstrap_seed: BOOTSTRAP_SEED,
        tf32_cells: cells.iter().filter(|cell| cell.tf32).map(|cell| cell.cell).collect(),
        not_done: runs
            .iter()
            .filter(|run| !done(run))
            .map(|run| (run.id.clone(), run.status))
            .collect(),
        selection_splits: facts(runs, &["selection_split"]),
        sentences: Vec::new(),
    };
    limits.sentences = sentences(&limits, basis, words);
    limits
}

fn sentences(limits: &Limits, basis: MemoryBasis, words: &Words) -> Vec<String> {
    let listed = |facts: &[String]| match facts {
        [] => words.not_recorded.to_owned(),
        facts => facts.join("; "),
    };
    let seeds: Vec<String> = limits.seeds.iter().map(u64::to_string).collect();
    let seed_template = if seeds.len() == 1 { words.limit_one_seed } else { words.limit_seeds };
    let queries = limits.num_queries.map_or(words.not_recorded.to_owned(), |n| n.to_string());
    let mut sentences = vec![
        fill(words.limit_device, &[("devices", &listed(&limits.devices))]),
        fill(words.limit_dataset, &[("datasets", &listed(&limits.datasets))]),
        fill(seed_template, &[("seeds", &seeds.join(", "))]),
        words.limit_selection.to_owned(),
        fill(
            words.limit_interval,
            &[("queries", &queries), ("resamples", &limits.bootstrap_resamples.to_string())],
        ),
        fill(words.limit_memory, &[("basis", words.basis(basis))]),
    ];
    if !limits.partial.is_empty() {
        sentences.push(fill(words.limit_partial, &[("parts", &limits.partial.join("; "))]));
    }
    if limits.selection_splits.iter().any(|split| split == "test") {
        sentences.push(words.limit_test_selection.to_owned());
    }
    if !limits.tf32_cells.is_empty() {
        let labels: Vec<String> = limits.tf32_cells.iter().map(|cell| cell.label()).collect();
        sentences.push(fill(words.limit_tf32, &[("cells", &labels.join(", "))]));
    }
    if !limits.not_done.is_empty() {
        let runs: Vec<String> = limits
            .not_done
            .iter()
            .map(|(run, status)| format!("{run} ({})", words.status(*status)))
            .collect();
        sentences.push(fill(words.limit_not_done, &[("runs", &runs.join(", "))]));
    }
    sentences
}
