//! Backgrounds: seven kinds of places with random colours, furniture and passers-by. They are
//! drawn without regard to who stands in front, and their colours spoil plain colour statistics.

use tiny_skia::Transform;

use super::palette::{Colour, Rgb};
use super::raster::{Canvas, Ink, at, ellipse, line, polygon, rect};
use super::stream::Stream;

/// One background.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    place: Place,
    wall: Rgb,
    ground: Rgb,
    /// Where wall and ground meet, in frame heights.
    horizon: f32,
    /// Seeds the details.
    detail: u64,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Street,
    Park,
    Corridor,
    Shop,
    Crossing,
    Station,
    BrickWall,
}

const PLACES: [Place; 7] = [
    Place::Street,
    Place::Park,
    Place::Corridor,
    Place::Shop,
    Place::Crossing,
    Place::Station,
    Place::BrickWall,
];

impl Scene {
    pub(crate) fn draw(stream: &mut Stream) -> Self {
        Self {
            place: stream.pick(&PLACES),
            wall: paint(stream),
            ground: pavement(stream),
            horizon: stream.range(0.3, 0.62),
            detail: stream.bits(),
        }
    }

    /// The colour that fills what nothing else covers.
    pub(crate) fn ground(&self) -> Rgb {
        self.ground
    }

    /// Paints the scene over a frame of `width x height` pixels.
    pub(crate) fn paint(&self, canvas: &mut Canvas, width: u32, height: u32) {
        let stream = &mut Stream::from_bits(self.detail);
        // Frame widths and heights as units: details keep their place whatever the resolution.
        canvas.set_transform(Transform::from_scale(width as f32, height as f32));
        match self.place {
            Place::Street => self.street(canvas, stream),
            Place::Park => self.park(canvas, stream),
            Place::Corridor => self.corridor(canvas, stream),
            Place::Shop => self.shop(canvas, stream),
            Place::Crossing => self.crossing(canvas, stream),
            Place::Station => self.station(canvas, stream),
            Place::BrickWall => self.brick_wall(canvas, stream),
        }
        for _ in 0..stream.weighted(&[(0, 0.6), (1, 0.25), (2, 0.15)]) {
            passer_by(canvas, stream, self.horizon);
        }
        if stream.chance(0.25) {
            pole(canvas, stream);
        }
    }

    fn upper_wall(&self, canvas: &mut Canvas, rgb: Rgb) {
        canvas.fill(&rect(0.0, 0.0, 1.0, self.horizon), Ink::Flat(rgb));
    }

    fn street(&self, canvas: &mut Canvas, stream: &mut Stream) {
        self.upper_wall(canvas, self.wall);
        let glass = Rgb(70, 92, 112).mix(paint(stream), 0.3);
        let (step_x, step_y) = (stream.range(0.22, 0.4), stream.range(0.12, 0.2));
        let offset = stream.range(-0.2, 0.0);
        for column in 0..6 {
            for row in 0..6 {
                let (x, y) = (offset + column as f32 * step_x, 0.02 + row as f32 * step_y);
                if y + step_y * 0.6 < self.horizon {
                    canvas.fill(&rect(x, y, step_x * 0.6, step_y * 0.6), Ink::Flat(glass));
                }
            }
        }
        self.slabs(canvas, stream);
        if stream.chance(0.45) {
            car(canvas, stream, self.horizon);
        }
    }

    fn park(&self, canvas: &mut Canvas, stream: &mut Stream) {
        let leaves = Rgb(62, 104, 48).mix(paint(stream), 0.25);
        self.upper_wall(canvas, Rgb(168, 196, 214).mix(leaves, stream.range(0.2, 0.9)));
        for _ in 0..5 {
            let (x, y) = (stream.unit(), stream.range(0.0, self.horizon));
            let shade = leaves.scaled(stream.range(0.65, 1.25));
            let radius = stream.range(0.12, 0.34);
            canvas.fill(&ellipse(x, y, radius, radius * 0.5), Ink::Flat(shade));
        }
        for _ in 0..2 {
            let x = stream.unit();
            let trunk = rect(x, 0.0, stream.range(0.04, 0.1), self.horizon + 0.05);
            canvas.fill(&trunk, Ink::Flat(Rgb(84, 64, 46)));
        }
        let grass = Rgb(96, 132, 62).scaled(stream.range(0.7, 1.2));
        canvas.fill(&rect(0.0, self.horizon, 1.0, 1.0), Ink::Flat(grass));
        let (near, far) = (stream.range(-0.4, 0.2), stream.range(0.2, 0.5));
        let path = polygon(&[
            at(far, self.horizon),
            at(far + 0.3, self.horizon),
            at(near + 1.2, 1.0),
            at(near, 1.0),
        ]);
        canvas.fill(&path, Ink::Flat(self.ground));
    }

