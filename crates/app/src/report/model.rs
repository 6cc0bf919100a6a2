//! The report as data. report.md, report.html and report.csv render it, report.json is it: so
//! every number they show stands in report.json with its source.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answer::Answer;
use super::cell::{CellId, Technique};
use super::compare::{Change, Comparator, Difference, relative};
use super::figure::{Absent, Figure, Notation, TimeUnit};
use super::lang::Lang;
use super::limits::{self, Limits};
use super::load::{Evaluation, Matrix, Run, Status};
use super::provenance::Provenance;
use super::quantity::{QUANTITIES, lookup};
use super::target::{self, Target};

/// Counts changes to the layout of report.json that break its readers.
const SCHEMA_VERSION: u32 = 1;

/// A whole report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) schema_version: u32,
    /// The matrix directory's name.
    pub(crate) matrix: String,
    pub(crate) lang: Lang,
    pub(crate) notation: Notation,
    pub(crate) seeds: Vec<u64>,
    pub(crate) memory_basis: MemoryBasis,
    pub(crate) answer: Answer,
    /// All eight, in the cells' order.
    pub(crate) cells: Vec<Cell>,
    /// Each technique with the other two fixed: twelve rows.
    pub(crate) effects: Vec<Effect>,
    pub(crate) curves: Vec<Curve>,
    pub(crate) limits: Limits,
    /// What the names of the formulas in the sources mean.
    pub(crate) formulas: BTreeMap<&'static str, &'static str>,
    pub(crate) provenance: Provenance,
}

/// One cell over its seeds.
#[derive(Debug, Serialize)]
pub(crate) struct Cell {
    pub(crate) cell: CellId,
    pub(crate) label: String,
    /// Whether f32 matrix products ran in TF32 in any of the finished runs.
    pub(crate) tf32: bool,
    pub(crate) runs: Vec<RunStatus>,
    /// By key: those of `QUANTITIES` and the derived ones.
    pub(crate) figures: BTreeMap<&'static str, Figure>,
    pub(crate) targets: Vec<Target>,
    pub(crate) r1_vs_fp32: Difference,
    /// For AMP cells: the same cell in FP32.
    pub(crate) r1_vs_fp32_twin: Difference,
}

/// How one run of a cell ended.
#[derive(Debug, Serialize)]
pub(crate) struct RunStatus {
    pub(crate) run: String,
    pub(crate) seed: u64,
    pub(crate) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// What one technique changes while the other two stay as they are.
#[derive(Debug, Serialize)]
pub(crate) struct Effect {
    pub(crate) technique: Technique,
    pub(crate) without: CellId,
    pub(crate) with: CellId,
    pub(crate) r1: Difference,
    pub(crate) train_s_to_best_less: Figure,
    pub(crate) samples_per_s_more: Figure,
    pub(crate) peak_memory_less: Figure,
    pub(crate) tape_less: Figure,
}

/// Validation R@1 of one run over training time, from its metrics.jsonl.
#[derive(Debug, Serialize)]
pub(crate) struct Curve {
    pub(crate) cell: CellId,
    pub(crate) run: String,
    pub(crate) status: Status,
    pub(crate) points: Vec<Evaluation>,
}

/// Which measurement `peak_memory` is: the first that every finished run recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MemoryBasis {
    Vram,
    HostAllocated,
    HostResident,
}

impl MemoryBasis {
    /// The figure it is taken from.
    pub(crate) fn key(self) -> &'static str {
        match self {
            MemoryBasis::Vram => "peak_vram_gib",
            MemoryBasis::HostAllocated => "peak_alloc_gib",
            MemoryBasis::HostResident => "peak_host_gib",
        }
    }

    fn of(runs: &[Run]) -> MemoryBasis {
        let bases = [MemoryBasis::Vram, MemoryBasis::HostAllocated];
        let recorded = |run: &Run, basis: MemoryBasis| {
            run.status != Status::Done || run.summary[basis.key()].is_number()
        };
        let all = |basis: &MemoryBasis| runs.iter().all(|run| recorded(run, *basis));
        bases.into_iter().find(all).unwrap_or(MemoryBasis::HostResident)
    }
}

impl Report {
    /// Computes every number of the report.
    pub(crate) fn build(matrix: &Matrix, lang: Lang) -> Report {
        let notation = notation(&matrix.runs);
        let memory_basis = MemoryBasis::of(&matrix.runs);
        let mut comparator = Comparator::new(matrix, notation);
        let cells = cells(matrix, memory_basis, &mut comparator);
        let effects = effects(&cells, notation, &mut comparator);
        let words = lang.words();
        Report {
            schema_version: SCHEMA_VERSION,
            matrix: matrix.name.clone(),
            lang,
            notation,
            seeds: matrix.seeds.clone(),
            memory_basis,
            answer: Answer::of(&cells, memory_basis, notation, words),
            limits: limits::of(matrix, &cells, memory_basis, words),
            cells,
            effects,
            curves: curves(matrix),
            formulas: words.formulas.iter().copied().collect(),
            provenance: Provenance::of(&matrix.runs),
        }
    }
}

