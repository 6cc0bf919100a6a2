//! Peak memory against training time to the best checkpoint: a labelled point a cell.

use anyhow::Result;
use plotters::prelude::*;

use super::super::lang::{Words, fill};
use super::super::model::{Cell, Report};
use super::placement::place_labels;
use super::{Canvas, GRID, INK, Plot, Shape, color, drawings, text_style, tick, with_headroom};

const RADIUS_PX: i32 = 5;

pub(super) fn plot(report: &Report, words: &Words) -> Result<Plot> {
    let points = points(report);
    let title = words.trade_title;
    let drawings = match points[..] {
        [] => None,
        _ => Some(drawings(title, |canvas, shape| draw(report, words, &points, canvas, shape))?),
    };
    let note = format!("{}{}", words.trade_note, not_drawn(report, words, &points));
    Ok(Plot { title, note, legend: Vec::new(), drawings })
}

/// (cell, time in the report's unit, memory in GiB) of the cells that have both.
fn points(report: &Report) -> Vec<(&Cell, f64, f64)> {
    let cells = report.cells.iter();
    let points = cells.filter_map(|cell| {
        let time = report.notation.time_unit.of(cell.figure("train_s_to_best").value()?);
        Some((cell, time, cell.figure("peak_memory").value()?))
    });
    points.collect()
}

/// " Not drawn: ..." for cells without a point: absent, not zero.
fn not_drawn(report: &Report, words: &Words, points: &[(&Cell, f64, f64)]) -> String {
    let drawn = |cell: &Cell| points.iter().any(|(other, ..)| other.cell == cell.cell);
    let labels: Vec<&str> =
        report.cells.iter().filter(|cell| !drawn(cell)).map(|cell| cell.label.as_str()).collect();
    match labels[..] {
        [] => String::new(),
        _ => format!(" {}", fill(words.not_drawn, &[("cells", &labels.join(", "))])),
    }
}

fn draw(
    report: &Report,
    words: &Words,
    points: &[(&Cell, f64, f64)],
    canvas: &Canvas<'_>,
    shape: Shape,
) -> Result<()> {
    let longest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let largest = points.iter().map(|point| point.2).fold(0.0, f64::max);
    let font = text_style(shape.font_px());
    let mut chart = ChartBuilder::on(canvas)
        .margin(10)
        .margin_right(18)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..with_headroom(longest), 0.0..with_headroom(largest))?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(font.clone())
        .axis_desc_style(font.clone())
        .x_labels(shape.x_ticks())
        .y_labels(6)
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .x_desc(format!("{} ({})", words.axis_time_to_best, report.notation.time_unit.symbol()))
        .y_desc(format!("{} (GiB)", words.memory_word))
        .draw()?;
    let area = chart.plotting_area();
    let pixels: Vec<(i32, i32)> =
        points.iter().map(|&(_, x, y)| area.map_coordinate(&(x, y))).collect();
    let labels: Vec<&str> = points.iter().map(|(cell, ..)| cell.label.as_str()).collect();
    let (x_range, y_range) = area.get_pixel_range();
    let placed = place_labels(&pixels, &labels, shape.font_px(), (x_range, y_range));
    for (((cell, ..), &at), (label, corner)) in
        points.iter().zip(&pixels).zip(labels.iter().zip(placed))
    {
        let color = color(cell.cell);
        if let Some(leader) = corner.leader {
            canvas.draw(&PathElement::new(vec![at, leader], INK.mix(0.45)))?;
        }
        canvas.draw(&Circle::new(
            at,
            RADIUS_PX,
            if cell.cell.gc { WHITE } else { color }.filled(),
        ))?;
        canvas.draw(&Circle::new(at, RADIUS_PX, color.stroke_width(2)))?;
        canvas.draw(&Text::new((*label).to_owned(), corner.top_left, font.clone()))?;
    }
    Ok(())
}
