//! Each technique with the other two fixed: twelve rows.

use super::{DASH, Grid, Head, Row, absent, difference, figure, heading, name, status};
use crate::report::figure::{Absent, Figure};
use crate::report::lang::Words;
use crate::report::model::{Effect, Report, cell_of};
use crate::report::text::Text;

pub(super) fn grid(report: &Report, words: &Words) -> Grid {
    let unit = |key| Head::from(heading(words, report.notation, key));
    let header = vec![
        Head::from(words.technique.to_owned()),
        Head::from(words.comparison.to_owned()),
        Head::from(format!("{} ({})", words.difference, words.points)),
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
    let mut entries = vec![name(effect.technique.label()), name(pair)];
    let pair = [effect.without, effect.with].map(|id| cell_of(&report.cells, id));
    entries.push(match pair.into_iter().find(|cell| !cell.has_done()) {
        Some(cell) => {
            absent(Text::from(format!("{}: ", cell.label)).then(status(cell, words).text))
        }
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
