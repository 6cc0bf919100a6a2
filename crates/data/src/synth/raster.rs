//! A thin layer over `tiny-skia`: a canvas with one current transform, soft shapes, and the light
//! and shade that make flat shapes look round.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};

use tiny_skia::{
    Color, FillRule, FilterQuality, GradientStop, LinearGradient, Paint, Path, PathBuilder,
    Pattern as TilePattern, Pixmap, Point, Shader, SpreadMode, Stroke, Transform,
};

use super::palette::Rgb;

/// A point in the current units of the canvas.
pub(crate) fn at(x: f32, y: f32) -> Point {
    Point::from_xy(x, y)
}

/// What a shape is filled with.
#[derive(Clone, Copy)]
pub(crate) enum Ink<'a> {
    Flat(Rgb),
    /// A see-through colour with its opacity in `[0, 1]`.
    Veil(Rgb, f32),
    /// A repeated tile, `span` units of the canvas on each side.
    Tile(&'a Pixmap, f32),
}

/// An image under construction, opaque from the start.
pub(crate) struct Canvas {
    pixmap: Pixmap,
    transform: Transform,
    /// Strength of the shade in `[0, 1]`; negative when the light comes from the left.
    shade: f32,
}

impl Canvas {
    /// A canvas of `width x height` pixels (both from 1), filled with `ground`.
    pub(crate) fn new(width: u32, height: u32, ground: Rgb) -> Self {
        let mut pixmap = Pixmap::new(width, height).expect("frames have at least one pixel");
        pixmap.fill(opaque(ground));
        Self { pixmap, transform: Transform::identity(), shade: 0.0 }
    }

    /// From here on, shapes are given in units that `transform` maps to pixels.
    pub(crate) fn set_transform(&mut self, transform: Transform) {
        self.transform = transform;
    }

    pub(crate) fn set_shade(&mut self, shade: f32) {
        self.shade = shade;
    }

    /// The finished picture as RGB, row by row.
    pub(crate) fn into_rgb(self) -> Vec<u8> {
        // The canvas is opaque, so that the premultiplied channels are the colours themselves.
        self.pixmap.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect()
    }

    /// The finished picture as it is, to be used as a tile.
    pub(crate) fn into_pixmap(self) -> Pixmap {
        self.pixmap
    }

    /// Fills `path` flatly.
    pub(crate) fn fill(&mut self, path: &Path, ink: Ink<'_>) {
        let paint = Paint { shader: shader(ink), ..Paint::default() };
        self.pixmap.fill_path(path, &paint, FillRule::Winding, self.transform, None);
    }

    /// Fills `path` as a round body: darker on the side away from the light, thinly outlined.
    pub(crate) fn body(&mut self, path: &Path, ink: Ink<'_>) {
        self.fill(path, ink);
        let bounds = path.bounds();
        let (lit, dark) = if self.shade < 0.0 {
            (bounds.left(), bounds.right())
        } else {
            (bounds.right(), bounds.left())
        };
        let strength = self.shade.abs();
        let stops = vec![
            GradientStop::new(0.0, veil(Rgb(255, 255, 255), 0.22 * strength)),
            GradientStop::new(0.35, veil(Rgb(255, 255, 255), 0.0)),
            GradientStop::new(0.45, veil(Rgb(0, 0, 10), 0.0)),
            GradientStop::new(1.0, veil(Rgb(0, 0, 10), 0.55 * strength)),
        ];
        let gradient = LinearGradient::new(
            at(lit, bounds.top()),
            at(dark, bounds.top()),
            stops,
            SpreadMode::Pad,
            Transform::identity(),
        );
        if let Some(shader) = gradient {
            let paint = Paint { shader, ..Paint::default() };
            self.pixmap.fill_path(path, &paint, FillRule::Winding, self.transform, None);
        }
        self.stroke(path, Ink::Veil(Rgb(0, 0, 10), 0.28), 0.005);
    }

    /// Draws along `path` with a pen of `width` units.
    pub(crate) fn stroke(&mut self, path: &Path, ink: Ink<'_>, width: f32) {
        let paint = Paint { shader: shader(ink), ..Paint::default() };
        let stroke = Stroke { width, ..Stroke::default() };
        self.pixmap.stroke_path(path, &paint, &stroke, self.transform, None);
    }
}

