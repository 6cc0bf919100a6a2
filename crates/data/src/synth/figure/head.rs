//! Head, face, hair, hat and glasses.

use super::skeleton::Skeleton;
use crate::synth::palette::Rgb;
use crate::synth::person::{Gender, Glasses, Hair, HairCut, Hat, HatKind, Person};
use crate::synth::raster::{Canvas, Ink, at, ellipse, limb, line, rect, soft};
use crate::synth::view::Facing;

/// Height of the middle of the head.
const MIDDLE: f32 = 0.072;

pub(super) fn draw(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton) {
    let head = Head { x: 0.008 * skeleton.turn, y: skeleton.y(MIDDLE) };
    let hair = &person.hair;
    match skeleton.facing {
        Facing::Front => {
            head.hair_behind(canvas, hair);
            head.face(canvas, person);
            head.fringe(canvas, hair);
        }
        Facing::Back => head.seen_from_behind(canvas, person),
        Facing::Left | Facing::Right => head.in_profile(canvas, person),
    }
    if let Some(glasses) = person.glasses {
        head.glasses(canvas, glasses, skeleton.facing);
    }
    if let Some(hat) = &person.hat {
        head.hat(canvas, hat, skeleton.facing);
    }
}

/// The middle of the head; shapes are given relative to it.
struct Head {
    x: f32,
    y: f32,
}

impl Head {
    fn oval(&self, canvas: &mut Canvas, dx: f32, dy: f32, radius: (f32, f32), rgb: Rgb) {
        canvas.body(&ellipse(self.x + dx, self.y + dy, radius.0, radius.1), Ink::Flat(rgb));
    }

    /// A lock of hair hanging from the head to `dy` below its middle.
    fn lock(&self, canvas: &mut Canvas, half_width: f32, dy: f32, rgb: Rgb) {
        let path = soft(&[
            at(self.x - 0.04, self.y - 0.055),
            at(self.x + 0.04, self.y - 0.055),
            at(self.x + half_width, self.y),
            at(self.x + half_width, self.y + dy),
            at(self.x + half_width * 0.6, self.y + dy + 0.012),
            at(self.x - half_width * 0.6, self.y + dy + 0.012),
            at(self.x - half_width, self.y + dy),
            at(self.x - half_width, self.y),
        ]);
        canvas.body(&path, Ink::Flat(rgb));
    }

    fn hair_behind(&self, canvas: &mut Canvas, hair: &Hair) {
        let rgb = hair.shade.rgb();
        match hair.cut {
            HairCut::Medium => self.lock(canvas, 0.07, 0.08, rgb),
            HairCut::Long => self.lock(canvas, 0.082, 0.19, rgb),
            HairCut::Bun => self.oval(canvas, 0.0, -0.07, (0.028, 0.024), rgb),
            HairCut::Bald | HairCut::Short | HairCut::Ponytail => {}
        }
    }

    fn face(&self, canvas: &mut Canvas, person: &Person) {
        let skin = person.body.skin;
        if matches!(person.hair.cut, HairCut::Medium | HairCut::Long) {
            // The neck again, since the hair hangs behind it.
            canvas.fill(
                &limb(at(self.x, self.y + 0.03), at(0.0, self.y + 0.082), 0.024, 0.026),
                Ink::Flat(skin.scaled(0.88)),
            );
        }
        self.oval(canvas, -0.044, 0.008, (0.008, 0.014), skin);
        self.oval(canvas, 0.044, 0.008, (0.008, 0.014), skin);
        self.oval(canvas, 0.0, 0.004, (0.043, 0.056), skin);
        let dark = Ink::Veil(Rgb(20, 14, 12), 0.85);
        for dx in [-0.017, 0.017] {
            canvas.fill(&ellipse(self.x + dx, self.y + 0.004, 0.0065, 0.005), dark);
            let brow = line(&[
                at(self.x + dx - 0.009, self.y - 0.009),
                at(self.x + dx + 0.009, self.y - 0.009),
            ]);
            canvas.stroke(&brow, Ink::Veil(Rgb(20, 14, 12), 0.5), 0.004);
        }
        let nose = line(&[at(self.x, self.y + 0.006), at(self.x + 0.004, self.y + 0.02)]);
        canvas.stroke(&nose, Ink::Veil(Rgb(60, 20, 10), 0.3), 0.005);
        let lips = match person.gender {
            Gender::Woman => Ink::Veil(Rgb(178, 40, 52), 0.8),
            Gender::Man => Ink::Veil(Rgb(110, 44, 40), 0.65),
        };
        canvas.fill(&ellipse(self.x, self.y + 0.034, 0.013, 0.0045), lips);
    }

