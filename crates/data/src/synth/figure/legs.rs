//! Legs, what covers them, and shoes.

use super::skeleton::{Limb, Skeleton};
use crate::synth::palette::Rgb;
use crate::synth::person::{Lower, LowerKind, Person, ShoeKind};
use crate::synth::raster::{Canvas, Ink, at, bent_limb, ellipse, limb, line, soft};

pub(super) fn draw(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton) {
    for slot in 0..2 {
        let leg = &skeleton.legs[slot];
        bare(canvas, person, skeleton, leg);
        shoe(canvas, person, skeleton, slot);
        if let Some(lower) = &person.lower {
            // In profile the far leg lies in the near one's shadow.
            let dim = if skeleton.is_profile() && slot == 0 { 0.8 } else { 1.0 };
            trouser_leg(canvas, lower, skeleton, leg, dim);
        }
        let long_boot = person.shoes.kind == ShoeKind::Boots;
        if long_boot {
            boot_shaft(canvas, person, leg);
        }
    }
    if let Some(lower) = &person.lower {
        seat(canvas, lower, skeleton);
    }
}

fn bare(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton, leg: &Limb) {
    let ink = Ink::Flat(person.body.skin);
    let girth = skeleton.girth;
    let path = bent_limb([leg.root, leg.joint, leg.end], [0.05, 0.034, 0.02].map(|r| r * girth));
    canvas.body(&path, ink);
}

fn trouser_leg(canvas: &mut Canvas, lower: &Lower, skeleton: &Skeleton, leg: &Limb, dim: f32) {
    let girth = skeleton.girth;
    let ink = Ink::Flat(lower.dye.rgb.scaled(dim));
    // Radii at hip, knee and ankle.
    let radii = match lower.kind {
        LowerKind::Jeans => [0.055, 0.041, 0.033],
        LowerKind::Trousers => [0.056, 0.046, 0.041],
        LowerKind::Leggings => [0.051, 0.035, 0.023],
        LowerKind::Shorts => {
            canvas.body(&limb(leg.root, leg.along(0.72), 0.056 * girth, 0.056 * girth), ink);
            return;
        }
        LowerKind::Skirt | LowerKind::LongSkirt => return,
    };
    let bones = [leg.root, leg.joint, leg.along(1.97)];
    canvas.body(&bent_limb(bones, radii.map(|r| r * girth)), ink);
    if lower.kind == LowerKind::Jeans {
        // Worn thighs and a turned hem are what tells denim from cloth.
        let worn = Ink::Veil(Rgb(220, 230, 245), 0.16);
        canvas.fill(&limb(leg.along(0.3), leg.along(0.95), 0.02, 0.014), worn);
        canvas.fill(&limb(leg.along(1.9), leg.along(1.99), 0.03 * girth, 0.03 * girth), worn);
    }
}

/// What joins the two legs: the seat of trousers, or all of a skirt.
fn seat(canvas: &mut Canvas, lower: &Lower, skeleton: &Skeleton) {
    let hip = skeleton.hip;
    let spread = (skeleton.legs[0].joint.x - skeleton.legs[1].joint.x).abs() / 2.0;
    // Height and half width of the lower edge.
    let (hem_y, hem) = match lower.kind {
        LowerKind::Skirt => (0.665, (hip * 1.25).max(spread + 0.05)),
        LowerKind::LongSkirt => (0.89, (hip * 1.4).max(spread * 1.3 + 0.055)),
        _ => (0.56, hip * 0.98),
    };
    let (top, middle, bottom) = (skeleton.y(0.42), skeleton.y(0.49), skeleton.y(hem_y));
    let waist = skeleton.waist;
    let path = soft(&[
        at(-waist, top),
        at(waist, top),
        at(hip * 1.03, middle),
        at(hem, bottom),
        at(hem, bottom),
        at(-hem, bottom),
        at(-hem, bottom),
        at(-hip * 1.03, middle),
    ]);
    let is_skirt = matches!(lower.kind, LowerKind::Skirt | LowerKind::LongSkirt);
    if is_skirt {
        canvas.body(&path, Ink::Flat(lower.dye.rgb));
        for x in [-0.45, 0.1, 0.55] {
            let fold = line(&[at(x * hip, skeleton.y(0.5)), at(x * hem * 1.1, bottom - 0.01)]);
            canvas.stroke(&fold, Ink::Veil(Rgb(0, 0, 0), 0.25), 0.006);
        }
    } else {
        canvas.fill(&path, Ink::Flat(lower.dye.rgb));
        if !skeleton.is_profile() {
            let crotch = line(&[at(0.0, skeleton.y(0.5)), at(0.0, skeleton.y(0.58))]);
            canvas.stroke(&crotch, Ink::Veil(Rgb(0, 0, 0), 0.3), 0.006);
        }
    }
}

fn shoe(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton, slot: usize) {
    let ankle = skeleton.legs[slot].end;
    let (heel, toe, y) = if skeleton.is_profile() {
        (ankle.x - 0.032, ankle.x + 0.088, ankle.y)
    } else {
        let out = Skeleton::direction(slot);
        (ankle.x - 0.036 + 0.008 * out, ankle.x + 0.036 + 0.008 * out, ankle.y)
    };
    let upper = soft(&[
        at(heel, y - 0.03),
        at((heel + toe) / 2.0 - 0.004, y - 0.032),
        at(toe, y + 0.012),
        at(toe, y + 0.038),
        at(heel, y + 0.038),
        at(heel, y + 0.038),
    ]);
    let leather = Ink::Flat(person.shoes.dye.rgb);
    let sole = |canvas: &mut Canvas, rgb: Rgb, width: f32| {
        let path = line(&[at(heel + 0.004, y + 0.036), at(toe - 0.008, y + 0.036)]);
        canvas.stroke(&path, Ink::Flat(rgb), width);
    };
    match person.shoes.kind {
        ShoeKind::Sandals => {
            canvas.body(&upper, Ink::Flat(person.body.skin));
            sole(canvas, person.shoes.dye.rgb, 0.014);
            let strap = line(&[at(heel + 0.004, y + 0.008), at(toe - 0.012, y + 0.022)]);
            canvas.stroke(&strap, leather, 0.011);
        }
        ShoeKind::Heels => {
            canvas.body(&upper, leather);
            canvas.fill(
                &ellipse((heel + toe) / 2.0, y - 0.012, 0.018, 0.016),
                Ink::Flat(person.body.skin),
            );
            let heel_line = line(&[at(heel + 0.006, y + 0.02), at(heel + 0.006, y + 0.046)]);
            canvas.stroke(&heel_line, leather, 0.009);
        }
        ShoeKind::Sneakers => {
            canvas.body(&upper, leather);
            sole(canvas, Rgb(238, 238, 236), 0.013);
        }
        ShoeKind::Leather | ShoeKind::Boots => {
            canvas.body(&upper, leather);
            sole(canvas, Rgb(22, 20, 20), 0.009);
        }
    }
}

fn boot_shaft(canvas: &mut Canvas, person: &Person, leg: &Limb) {
    let path = limb(leg.along(1.42), at(leg.end.x, leg.end.y + 0.012), 0.037, 0.032);
    canvas.body(&path, Ink::Flat(person.shoes.dye.rgb));
}