    fn corridor(&self, canvas: &mut Canvas, stream: &mut Stream) {
        self.upper_wall(canvas, self.wall.mix(Rgb(226, 222, 210), 0.6));
        let left = stream.range(-0.1, 0.7);
        let door = rect(left, 0.04, 0.36, self.horizon - 0.04);
        canvas.fill(&door, Ink::Flat(paint(stream).scaled(0.75)));
        let skirting = rect(0.0, self.horizon - 0.02, 1.0, 0.02);
        canvas.fill(&skirting, Ink::Flat(self.wall.scaled(0.5)));
        self.tiles(canvas);
    }

    fn shop(&self, canvas: &mut Canvas, stream: &mut Stream) {
        self.upper_wall(canvas, self.wall.scaled(0.6));
        for pane in 0..3 {
            let x = -0.05 + 0.38 * pane as f32;
            let glass = Rgb(176, 190, 196).mix(paint(stream), 0.55);
            canvas.fill(&rect(x, 0.1, 0.33, self.horizon - 0.16), Ink::Flat(glass));
            let goods = rect(x + 0.06, self.horizon - 0.24, stream.range(0.08, 0.2), 0.16);
            canvas.fill(&goods, Ink::Flat(paint(stream)));
        }
        canvas.fill(&rect(0.0, 0.02, 1.0, 0.06), Ink::Flat(paint(stream)));
        self.slabs(canvas, stream);
    }

    fn crossing(&self, canvas: &mut Canvas, stream: &mut Stream) {
        let asphalt = Rgb(92, 94, 98).mix(self.ground, 0.2);
        self.upper_wall(canvas, self.wall.mix(asphalt, 0.4));
        canvas.fill(&rect(0.0, self.horizon, 1.0, 1.0), Ink::Flat(asphalt));
        let slant = stream.range(-0.15, 0.15);
        for bar in 0..4 {
            let y = self.horizon + 0.06 + 0.17 * bar as f32;
            let stripe = polygon(&[
                at(0.0, y),
                at(1.0, y + slant),
                at(1.0, y + slant + 0.075),
                at(0.0, y + 0.075),
            ]);
            canvas.fill(&stripe, Ink::Flat(Rgb(206, 206, 202)));
        }
        if stream.chance(0.6) {
            car(canvas, stream, self.horizon);
        }
    }

    fn station(&self, canvas: &mut Canvas, stream: &mut Stream) {
        let tile = self.wall.mix(Rgb(214, 216, 218), 0.4);
        self.upper_wall(canvas, tile);
        let joint = Ink::Veil(Rgb(0, 0, 0), 0.18);
        for row in 1..10 {
            let y = 0.07 * row as f32;
            if y < self.horizon {
                canvas.fill(&rect(0.0, y, 1.0, 0.006), joint);
            }
        }
        let band = rect(0.0, stream.range(0.08, 0.25), 1.0, 0.07);
        canvas.fill(&band, Ink::Flat(paint(stream)));
        self.tiles(canvas);
        let edge = rect(0.0, self.horizon + stream.range(0.05, 0.3), 1.0, 0.03);
        canvas.fill(&edge, Ink::Flat(Rgb(226, 190, 60)));
    }

    fn brick_wall(&self, canvas: &mut Canvas, stream: &mut Stream) {
        let brick = Rgb(150, 84, 64).mix(self.wall, stream.range(0.1, 0.8));
        self.upper_wall(canvas, brick);
        let mortar = Ink::Veil(Rgb(230, 224, 214), 0.4);
        let rows = (self.horizon / 0.045) as usize;
        for row in 0..rows {
            let y = 0.045 * row as f32;
            canvas.fill(&rect(0.0, y, 1.0, 0.007), mortar);
            for joint in 0..5 {
                let x = 0.25 * joint as f32 + if row % 2 == 0 { 0.0 } else { 0.125 };
                canvas.fill(&rect(x, y, 0.016, 0.045), mortar);
            }
        }
        if stream.chance(0.5) {
            let poster = rect(stream.range(-0.1, 0.75), 0.12, 0.3, 0.22);
            canvas.fill(&poster, Ink::Flat(paint(stream)));
        }
        self.slabs(canvas, stream);
    }

    /// Pavement with joints that run together towards the horizon.
    fn slabs(&self, canvas: &mut Canvas, stream: &mut Stream) {
        canvas.fill(&rect(0.0, self.horizon, 1.0, 1.0), Ink::Flat(self.ground));
        let joint = Ink::Veil(Rgb(0, 0, 0), 0.22);
        let vanishing = stream.range(0.2, 0.8);
        for i in -4..=4 {
            let x = vanishing + 0.16 * i as f32;
            let far_x = vanishing + (x - vanishing) * 0.45;
            let near_x = vanishing + (x - vanishing) * 2.4;
            canvas.stroke(&line(&[at(far_x, self.horizon), at(near_x, 1.0)]), joint, 0.008);
        }
        for row in 0..5 {
            let y = self.horizon + (1.0 - self.horizon) * (row as f32 / 5.0).powi(2);
            canvas.fill(&rect(0.0, y, 1.0, 0.005), joint);
        }
        let kerb = rect(0.0, self.horizon, 1.0, 0.018);
        canvas.fill(&kerb, Ink::Flat(self.ground.scaled(0.75)));
    }

