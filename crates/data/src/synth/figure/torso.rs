//! Upper garments: body, opening, collar and sleeves.

use tiny_skia::{Path, Point};

use super::Cloth;
use super::skeleton::{Limb, Skeleton};
use crate::synth::palette::Rgb;
use crate::synth::person::{Gender, Pattern, Person, Sleeve, UpperKind};
use crate::synth::raster::{Canvas, Ink, at, bent_limb, ellipse, limb, line, polygon, rect, soft};
use crate::synth::view::Facing;

/// Draws the neck and the garment without its sleeves.
pub(super) fn draw(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton) {
    let skin = Ink::Flat(person.body.skin);
    canvas.body(&limb(at(0.0, skeleton.y(0.1)), at(0.0, skeleton.y(0.16)), 0.026, 0.03), skin);
    let bare_shoulders = person.upper.kind.sleeve() == Sleeve::None;
    if bare_shoulders {
        canvas.body(&outline(skeleton, 0.4, skeleton.hip, 1.0), skin);
    }
    let cloth = Cloth::new(&person.upper);
    let (hem_y, flare) = hem(person.upper.kind);
    let hem_half =
        if skeleton.is_profile() { skeleton.hip * flare * 1.1 } else { skeleton.hip * flare };
    let strap = if bare_shoulders { 0.66 } else { 1.0 };
    canvas.body(&outline(skeleton, hem_y, hem_half, strap), cloth.ink());
    match skeleton.facing {
        Facing::Front => front_details(canvas, person, skeleton, &cloth, hem_y),
        Facing::Back => back_details(canvas, person, skeleton, &cloth),
        Facing::Left | Facing::Right => profile_details(canvas, person, skeleton, &cloth, hem_y),
    }
}

/// Height of the lower edge, and its half width over that of the hips.
fn hem(kind: UpperKind) -> (f32, f32) {
    match kind {
        UpperKind::TankTop => (0.525, 0.98),
        UpperKind::TShirt => (0.53, 1.03),
        UpperKind::Shirt => (0.545, 1.05),
        UpperKind::Sweater | UpperKind::Jacket => (0.525, 1.08),
        UpperKind::Hoodie => (0.54, 1.1),
        UpperKind::Blazer => (0.575, 1.1),
        UpperKind::Coat => (0.74, 1.28),
        UpperKind::Dress => (0.7, 1.5),
    }
}

/// The outline from the neck to a hem; `strap` narrows the shoulders.
fn outline(skeleton: &Skeleton, hem_y: f32, hem_half: f32, strap: f32) -> Path {
    let hem_y = skeleton.y(hem_y);
    if skeleton.is_profile() {
        return profile_outline(skeleton, hem_y, hem_half);
    }
    let shoulder = skeleton.shoulder * strap;
    let half = [
        at(0.03, skeleton.y(0.148)),
        at(shoulder * 0.62, skeleton.y(0.158)),
        at(shoulder * 1.0, skeleton.y(0.172)),
        at(shoulder * 0.96, skeleton.y(0.21)),
        at(skeleton.shoulder * 0.86, skeleton.y(0.27)),
        at(skeleton.waist, skeleton.y(0.37)),
        at(skeleton.hip * 1.04, skeleton.y(0.47)),
        at(hem_half, hem_y),
        at(hem_half, hem_y),
    ];
    let mirrored = half.iter().rev().map(|p| at(-p.x, p.y));
    let points: Vec<Point> = half.iter().copied().chain(mirrored).collect();
    soft(&points)
}

fn profile_outline(skeleton: &Skeleton, hem_y: f32, hem_half: f32) -> Path {
    let (chest, waist, hip) = (skeleton.shoulder, skeleton.waist, skeleton.hip);
    soft(&[
        at(0.022, skeleton.y(0.146)),
        at(chest * 0.8, skeleton.y(0.18)),
        at(chest * 1.3, skeleton.y(0.26)),
        at(waist * 1.05, skeleton.y(0.38)),
        at(hip, skeleton.y(0.46)),
        at(hem_half, hem_y),
        at(hem_half, hem_y),
        at(-hem_half, hem_y),
        at(-hem_half, hem_y),
        at(-hip * 1.15, skeleton.y(0.48)),
        at(-waist * 0.9, skeleton.y(0.37)),
        at(-chest * 1.25, skeleton.y(0.25)),
        at(-chest * 0.95, skeleton.y(0.17)),
        at(-0.024, skeleton.y(0.146)),
    ])
}

