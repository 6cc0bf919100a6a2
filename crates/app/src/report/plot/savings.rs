//! Percent less than FP32: two bars a cell, memory and training time.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::cell::CellId;
use super::super::figure::Figure;
use super::super::lang::Words;
use super::super::model::{Cell, Report};
use super::super::table;
use super::{Canvas, GRID, INK, LegendEntry, Mark, Plot, Shape, drawings, text_style, tick};

/// (figure, colour) of the two bars, upper first.
const BARS: [(&str, RGBColor); 2] = [
    ("peak_memory_less", RGBColor(0x00, 0x72, 0xb2)),
    ("train_s_to_best_less", RGBColor(0xe6, 0x9f, 0x00)),
];
/// Height of one bar where a cell's row is 1.
const BAR_HEIGHT: f64 = 0.36;
/// Between a bar's end and its number.
const GAP_PX: i32 = 6;

pub(super) fn plot(report: &Report, words: &Words) -> Result<Plot> {
    let title = words.savings_title;
    let labels = [words.memory_word, words.time_word];
    let legend = BARS.iter().zip(labels).map(|((_, color), label)| LegendEntry {
        label: label.to_owned(),
        color: *color,
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
        let figures = report.cells.iter().flat_map(|cell| BARS.map(|(key, _)| cell.figure(key)));
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
) -> Result<()> {
    let cells: Vec<&Cell> = report.cells.iter().filter(|c| c.cell != CellId::BASELINE).collect();
    let font = text_style(shape.font_px());
    // Room for the numbers behind the bars' ends.
    let (room, label_width) = if shape == Shape::Wide { (0.09, 110) } else { (0.27, 92) };
    let span = (highest - lowest).max(1.0);
    let left = if lowest < 0.0 { lowest - room * span } else { 0.0 };
    let mut chart = ChartBuilder::on(canvas)
        .margin(10)
        .margin_right(18)
        .x_label_area_size(44)
        .y_label_area_size(label_width)
        .build_cartesian_2d(left..highest + room * span, cells.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(font.clone())
        .axis_desc_style(font.clone())
        .x_labels(shape.x_ticks())
        .x_label_formatter(&tick)
        .x_desc(words.axis_savings)
        .draw()?;
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
            text(table::status(cell, words).text, (0.0, middle), HPos::Left)?;
            continue;
        }
        for ((key, color), top) in BARS.iter().zip([middle - BAR_HEIGHT, middle]) {
            let Some(known) = cell.figure(key).known() else { continue };
            let bar = [(0.0, top), (known.value, top + BAR_HEIGHT)];
            area.draw(&Rectangle::new(bar, color.filled()))?;
            let side = if known.value < 0.0 { HPos::Right } else { HPos::Left };
            text(known.shown.clone(), (known.value, top + BAR_HEIGHT / 2.0), side)?;
        }
    }
    area.draw(&PathElement::new(vec![(0.0, 0.0), (0.0, cells.len() as f64)], INK))?;
    Ok(())
}