    /// A polished floor in two tones.
    fn tiles(&self, canvas: &mut Canvas) {
        canvas.fill(&rect(0.0, self.horizon, 1.0, 1.0), Ink::Flat(self.ground));
        let dark = Ink::Flat(self.ground.scaled(0.86));
        let depth = 1.0 - self.horizon;
        for row in 0..6 {
            let top = self.horizon + depth * (row as f32 / 6.0).powf(1.6);
            let bottom = self.horizon + depth * ((row + 1) as f32 / 6.0).powf(1.6);
            let width = 0.12 + 0.05 * row as f32;
            for column in -4..=4 {
                let x = 0.5 + width * (2 * column + row % 2) as f32;
                canvas.fill(&rect(x, top, width, bottom - top), dark);
            }
        }
    }
}

fn car(canvas: &mut Canvas, stream: &mut Stream, horizon: f32) {
    let (x, y) = (stream.range(-0.5, 0.7), horizon + stream.range(-0.02, 0.06));
    let rgb = paint(stream);
    canvas.fill(&rect(x, y - 0.11, 0.75, 0.1), Ink::Flat(rgb));
    let cabin = [
        at(x + 0.12, y - 0.11),
        at(x + 0.22, y - 0.18),
        at(x + 0.52, y - 0.18),
        at(x + 0.64, y - 0.11),
    ];
    canvas.fill(&polygon(&cabin), Ink::Flat(Rgb(60, 70, 80)));
    for dx in [0.16, 0.58] {
        canvas.fill(&ellipse(x + dx, y - 0.012, 0.08, 0.033), Ink::Flat(Rgb(24, 24, 26)));
    }
}

/// Somebody smaller, further off, and in no caption.
fn passer_by(canvas: &mut Canvas, stream: &mut Stream, horizon: f32) {
    // Kept to the sides, where the main figure does not stand.
    let x = if stream.chance(0.5) { stream.range(-0.02, 0.16) } else { stream.range(0.84, 1.02) };
    let size = stream.range(0.28, 0.5);
    let top = horizon - size * stream.range(0.45, 0.75);
    let (coat, trousers) = (paint(stream), paint(stream).scaled(0.6));
    let y = |share: f32| top + share * size;
    for dx in [-0.075 * size, 0.075 * size] {
        let leg = rect(x + dx - 0.06 * size, y(0.48), 0.12 * size, 0.5 * size);
        canvas.fill(&leg, Ink::Flat(trousers));
    }
    canvas.fill(&ellipse(x, y(0.33), 0.2 * size, 0.2 * size), Ink::Flat(coat));
    canvas.fill(&ellipse(x, y(0.05), 0.1 * size, 0.07 * size), Ink::Flat(Rgb(206, 164, 132)));
    canvas.fill(&ellipse(x, y(0.02), 0.1 * size, 0.05 * size), Ink::Flat(Rgb(40, 32, 30)));
}

fn pole(canvas: &mut Canvas, stream: &mut Stream) {
    let x = if stream.chance(0.5) { stream.range(0.0, 0.14) } else { stream.range(0.84, 0.97) };
    let rgb = Rgb(110, 112, 116).mix(paint(stream), 0.3);
    canvas.fill(&rect(x, 0.0, stream.range(0.025, 0.06), stream.range(0.6, 0.9)), Ink::Flat(rgb));
}

/// Any colour a wall, car or sign may have: those of clothes, more or less faded.
fn paint(stream: &mut Stream) -> Rgb {
    let vivid = stream.pick(&Colour::ALL).rgb();
    let grey = vivid.luma() as u8;
    let faded = vivid.mix(Rgb(grey, grey, grey), stream.range(0.0, 0.5));
    faded.mix(Rgb(200, 196, 190), stream.range(0.0, 0.3))
}

/// Asphalt and stone mostly, painted or carpeted floors at times.
fn pavement(stream: &mut Stream) -> Rgb {
    let base = stream.range(85.0, 205.0);
    let mut channel = || (base + 12.0 * stream.bell()).clamp(0.0, 255.0) as u8;
    let stone = Rgb(channel(), channel(), channel());
    if stream.chance(0.4) { stone.mix(paint(stream), stream.range(0.3, 0.8)) } else { stone }
}
