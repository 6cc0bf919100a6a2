//! Our figures and the paper's, side by side, for the cells that the paper's page gives.

use super::{Entry, Grid, Head, Row, figure, heading, name, status};
use crate::report::lang::Words;
use crate::report::model::{Report, cell_of};
use crate::report::paper::PaperCell;
use crate::report::text::Text;

/// Our columns; the paper's stand in the same order.
const COLUMNS: [&str; 5] =
    ["val_r1", "train_s_to_best", "train_s_to_best_less", "peak_memory", "peak_memory_less"];

pub(super) fn grid(report: &Report, words: &Words) -> Grid {
    let mut header = vec![Head::from(words.configuration.to_owned())];
    header.extend(COLUMNS.map(|key| Head::from(heading(words, report.notation, key))));
    let units = ["%", "h", "%", "GiB", "%"];
    header.extend(COLUMNS.iter().zip(units).map(|(key, unit)| Head {
        text: format!("{}: {} ({unit})", words.of_the_paper, words.column(key)).into(),
        of_paper: true,
    }));
    let rows = report.paper.iter().map(|paper| row(report, paper, words)).collect();
    let note = words.paper_note.to_owned();
    Grid { heading: words.paper_heading, note, header, rows, footnote: None }
}

fn row(report: &Report, paper: &PaperCell, words: &Words) -> Row {
    let cell = cell_of(&report.cells, paper.cell);
    let status: Option<Text> = (!cell.has_done()).then(|| status(cell, words).text);
    let mut entries = vec![Entry { detail: status, ..name(cell.label.clone()) }];
    entries.extend(COLUMNS.map(|key| figure(cell.figure(key), words)));
    let of_paper = [
        &paper.val_r1,
        &paper.train_h_to_best,
        &paper.train_h_to_best_less,
        &paper.peak_vram_gib,
        &paper.peak_vram_gib_less,
    ];
    entries.extend(of_paper.map(|f| figure(f, words)));
    Row { entries, starts_group: false }
}
