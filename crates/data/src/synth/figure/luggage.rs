//! Bags and what the hands hold.

use super::skeleton::Skeleton;
use crate::synth::palette::Rgb;
use crate::synth::person::{Bag, BagKind, Person};
use crate::synth::raster::{Canvas, Ink, at, line, polygon, rect, soft};
use crate::synth::sight::HOLDING_HAND;
use crate::synth::view::{Facing, Held};

const STRAP: f32 = 0.012;

/// What the body hides in part: a backpack seen from the front or side, a bag on the far side.
pub(super) fn draw_behind(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton) {
    let Some(bag) = &person.bag else { return };
    let far = skeleton.is_profile() && skeleton.slot(bag.side) == 0;
    match bag.kind {
        BagKind::Backpack if skeleton.facing == Facing::Front => {
            let half = skeleton.shoulder * 0.8;
            pack(canvas, bag, (-half, half), (skeleton.y(0.095), skeleton.y(0.4)));
        }
        BagKind::Backpack if skeleton.is_profile() => {
            let back = -skeleton.shoulder * 0.7;
            pack(canvas, bag, (back - 0.135, back), (skeleton.y(0.16), skeleton.y(0.44)));
        }
        BagKind::ShoulderBag | BagKind::CrossBody if far => at_hip(canvas, bag, skeleton, 0.05),
        BagKind::Handbag | BagKind::ShoppingBag if far => in_hand(canvas, bag, skeleton),
        BagKind::Suitcase => suitcase(canvas, bag, skeleton),
        _ => {}
    }
}

/// What is worn over the torso but under the arms.
pub(super) fn draw_worn(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton) {
    let Some(bag) = &person.bag else { return };
    let ink = Ink::Flat(bag.dye.rgb);
    let shoulder = skeleton.shoulder;
    let near = skeleton.slot(bag.side) == 1;
    match (bag.kind, skeleton.facing) {
        (BagKind::Backpack, Facing::Front) => {
            for out in [-1.0, 1.0] {
                let strap = line(&[
                    at(out * shoulder * 0.55, skeleton.y(0.15)),
                    at(out * shoulder * 0.62, skeleton.y(0.25)),
                    at(out * shoulder * 0.8, skeleton.y(0.36)),
                ]);
                canvas.stroke(&strap, ink, 0.034);
            }
        }
        (BagKind::Backpack, Facing::Back) => {
            let half = shoulder * 0.84;
            pack(canvas, bag, (-half, half), (skeleton.y(0.155), skeleton.y(0.45)));
        }
        (BagKind::Backpack, _) => {
            let strap = line(&[
                at(-shoulder * 0.6, skeleton.y(0.17)),
                at(shoulder * 0.35, skeleton.y(0.24)),
                at(-shoulder * 0.7, skeleton.y(0.38)),
            ]);
            canvas.stroke(&strap, ink, 0.02);
        }
        (BagKind::CrossBody, Facing::Front | Facing::Back) => {
            let out = Skeleton::direction(skeleton.slot(bag.side));
            let strap = line(&[
                at(-out * shoulder * 0.6, skeleton.y(0.158)),
                at(out * skeleton.hip * 0.95, skeleton.y(0.47)),
            ]);
            canvas.stroke(&strap, ink, STRAP * 1.3);
        }
        (BagKind::CrossBody, _) => {
            let strap = line(&[at(0.0, skeleton.y(0.16)), at(0.0, skeleton.y(0.47))]);
            canvas.stroke(&strap, ink, STRAP);
        }
        (BagKind::ShoulderBag, Facing::Left | Facing::Right) if near => {
            let strap = line(&[at(0.0, skeleton.y(0.16)), at(0.0, skeleton.y(0.45))]);
            canvas.stroke(&strap, ink, STRAP);
        }
        _ => {}
    }
}

