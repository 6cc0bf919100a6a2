//! What not everybody has: hats, glasses, bags.

use super::dye;
use crate::synth::palette::Colour;
use crate::synth::person::{Bag, BagKind, Gender, Glasses, Hat, HatKind, Side};
use crate::synth::stream::Stream;

pub(super) fn hat(stream: &mut Stream) -> Option<Hat> {
    if !stream.chance(0.3) {
        return None;
    }
    let kind =
        stream.weighted(&[(HatKind::Cap, 0.5), (HatKind::Beanie, 0.27), (HatKind::SunHat, 0.23)]);
    let dye = dye(
        &[
            (Colour::Black, 0.36),
            (Colour::White, 0.2),
            (Colour::Red, 0.16),
            (Colour::Blue, 0.09),
            (Colour::Grey, 0.12),
            (Colour::Beige, 0.08),
            (Colour::Yellow, 0.02),
        ],
        stream,
    );
    Some(Hat { kind, dye })
}

pub(super) fn glasses(stream: &mut Stream) -> Option<Glasses> {
    stream.weighted(&[(None, 0.78), (Some(Glasses::Clear), 0.14), (Some(Glasses::Sun), 0.08)])
}

pub(super) fn bag(gender: Gender, stream: &mut Stream) -> Option<Bag> {
    use BagKind::{Backpack, CrossBody, Handbag, ShoppingBag, ShoulderBag, Suitcase};
    if stream.chance(0.3) {
        return None;
    }
    let kind = match gender {
        Gender::Woman => stream.weighted(&[
            (Backpack, 0.25),
            (Handbag, 0.27),
            (ShoulderBag, 0.2),
            (CrossBody, 0.12),
            (ShoppingBag, 0.1),
            (Suitcase, 0.06),
        ]),
        Gender::Man => stream.weighted(&[
            (Backpack, 0.5),
            (ShoulderBag, 0.08),
            (CrossBody, 0.2),
            (ShoppingBag, 0.12),
            (Suitcase, 0.1),
        ]),
    };
    let dye = dye(
        &[
            (Colour::Black, 0.5),
            (Colour::Brown, 0.16),
            (Colour::Red, 0.1),
            (Colour::Grey, 0.08),
            (Colour::White, 0.06),
            (Colour::Blue, 0.06),
            (Colour::Yellow, 0.02),
            (Colour::Green, 0.02),
        ],
        stream,
    );
    Some(Bag { kind, dye, side: stream.pick(&[Side::Left, Side::Right]) })
}