fn front_details(
    canvas: &mut Canvas,
    person: &Person,
    skeleton: &Skeleton,
    cloth: &Cloth,
    hem_y: f32,
) {
    let x = 0.012 * skeleton.turn;
    let y = |y: f32| skeleton.y(y);
    let skin = Ink::Flat(person.body.skin);
    let crease = Ink::Veil(Rgb(0, 0, 0), 0.4);
    match person.upper.kind {
        UpperKind::TShirt | UpperKind::Sweater => {
            canvas.fill(&ellipse(x, y(0.152), 0.034, 0.018), skin);
        }
        UpperKind::TankTop | UpperKind::Dress => {
            canvas.fill(&ellipse(x, y(0.155), 0.042, 0.042), skin);
        }
        UpperKind::Shirt => {
            collar(canvas, skeleton, cloth.main.mix(Rgb(255, 255, 255), 0.25), x);
            canvas.stroke(&line(&[at(x, y(0.18)), at(x, y(hem_y - 0.01))]), crease, 0.007);
        }
        UpperKind::Hoodie => {
            hood(canvas, skeleton, cloth, x);
            let pocket = soft(&[
                at(x - 0.035, y(0.41)),
                at(x + 0.035, y(0.41)),
                at(x + 0.06, y(0.49)),
                at(x + 0.06, y(0.49)),
                at(x - 0.06, y(0.49)),
                at(x - 0.06, y(0.49)),
            ]);
            canvas.stroke(&pocket, crease, 0.007);
        }
        UpperKind::Jacket => {
            let panel = rect(x - 0.033, y(0.15), 0.066, hem_y - 0.155);
            canvas.fill(&panel, Ink::Flat(person.upper.inner.rgb));
            canvas.stroke(&panel, crease, 0.008);
            collar(canvas, skeleton, cloth.main.scaled(0.8), x);
        }
        UpperKind::Coat | UpperKind::Blazer => lapels(canvas, person, skeleton, cloth, x, hem_y),
    }
    if person.upper.pattern == Pattern::Logo {
        logo(canvas, skeleton, cloth, x);
    }
    if person.upper.kind == UpperKind::Dress {
        belt(canvas, skeleton, cloth);
    }
}

fn back_details(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton, cloth: &Cloth) {
    match person.upper.kind {
        UpperKind::Hoodie => hood(canvas, skeleton, cloth, 0.0),
        UpperKind::Shirt | UpperKind::Jacket | UpperKind::Coat | UpperKind::Blazer => {
            let band = soft(&[
                at(-0.04, skeleton.y(0.14)),
                at(0.04, skeleton.y(0.14)),
                at(0.04, skeleton.y(0.168)),
                at(-0.04, skeleton.y(0.168)),
            ]);
            canvas.body(&band, Ink::Flat(cloth.main.scaled(0.85)));
        }
        UpperKind::Dress => belt(canvas, skeleton, cloth),
        UpperKind::TShirt | UpperKind::TankTop | UpperKind::Sweater => {}
    }
}

fn profile_details(
    canvas: &mut Canvas,
    person: &Person,
    skeleton: &Skeleton,
    cloth: &Cloth,
    hem_y: f32,
) {
    let y = |y: f32| skeleton.y(y);
    let chest = skeleton.shoulder;
    if person.upper.kind.is_open() {
        // The front edge falls back and shows what is under it.
        let low = if person.upper.kind == UpperKind::Jacket { hem_y - 0.02 } else { 0.34 };
        let panel = soft(&[
            at(chest * 0.45, y(0.155)),
            at(chest * 1.15, y(0.25)),
            at(chest * 1.12, y(low)),
            at(chest * 0.7, y(low)),
            at(chest * 0.6, y(0.26)),
        ]);
        canvas.body(&panel, Ink::Flat(person.upper.inner.rgb));
    }
    match person.upper.kind {
        UpperKind::Hoodie => {
            let hood = ellipse(-0.045, y(0.165), 0.042, 0.03);
            canvas.body(&hood, Ink::Flat(cloth.main.scaled(0.9)));
        }
        UpperKind::Dress => belt(canvas, skeleton, cloth),
        _ => {}
    }
}

/// The turned-down collar of a shirt or jacket.
fn collar(canvas: &mut Canvas, skeleton: &Skeleton, rgb: Rgb, x: f32) {
    for out in [-1.0, 1.0] {
        let flap = polygon(&[
            at(x + out * 0.034, skeleton.y(0.138)),
            at(x, skeleton.y(0.172)),
            at(x + out * 0.034, skeleton.y(0.192)),
            at(x + out * 0.05, skeleton.y(0.158)),
        ]);
        canvas.body(&flap, Ink::Flat(rgb));
    }
}

