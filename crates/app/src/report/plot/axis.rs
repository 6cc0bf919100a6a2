//! Axes with ticks at round numbers, and the frame of a plot.

use anyhow::Result;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;

use super::paint::{GRID, INK};
use super::{Canvas, Shape, text_style};

/// One axis: its range, its name, and the places that have a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) label: String,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis with about so many ticks at multiples of 1, 2, 2.5 or 5 times a power of ten.
    pub(super) fn new(label: impl Into<String>, from: f64, to: f64, about: usize) -> Axis {
        let rough = (to - from) / about as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough);
        let step = step.unwrap_or(10.0 * power);
        let (first, last) = ((from / step).ceil() as i64, (to / step).floor() as i64);
        // A multiple of the step, not a sum of steps: sums would drift off the round numbers.
        let ticks = (first..=last).map(|i| i as f64 * step).map(|at| (at, tick(at))).collect();
        Axis { from, to, label: label.into(), ticks }
    }

    /// The same axis with these ticks instead.
    pub(super) fn with_ticks(self, ticks: Vec<(f64, String)>) -> Axis {
        Axis { ticks, ..self }
    }

    /// An axis without numbers, for rows that have names.
    pub(super) fn of_rows(num: usize) -> Axis {
        Axis { from: num as f64, to: 0.0, label: String::new(), ticks: Vec::new() }
    }

    /// Adds the tick labels that are not in `labels` yet.
    pub(super) fn add_to(&self, labels: &mut Vec<String>) {
        for (_, label) in &self.ticks {
            if !labels.contains(label) {
                labels.push(label.clone());
            }
        }
    }

    /// The label of the tick at `place`.
    fn show(&self, place: f64) -> String {
        let found = self.ticks.iter().find(|(at, _)| *at == place);
        found.map_or_else(String::new, |(_, label)| label.clone())
    }
}

/// plotters' own axes choose their ticks and tell nobody; these stand in the report.
impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        let share = (value - self.from) / (self.to - self.from);
        low + (share * f64::from(high - low)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(at, _)| *at).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.from..self.to
    }
}

type Coord = Cartesian2d<Axis, Axis>;
/// A plot that can be drawn into.
pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Coord>;

/// How much room the names on the left take.
pub(super) const Y_LABELS_PX: u32 = 66;

/// Draws axes and grid; rows without numbers have neither along y.
pub(super) fn frame<'a, 'b>(
    canvas: &'a Canvas<'b>,
    shape: Shape,
    [x, y]: [&Axis; 2],
    left_px: u32,
) -> Result<Chart<'a, 'b>> {
    let font = text_style(shape.font_px());
    let mut chart = ChartBuilder::on(canvas)
        .margin(10)
        .margin_right(18)
        .x_label_area_size(44)
        .y_label_area_size(left_px)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let (show_x, show_y) = (|at: &f64| x.show(*at), |at: &f64| y.show(*at));
    let mut mesh = chart.configure_mesh();
    mesh.bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(font.clone())
        .axis_desc_style(font)
        .x_label_formatter(&show_x)
        .y_label_formatter(&show_y)
        .x_desc(x.label.as_str())
        .y_desc(y.label.as_str());
    if y.label.is_empty() {
        mesh.disable_y_mesh().disable_y_axis();
    }
    mesh.draw()?;
    drop(mesh);
    Ok(chart)
}

/// The upper end of an axis that starts at 0 and shows `highest` with some room above.
pub(super) fn with_headroom(highest: f64) -> f64 {
    if highest > 0.0 { highest * 1.06 } else { 1.0 }
}

/// A tick's number without trailing zeros.
fn tick(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if matches!(text, "-0" | "") { "0".to_owned() } else { text.replace('-', "−") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_at_round_numbers() {
        let check = |from, to, about, expected: &[&str]| {
            let mut labels = Vec::new();
            Axis::new("", from, to, about).add_to(&mut labels);
            assert_eq!(labels, expected, "{from} to {to}");
        };
        check(0.0, 172.0, 9, &["0", "20", "40", "60", "80", "100", "120", "140", "160"]);
        check(0.0, 0.13, 6, &["0", "0.025", "0.05", "0.075", "0.1", "0.125"]);
        check(-33.0, 60.0, 5, &["−20", "0", "20", "40", "60"]);
        check(1.2, 1.9, 6, &["1.2", "1.4", "1.6", "1.8"]);
    }

    #[test]
    fn values_are_placed_by_their_share_of_the_range() {
        let axis = Axis::new("", 10.0, 30.0, 5);
        assert_eq!([10.0, 15.0, 30.0].map(|at| axis.map(&at, (100, 300))), [100, 150, 300]);
        assert_eq!(Axis::of_rows(4).map(&1.0, (100, 0)), 25);
        assert_eq!((axis.show(20.0), axis.show(11.0)), ("20".to_owned(), String::new()));
    }
}
