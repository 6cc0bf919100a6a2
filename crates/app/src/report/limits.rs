//! What the numbers do not say: always in the report, so that none of them travels further than
//! it was measured.

use serde::Serialize;

use super::agree::{self, Hardware};
use super::cell::CellId;
use super::compare::{BOOTSTRAP_SEED, RESAMPLES};
use super::figure::{Absent, Figure, Known, Source, Unit};
use super::lang::Words;
use super::load::{Matrix, RANKS, Run, Status};
use super::model::{Cell, MemoryBasis};
use super::notation::Notation;
use super::provenance::facts;
use super::text::{Text, fill};

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
    /// Queries ranked by the first finished run.
    pub(crate) num_queries: Figure,
    pub(crate) bootstrap_resamples: Figure,
    pub(crate) bootstrap_seed: u64,
    pub(crate) tf32_cells: Vec<CellId>,
    /// Runs that are not done, with their status.
    pub(crate) not_done: Vec<(String, Status)>,
    /// From run.json `selection_split`.
    pub(crate) selection_splits: Vec<String>,
    /// Whether the code had changes that no commit has.
    pub(crate) dirty_code: bool,
    /// Evaluations whose batches were found equal to those of another cell.
    pub(crate) num_equal_batches: usize,
    pub(crate) sentences: Vec<Text>,
}

/// Gathers the limits of `matrix`.
pub(crate) fn of(
    matrix: &Matrix,
    cells: &[Cell],
    basis: MemoryBasis,
    notation: Notation,
    hardware: &[Hardware],
    words: &Words,
) -> Limits {
    let runs = &matrix.runs;
    let mut limits = Limits {
        devices: facts(runs, &["device", "device_name", "driver", "cpu"]),
        datasets: facts(runs, &["dataset_name", "dataset"]),
        partial: facts(runs, &["limited"]),
        seeds: matrix.seeds.clone(),
        num_queries: num_queries(matrix, notation),
        bootstrap_resamples: fixed("bootstrap_resamples", RESAMPLES as f64, notation),
        bootstrap_seed: BOOTSTRAP_SEED,
        tf32_cells: cells.iter().filter(|cell| cell.tf32).map(|cell| cell.cell).collect(),
        not_done: runs
            .iter()
            .filter(|run| run.status != Status::Done)
            .map(|run| (run.id.clone(), run.status))
            .collect(),
        selection_splits: facts(runs, &["selection_split"]),
        dirty_code: runs.iter().any(|run| run.provenance["git_dirty"] == true),
        num_equal_batches: agree::num_equal_batches(matrix),
        sentences: Vec::new(),
    };
    limits.sentences = sentences(&limits, runs, basis, hardware, words);
    limits
}

/// A number that the report itself sets.
fn fixed(key: &str, value: f64, notation: Notation) -> Figure {
    let source = Source::formula("fixed", []);
    Known::new(notation, format!("limits:{key}"), value, Unit::Count, source).into()
}

fn num_queries(matrix: &Matrix, notation: Notation) -> Figure {
    let found = matrix.done().find_map(|run| Some((run, run.t2i_ranks()?.len())));
    let Some((run, num)) = found else { return Figure::absent(Absent::NotMeasured) };
    let source = Source::formula("length", [format!("{}/{RANKS}:t2i", run.id)]);
    Known::new(notation, "limits:num_queries", num as f64, Unit::Count, source).into()
}

fn sentences(
    limits: &Limits,
    runs: &[Run],
    basis: MemoryBasis,
    hardware: &[Hardware],
    words: &Words,
) -> Vec<Text> {
    let listed = |facts: &[String]| match facts {
        [] => Text::from(words.not_recorded),
        facts => facts.join("; ").into(),
    };
    let number = |figure| Text::number(figure).unwrap_or_else(|| words.not_recorded.into());
    let seeds: Vec<String> = limits.seeds.iter().map(u64::to_string).collect();
    let seed_template = if seeds.len() == 1 { words.limit_one_seed } else { words.limit_seeds };
    let mut sentences = vec![
        fill(words.limit_device, &[("devices", listed(&limits.devices))]),
        fill(words.limit_dataset, &[("datasets", listed(&limits.datasets))]),
        fill(seed_template, &[("seeds", seeds.join(", ").into())]),
    ];
    let on_test = limits.selection_splits.iter().any(|split| split == "test");
    let selection = if on_test { words.limit_test_selection } else { words.limit_selection };
    sentences.push(selection.into());
    let counts = [
        ("queries", number(&limits.num_queries)),
        ("resamples", number(&limits.bootstrap_resamples)),
    ];
    sentences.push(fill(words.limit_interval, &counts));
    sentences.push(fill(words.limit_memory, &[("basis", words.basis(basis).into())]));
    let batches = match limits.num_equal_batches {
        0 => words.limit_batches_unknown,
        _ => words.limit_batches_equal,
    };
    sentences.push(batches.into());
    if hardware.len() > 1 {
        let kinds = hardware.iter().map(|kind| {
            format!("{} ({}): {}", kind.letter, kind.description, kind.runs.join(", "))
        });
        let kinds = kinds.collect::<Vec<_>>().join("; ");
        sentences.push(fill(words.limit_hardware, &[("kinds", kinds.into())]));
    }
    if !limits.partial.is_empty() {
        sentences.push(fill(words.limit_partial, &[("parts", listed(&limits.partial))]));
    }
    if limits.dirty_code {
        sentences.push(words.limit_dirty.into());
    }
    if !limits.tf32_cells.is_empty() {
        let labels: Vec<String> = limits.tf32_cells.iter().map(|cell| cell.label()).collect();
        sentences.push(fill(words.limit_tf32, &[("cells", labels.join(", ").into())]));
    }
    if runs.iter().any(|run| run.status != Status::Done) {
        let not_done = limits
            .not_done
            .iter()
            .map(|(run, status)| format!("{run} ({})", words.status(*status)));
        let not_done = not_done.collect::<Vec<_>>().join(", ");
        sentences.push(fill(words.limit_not_done, &[("runs", not_done.into())]));
    }
    sentences
}