fn hood(canvas: &mut Canvas, skeleton: &Skeleton, cloth: &Cloth, x: f32) {
    let back = skeleton.facing == Facing::Back;
    let (radius_y, y) = if back { (0.042, 0.175) } else { (0.024, 0.155) };
    canvas.body(&ellipse(x, skeleton.y(y), 0.062, radius_y), Ink::Flat(cloth.main.scaled(0.85)));
    if !back {
        for out in [-1.0, 1.0] {
            let cord = line(&[
                at(x + out * 0.018, skeleton.y(0.172)),
                at(x + out * 0.02, skeleton.y(0.235)),
            ]);
            canvas.stroke(&cord, Ink::Flat(Rgb(235, 235, 230)), 0.006);
        }
    }
}

/// A blazer's or coat's V with what is under it, buttons below.
fn lapels(
    canvas: &mut Canvas,
    person: &Person,
    skeleton: &Skeleton,
    cloth: &Cloth,
    x: f32,
    hem_y: f32,
) {
    let y = |y: f32| skeleton.y(y);
    let low = 0.345;
    let opening = polygon(&[at(x - 0.045, y(0.148)), at(x + 0.045, y(0.148)), at(x, y(low))]);
    canvas.fill(&opening, Ink::Flat(person.upper.inner.rgb));
    let wears_tie = person.upper.kind == UpperKind::Blazer && person.gender == Gender::Man;
    if wears_tie {
        let tie = polygon(&[at(x - 0.008, y(0.165)), at(x + 0.008, y(0.165)), at(x, y(0.32))]);
        canvas.fill(&tie, Ink::Flat(person.upper.accent.rgb));
    }
    for out in [-1.0, 1.0] {
        let lapel = polygon(&[
            at(x + out * 0.036, y(0.142)),
            at(x + out * 0.066, y(0.2)),
            at(x, y(low)),
            at(x + out * 0.036, y(0.21)),
        ]);
        canvas.body(&lapel, Ink::Flat(cloth.main.scaled(0.82)));
    }
    let edge = line(&[at(x, y(low)), at(x, y(hem_y - 0.005))]);
    canvas.stroke(&edge, Ink::Veil(Rgb(0, 0, 0), 0.45), 0.007);
}

fn logo(canvas: &mut Canvas, skeleton: &Skeleton, cloth: &Cloth, x: f32) {
    let ink = Ink::Flat(cloth.accent);
    canvas.fill(&ellipse(x, skeleton.y(0.285), 0.045, 0.04), ink);
    canvas.fill(&rect(x - 0.05, skeleton.y(0.335), 0.1, 0.014), ink);
    let eye = Ink::Flat(cloth.main);
    canvas.fill(&ellipse(x, skeleton.y(0.285), 0.016, 0.016), eye);
}

fn belt(canvas: &mut Canvas, skeleton: &Skeleton, cloth: &Cloth) {
    let half = skeleton.waist * 1.04;
    let path = rect(-half, skeleton.y(0.385), 2.0 * half, 0.02);
    canvas.fill(&path, Ink::Flat(cloth.main.scaled(0.55)));
}

/// Draws the arm in `slot` with its sleeve and hand.
pub(super) fn draw_arm(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton, slot: usize) {
    let arm = &skeleton.arms[slot];
    let girth = skeleton.girth;
    let skin = Ink::Flat(person.body.skin);
    canvas.body(&ellipse(arm.end.x, arm.end.y + 0.016, 0.019, 0.025), skin);
    let bones = [arm.root, arm.joint, arm.end];
    canvas.body(&bent_limb(bones, [0.03, 0.024, 0.017].map(|r| r * girth)), skin);
    sleeve(canvas, person, girth, arm);
}

fn sleeve(canvas: &mut Canvas, person: &Person, girth: f32, arm: &Limb) {
    let cloth = Cloth::new(&person.upper);
    let ink = match person.upper.pattern {
        Pattern::Sleeves => Ink::Flat(cloth.accent),
        _ => cloth.ink(),
    };
    let wide = match person.upper.kind {
        UpperKind::Jacket | UpperKind::Coat | UpperKind::Hoodie => 1.12,
        _ => 1.0,
    } * girth;
    match person.upper.kind.sleeve() {
        Sleeve::None => {}
        Sleeve::Short => {
            canvas.body(&limb(arm.root, arm.along(0.72), 0.034 * girth, 0.036 * girth), ink);
        }
        Sleeve::Long => {
            let bones = [arm.root, arm.joint, arm.along(1.97)];
            canvas.body(&bent_limb(bones, [0.034, 0.03, 0.024].map(|r| r * wide)), ink);
        }
    }
}