/// What hangs in front of the arms.
pub(super) fn draw_in_hand(canvas: &mut Canvas, person: &Person, skeleton: &Skeleton) {
    let Some(bag) = &person.bag else { return };
    let slot = skeleton.slot(bag.side);
    if skeleton.is_profile() && slot == 0 {
        return;
    }
    match bag.kind {
        BagKind::Handbag | BagKind::ShoppingBag => in_hand(canvas, bag, skeleton),
        BagKind::CrossBody => at_hip(canvas, bag, skeleton, hip_x(skeleton, slot)),
        BagKind::ShoulderBag => {
            let x = hip_x(skeleton, slot);
            if !skeleton.is_profile() {
                let out = Skeleton::direction(slot);
                let strap = line(&[
                    at(out * skeleton.shoulder * 0.78, skeleton.y(0.158)),
                    at(x, skeleton.y(0.46)),
                ]);
                canvas.stroke(&strap, Ink::Flat(bag.dye.rgb), STRAP * 1.3);
            }
            at_hip(canvas, bag, skeleton, x);
        }
        BagKind::Backpack | BagKind::Suitcase => {}
    }
}

fn hip_x(skeleton: &Skeleton, slot: usize) -> f32 {
    if skeleton.is_profile() { -0.01 } else { Skeleton::direction(slot) * (skeleton.hip + 0.035) }
}

/// A backpack as a box with a flap and a pocket.
fn pack(canvas: &mut Canvas, bag: &Bag, (left, right): (f32, f32), (top, bottom): (f32, f32)) {
    let rgb = bag.dye.rgb;
    let path = soft(&[
        at(left + 0.015, top),
        at(right - 0.015, top),
        at(right, top + 0.04),
        at(right + 0.004, bottom),
        at(right + 0.004, bottom),
        at(left - 0.004, bottom),
        at(left - 0.004, bottom),
        at(left, top + 0.04),
    ]);
    canvas.body(&path, Ink::Flat(rgb));
    let inset = (right - left) * 0.18;
    let pocket = rect(
        left + inset,
        top + (bottom - top) * 0.55,
        right - left - 2.0 * inset,
        (bottom - top) * 0.33,
    );
    canvas.body(&pocket, Ink::Flat(rgb.scaled(0.82)));
    let zip = line(&[at(left + 0.01, top + 0.075), at(right - 0.01, top + 0.075)]);
    canvas.stroke(&zip, Ink::Veil(Rgb(0, 0, 0), 0.45), 0.006);
}

fn at_hip(canvas: &mut Canvas, bag: &Bag, skeleton: &Skeleton, x: f32) {
    let (half, top, bottom) = (0.07, skeleton.y(0.435), skeleton.y(0.56));
    let path = soft(&[
        at(x - half, top),
        at(x - half, top),
        at(x + half, top),
        at(x + half, top),
        at(x + half, bottom),
        at(x - half, bottom),
    ]);
    canvas.body(&path, Ink::Flat(bag.dye.rgb));
    let flap = rect(x - half + 0.006, top + 0.004, 2.0 * half - 0.012, 0.042);
    canvas.fill(&flap, Ink::Flat(bag.dye.rgb.scaled(0.8)));
}

fn in_hand(canvas: &mut Canvas, bag: &Bag, skeleton: &Skeleton) {
    let slot = skeleton.slot(bag.side);
    let hand = skeleton.arms[slot].end;
    let (x, y) = (
        hand.x + if skeleton.is_profile() { 0.0 } else { 0.012 * Skeleton::direction(slot) },
        hand.y + 0.03,
    );
    let ink = Ink::Flat(bag.dye.rgb);
    let handle = line(&[at(x - 0.032, y + 0.05), at(x, y - 0.006), at(x + 0.032, y + 0.05)]);
    canvas.stroke(&handle, ink, 0.01);
    // A handbag is wide and low, a shopping bag tall and narrowing upwards.
    let (upper, lower, height) = match bag.kind {
        BagKind::Handbag => (0.054, 0.076, 0.1),
        _ => (0.056, 0.068, 0.18),
    };
    let top = y + 0.042;
    let path = soft(&[
        at(x - upper, top),
        at(x - upper, top),
        at(x + upper, top),
        at(x + upper, top),
        at(x + lower, top + height),
        at(x + lower, top + height),
        at(x - lower, top + height),
        at(x - lower, top + height),
    ]);
    canvas.body(&path, ink);
    if bag.kind == BagKind::Handbag {
        canvas.fill(&rect(x - 0.012, top + 0.012, 0.024, 0.016), Ink::Flat(Rgb(226, 196, 96)));
    } else {
        let print = rect(x - 0.022, top + 0.05, 0.044, 0.045);
        canvas.fill(&print, Ink::Veil(Rgb(255, 255, 255), 0.55));
    }
}

