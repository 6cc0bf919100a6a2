//! The answer in one sentence, and the three cells that lead in one respect each.

use serde::Serialize;

use super::cell::CellId;
use super::compare::Verdict;
use super::figure::{Figure, Known};
use super::lang::Words;
use super::model::{Cell, MemoryBasis, cell_of};
use super::notation::Notation;
use super::text::{Text, fill};

/// What the matrix says, computed from its cells.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    pub(crate) sentence: Text,
    /// The cell that the sentence recommends, if any beats FP32.
    pub(crate) cell: Option<CellId>,
    pub(crate) highlights: Vec<Highlight>,
}

/// The best cell in one respect.
#[derive(Debug, Serialize)]
pub(crate) struct Highlight {
    /// The figure it leads in.
    pub(crate) key: &'static str,
    pub(crate) cell: CellId,
    pub(crate) label: String,
    pub(crate) figure: Figure,
}

impl Answer {
    /// `split` is the one that checkpoints were selected on, in words.
    pub(crate) fn of(
        cells: &[Cell],
        basis: MemoryBasis,
        split: &str,
        notation: Notation,
        words: &Words,
    ) -> Answer {
        let best = best_trade(cells);
        let sentence = match best {
            _ if !cell_of(cells, CellId::BASELINE).has_done() => words.answer_no_baseline.into(),
            _ if cells.iter().filter(|cell| cell.has_done()).count() == 1 => {
                words.answer_only_baseline.into()
            }
            None => words.answer_none.into(),
            Some(cell) => sentence(cells, cell, basis, split, notation, words)
                .unwrap_or_else(|| words.answer_none.into()),
        };
        let highlights = [("val_r1", true), ("train_s_to_best", false), ("peak_memory", false)];
        Answer {
            sentence,
            cell: best.map(|cell| cell.cell),
            highlights: highlights
                .into_iter()
                .filter_map(|(key, most)| Highlight::of(cells, key, most))
                .collect(),
        }
    }

    /// The cell whose results are shown: the one that is recommended, or else the most accurate.
    pub(crate) fn shown_cell(&self) -> Option<CellId> {
        self.cell.or_else(|| Some(self.highlights.iter().find(|h| h.key == "val_r1")?.cell))
    }
}

impl Highlight {
    fn of(cells: &[Cell], key: &'static str, most: bool) -> Option<Highlight> {
        let sign = if most { -1.0 } else { 1.0 };
        let scored = cells.iter().filter_map(|cell| Some((cell, sign * cell.figure(key).value()?)));
        let (cell, _) = scored.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let figure = cell.figure(key).clone();
        Some(Highlight { key, cell: cell.cell, label: cell.label.clone(), figure })
    }
}

/// The cell with the least time x memory relative to FP32, among those whose R@1 is not lower than
/// FP32's beyond the noise. `None` when that product is not below FP32's own.
fn best_trade(cells: &[Cell]) -> Option<&Cell> {
    let cost = |cell: &Cell| {
        let share = |key| Some(1.0 - cell.figure(key).value()? / 100.0);
        Some(share("train_s_to_best_less")? * share("peak_memory_less")?)
    };
    cells
        .iter()
        .filter(|cell| cell.r1_vs_fp32.verdict != Some(Verdict::Lower))
        .filter_map(|cell| Some((cell, cost(cell)?)))
        .filter(|(_, cost)| *cost < 1.0)
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(cell, _)| cell)
}

fn sentence(
    cells: &[Cell],
    cell: &Cell,
    basis: MemoryBasis,
    split: &str,
    notation: Notation,
    words: &Words,
) -> Option<Text> {
    let base = cell_of(cells, CellId::BASELINE);
    let shown = |cell: &Cell, key| Text::number(cell.figure(key));
    let change = |key, phrases| Some(phrase(cell.figure(key).known()?, phrases, words));
    let verdict = match (&cell.r1_vs_fp32.figure, cell.r1_vs_fp32.verdict) {
        (Figure::Known(known), Some(verdict)) => {
            let interval = Text::range(known).unwrap_or_default();
            let difference = Text::from(&**known).then(" ").then(interval);
            Text::from(words.verdict(verdict))
                .then(": ")
                .then(difference)
                .then(" ")
                .then(words.points)
        }
        _ => words.not_tested.into(),
    };
    Some(fill(
        words.answer,
        &[
            ("cell", cell.label.as_str().into()),
            ("time", shown(cell, "train_s_to_best")?),
            ("base_time", shown(base, "train_s_to_best")?),
            ("time_unit", notation.time_unit.symbol().into()),
            ("memory", shown(cell, "peak_memory")?),
            ("base_memory", shown(base, "peak_memory")?),
            ("basis", words.basis(basis).into()),
            ("split", split.into()),
            ("time_change", change("train_s_to_best_less", words.time_change)?),
            ("memory_change", change("peak_memory_less", words.memory_change)?),
            ("r1", shown(cell, "val_r1")?),
            ("base_r1", shown(base, "val_r1")?),
            ("verdict", verdict),
        ],
    ))
}

/// "90.0% less time" for a saving, "12.0% more time" for a loss: then without its sign.
fn phrase(less: &Known, [saving, loss]: [&str; 2], words: &Words) -> Text {
    let template = if less.value < 0.0 { loss } else { saving };
    let mut number = Known { shown_range: None, ..less.clone() };
    number.shown = less.shown.trim_start_matches('−').to_owned();
    let phrase = fill(template, &[("percent", Text::from(&number))]);
    if less.tf32 { phrase.then(format!(" ({})", words.against_tf32)) } else { phrase }
}
