//! Peak memory against training time to the best checkpoint: a labelled point a cell, and the front
//! of those that no other beats in both.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::lang::Words;
use super::super::model::{Cell, Report};
use super::super::text::fill;
use super::axis::{Axis, Y_LABELS_PX, frame, with_headroom};
use super::paint::{CARD, GUIDE, INK, color};
use super::placement::place_labels;
use super::{Canvas, Plot, Shape, Y_TICKS, drawings, text_style};

const RADIUS_PX: i32 = 5;

/// A cell, its time in the report's unit and its memory in GiB.
type Point<'a> = (&'a Cell, f64, f64);

pub(super) fn plot(report: &Report, words: &Words) -> Result<Plot> {
    let points = points(report);
    let title = words.trade_title;
    let drawings = match points[..] {
        [] => None,
        _ => Some(drawings(title, |canvas, shape| draw(report, words, &points, canvas, shape))?),
    };
    let mut note = words.trade_note.to_owned();
    let drawn = |cell: &Cell| points.iter().any(|(other, ..)| other.cell == cell.cell);
    let front: Vec<String> = report.pareto_front.iter().map(|cell| cell.label()).collect();
    // Absent, not zero.
    let left_out = report.cells.iter().filter(|cell| !drawn(cell)).map(|cell| cell.label.clone());
    for (template, cells) in
        [(words.pareto_note, front), (words.not_drawn, left_out.collect::<Vec<_>>())]
    {
        if !cells.is_empty() {
            let sentence = fill(template, &[("cells", cells.join(", ").into())]);
            note += &format!(" {}", sentence.plain());
        }
    }
    Ok(Plot { title, note, legend: Vec::new(), drawings })
}

/// The cells that have both time and memory.
fn points(report: &Report) -> Vec<Point<'_>> {
    let cells = report.cells.iter();
    let points = cells.filter_map(|cell| {
        let time = report.notation.time_unit.of(cell.figure("train_s_to_best").value()?);
        Some((cell, time, cell.figure("peak_memory").value()?))
    });
    points.collect()
}

fn draw(
    report: &Report,
    words: &Words,
    points: &[Point<'_>],
    canvas: &Canvas<'_>,
    shape: Shape,
) -> Result<[Axis; 2]> {
    let longest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let largest = points.iter().map(|point| point.2).fold(0.0, f64::max);
    let unit = report.notation.time_unit.symbol();
    let x = format!("{} ({unit})", words.axis_time_to_best);
    let x = Axis::new(x, 0.0, with_headroom(longest), shape.x_ticks());
    let y = format!("{} (GiB)", words.memory_word);
    let y = Axis::new(y, 0.0, with_headroom(largest), Y_TICKS);
    let mut chart = frame(canvas, shape, [&x, &y], Y_LABELS_PX)?;
    let on_front = report.pareto_front.iter().filter_map(|id| {
        points.iter().find(|(cell, ..)| cell.cell == *id).map(|&(_, x, y)| (x, y))
    });
    chart.draw_series(LineSeries::new(on_front, GUIDE.stroke_width(2)))?;

    let area = chart.plotting_area();
    let pixels: Vec<(i32, i32)> =
        points.iter().map(|&(_, x, y)| area.map_coordinate(&(x, y))).collect();
    let labels: Vec<&str> = points.iter().map(|(cell, ..)| cell.label.as_str()).collect();
    let (x_range, y_range) = area.get_pixel_range();
    let placed = place_labels(&pixels, &labels, shape.font_px(), (x_range, y_range));
    let font = text_style(shape.font_px());
    for (((cell, ..), &at), (label, place)) in
        points.iter().zip(&pixels).zip(labels.iter().zip(placed))
    {
        let color = color(cell.cell);
        if let Some(leader) = place.leader {
            canvas.draw(&PathElement::new(vec![at, leader], INK.mix(0.45)))?;
        }
        let ground = if cell.cell.gc { CARD } else { color };
        canvas.draw(&Circle::new(at, RADIUS_PX, ground.filled()))?;
        canvas.draw(&Circle::new(at, RADIUS_PX, color.stroke_width(2)))?;
        let side = if place.ends_there { HPos::Right } else { HPos::Left };
        let style = font.clone().pos(Pos::new(side, VPos::Top));
        canvas.draw(&Text::new((*label).to_owned(), place.corner, style))?;
    }
    Ok([x, y])
}
