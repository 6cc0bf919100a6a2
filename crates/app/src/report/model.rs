//! The report as data. report.md, report.html and report.csv render it, report.json is it: so
//! every number they show stands in report.json with its source.

use std::collections::BTreeMap;

use serde::Serialize;

use super::agree::{self, Hardware};
use super::answer::Answer;
use super::cell::{CellId, Technique};
use super::compare::{Change, Comparator, Difference};
use super::examples::{self, Examples};
use super::figure::{Absent, Figure, Known, Source, Unit};
use super::lang::{Lang, Words};
use super::limits::{self, Limits};
use super::load::{Evaluation, Matrix, Run, SUMMARY, Scaler, Status};
use super::notation::{Notation, TimeUnit};
use super::paper::{self, PaperCell};
use super::provenance::Provenance;
use super::quantity::{QUANTITIES, lookup};
use super::run_figures::{self, Figures};
use super::target::{self, Score, Target};
use super::text::{Text, fill};

/// Counts changes to the layout of report.json that break its readers (docs/REPORT.md).
const SCHEMA_VERSION: u32 = 2;

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
    /// Whether checkpoints were selected on test.
    pub(crate) selected_on_test: bool,
    /// What a reader must know before any number.
    pub(crate) notices: Vec<Text>,
    /// How many runs are done, of how many.
    pub(crate) num_done: Figure,
    pub(crate) num_runs: Figure,
    pub(crate) answer: Answer,
    /// All eight, in the cells' order.
    pub(crate) cells: Vec<Cell>,
    /// The paper's own figures.
    pub(crate) paper: Vec<PaperCell>,
    /// Each technique with the other two fixed: twelve rows.
    pub(crate) effects: Vec<Effect>,
    pub(crate) target_scores: Vec<Score>,
    /// Cells of which no other takes both less time and less memory, by time.
    pub(crate) pareto_front: Vec<CellId>,
    pub(crate) curves: Vec<Curve>,
    pub(crate) scalers: Vec<ScalerHistory>,
    pub(crate) examples: Examples,
    /// The kinds of machines that the runs ran on.
    pub(crate) hardware: Vec<Hardware>,
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
    /// Whether f32 matrix products ran in TF32 in any of the runs.
    pub(crate) tf32: bool,
    /// Its kinds of machines, where the matrix has several.
    pub(crate) hardware: Vec<char>,
    pub(crate) runs: Vec<RunStatus>,
    /// By key: those of `QUANTITIES` and the derived ones.
    pub(crate) figures: Figures,
    pub(crate) targets: Vec<Target>,
    pub(crate) r1_vs_fp32: Difference,
    /// For AMP cells: the same cell in FP32.
    pub(crate) r1_vs_fp32_twin: Difference,
}

/// How one run of a cell ended, or how far it is.
#[derive(Debug, Serialize)]
pub(crate) struct RunStatus {
    pub(crate) run: String,
    pub(crate) seed: u64,
    pub(crate) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    pub(crate) figures: Figures,
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

/// R@1 of one run over its training, from the `eval` lines of its metrics.jsonl.
#[derive(Debug, Serialize)]
pub(crate) struct Curve {
    pub(crate) cell: CellId,
    pub(crate) run: String,
    pub(crate) status: Status,
    pub(crate) points: Vec<Evaluation>,
}

/// The loss scale of one run, from the `step` lines of its metrics.jsonl.
#[derive(Debug, Serialize)]
pub(crate) struct ScalerHistory {
    pub(crate) cell: CellId,
    pub(crate) run: String,
    #[serde(flatten)]
    pub(crate) scaler: Scaler,
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