fn shader(ink: Ink<'_>) -> Shader<'_> {
    match ink {
        Ink::Flat(rgb) => Shader::SolidColor(opaque(rgb)),
        Ink::Veil(rgb, opacity) => Shader::SolidColor(veil(rgb, opacity)),
        Ink::Tile(tile, span) => TilePattern::new(
            tile.as_ref(),
            SpreadMode::Repeat,
            FilterQuality::Bilinear,
            1.0,
            Transform::from_scale(span / tile.width() as f32, span / tile.height() as f32),
        ),
    }
}

fn opaque(Rgb(r, g, b): Rgb) -> Color {
    Color::from_rgba8(r, g, b, 255)
}

fn veil(Rgb(r, g, b): Rgb, opacity: f32) -> Color {
    Color::from_rgba8(r, g, b, (opacity.clamp(0.0, 1.0) * 255.0) as u8)
}

/// A closed shape with rounded corners: the given points pull the outline without touching it,
/// and a point given twice in a row makes a corner.
pub(crate) fn soft(points: &[Point]) -> Path {
    let middle = |a: Point, b: Point| at((a.x + b.x) / 2.0, (a.y + b.y) / 2.0);
    let last = points[points.len() - 1];
    let mut builder = PathBuilder::new();
    let start = middle(last, points[0]);
    builder.move_to(start.x, start.y);
    for (i, corner) in points.iter().enumerate() {
        let end = middle(*corner, points[(i + 1) % points.len()]);
        builder.quad_to(corner.x, corner.y, end.x, end.y);
    }
    builder.close();
    finish(builder)
}

/// A closed polygon.
pub(crate) fn polygon(points: &[Point]) -> Path {
    let mut builder = PathBuilder::new();
    builder.move_to(points[0].x, points[0].y);
    for point in &points[1..] {
        builder.line_to(point.x, point.y);
    }
    builder.close();
    finish(builder)
}

/// An open line through `points`.
pub(crate) fn line(points: &[Point]) -> Path {
    let mut builder = PathBuilder::new();
    builder.move_to(points[0].x, points[0].y);
    for point in &points[1..] {
        builder.line_to(point.x, point.y);
    }
    finish(builder)
}

/// An axis-aligned box from its top left corner.
pub(crate) fn rect(x: f32, y: f32, width: f32, height: f32) -> Path {
    polygon(&[at(x, y), at(x + width, y), at(x + width, y + height), at(x, y + height)])
}

/// How far the corners of [`soft`] must lie outside a circle's radius, at steps of 45 degrees, for
/// the curve to run within 1 % of the circle.
const PULL: f32 = 1.082;

/// An axis-aligned ellipse.
pub(crate) fn ellipse(x: f32, y: f32, radius_x: f32, radius_y: f32) -> Path {
    let points: Vec<Point> = (0..8)
        .map(|i| {
            let (sin, cos) = (FRAC_PI_4 * i as f32).sin_cos();
            at(x + PULL * radius_x * cos, y + PULL * radius_y * sin)
        })
        .collect();
    soft(&points)
}

/// A straight limb: round at both ends, `radius_a` thick at `a` and `radius_b` at `b`.
pub(crate) fn limb(a: Point, b: Point, radius_a: f32, radius_b: f32) -> Path {
    let along = direction(a, b);
    let points: Vec<Point> = cap(b, radius_b, along).chain(cap(a, radius_a, along + PI)).collect();
    soft(&points)
}

/// A limb that bends at its second point, with the radius at each of the three.
pub(crate) fn bent_limb(bones: [Point; 3], radii: [f32; 3]) -> Path {
    let [a, joint, b] = bones;
    let (first, second) = (direction(a, joint), direction(joint, b));
    let middle = (first + second) / 2.0;
    let side = |quarter: f32| around(joint, radii[1], middle + quarter);
    let points: Vec<Point> = cap(b, radii[2], second)
        .chain([side(FRAC_PI_2)])
        .chain(cap(a, radii[0], first + PI))
        .chain([side(-FRAC_PI_2)])
        .collect();
    soft(&points)
}

/// The angle of the way from `a` to `b`.
fn direction(a: Point, b: Point) -> f32 {
    (b.y - a.y).atan2(b.x - a.x)
}

fn around(middle: Point, radius: f32, angle: f32) -> Point {
    at(middle.x + radius * angle.cos(), middle.y + radius * angle.sin())
}

/// Points that pull half a circle around the end of a limb that points `towards` an angle.
fn cap(middle: Point, radius: f32, towards: f32) -> impl Iterator<Item = Point> {
    (-2i8..=2).map(move |i| {
        // The flanks already run along the limb; only the round part needs pulling.
        let pull = if i.abs() == 2 { 1.0 } else { PULL };
        around(middle, pull * radius, towards + FRAC_PI_4 * f32::from(i))
    })
}

fn finish(builder: PathBuilder) -> Path {
    builder.finish().expect("every shape here has a start and finite points")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ellipse_has_its_radii() {
        let bounds = ellipse(10.0, 20.0, 4.0, 8.0).compute_tight_bounds().unwrap();
        assert!((bounds.width() - 8.0).abs() < 0.1, "{bounds:?}");
        assert!((bounds.height() - 16.0).abs() < 0.2, "{bounds:?}");
    }

    #[test]
    fn shade_falls_on_the_side_away_from_the_light() {
        let mut canvas = Canvas::new(20, 10, Rgb(0, 0, 0));
        canvas.set_shade(-1.0); // light from the left
        canvas.body(&rect(2.0, 0.0, 16.0, 10.0), Ink::Flat(Rgb(120, 120, 120)));
        let pixels = canvas.into_rgb();
        let red = |x: usize| pixels[3 * (5 * 20 + x)];
        assert!(red(3) > 120 && red(16) < 100, "{} {}", red(3), red(16));
    }
}