/// A wheeled suitcase beside or behind the walker.
fn suitcase(canvas: &mut Canvas, bag: &Bag, skeleton: &Skeleton) {
    let slot = skeleton.slot(bag.side);
    let hand = skeleton.arms[slot].end;
    let x = if skeleton.is_profile() { -0.16 } else { Skeleton::direction(slot) * 0.165 };
    let ink = Ink::Flat(bag.dye.rgb);
    let handle = line(&[at(hand.x, hand.y + 0.015), at(x, 0.72)]);
    canvas.stroke(&handle, Ink::Flat(Rgb(60, 60, 64)), 0.012);
    canvas.body(&rect(x - 0.068, 0.7, 0.136, 0.25), ink);
    for dx in [-0.03, 0.0, 0.03] {
        let rib = line(&[at(x + dx, 0.72), at(x + dx, 0.93)]);
        canvas.stroke(&rib, Ink::Veil(Rgb(0, 0, 0), 0.3), 0.006);
    }
    for dx in [-0.05, 0.05] {
        let wheel = rect(x + dx - 0.012, 0.95, 0.024, 0.022);
        canvas.fill(&wheel, Ink::Flat(Rgb(20, 20, 22)));
    }
}

/// Draws what the right hand holds.
pub(super) fn draw_held(canvas: &mut Canvas, held: Option<Held>, skeleton: &Skeleton) {
    let Some(held) = held else { return };
    let hand = skeleton.arms[skeleton.slot(HOLDING_HAND)].end;
    let (x, y) = (hand.x, hand.y + 0.01);
    match held {
        Held::Phone => {
            canvas.body(&rect(x - 0.016, y - 0.045, 0.032, 0.056), Ink::Flat(Rgb(22, 22, 26)));
            let screen = rect(x - 0.011, y - 0.039, 0.022, 0.04);
            canvas.fill(&screen, Ink::Flat(Rgb(150, 200, 235)));
        }
        Held::Cup => {
            let cup = polygon(&[
                at(x - 0.024, y - 0.05),
                at(x + 0.024, y - 0.05),
                at(x + 0.017, y + 0.015),
                at(x - 0.017, y + 0.015),
            ]);
            canvas.body(&cup, Ink::Flat(Rgb(242, 240, 234)));
            canvas.fill(&rect(x - 0.022, y - 0.03, 0.044, 0.02), Ink::Flat(Rgb(122, 82, 52)));
        }
        Held::Book => {
            canvas.body(&rect(x - 0.05, y - 0.05, 0.08, 0.085), Ink::Flat(Rgb(244, 242, 236)));
            canvas.fill(&rect(x - 0.05, y - 0.05, 0.014, 0.085), Ink::Flat(Rgb(70, 60, 120)));
        }
        Held::Umbrella => {
            let tip = at(x + 0.02, y + 0.3);
            canvas.stroke(&line(&[at(x, y - 0.02), tip]), Ink::Flat(Rgb(40, 38, 40)), 0.009);
            let folded = polygon(&[at(x - 0.014, y + 0.03), at(x + 0.022, y + 0.03), tip]);
            canvas.body(&folded, Ink::Flat(Rgb(46, 44, 58)));
        }
    }
}
