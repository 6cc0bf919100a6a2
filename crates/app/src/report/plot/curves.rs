//! Validation R@1 over training time: one curve a run, coloured and dashed by its cell.

use anyhow::Result;
use plotters::prelude::*;

use super::super::cell::CellId;
use super::super::lang::Words;
use super::super::load::{Evaluation, Status};
use super::super::model::{Curve, Report};
use super::{
    Canvas, GRID, INK, LegendEntry, Mark, Plot, Shape, color, drawings, text_style, tick,
    with_headroom,
};

pub(super) fn plot(report: &Report, words: &Words) -> Result<Plot> {
    let drawn = |cell: &CellId| report.curves.iter().any(|curve| curve.cell == *cell);
    let legend = CellId::ALL.into_iter().filter(drawn).map(|cell| LegendEntry {
        label: cell.label(),
        color: color(cell),
        mark: if cell.gc { Mark::DashedLine } else { Mark::Line },
    });
    let title = words.curves_title;
    let drawings = match report.curves[..] {
        [] => None,
        _ => Some(drawings(title, |canvas, shape| draw(report, words, canvas, shape))?),
    };
    Ok(Plot { title, note: words.curves_note.to_owned(), legend: legend.collect(), drawings })
}

fn draw(report: &Report, words: &Words, canvas: &Canvas<'_>, shape: Shape) -> Result<()> {
    let unit = report.notation.time_unit;
    let all = || report.curves.iter().flat_map(|curve| &curve.points);
    let longest = all().map(|e| unit.of(e.train_s)).fold(0.0, f64::max);
    let highest = all().map(|e| e.r1).fold(0.0, f64::max);
    let lowest = all().map(|e| e.r1).fold(highest, f64::min);
    // Accuracy is no length: its axis may start where the curves do, and so tell them apart.
    let room = (0.06 * (highest - lowest)).max(0.5);
    let font = text_style(shape.font_px());
    let mut chart = ChartBuilder::on(canvas)
        .margin(10)
        .margin_right(18)
        .x_label_area_size(44)
        .y_label_area_size(52)
        .build_cartesian_2d(
            0.0..with_headroom(longest),
            (lowest - room).max(0.0)..highest + room,
        )?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(font.clone())
        .axis_desc_style(font)
        .x_labels(shape.x_ticks())
        .y_labels(6)
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .x_desc(format!("{} ({})", words.axis_time, unit.symbol()))
        .y_desc(words.axis_r1)
        .draw()?;
    for curve in &report.curves {
        let points = curve.points.iter().map(|e| (unit.of(e.train_s), e.r1));
        let style = color(curve.cell).stroke_width(2);
        match curve.cell.gc {
            true => chart.draw_series(DashedLineSeries::new(points, 7, 4, style)).map(drop)?,
            false => chart.draw_series(LineSeries::new(points, style)).map(drop)?,
        }
        let at = |e: &Evaluation| (unit.of(e.train_s), e.r1);
        if curve.status == Status::Done {
            let dot = best(curve).map(|e| Circle::new(at(e), 4, color(curve.cell).filled()));
            chart.draw_series(dot)?;
        } else {
            let end = curve.points.last().map(|e| Cross::new(at(e), 5, style));
            chart.draw_series(end)?;
        }
    }
    Ok(())
}

/// The first evaluation with the highest R@1: where the best checkpoint was written.
fn best(curve: &Curve) -> Option<&Evaluation> {
    curve.points.iter().reduce(|best, e| if e.r1 > best.r1 { e } else { best })
}
