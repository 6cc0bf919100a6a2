//! The loss scale of every run that has one, and the steps that were skipped.

use anyhow::Result;
use plotters::prelude::*;

use super::super::cell::CellId;
use super::super::lang::Words;
use super::super::model::{Report, ScalerHistory};
use super::axis::{Axis, Y_LABELS_PX, frame, with_headroom};
use super::paint::{color, css, stroke};
use super::{Canvas, LegendEntry, Mark, Plot, Shape, drawings};

/// None where no run has a loss scale.
pub(super) fn plot(report: &Report, words: &Words) -> Result<Option<Plot>> {
    if report.scalers.is_empty() {
        return Ok(None);
    }
    let drawn = |cell: &CellId| report.scalers.iter().any(|history| history.cell == *cell);
    let legend = CellId::ALL.into_iter().filter(drawn).map(|cell| LegendEntry {
        label: cell.label(),
        color: css(cell),
        mark: if cell.gc { Mark::DashedLine } else { Mark::Line },
    });
    let title = words.scaler_title;
    let drawings = drawings(title, |canvas, shape| draw(report, words, canvas, shape))?;
    let (note, legend) = (words.scaler_note.to_owned(), legend.collect());
    Ok(Some(Plot { title, note, legend, drawings: Some(drawings) }))
}

fn draw(report: &Report, words: &Words, canvas: &Canvas<'_>, shape: Shape) -> Result<[Axis; 2]> {
    let points = || report.scalers.iter().flat_map(|history| &history.scaler.points);
    let last = points().map(|(step, _)| *step as f64).fold(1.0, f64::max);
    let exponents = || points().map(|(_, scale)| scale.log2());
    let highest = exponents().fold(f64::NEG_INFINITY, f64::max).ceil() + 1.0;
    let lowest = exponents().fold(f64::INFINITY, f64::min).floor() - 1.0;
    let x = Axis::new(words.axis_step, 0.0, with_headroom(last), shape.x_ticks());
    // A tick a power of two, or every so many where there are more than fit.
    let every = (((highest - lowest) / 8.0).ceil() as usize).max(1);
    let powers = (lowest as i32..=highest as i32).step_by(every);
    let ticks = powers.map(|power| (f64::from(power), 2_f64.powi(power).to_string()));
    let y = Axis::new(words.axis_scale, lowest, highest, 8).with_ticks(ticks.collect());
    let mut chart = frame(canvas, shape, [&x, &y], Y_LABELS_PX + 18)?;
    for history in &report.scalers {
        let style = stroke(history.cell).stroke_width(2);
        chart.draw_series(LineSeries::new(stairs(history), style))?;
        let skipped = history.scaler.skipped.iter().filter_map(|&step| {
            let place = (step as f64, scale_at(history, step)?.log2());
            Some(Cross::new(place, 4, color(history.cell).stroke_width(1)))
        });
        chart.draw_series(skipped)?;
    }
    Ok([x, y])
}

/// The scale as a line that is level between its changes.
fn stairs(history: &ScalerHistory) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::new();
    for &(step, scale) in &history.scaler.points {
        let (step, exponent) = (step as f64, scale.log2());
        if let Some(&(_, before)) = line.last() {
            line.push((step, before));
        }
        line.push((step, exponent));
    }
    line
}

/// The scale that `step` was made with.
fn scale_at(history: &ScalerHistory, step: u64) -> Option<f64> {
    let points = &history.scaler.points;
    let after = points.partition_point(|(first, _)| *first <= step);
    points.get(after.checked_sub(1)?).map(|(_, scale)| *scale)
}
