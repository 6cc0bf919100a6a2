//! The report's tables as grids of text in the report's language: what markdown and HTML share.

mod cells;
mod effects;
mod paper;

use super::compare::{Difference, Verdict};
use super::figure::{Absent, Figure, Unit};
use super::lang::Words;
use super::load::Status;
use super::model::{Cell, Report, RunStatus};
use super::notation::Notation;
use super::quantity::unit_of;
use super::text::{Text, fill};

/// A field without a number whose reason stands elsewhere in its row.
const DASH: &str = "—";

/// One table: the first column names the row.
pub(crate) struct Grid {
    pub(crate) heading: &'static str,
    pub(crate) note: String,
    pub(crate) header: Vec<Head>,
    pub(crate) rows: Vec<Row>,
    /// What was left out because no run recorded it.
    pub(crate) footnote: Option<String>,
}

/// A column's heading.
pub(crate) struct Head {
    pub(crate) text: Text,
    /// Whether the column is the paper's and not ours.
    pub(crate) of_paper: bool,
}

impl From<String> for Head {
    fn from(text: String) -> Head {
        Head { text: text.into(), of_paper: false }
    }
}

/// One row, and whether a new group of rows starts with it.
pub(crate) struct Row {
    pub(crate) entries: Vec<Entry>,
    pub(crate) starts_group: bool,
}

/// The content of one field.
pub(crate) struct Entry {
    pub(crate) text: Text,
    pub(crate) detail: Option<Text>,
    /// What the number needs to be read right, such as `TF32`.
    pub(crate) tag: Option<&'static str>,
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
    TargetTrain(usize),
    TargetE2e(usize),
    TargetEpoch(usize),
}

/// The table that answers the question: all eight cells at a glance.
pub(crate) fn overview(report: &Report, words: &Words) -> Grid {
    cells::overview(report, words)
}

/// The paper's figures beside ours.
pub(crate) fn paper(report: &Report, words: &Words) -> Grid {
    paper::grid(report, words)
}

/// Each technique with the other two fixed.
pub(crate) fn effects(report: &Report, words: &Words) -> Grid {
    effects::grid(report, words)
}

/// Everything else that the cells recorded, a table a subject.
pub(crate) fn details(report: &Report, words: &Words) -> Vec<Grid> {
    cells::details(report, words)
}

/// One status when all seeds ended alike, counts otherwise; what went wrong, or how far a run is,
/// as detail.
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
    let note = cell.runs.iter().find_map(|run| run.note.as_deref().map(Text::from));
    let detail = note.or_else(|| cell.runs.iter().find_map(|run| progress(run, words)));
    Entry { text: text.into(), detail, tag: None, kind: Kind::Status(worst) }
}

/// How far an unfinished run is.
fn progress(run: &RunStatus, words: &Words) -> Option<Text> {
    let number = |key| Text::number(run.figures.get(key)?);
    let step = number("last_step").filter(|_| run.status == Status::Unfinished)?;
    Some(match number("total_steps") {
        Some(total) => fill(words.progress, &[("step", step), ("total", total)]),
        None => fill(words.progress_open, &[("step", step)]),
    })
}

/// The difference with its interval, or that there is none to speak of; then the seeds' spread.
fn difference(difference: &Difference, words: &Words) -> Entry {
    let mut entry = figure(&difference.figure, words);
    let interval = entry.detail.take();
    let mut details: Vec<Text> = Vec::new();
    if difference.verdict == Some(Verdict::NoDifference) {
        let number =
            std::mem::replace(&mut entry.text, words.verdict(Verdict::NoDifference).into());
        details.push(number.then(" ").then(interval.unwrap_or_default()));
    } else {
        details.extend(interval);
    }
    if let Some(spread) = difference.seeds.known().and_then(Text::range) {
        details.push(Text::from(words.seeds_word).then(" ").then(spread));
    }
    Entry { detail: (!details.is_empty()).then(|| Text::join(details, "; ")), ..entry }
}

fn figure(figure: &Figure, words: &Words) -> Entry {
    match figure {
        Figure::Known(known) => Entry {
            text: Text::from(&**known),
            detail: Text::range(known),
            tag: known.tf32.then_some("TF32"),
            kind: Kind::Number,
        },
        Figure::Absent { reason, .. } => absent(absence(*reason, words)),
    }
}

/// Why a field is empty. A run that is not done says so in its status, once a row.
fn absence(reason: Absent, words: &Words) -> String {
    match reason {
        Absent::NotDone(_) | Absent::NotApplicable => DASH.to_owned(),
        Absent::NotMeasured => words.not_measured.to_owned(),
        Absent::NotReached { reached: 0, .. } => words.not_reached.to_owned(),
        Absent::NotReached { reached, seeds } => {
            let counts = [("reached", reached), ("seeds", seeds)];
            fill(words.not_reached_by_all, &counts.map(|(k, n)| (k, n.to_string().into()))).plain()
        }
        Absent::NoBaseline => words.no_baseline.to_owned(),
        Absent::NotComparable => words.not_comparable.to_owned(),
        Absent::OtherHardware => words.other_hardware.to_owned(),
        Absent::NotPublished => words.not_published.to_owned(),
    }
}

fn name(text: impl Into<Text>) -> Entry {
    Entry { text: text.into(), detail: None, tag: None, kind: Kind::Name }
}

fn absent(text: impl Into<Text>) -> Entry {
    Entry { text: text.into(), detail: None, tag: None, kind: Kind::Absent }
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
        Unit::Hours => "h",
        Unit::Milliseconds => "ms",
        Unit::Gib => "GiB",
        Unit::SamplesPerSecond => words.samples_per_second,
        Unit::Count => "",
    }
}
