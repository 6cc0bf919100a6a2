//! The three plots as inline SVG, each in a wide and a narrow drawing, so that text stays readable
//! on a phone: the page shows the one that fits. No font is needed to draw them; text takes the
//! page's.

mod curves;
mod placement;
mod savings;
mod trade;

use anyhow::{Context, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::cell::CellId;
use super::lang::Words;
use super::model::Report;

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
}

/// A line of the legend; the page draws it in HTML, so that it wraps.
pub(crate) struct LegendEntry {
    pub(crate) label: String,
    pub(crate) color: RGBColor,
    pub(crate) mark: Mark,
}

/// What stands before a legend's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Line,
    DashedLine,
    Box,
}

/// Draws all three.
///
/// # Errors
/// When the SVG cannot be written, which memory alone could cause.
pub(crate) fn all(report: &Report, words: &Words) -> Result<[Plot; 3]> {
    Ok([curves::plot(report, words)?, trade::plot(report, words)?, savings::plot(report, words)?])
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
            Shape::Wide => 10,
            Shape::Narrow => 5,
        }
    }
}

const INK: RGBColor = RGBColor(0x33, 0x36, 0x3b);
const GRID: RGBColor = RGBColor(0xe3, 0xe5, 0xe8);

/// Four hues of Okabe and Ito's palette, which colour-blind readers can tell apart: one for each
/// precision and EMA. GC is told by dashes and hollow points instead.
fn color(cell: CellId) -> RGBColor {
    match (cell.amp, cell.ema) {
        (false, false) => RGBColor(0x4d, 0x4d, 0x4d),
        (false, true) => RGBColor(0x00, 0x72, 0xb2),
        (true, false) => RGBColor(0xd5, 0x5e, 0x00),
        (true, true) => RGBColor(0x00, 0x8a, 0x66),
    }
}

/// Draws one plot in both shapes.
fn drawings(title: &str, draw: impl Fn(&Canvas<'_>, Shape) -> Result<()>) -> Result<Drawings> {
    let svg = |shape: Shape| -> Result<String> {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, shape.size_px()).into_drawing_area();
            draw(&root, shape)?;
            root.present()?;
        }
        inline(&svg, shape, title)
    };
    Ok(Drawings { wide: svg(Shape::Wide)?, narrow: svg(Shape::Narrow)? })
}

/// Makes an SVG document an inline element: scalable, titled, without namespace or fonts.
fn inline(svg: &str, shape: Shape, title: &str) -> Result<String> {
    let (_, body) = svg.split_once('>').context("plotters wrote an SVG without a root element")?;
    let (width, height) = shape.size_px();
    let head =
        format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">");
    Ok(head + &body.replace(" font-family=\"sans-serif\"", ""))
}

/// Text of `size_px` on screen. plotters divides sizes by 1.24 when it writes SVG.
fn text_style(size_px: f64) -> TextStyle<'static> {
    ("sans-serif", size_px * 1.24).into_font().color(&INK)
}

/// The upper end of an axis that starts at 0 and shows `highest` with some room above.
fn with_headroom(highest: f64) -> f64 {
    if highest > 0.0 { highest * 1.06 } else { 1.0 }
}

/// A tick's number without trailing zeros.
fn tick(value: &f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.replace('-', "−") }
}