    fn fringe(&self, canvas: &mut Canvas, hair: &Hair) {
        if hair.cut == HairCut::Bald {
            return;
        }
        let side = match hair.cut {
            HairCut::Medium | HairCut::Long => 0.03,
            _ => -0.002,
        };
        let path = soft(&[
            at(self.x - 0.053, self.y + side),
            at(self.x - 0.055, self.y - 0.068),
            at(self.x, self.y - 0.085),
            at(self.x + 0.055, self.y - 0.068),
            at(self.x + 0.053, self.y + side),
            at(self.x + 0.038, self.y + side * 0.6 - 0.01),
            at(self.x + 0.034, self.y - 0.034),
            at(self.x - 0.012, self.y - 0.026),
            at(self.x - 0.038, self.y - 0.036),
            at(self.x - 0.038, self.y + side * 0.6 - 0.01),
        ]);
        canvas.body(&path, Ink::Flat(hair.shade.rgb()));
    }

    fn seen_from_behind(&self, canvas: &mut Canvas, person: &Person) {
        let hair = &person.hair;
        let rgb = hair.shade.rgb();
        self.oval(canvas, 0.0, 0.004, (0.044, 0.056), person.body.skin);
        match hair.cut {
            HairCut::Bald => return,
            HairCut::Medium => self.lock(canvas, 0.064, 0.075, rgb),
            HairCut::Long => self.lock(canvas, 0.076, 0.22, rgb),
            HairCut::Short | HairCut::Ponytail | HairCut::Bun => {
                self.oval(canvas, 0.0, -0.01, (0.049, 0.056), rgb);
            }
        }
        match hair.cut {
            HairCut::Ponytail => {
                let tail = limb(at(self.x, self.y), at(self.x, self.y + 0.15), 0.024, 0.016);
                canvas.body(&tail, Ink::Flat(rgb.scaled(0.85)));
            }
            HairCut::Bun => self.oval(canvas, 0.0, -0.05, (0.028, 0.025), rgb.scaled(0.85)),
            _ => {}
        }
    }

    /// Facing right.
    fn in_profile(&self, canvas: &mut Canvas, person: &Person) {
        let hair = &person.hair;
        let rgb = hair.shade.rgb();
        let skin = person.body.skin;
        match hair.cut {
            HairCut::Medium => {
                canvas.body(
                    &limb(at(-0.018, self.y), at(-0.03, self.y + 0.075), 0.042, 0.038),
                    Ink::Flat(rgb),
                );
            }
            HairCut::Long => {
                canvas.body(
                    &limb(at(-0.018, self.y), at(-0.042, self.y + 0.17), 0.042, 0.036),
                    Ink::Flat(rgb),
                );
            }
            HairCut::Ponytail => {
                let tail = limb(at(-0.045, self.y - 0.02), at(-0.075, self.y + 0.12), 0.02, 0.014);
                canvas.body(&tail, Ink::Flat(rgb));
            }
            HairCut::Bun => self.oval(canvas, -0.05, -0.035, (0.026, 0.025), rgb),
            HairCut::Bald | HairCut::Short => {}
        }
        canvas.body(
            &limb(at(0.006, self.y + 0.05), at(0.0, self.y + 0.08), 0.026, 0.028),
            Ink::Flat(skin.scaled(0.92)),
        );
        self.oval(canvas, 0.004, 0.004, (0.047, 0.055), skin);
        self.oval(canvas, 0.051, 0.012, (0.008, 0.009), skin);
        canvas.fill(
            &ellipse(self.x + 0.034, self.y + 0.002, 0.005, 0.006),
            Ink::Veil(Rgb(20, 14, 12), 0.85),
        );
        canvas.fill(
            &ellipse(self.x + 0.043, self.y + 0.034, 0.008, 0.004),
            Ink::Veil(Rgb(150, 44, 48), 0.7),
        );
        if hair.cut == HairCut::Bald {
            return;
        }
        let path = soft(&[
            at(self.x + 0.046, self.y - 0.04),
            at(self.x + 0.03, self.y - 0.076),
            at(self.x - 0.03, self.y - 0.08),
            at(self.x - 0.06, self.y - 0.03),
            at(self.x - 0.05, self.y + 0.04),
            at(self.x - 0.018, self.y + 0.045),
            at(self.x - 0.012, self.y + 0.0),
            at(self.x + 0.008, self.y - 0.034),
        ]);
        canvas.body(&path, Ink::Flat(rgb));
    }