    fn of(matrix: &Matrix) -> MemoryBasis {
        let bases = [MemoryBasis::Vram, MemoryBasis::HostAllocated];
        let all = |basis: &MemoryBasis| matrix.done().all(|r| r.summary[basis.key()].is_number());
        bases.into_iter().find(all).unwrap_or(MemoryBasis::HostResident)
    }
}

impl Report {
    /// Computes every number of the report, with pictures of `num_examples` queries.
    pub(crate) fn build(matrix: &Matrix, lang: Lang, num_examples: usize) -> Report {
        let (words, notation) = (lang.words(), notation(matrix));
        let memory_basis = MemoryBasis::of(matrix);
        let hardware = agree::hardware(&matrix.runs);
        let mut comparator = Comparator::new(matrix, notation, &hardware);
        let target_scores = target::scores(matrix, notation);
        let cells = cells(matrix, memory_basis, &target_scores, &hardware, &mut comparator);
        let effects = effects(&cells, &mut comparator);
        let limits = limits::of(matrix, &cells, memory_basis, notation, &hardware, words);
        let selected_on_test = limits.selection_splits.iter().any(|split| split == "test");
        let split = if selected_on_test { words.split_test } else { words.split_val };
        let answer = Answer::of(&cells, memory_basis, split, notation, words);
        let shown = answer.shown_cell().unwrap_or(CellId::BASELINE);
        let mut report = Report {
            schema_version: SCHEMA_VERSION,
            matrix: matrix.name.clone(),
            lang,
            notation,
            seeds: matrix.seeds.clone(),
            memory_basis,
            selected_on_test,
            notices: Vec::new(),
            num_done: count(notation, "num_done", matrix.done()),
            num_runs: count(notation, "num_runs", matrix.runs.iter()),
            answer,
            pareto_front: pareto_front(&cells),
            cells,
            paper: paper::cells(notation),
            effects,
            target_scores,
            curves: curves(matrix),
            scalers: scalers(matrix),
            examples: examples::of(matrix, shown, num_examples, notation),
            hardware,
            limits,
            formulas: words.formulas.iter().copied().collect(),
            provenance: Provenance::of(&matrix.runs),
        };
        report.notices = notices(&report, words);
        report
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
fn notation(matrix: &Matrix) -> Notation {
    let values = |key: &'static str| {
        matrix.done().filter_map(move |run| lookup(&run.summary, key)?.as_f64())
    };
    let longest = values("train_s").chain(values("train_s_to_best")).fold(0.0, f64::max);
    let memories = ["peak_vram_gib", "peak_alloc_gib", "peak_host_gib", "tape_gib"];
    let smallest = memories.into_iter().flat_map(values).fold(f64::INFINITY, f64::min);
    Notation {
        time_unit: TimeUnit::for_longest(longest),
        gib_decimals: if smallest < 0.1 { 3 } else { 2 },
    }
}

fn count<'a>(notation: Notation, key: &str, runs: impl Iterator<Item = &'a Run>) -> Figure {
    let of: Vec<String> = runs.map(|run| format!("{}/{SUMMARY}:status", run.id)).collect();
    let (num, source) = (of.len() as f64, Source::Formula { formula: "count", of });
    Known::new(notation, format!("matrix:{key}"), num, Unit::Count, source).into()
}

/// What must not be overlooked: that runs are not done, were selected on test, or ran on different
/// machines.
fn notices(report: &Report, words: &Words) -> Vec<Text> {
    let mut notices = Vec::new();
    if report.num_done.value() != report.num_runs.value() {
        let number = |figure| Text::number(figure).unwrap_or_default();
        let counts = [("done", number(&report.num_done)), ("all", number(&report.num_runs))];
        notices.push(fill(words.notice_not_done, &counts));
    }
    if report.selected_on_test {
        notices.push(words.limit_test_selection.into());
    }
    if report.hardware.len() > 1 {
        notices.push(words.notice_hardware.into());
    }
    notices
}

fn cells(
    matrix: &Matrix,
    basis: MemoryBasis,
    target_scores: &[Score],
    hardware: &[Hardware],
    comparator: &mut Comparator<'_>,
) -> Vec<Cell> {
    let notation = notation(matrix);
    let cell = |id: CellId| {
        let runs = matrix.of(id);
        let of_runs: Vec<Figures> = runs.iter().map(|run| run_figures::of(run, notation)).collect();
        let with_figures: Vec<(&Run, &Figures)> = runs.iter().copied().zip(&of_runs).collect();
        let mut figures: Figures = QUANTITIES
            .iter()
            .map(|quantity| (quantity.key, quantity.figure(id, &runs, notation)))
            .collect();
        figures.extend(run_figures::medians(id, &with_figures, notation));
        figures.insert("peak_memory", figures[basis.key()].clone());
        let kinds = hardware.iter().filter(|kind| {
            hardware.len() > 1 && runs.iter().any(|run| kind.runs.contains(&run.id))
        });
        Cell {
            cell: id,
            label: id.label(),
            tf32: runs.iter().any(|run| run.tf32()),
            hardware: kinds.map(|kind| kind.letter).collect(),
            targets: target::of(id, &runs, target_scores, notation),
            r1_vs_fp32: comparator.r1(id, CellId::BASELINE),
            r1_vs_fp32_twin: comparator.r1(id, CellId { amp: false, ..id }),
            figures,
            runs: runs
                .iter()
                .zip(of_runs)
                .map(|(run, figures)| RunStatus::of(run, figures))
                .collect(),
        }
    };
    let mut cells: Vec<Cell> = CellId::ALL.into_iter().map(cell).collect();
    add_savings(&mut cells, comparator);
    cells
}

impl RunStatus {
    fn of(run: &Run, figures: Figures) -> RunStatus {
        RunStatus {
            run: run.id.clone(),
            seed: run.seed,
            status: run.status,
            note: run.note.clone(),
            figures,
        }
    }
}

/// Savings against FP32: (the figure they are stored as, the figure they compare).
const SAVINGS: [(&str, &str); 3] = [
    ("train_s_to_best_less", "train_s_to_best"),
    ("e2e_s_to_best_less", "e2e_s_to_best"),
    ("peak_memory_less", "peak_memory"),
];

fn add_savings(cells: &mut [Cell], comparator: &Comparator<'_>) {
    for (name, key) in SAVINGS {
        let base = cell_of(cells, CellId::BASELINE).figure(key).clone();
        for cell in cells.iter_mut() {
            let pair = ((cell.cell, cell.figure(key)), (CellId::BASELINE, &base));
            let less = comparator.relative(Change::Less, key, pair.0, pair.1);
            cell.figures.insert(name, less);
        }
    }
}

fn effects(cells: &[Cell], comparator: &mut Comparator<'_>) -> Vec<Effect> {
    let pairs = Technique::ALL.into_iter().flat_map(|t| t.pairs().into_iter().map(move |p| (t, p)));
    pairs
        .map(|(technique, (without, with))| {
            let r1 = comparator.r1(with, without);
            let change = |change: Change, key: &str| {
                let figure = |id| (id, cell_of(cells, id).figure(key));
                comparator.relative(change, key, figure(with), figure(without))
            };
            Effect {
                technique,
                without,
                with,
                r1,
                train_s_to_best_less: change(Change::Less, "train_s_to_best"),
                samples_per_s_more: change(Change::More, "samples_per_s"),
                peak_memory_less: change(Change::Less, "peak_memory"),
                tape_less: change(Change::Less, "tape_gib"),
            }
        })
        .collect()
}

/// Of the cells on one kind of machine: time of different ones has no order.
fn pareto_front(cells: &[Cell]) -> Vec<CellId> {
    let point = |cell: &Cell| {
        Some((cell.figure("train_s_to_best").value()?, cell.figure("peak_memory").value()?))
    };
    let base = &cell_of(cells, CellId::BASELINE).hardware;
    let comparable = cells.iter().filter(|cell| cell.hardware == *base);
    let points: Vec<(CellId, (f64, f64))> =
        comparable.filter_map(|cell| Some((cell.cell, point(cell)?))).collect();
    let beats = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
    let mut front: Vec<(CellId, (f64, f64))> = points
        .iter()
        .filter(|(_, point)| !points.iter().any(|(_, other)| beats(*other, *point)))
        .copied()
        .collect();
    front.sort_by(|a, b| a.1.0.total_cmp(&b.1.0));
    front.into_iter().map(|(cell, _)| cell).collect()
}

fn curves(matrix: &Matrix) -> Vec<Curve> {
    let drawn = matrix.runs.iter().filter(|run| !run.log.evaluations.is_empty());
    drawn
        .map(|run| Curve {
            cell: run.cell,
            run: run.id.clone(),
            status: run.status,
            points: run.log.evaluations.clone(),
        })
        .collect()
}

fn scalers(matrix: &Matrix) -> Vec<ScalerHistory> {
    let scaled = matrix.runs.iter().filter(|run| !run.log.scaler.points.is_empty());
    scaled
        .map(|run| ScalerHistory {
            cell: run.cell,
            run: run.id.clone(),
            scaler: run.log.scaler.clone(),
        })
        .collect()
}
