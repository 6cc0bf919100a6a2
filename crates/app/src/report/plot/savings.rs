//! Percent less than FP32: two bars a cell, memory and training time.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::cell::CellId;
use super::super::figure::{Figure, Known};
use super::super::lang::Words;
use super::super::model::{Cell, Report};
use super::super::table;
use super::axis::{Axis, frame};
use super::paint::{BARS, INK, bar};
use super::{Canvas, LegendEntry, Mark, Plot, Shape, drawings, text_style};

/// The figures of the two bars, upper first, in the order of the first two paints of [`BARS`].
const FIGURES: [&str; 2] = ["peak_memory_less", "train_s_to_best_less"];
/// Height of one bar where a cell's row is 1.
const BAR_HEIGHT: f64 = 0.36;
/// Between a bar's end and its number.
const GAP_PX: i32 = 6;

pub(super) fn plot(report: &Report, words: &Words) -> Result<Plot> {
    let title = words.savings_title;
    let labels = [words.memory_word, words.time_word];
    let legend = BARS.iter().zip(labels).map(|(color, label)| LegendEntry {
        label: label.to_owned(),
        color,
        mark: Mark::Box,
    });
    let drawings = match lowest_and_highest(report) {
        None => None,
        Some(ends) => {
            Some(drawings(title, |canvas, shape| draw(report, words, ends, canvas, shape))?)
        }
    };
    Ok(Plot { title, note: words.savings_note.to_owned(), legend: legend.collect(), drawings })
}

/// The ends of the bars, 0 included; `None` without any bar.
fn lowest_and_highest(report: &Report) -> Option<(f64, f64)> {
    let values = || {
        let figures = report.cells.iter().flat_map(|cell| FIGURES.map(|key| cell.figure(key)));
        figures.filter_map(Figure::value)
    };
    values().next()?;
    Some((values().fold(0.0, f64::min), values().fold(0.0, f64::max)))
}

fn draw(
    report: &Report,
    words: &Words,
    (lowest, highest): (f64, f64),
    canvas: &Canvas<'_>,
    shape: Shape,
) -> Result<[Axis; 2]> {
    let cells: Vec<&Cell> = report.cells.iter().filter(|c| c.cell != CellId::BASELINE).collect();
    let font = text_style(shape.font_px());
    // Room for the numbers behind the bars' ends.
    let (room, label_width) = if shape == Shape::Wide { (0.09, 110) } else { (0.27, 92) };
    let span = (highest - lowest).max(1.0);
    let left = if lowest < 0.0 { lowest - room * span } else { 0.0 };
    let x = Axis::new(words.axis_savings, left, highest + room * span, shape.x_ticks());
    let y = Axis::of_rows(cells.len());
    let chart = frame(canvas, shape, [&x, &y], label_width)?;
    let area = chart.plotting_area();
    let text = |text: String, (x, y): (f64, f64), side: HPos| {
        let (x, y) = area.map_coordinate(&(x, y));
        let away = if matches!(side, HPos::Right) { -GAP_PX } else { GAP_PX };
        let style = font.clone().pos(Pos::new(side, VPos::Center));
        canvas.draw(&Text::new(text, (x + away, y), style))
    };
    for (i, cell) in cells.iter().enumerate() {
        let middle = i as f64 + 0.5;
        text(cell.label.clone(), (left, middle), HPos::Right)?;
        if !cell.has_done() {
            text(table::status(cell, words).text.plain(), (0.0, middle), HPos::Left)?;
            continue;
        }
        for (n, top) in [middle - BAR_HEIGHT, middle].into_iter().enumerate() {
            let Some(known) = cell.figure(FIGURES[n]).known() else { continue };
            let corners = [(0.0, top), (known.value, top + BAR_HEIGHT)];
            area.draw(&Rectangle::new(corners, bar(n).filled()))?;
            let side = if known.value < 0.0 { HPos::Right } else { HPos::Left };
            text(label(known), (known.value, top + BAR_HEIGHT / 2.0), side)?;
        }
    }
    area.draw(&PathElement::new(vec![(0.0, 0.0), (0.0, cells.len() as f64)], INK))?;
    Ok([x, y])
}

/// The number, and TF32 beside every speed-up against it.
fn label(known: &Known) -> String {
    let tag = if known.tf32 { " TF32" } else { "" };
    format!("{}{tag}", known.shown)
}
