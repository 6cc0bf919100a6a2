//! R@1 over training time and over epochs: one curve a run, coloured and dashed by its cell, with
//! the targets across.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::cell::CellId;
use super::super::lang::Words;
use super::super::load::{Evaluation, Status};
use super::super::model::{Curve, Report};
use super::axis::{Axis, Chart, Y_LABELS_PX, frame, with_headroom};
use super::paint::{GUIDE, color, css, stroke};
use super::{Canvas, LegendEntry, Mark, Plot, Shape, Y_TICKS, drawings, text_style};

/// What the curves run along.
struct Along<'a> {
    label: String,
    of: &'a dyn Fn(&Evaluation) -> f64,
}

pub(super) fn over_time(report: &Report, words: &Words) -> Result<Plot> {
    let unit = report.notation.time_unit;
    let along = Along {
        label: format!("{} ({})", words.axis_time, unit.symbol()),
        of: &|evaluation| unit.of(evaluation.train_s),
    };
    plot(report, words, &along, words.curves_title, words.curves_note)
}

/// None before there is an evaluation: the plot over time says so already.
pub(super) fn over_epochs(report: &Report, words: &Words) -> Result<Option<Plot>> {
    let along = Along { label: words.axis_epoch.to_owned(), of: &|evaluation| evaluation.epoch };
    let plot = plot(report, words, &along, words.epochs_title, words.epochs_note)?;
    Ok(Some(plot).filter(|plot| plot.drawings.is_some()))
}

fn plot(
    report: &Report,
    words: &Words,
    along: &Along<'_>,
    title: &'static str,
    note: &str,
) -> Result<Plot> {
    let drawn = |cell: &CellId| report.curves.iter().any(|curve| curve.cell == *cell);
    let legend = CellId::ALL.into_iter().filter(drawn).map(|cell| LegendEntry {
        label: cell.label(),
        color: css(cell),
        mark: if cell.gc { Mark::DashedLine } else { Mark::Line },
    });
    let drawings = match report.curves[..] {
        [] => None,
        _ => Some(drawings(title, |canvas, shape| draw(report, words, along, canvas, shape))?),
    };
    Ok(Plot { title, note: note.to_owned(), legend: legend.collect(), drawings })
}

fn draw(
    report: &Report,
    words: &Words,
    along: &Along<'_>,
    canvas: &Canvas<'_>,
    shape: Shape,
) -> Result<[Axis; 2]> {
    let all = || report.curves.iter().flat_map(|curve| &curve.points);
    let targets = || report.target_scores.iter().map(|score| score.r1);
    let farthest = all().map(along.of).fold(0.0, f64::max);
    let highest = all().map(|e| e.r1).chain(targets()).fold(0.0, f64::max);
    let lowest = all().map(|e| e.r1).chain(targets()).fold(highest, f64::min);
    // Accuracy is no length: its axis may start where the curves do, and so tell them apart.
    let room = (0.06 * (highest - lowest)).max(0.5);
    let x = Axis::new(along.label.as_str(), 0.0, with_headroom(farthest), shape.x_ticks());
    let y = Axis::new(words.axis_r1, (lowest - room).max(0.0), highest + room, Y_TICKS);
    let mut chart = frame(canvas, shape, [&x, &y], Y_LABELS_PX)?;
    draw_targets(report, words, &mut chart, &x, canvas, shape)?;
    for curve in &report.curves {
        draw_curve(curve, along, &mut chart)?;
    }
    Ok([x, y])
}

/// A thin line across for each target, named above its right end, where fewer curves pass.
fn draw_targets(
    report: &Report,
    words: &Words,
    chart: &mut Chart<'_, '_>,
    x: &Axis,
    canvas: &Canvas<'_>,
    shape: Shape,
) -> Result<()> {
    let font = text_style(shape.font_px() - 1.0).pos(Pos::new(HPos::Right, VPos::Bottom));
    for score in &report.target_scores {
        let Some(shown) = score.figure.known().map(|known| &known.shown) else { continue };
        let ends = [(x.from, score.r1), (x.to, score.r1)];
        chart.draw_series(LineSeries::new(ends, GUIDE))?;
        let (right, top) = chart.plotting_area().map_coordinate(&ends[1]);
        let label = format!("{} {shown}%", words.target_word);
        canvas.draw(&Text::new(label, (right - 4, top - 3), font.clone()))?;
    }
    Ok(())
}

fn draw_curve(curve: &Curve, along: &Along<'_>, chart: &mut Chart<'_, '_>) -> Result<()> {
    let at = |e: &Evaluation| ((along.of)(e), e.r1);
    let style = stroke(curve.cell).stroke_width(2);
    chart.draw_series(LineSeries::new(curve.points.iter().map(at), style))?;
    if curve.status == Status::Done {
        let dot = best(curve).map(|e| Circle::new(at(e), 4, color(curve.cell).filled()));
        chart.draw_series(dot)?;
    } else {
        let style = color(curve.cell).stroke_width(2);
        let end = curve.points.last().map(|e| Cross::new(at(e), 5, style));
        chart.draw_series(end)?;
    }
    Ok(())
}

/// The first evaluation with the highest R@1: where the best checkpoint was written.
fn best(curve: &Curve) -> Option<&Evaluation> {
    curve.points.iter().reduce(|best, e| if e.r1 > best.r1 { e } else { best })
}
