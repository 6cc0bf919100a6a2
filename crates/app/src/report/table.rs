//! The report's tables as grids of text in the report's language: what markdown and HTML share.

use super::cell::CellId;
use super::compare::{Difference, Verdict};
use super::figure::{Absent, Figure, Notation, Unit};
use super::lang::{Words, fill};
use super::load::Status;
use super::model::{Cell, Effect, Report, cell_of};
use super::quantity::unit_of;

/// A field without a number whose reason stands elsewhere in its row.
const DASH: &str = "—";

/// One table: the first column names the row.
pub(crate) struct Grid {
    pub(crate) heading: &'static str,
    pub(crate) note: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Row>,
    /// What was left out because no run recorded it.
    pub(crate) footnote: Option<String>,
}

/// One row, and whether a new group of rows starts with it.
pub(crate) struct Row {
    pub(crate) entries: Vec<Entry>,
    pub(crate) starts_group: bool,
}

/// The content of one field.
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) detail: Option<String>,
    pub(crate) kind: Kind,
}

/// How a field is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    Status(Status),
    Number,
    Absent,
}

/// What a column of a cells' table shows.
#[derive(Clone, Copy)]
enum Column {
    Status,
    Figure(&'static str),
    VsFp32,
    VsTwin,
    /// Training time to the target with this index.
    Target(usize),
}

use Column::{Figure as Fig, Status as StatusColumn, VsFp32, VsTwin};

const CELLS: &[Column] = &[
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
    Fig("train_s_to_best"),
    Fig("e2e_s_to_best"),
    Fig("e2e_s_to_best_less"),
    Fig("train_s"),
    Fig("e2e_s"),
    Fig("warmup_s"),
    Fig("samples_per_s"),
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

/// The table that answers the question: all eight cells at a glance.
pub(crate) fn cells(report: &Report, words: &Words) -> Grid {
    let basis = words.basis(report.memory_basis);
    let note = format!("{} {}: {basis}.", words.cells_note, words.memory_word);
    grid(report, words, CELLS, words.cells_heading, note)
}

/// Everything else that the cells recorded, a table a subject.
pub(crate) fn details(report: &Report, words: &Words) -> Vec<Grid> {
    let targets: Vec<Column> = (0..report.cells[0].targets.len()).map(Column::Target).collect();
    let subjects: [(&[Column], &'static str, &'static str); 6] = [
        (ACCURACY, words.accuracy_heading, words.accuracy_note),
        (TIME, words.time_heading, words.time_note),
        (&targets, words.targets_heading, words.targets_note),
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

/// Each technique with the other two fixed.
pub(crate) fn effects(report: &Report, words: &Words) -> Grid {
    let unit = |key| heading(words, report.notation, key);
    let header = vec![
        words.technique.to_owned(),
        words.comparison.to_owned(),
        format!("{} ({})", words.difference, words.points),
        unit("train_s_to_best_less"),
        unit("samples_per_s_more"),
        unit("peak_memory_less"),
        unit("tape_less"),
    ];
    let mut rows: Vec<Row> =
        report.effects.iter().map(|effect| effect_row(report, effect, words)).collect();
    for (pair, row) in report.effects.windows(2).zip(rows.iter_mut().skip(1)) {
        row.starts_group = pair[0].technique != pair[1].technique;
    }
    let note = words.effects_note.to_owned();
    Grid { heading: words.effects_heading, note, header, rows, footnote: None }
}

fn effect_row(report: &Report, effect: &Effect, words: &Words) -> Row {
    let pair = format!("{} → {}", effect.without.label(), effect.with.label());
    let mut entries = vec![name(effect.technique.label().to_owned()), name(pair)];
    let pair = [effect.without, effect.with].map(|id| cell_of(&report.cells, id));
    entries.push(match pair.into_iter().find(|cell| !cell.has_done()) {
        Some(cell) => absent(&format!("{}: {}", cell.label, status(cell, words).text)),
        None => difference(&effect.r1, words),
    });
    let figures = [
        &effect.train_s_to_best_less,
        &effect.samples_per_s_more,
        &effect.peak_memory_less,
        &effect.tape_less,
    ];
    entries.extend(figures.map(|f| match f {
        Figure::Absent { reason: Absent::NoBaseline, .. } => absent(DASH),
        f => figure(f, words),
    }));
    Row { entries, starts_group: false }
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
    let mut header = vec![words.configuration.to_owned()];
    header.extend(shown.iter().map(head));
    let rows = report.cells.iter().map(|cell| cell_row(cell, &shown, words)).collect();
    let names: Vec<String> = left_out.iter().map(head).collect();
    let footnote = (!names.is_empty())
        .then(|| fill(words.columns_not_measured, &[("columns", &names.join(", "))]));
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
/// they ran in TF32, or how the run ended where no status column says it.
fn cell_row(cell: &Cell, columns: &[Column], words: &Words) -> Row {
    let has_status = columns.iter().any(|column| matches!(column, Column::Status));
    let detail = match (cell.has_done(), has_status) {
        (true, _) => cell.tf32.then(|| "TF32".to_owned()),
        (false, true) => None,
        (false, false) => Some(status(cell, words).text),
    };
    let mut entries = vec![Entry { detail, ..name(cell.label.clone()) }];
    entries.extend(columns.iter().map(|column| entry(cell, *column, words)));
    Row { entries, starts_group: cell.cell == CellId { amp: true, ..CellId::BASELINE } }
}

fn entry(cell: &Cell, column: Column, words: &Words) -> Entry {
    match column {
        Column::Status => status(cell, words),
        Column::Figure(key) => figure(cell.figure(key), words),
        Column::VsFp32 if cell.cell == CellId::BASELINE => absent(words.baseline),
        Column::VsFp32 => difference(&cell.r1_vs_fp32, words),
        Column::VsTwin => difference(&cell.r1_vs_fp32_twin, words),
        Column::Target(i) => figure(&cell.targets[i].train_s, words),
    }
}

/// One status when all seeds ended alike, counts otherwise; what went wrong as detail.
pub(crate) fn status(cell: &Cell, words: &Words) -> Entry {
    let mut counts: Vec<(Status, usize)> = Vec::new();
    for run in &cell.runs {
        match counts.iter_mut().find(|(status, _)| *status == run.status) {
            Some((_, count)) => *count += 1,
            None => counts.push((run.status, 1)),
        }
    }
    counts.sort_by_key(|(status, _)| *status);
    let text = match counts[..] {
        [(status, _)] => words.status(status).to_owned(),
        _ => counts
            .iter()
            .map(|(status, count)| format!("{count} {}", words.status(*status)))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let worst = counts.last().map_or(Status::Missing, |(status, _)| *status);
    let detail = cell.runs.iter().find_map(|run| run.note.clone());
    Entry { text, detail, kind: Kind::Status(worst) }
}

/// The difference with its interval, or that there is none to speak of.
fn difference(difference: &Difference, words: &Words) -> Entry {
    let entry = figure(&difference.figure, words);
    if difference.verdict != Some(Verdict::NoDifference) {
        return entry;
    }
    let interval = format!("{} {}", entry.text, entry.detail.unwrap_or_default());
    Entry {
        text: words.verdict(Verdict::NoDifference).to_owned(),
        detail: Some(interval),
        kind: Kind::Number,
    }
}

fn figure(figure: &Figure, words: &Words) -> Entry {
    match figure {
        Figure::Known(known) => Entry {
            text: known.shown.clone(),
            detail: known.shown_range.clone(),
            kind: Kind::Number,
        },
        Figure::Absent { reason, .. } => absent(&absence(*reason, words)),
    }
}

/// Why a field is empty. A run that is not done says so in its status, once a row.
fn absence(reason: Absent, words: &Words) -> String {
    match reason {
        Absent::NotDone(_) | Absent::NotApplicable => DASH.to_owned(),
        Absent::NotMeasured => words.not_measured.to_owned(),
        Absent::NotReached { reached: 0, .. } => words.not_reached.to_owned(),
        Absent::NotReached { reached, seeds } => fill(
            words.not_reached_by_all,
            &[("reached", &reached.to_string()), ("seeds", &seeds.to_string())],
        ),
        Absent::NoBaseline => words.no_baseline.to_owned(),
        Absent::NotComparable => words.not_comparable.to_owned(),
    }
}

fn name(text: String) -> Entry {
    Entry { text, detail: None, kind: Kind::Name }
}

fn absent(text: &str) -> Entry {
    Entry { text: text.to_owned(), detail: None, kind: Kind::Absent }
}

fn column_heading(report: &Report, words: &Words, column: Column) -> String {
    let difference = |heading: &str| format!("{heading} ({})", words.points);
    match column {
        Column::Status => words.status_word.to_owned(),
        Column::Figure(key) => heading(words, report.notation, key),
        Column::VsFp32 => difference(words.difference_to_fp32),
        Column::VsTwin => difference(words.difference_to_twin),
        Column::Target(i) => {
            let target = &report.cells[0].targets[i];
            format!("R@1 ≥ {}% ({})", target.r1, report.notation.time_unit.symbol())
        }
    }
}

/// A figure's heading with the unit that its numbers are shown in.
pub(crate) fn heading(words: &Words, notation: Notation, key: &'static str) -> String {
    match unit_symbol(words, notation, unit_of(key)) {
        "" => words.column(key).to_owned(),
        symbol => format!("{} ({symbol})", words.column(key)),
    }
}

/// The symbol behind a number of this unit.
pub(crate) fn unit_symbol(words: &Words, notation: Notation, unit: Unit) -> &'static str {
    match unit {
        Unit::Percent | Unit::PercentLess | Unit::PercentMore => "%",
        Unit::Points => words.points,
        Unit::Seconds => notation.time_unit.symbol(),
        Unit::Gib => "GiB",
        Unit::SamplesPerSecond => words.samples_per_second,
        Unit::Count => "",
    }
}
