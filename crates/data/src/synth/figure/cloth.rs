//! Cloth as ink: plain, or a repeating tile of stripes, checks or dots.

use tiny_skia::{Pixmap, Transform};

use crate::synth::palette::Rgb;
use crate::synth::person::{Pattern, Upper};
use crate::synth::raster::{Canvas, Ink, ellipse, rect};

/// Pixels on each side of a tile.
const TILE: u32 = 24;
/// Body units on each side of a tile: a torso shows about four repeats.
const SPAN: f32 = 0.098;

/// What an upper garment is made of.
pub(super) struct Cloth {
    pub(super) main: Rgb,
    pub(super) accent: Rgb,
    tile: Option<Pixmap>,
}

impl Cloth {
    pub(super) fn new(upper: &Upper) -> Self {
        let (main, accent) = (upper.dye.rgb, upper.accent.rgb);
        Self { main, accent, tile: tile(upper.pattern, main, accent) }
    }

    pub(super) fn ink(&self) -> Ink<'_> {
        match &self.tile {
            Some(tile) => Ink::Tile(tile, SPAN),
            None => Ink::Flat(self.main),
        }
    }
}

fn tile(pattern: Pattern, main: Rgb, accent: Rgb) -> Option<Pixmap> {
    let mut canvas = Canvas::new(TILE, TILE, main);
    canvas.set_transform(Transform::from_scale(TILE as f32, TILE as f32));
    let ink = Ink::Flat(accent);
    match pattern {
        Pattern::Plain | Pattern::Logo | Pattern::Sleeves => return None,
        Pattern::HorizontalStripes => canvas.fill(&rect(0.0, 0.25, 1.0, 0.45), ink),
        Pattern::VerticalStripes => canvas.fill(&rect(0.3, 0.0, 0.4, 1.0), ink),
        Pattern::Checks => {
            canvas.fill(&rect(0.0, 0.3, 1.0, 0.4), Ink::Veil(accent, 0.55));
            canvas.fill(&rect(0.3, 0.0, 0.4, 1.0), Ink::Veil(accent, 0.55));
        }
        Pattern::Dots => {
            canvas.fill(&ellipse(0.25, 0.25, 0.2, 0.2), ink);
            canvas.fill(&ellipse(0.75, 0.75, 0.2, 0.2), ink);
        }
    }
    Some(canvas.into_pixmap())
}