impl Cell {
    /// The figure under `key`; a key that no cell has is `NotMeasured`.
    pub(crate) fn figure(&self, key: &str) -> &Figure {
        const NONE: Figure = Figure::Absent { value: (), reason: Absent::NotMeasured };
        self.figures.get(key).unwrap_or(&NONE)
    }

    /// Whether any run of the cell is done, so that it has figures.
    pub(crate) fn has_done(&self) -> bool {
        self.runs.iter().any(|run| run.status == Status::Done)
    }
}

/// The cell `id` among all eight.
pub(crate) fn cell_of(cells: &[Cell], id: CellId) -> &Cell {
    cells.iter().find(|cell| cell.cell == id).expect("a report holds every cell of CellId::ALL")
}

/// One time unit and one precision of memory for all numbers, from the runs' extremes.
fn notation(runs: &[Run]) -> Notation {
    let done = || runs.iter().filter(|run| run.status == Status::Done);
    let values = |key: &'static str| {
        done().filter_map(move |run| lookup(&run.summary, key)).filter_map(|value| value.as_f64())
    };
    let longest = values("train_s").chain(values("train_s_to_best")).fold(0.0, f64::max);
    let memories = ["peak_vram_gib", "peak_alloc_gib", "peak_host_gib", "tape_gib"];
    let smallest = memories.into_iter().flat_map(values).fold(f64::INFINITY, f64::min);
    Notation {
        time_unit: TimeUnit::for_longest(longest),
        gib_decimals: if smallest < 0.1 { 3 } else { 2 },
    }
}

fn cells(matrix: &Matrix, basis: MemoryBasis, comparator: &mut Comparator<'_>) -> Vec<Cell> {
    let notation = notation(&matrix.runs);
    let target_scores = target::scores(&matrix.runs);
    let mut cells: Vec<Cell> = CellId::ALL
        .into_iter()
        .map(|id| {
            let runs: Vec<&Run> = matrix.runs.iter().filter(|run| run.cell == id).collect();
            let twin = CellId { amp: false, ..id };
            Cell {
                cell: id,
                label: id.label(),
                tf32: runs.iter().any(|run| run.summary["tf32"] == true),
                figures: figures(id, &runs, basis, notation),
                targets: target::of(&runs, &target_scores, notation),
                r1_vs_fp32: comparator.r1(id, CellId::BASELINE),
                r1_vs_fp32_twin: comparator.r1(id, twin),
                runs: runs.into_iter().map(RunStatus::of).collect(),
            }
        })
        .collect();
    add_savings(&mut cells, notation);
    cells
}

impl RunStatus {
    fn of(run: &Run) -> RunStatus {
        RunStatus {
            run: run.id.clone(),
            seed: run.seed,
            status: run.status,
            note: run.note.clone(),
        }
    }
}

fn figures(
    id: CellId,
    runs: &[&Run],
    basis: MemoryBasis,
    notation: Notation,
) -> BTreeMap<&'static str, Figure> {
    let mut figures: BTreeMap<&'static str, Figure> = QUANTITIES
        .iter()
        .map(|quantity| (quantity.key, quantity.figure(id, runs, notation)))
        .collect();
    figures.insert("peak_memory", figures[basis.key()].clone());
    figures
}

/// Savings against FP32: (the figure they are stored as, the figure they compare).
const SAVINGS: [(&str, &str); 3] = [
    ("train_s_to_best_less", "train_s_to_best"),
    ("e2e_s_to_best_less", "e2e_s_to_best"),
    ("peak_memory_less", "peak_memory"),
];

fn add_savings(cells: &mut [Cell], notation: Notation) {
    for (name, key) in SAVINGS {
        let base = cell_of(cells, CellId::BASELINE).figure(key).clone();
        for cell in cells.iter_mut() {
            let pair = ((cell.cell, cell.figure(key)), (CellId::BASELINE, &base));
            let less = relative(notation, Change::Less, key, pair.0, pair.1);
            cell.figures.insert(name, less);
        }
    }
}

fn effects(cells: &[Cell], notation: Notation, comparator: &mut Comparator<'_>) -> Vec<Effect> {
    let pairs = Technique::ALL.into_iter().flat_map(|t| t.pairs().into_iter().map(move |p| (t, p)));
    pairs
        .map(|(technique, (without, with))| {
            let change = |change: Change, key: &str| {
                let figure = |id| (id, cell_of(cells, id).figure(key));
                relative(notation, change, key, figure(with), figure(without))
            };
            Effect {
                technique,
                without,
                with,
                r1: comparator.r1(with, without),
                train_s_to_best_less: change(Change::Less, "train_s_to_best"),
                samples_per_s_more: change(Change::More, "samples_per_s"),
                peak_memory_less: change(Change::Less, "peak_memory"),
                tape_less: change(Change::Less, "tape_gib"),
            }
        })
        .collect()
}

fn curves(matrix: &Matrix) -> Vec<Curve> {
    let drawn = matrix.runs.iter().filter(|run| !run.evaluations.is_empty());
    drawn
        .map(|run| Curve {
            cell: run.cell,
            run: run.id.clone(),
            status: run.status,
            points: run.evaluations.clone(),
        })
        .collect()
}
