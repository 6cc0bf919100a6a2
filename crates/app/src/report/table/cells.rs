//! Tables with a row a cell.

use super::{
    Column, DASH, Entry, Grid, Head, Row, absent, difference, figure, heading, name, status,
};
use crate::report::cell::CellId;
use crate::report::figure::Figure;
use crate::report::lang::Words;
use crate::report::model::{Cell, Report};
use crate::report::target::Target;
use crate::report::text::{Text, fill};

use Column::{Figure as Fig, Status as StatusColumn, VsFp32, VsTwin};

const OVERVIEW: &[Column] = &[
    StatusColumn,
    Fig("val_r1"),
    VsFp32,
    Fig("best_epoch"),
    Fig("train_s_to_best"),
    Fig("train_s_to_best_less"),
    Fig("peak_memory"),
    Fig("peak_memory_less"),
    Fig("samples_per_s"),
];
const ACCURACY: &[Column] = &[
    Fig("val_r1"),
    Fig("val_r5"),
    Fig("val_r10"),
    Fig("val_map"),
    Fig("val_minp"),
    Fig("val_raw_r1"),
    VsTwin,
];
const TIME: &[Column] = &[
    Fig("e2e_s_to_best"),
    Fig("e2e_s_to_best_less"),
    Fig("train_s"),
    Fig("eval_s"),
    Fig("checkpoint_s"),
    Fig("warmup_s"),
    Fig("rest_s"),
    Fig("e2e_s"),
];
const STEP: &[Column] = &[
    Fig("samples_per_s"),
    Fig("step_ms"),
    Fig("step_wait_ms"),
    Fig("step_compute_ms"),
    Fig("step_update_ms"),
    Fig("step_other_ms"),
];
const MEMORY: &[Column] = &[
    Fig("peak_vram_gib"),
    Fig("peak_pool_in_use_gib"),
    Fig("peak_pool_reserved_gib"),
    Fig("peak_host_gib"),
    Fig("peak_alloc_gib"),
    Fig("resident_alloc_gib"),
    Fig("tape_gib"),
    Fig("peak_eval_gib"),
];
const STABILITY: &[Column] =
    &[Fig("epochs"), Fig("steps"), Fig("executed_steps"), Fig("skipped_steps"), Fig("final_scale")];
const TEST: &[Column] =
    &[Fig("test_r1"), Fig("test_r5"), Fig("test_r10"), Fig("test_map"), Fig("test_minp")];

pub(super) fn overview(report: &Report, words: &Words) -> Grid {
    let basis = words.basis(report.memory_basis);
    let note = format!("{} {}: {basis}.", words.cells_note, words.memory_word);
    grid(report, words, OVERVIEW, words.cells_heading, note)
}

pub(super) fn details(report: &Report, words: &Words) -> Vec<Grid> {
    let targets = 0..report.target_scores.len();
    let columns: [fn(usize) -> Column; 3] =
        [Column::TargetTrain, Column::TargetE2e, Column::TargetEpoch];
    let targets: Vec<Column> =
        targets.flat_map(|i| columns.iter().map(move |column| column(i))).collect();
    let subjects: [(&[Column], &'static str, &'static str); 7] = [
        (&targets, words.targets_heading, words.targets_note),
        (ACCURACY, words.accuracy_heading, words.accuracy_note),
        (TIME, words.time_heading, words.time_note),
        (STEP, words.steps_heading, words.steps_note),
        (MEMORY, words.memory_heading, words.memory_note),
        (STABILITY, words.stability_heading, words.stability_note),
        (TEST, words.test_heading, words.test_note),
    ];
    subjects
        .into_iter()
        .filter(|(columns, ..)| columns.iter().any(|column| recorded(report, *column)))
        .map(|(columns, heading, note)| grid(report, words, columns, heading, note.to_owned()))
        .collect()
}