    fn glasses(&self, canvas: &mut Canvas, glasses: Glasses, facing: Facing) {
        let (frame, lens) = match glasses {
            Glasses::Clear => (Ink::Flat(Rgb(24, 22, 24)), Ink::Veil(Rgb(220, 235, 245), 0.35)),
            Glasses::Sun => (Ink::Flat(Rgb(10, 10, 12)), Ink::Flat(Rgb(18, 18, 22))),
        };
        let middles: &[f32] = match facing {
            Facing::Front => &[-0.018, 0.018],
            Facing::Back => return,
            Facing::Left | Facing::Right => &[0.036],
        };
        for dx in middles {
            let path = ellipse(self.x + dx, self.y + 0.004, 0.015, 0.012);
            canvas.fill(&path, lens);
            canvas.stroke(&path, frame, 0.005);
        }
        let reach = if facing == Facing::Front { (-0.042, 0.042) } else { (-0.012, 0.024) };
        let bridge =
            line(&[at(self.x + reach.0, self.y - 0.001), at(self.x + reach.1, self.y - 0.001)]);
        canvas.stroke(&bridge, frame, 0.004);
    }

    fn hat(&self, canvas: &mut Canvas, hat: &Hat, facing: Facing) {
        let rgb = hat.dye.rgb;
        let (low, top) = match hat.kind {
            HatKind::Cap => (-0.024, -0.084),
            HatKind::Beanie => (-0.014, -0.106),
            HatKind::SunHat => (-0.03, -0.092),
        };
        let crown = soft(&[
            at(self.x - 0.055, self.y + low),
            at(self.x - 0.055, self.y + low),
            at(self.x - 0.055, self.y + top),
            at(self.x + 0.055, self.y + top),
            at(self.x + 0.055, self.y + low),
            at(self.x + 0.055, self.y + low),
        ]);
        canvas.body(&crown, Ink::Flat(rgb));
        match hat.kind {
            HatKind::Cap => self.peak(canvas, rgb.scaled(0.8), facing),
            HatKind::Beanie => {
                let rim = rect(self.x - 0.056, self.y + low - 0.014, 0.112, 0.022);
                canvas.body(&rim, Ink::Flat(rgb.scaled(0.85)));
            }
            HatKind::SunHat => {
                canvas.body(&ellipse(self.x, self.y + low + 0.004, 0.108, 0.02), Ink::Flat(rgb));
                let band = line(&[
                    at(self.x - 0.052, self.y + low - 0.014),
                    at(self.x + 0.052, self.y + low - 0.014),
                ]);
                canvas.stroke(&band, Ink::Flat(rgb.scaled(0.45)), 0.011);
            }
        }
    }

    fn peak(&self, canvas: &mut Canvas, rgb: Rgb, facing: Facing) {
        match facing {
            Facing::Front => self.oval(canvas, 0.0, -0.025, (0.05, 0.013), rgb),
            Facing::Back => {}
            Facing::Left | Facing::Right => self.oval(canvas, 0.065, -0.026, (0.036, 0.009), rgb),
        }
    }
}
