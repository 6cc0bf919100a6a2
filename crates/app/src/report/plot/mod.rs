//! The plots as inline SVG, each in a wide and a narrow drawing, so that text stays readable on a
//! phone: the page shows the one that fits. No font is needed to draw them; text takes the page's.

mod axis;
mod curves;
mod paint;
mod placement;
mod savings;
mod scaler;
mod steps;
mod trade;

use anyhow::{Context, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use serde::Serialize;

use super::lang::Words;
use super::model::Report;
use axis::Axis;
use paint::INK;

/// One plot with its heading, legend and both drawings.
pub(crate) struct Plot {
    pub(crate) title: &'static str,
    pub(crate) note: String,
    pub(crate) legend: Vec<LegendEntry>,
    /// `None` when there is nothing to draw.
    pub(crate) drawings: Option<Drawings>,
}

/// The same plot for two widths of page.
pub(crate) struct Drawings {
    pub(crate) wide: String,
    pub(crate) narrow: String,
    axes: Axes,
}

/// The numbers along the axes, in either drawing: a scale, nothing measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Axes {
    pub(crate) x_ticks: Vec<String>,
    pub(crate) y_ticks: Vec<String>,
}

/// A line of the legend; the page draws it in HTML, so that it wraps.
pub(crate) struct LegendEntry {
    pub(crate) label: String,
    /// In CSS.
    pub(crate) color: &'static str,
    pub(crate) mark: Mark,
}

/// What stands before a legend's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Line,
    DashedLine,
    Box,
}

impl Plot {
    pub(crate) fn axes(&self) -> Axes {
        self.drawings.as_ref().map_or_else(Axes::default, |drawings| drawings.axes.clone())
    }
}

/// Draws all that there is something to draw for, and the three that are always there.
///
/// # Errors
/// When the SVG cannot be written, which memory alone could cause.
pub(crate) fn all(report: &Report, words: &Words) -> Result<Vec<Plot>> {
    let mut plots = vec![curves::over_time(report, words)?];
    plots.extend(curves::over_epochs(report, words)?);
    plots.push(trade::plot(report, words)?);
    plots.push(savings::plot(report, words)?);
    plots.extend(steps::plot(report, words)?);
    plots.extend(scaler::plot(report, words)?);
    Ok(plots)
}

/// The canvas of a root drawing.
type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The two sizes that a plot is drawn in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Wide,
    Narrow,
}

impl Shape {
    fn size_px(self) -> (u32, u32) {
        match self {
            Shape::Wide => (880, 400),
            Shape::Narrow => (360, 340),
        }
    }

    /// Size of text in the drawing.
    fn font_px(self) -> f64 {
        match self {
            Shape::Wide => 13.0,
            Shape::Narrow => 11.5,
        }
    }

    /// About how many ticks fit along x.
    fn x_ticks(self) -> usize {
        match self {
            Shape::Wide => 9,
            Shape::Narrow => 5,
        }
    }
}

/// About how many ticks fit along y.
const Y_TICKS: usize = 6;

/// Draws one plot in both shapes.
fn drawings(
    title: &str,
    draw: impl Fn(&Canvas<'_>, Shape) -> Result<[Axis; 2]>,
) -> Result<Drawings> {
    let mut axes = Axes::default();
    let mut svg = |shape: Shape| -> Result<String> {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, shape.size_px()).into_drawing_area();
            let [x, y] = draw(&root, shape)?;
            x.add_to(&mut axes.x_ticks);
            y.add_to(&mut axes.y_ticks);
            root.present()?;
        }
        inline(&svg, shape, title)
    };
    let (wide, narrow) = (svg(Shape::Wide)?, svg(Shape::Narrow)?);
    Ok(Drawings { wide, narrow, axes })
}

/// Makes an SVG document an inline element: scalable, titled, in the page's font and colours.
fn inline(svg: &str, shape: Shape, title: &str) -> Result<String> {
    let (_, body) = svg.split_once('>').context("plotters wrote an SVG without a root element")?;
    let (width, height) = shape.size_px();
    let head =
        format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">");
    let body = body
        .replace(" font-family=\"sans-serif\"", "")
        .replace(" opacity=\"1\"", "")
        .replace(" stroke-width=\"1\"", "");
    Ok(head + &paint::in_css(&body))
}

/// Text of `size_px` on screen. plotters divides sizes by 1.24 when it writes SVG.
fn text_style(size_px: f64) -> TextStyle<'static> {
    ("sans-serif", size_px * 1.24).into_font().color(&INK)
}