fn grid(
    report: &Report,
    words: &Words,
    columns: &[Column],
    heading: &'static str,
    note: String,
) -> Grid {
    let (shown, left_out): (Vec<Column>, Vec<Column>) =
        columns.iter().partition(|column| recorded(report, **column));
    let head = |column: &Column| column_heading(report, words, *column);
    let mut header = vec![Head::from(words.configuration.to_owned())];
    header.extend(shown.iter().map(|column| Head { text: head(column), of_paper: false }));
    let rows = report.cells.iter().map(|cell| cell_row(report, cell, &shown, words)).collect();
    let names: Vec<Text> = left_out.iter().map(head).collect();
    let footnote = (!names.is_empty())
        .then(|| fill(words.columns_not_measured, &[("columns", Text::join(names, ", "))]).plain());
    Grid { heading, note, header, rows, footnote }
}

/// Whether a column says more than that nobody recorded it. Columns stay when no cell is done at
/// all: then the statuses explain them.
fn recorded(report: &Report, column: Column) -> bool {
    let Column::Figure(key) = column else { return true };
    let test = key.starts_with("test_");
    let nobody_done = !test && !report.cells.iter().any(Cell::has_done);
    nobody_done || report.cells.iter().any(|cell| cell.figure(key).known().is_some())
}

/// The cell's name and figures. Below the name stands what the figures need to be read right: that
/// they ran in TF32, on what hardware, selected on test, or how the run ended where no status
/// column says it.
fn cell_row(report: &Report, cell: &Cell, columns: &[Column], words: &Words) -> Row {
    let has_status = columns.iter().any(|column| matches!(column, Column::Status));
    let mut details: Vec<Text> = Vec::new();
    if !cell.has_done() && !has_status {
        details.push(status(cell, words).text);
    }
    if cell.has_done() && cell.tf32 {
        details.push("TF32".into());
    }
    for letter in &cell.hardware {
        details.push(fill(words.on_hardware, &[("letter", letter.to_string().into())]));
    }
    if cell.has_done() && report.selected_on_test {
        details.push(words.selected_on_test.into());
    }
    let detail = (!details.is_empty()).then(|| Text::join(details, ", "));
    let mut entries = vec![Entry { detail, ..name(cell.label.clone()) }];
    entries.extend(columns.iter().map(|column| entry(cell, *column, words)));
    Row { entries, starts_group: cell.cell == CellId { amp: true, ..CellId::BASELINE } }
}

fn entry(cell: &Cell, column: Column, words: &Words) -> Entry {
    let of_target = |i: usize, part: fn(&Target) -> &Figure| match cell.targets.get(i) {
        Some(target) => figure(part(target), words),
        None => absent(DASH),
    };
    match column {
        Column::Status => status(cell, words),
        Column::Figure(key) => figure(cell.figure(key), words),
        Column::VsFp32 if cell.cell == CellId::BASELINE => absent(words.baseline),
        Column::VsFp32 => difference(&cell.r1_vs_fp32, words),
        Column::VsTwin => difference(&cell.r1_vs_fp32_twin, words),
        Column::TargetTrain(i) => of_target(i, |target| &target.train_s),
        Column::TargetE2e(i) => of_target(i, |target| &target.e2e_s),
        Column::TargetEpoch(i) => of_target(i, |target| &target.epoch),
    }
}

fn column_heading(report: &Report, words: &Words, column: Column) -> Text {
    let with_points = |heading: &str| format!("{heading} ({})", words.points);
    let time = report.notation.time_unit.symbol();
    let target = |i: usize, what: String| {
        let score = Text::number(&report.target_scores[i].figure).unwrap_or_default();
        Text::from("R@1 ≥ ").then(score).then(format!("%: {what}"))
    };
    match column {
        Column::Status => words.status_word.into(),
        Column::Figure(key) => heading(words, report.notation, key).into(),
        Column::VsFp32 => with_points(words.difference_to_fp32).into(),
        Column::VsTwin => with_points(words.difference_to_twin).into(),
        Column::TargetTrain(i) => target(i, format!("{} ({time})", words.time_word)),
        Column::TargetE2e(i) => target(i, format!("{} ({time})", words.e2e_word)),
        Column::TargetEpoch(i) => target(i, words.axis_epoch.to_owned()),
    }
}
