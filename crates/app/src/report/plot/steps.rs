//! Where the time of a step goes: a bar a cell, part after part.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::lang::Words;
use super::super::model::{Cell, Report};
use super::super::run_figures::STEP_PARTS;
use super::super::table;
use super::axis::{Axis, frame, with_headroom};
use super::paint::{BARS, bar};
use super::{Canvas, LegendEntry, Mark, Plot, Shape, drawings, text_style};

/// The paint of the first part among [`BARS`].
const FIRST_PAINT: usize = 2;
/// Height of a bar where a cell's row is 1.
const BAR_HEIGHT: f64 = 0.6;
/// Between a bar's end and its number.
const GAP_PX: i32 = 6;

/// None where no finished run recorded the parts.
pub(super) fn plot(report: &Report, words: &Words) -> Result<Option<Plot>> {
    let longest = report.cells.iter().filter_map(|cell| Some((parts(cell)?, cell)));
    let longest = longest.map(|(parts, _)| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    if longest == 0.0 {
        return Ok(None);
    }
    let title = words.steps_title;
    let legend = STEP_PARTS.iter().zip(&BARS[FIRST_PAINT..]).map(|(key, color)| LegendEntry {
        label: words.column(key).to_owned(),
        color,
        mark: Mark::Box,
    });
    let drawings = drawings(title, |canvas, shape| draw(report, words, longest, canvas, shape))?;
    let (note, legend) = (words.steps_note.to_owned(), legend.collect());
    Ok(Some(Plot { title, note, legend, drawings: Some(drawings) }))
}

/// The parts of a cell's step in ms. What is left of a step is less than nothing where only some
/// of the steps are logged; then it has no length.
fn parts(cell: &Cell) -> Option<[f64; 4]> {
    let mut parts = [0.0; 4];
    for (part, key) in parts.iter_mut().zip(STEP_PARTS) {
        *part = cell.figure(key).value()?.max(0.0);
    }
    Some(parts)
}

fn draw(
    report: &Report,
    words: &Words,
    longest: f64,
    canvas: &Canvas<'_>,
    shape: Shape,
) -> Result<[Axis; 2]> {
    let font = text_style(shape.font_px());
    let label_width = if shape == Shape::Wide { 110 } else { 92 };
    let room = if shape == Shape::Wide { 1.03 } else { 1.12 };
    let x = Axis::new(words.axis_step_ms, 0.0, with_headroom(longest) * room, shape.x_ticks());
    let y = Axis::of_rows(report.cells.len());
    let chart = frame(canvas, shape, [&x, &y], label_width)?;
    let area = chart.plotting_area();
    let text = |text: String, (x, y): (f64, f64), side: HPos| {
        let (x, y) = area.map_coordinate(&(x, y));
        let away = if matches!(side, HPos::Right) { -GAP_PX } else { GAP_PX };
        let style = font.clone().pos(Pos::new(side, VPos::Center));
        canvas.draw(&Text::new(text, (x + away, y), style))
    };
    for (i, cell) in report.cells.iter().enumerate() {
        let middle = i as f64 + 0.5;
        text(cell.label.clone(), (0.0, middle), HPos::Right)?;
        let Some(parts) = parts(cell) else {
            text(table::status(cell, words).text.plain(), (0.0, middle), HPos::Left)?;
            continue;
        };
        let mut from = 0.0;
        for (n, part) in parts.into_iter().enumerate() {
            let (top, bottom) = (middle - BAR_HEIGHT / 2.0, middle + BAR_HEIGHT / 2.0);
            let corners = [(from, top), (from + part, bottom)];
            area.draw(&Rectangle::new(corners, bar(FIRST_PAINT + n).filled()))?;
            from += part;
        }
        let shown = cell.figure("step_ms").known().map(|known| known.shown.clone());
        text(shown.unwrap_or_default(), (from, middle), HPos::Left)?;
    }
    Ok([x, y])
}
