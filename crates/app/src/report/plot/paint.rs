//! Colours. plotters knows neither CSS variables nor dashes, so each paint is a colour that stands
//! for itself in its SVG, and is replaced by what the page means by it.

use plotters::style::RGBColor;

use super::super::cell::CellId;

/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(1, 0, 0);
/// Lines behind the data.
pub(super) const GRID: RGBColor = RGBColor(1, 0, 1);
/// The ground.
pub(super) const CARD: RGBColor = RGBColor(1, 0, 2);
/// A dashed line that is no data.
pub(super) const GUIDE: RGBColor = RGBColor(1, 0, 3);

/// The colour of a precision with or without EMA. GC is told by dashes and hollow points instead.
pub(super) fn color(cell: CellId) -> RGBColor {
    RGBColor(2, 0, hue(cell) as u8)
}

/// The stroke of a cell's curve: dashed with GC.
pub(super) fn stroke(cell: CellId) -> RGBColor {
    RGBColor(if cell.gc { 3 } else { 2 }, 0, hue(cell) as u8)
}

/// The colour of bar `i` of [`BARS`].
pub(super) fn bar(i: usize) -> RGBColor {
    RGBColor(4, 0, i as u8)
}

/// What the bars of the plots are, in CSS.
pub(super) const BARS: [&str; 6] = [
    "var(--memory)",
    "var(--time)",
    "var(--wait)",
    "var(--compute)",
    "var(--update)",
    "var(--other)",
];

/// Four hues that colour-blind readers can tell apart; the style sheet has them for light and dark.
const HUES: [&str; 4] = ["var(--fp32)", "var(--fp32-ema)", "var(--amp)", "var(--amp-ema)"];

fn hue(cell: CellId) -> usize {
    2 * usize::from(cell.amp) + usize::from(cell.ema)
}

/// [`color`] in CSS.
pub(super) fn css(cell: CellId) -> &'static str {
    HUES[hue(cell)]
}

/// Puts the page's colours into plotters' SVG.
pub(super) fn in_css(svg: &str) -> String {
    let hex = |RGBColor(r, g, b): RGBColor| format!("#{r:02X}{g:02X}{b:02X}");
    let plain = [(INK, "currentColor"), (GRID, "var(--grid)"), (CARD, "var(--card)")];
    let mut svg = svg.to_owned();
    for (color, css) in plain {
        svg = svg.replace(&hex(color), css);
    }
    for (i, css) in HUES.iter().enumerate() {
        svg = svg.replace(&hex(RGBColor(2, 0, i as u8)), css);
        let dashed = format!("{css}\" stroke-dasharray=\"7 4");
        svg = svg.replace(&hex(RGBColor(3, 0, i as u8)), &dashed);
    }
    for (i, css) in BARS.iter().enumerate() {
        svg = svg.replace(&hex(bar(i)), css);
    }
    svg.replace(&hex(GUIDE), "var(--muted)\" stroke-dasharray=\"2 4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paints_become_the_pages_colours() {
        let svg = "<line stroke=\"#010000\"/><line stroke=\"#030003\"/><rect fill=\"#040005\"/>";
        let expected = "<line stroke=\"currentColor\"/>\
                        <line stroke=\"var(--amp-ema)\" stroke-dasharray=\"7 4\"/>\
                        <rect fill=\"var(--other)\"/>";
        assert_eq!(in_css(svg), expected);
        let gc = CellId { amp: true, ema: true, gc: true };
        assert_eq!((css(gc), color(gc) == stroke(gc)), ("var(--amp-ema)", false));
    }
}
