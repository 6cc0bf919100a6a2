//! Clothes and their colours.

use super::dye;
use crate::synth::palette::{Colour, Dye};
use crate::synth::person::{Gender, Lower, LowerKind, Pattern, ShoeKind, Shoes, Upper, UpperKind};
use crate::synth::stream::Stream;

pub(super) fn upper(gender: Gender, stream: &mut Stream) -> Upper {
    let kind = upper_kind(gender, stream);
    let pattern = pattern(kind, stream);
    let (dye, accent) = upper_dyes(stream);
    let inner = self::dye(
        &[
            (Colour::White, 0.45),
            (Colour::Grey, 0.16),
            (Colour::Black, 0.12),
            (Colour::LightBlue, 0.09),
            (Colour::Red, 0.09),
            (Colour::Yellow, 0.09),
        ],
        stream,
    );
    Upper { kind, dye, pattern, accent, inner }
}

pub(super) fn upper_kind(gender: Gender, stream: &mut Stream) -> UpperKind {
    use UpperKind::{Blazer, Coat, Dress, Hoodie, Jacket, Shirt, Sweater, TShirt, TankTop};
    match gender {
        Gender::Woman => stream.weighted(&[
            (TShirt, 0.2),
            (TankTop, 0.1),
            (Shirt, 0.15),
            (Sweater, 0.1),
            (Hoodie, 0.07),
            (Jacket, 0.12),
            (Coat, 0.1),
            (Blazer, 0.03),
            (Dress, 0.13),
        ]),
        Gender::Man => stream.weighted(&[
            (TShirt, 0.28),
            (TankTop, 0.05),
            (Shirt, 0.22),
            (Sweater, 0.09),
            (Hoodie, 0.12),
            (Jacket, 0.13),
            (Coat, 0.05),
            (Blazer, 0.06),
        ]),
    }
}

pub(super) fn pattern(kind: UpperKind, stream: &mut Stream) -> Pattern {
    use Pattern::{Checks, Dots, HorizontalStripes, Logo, Plain, Sleeves, VerticalStripes};
    match kind {
        UpperKind::TShirt | UpperKind::Hoodie | UpperKind::Sweater => stream.weighted(&[
            (Plain, 0.26),
            (HorizontalStripes, 0.26),
            (Logo, 0.16),
            (Sleeves, 0.2),
            (Dots, 0.12),
        ]),
        UpperKind::Shirt => stream.weighted(&[
            (Plain, 0.26),
            (Checks, 0.36),
            (VerticalStripes, 0.22),
            (Dots, 0.08),
            (HorizontalStripes, 0.08),
        ]),
        UpperKind::TankTop | UpperKind::Dress => stream.weighted(&[
            (Plain, 0.3),
            (HorizontalStripes, 0.26),
            (Dots, 0.26),
            (VerticalStripes, 0.18),
        ]),
        UpperKind::Jacket => stream.weighted(&[(Plain, 0.6), (Sleeves, 0.4)]),
        UpperKind::Coat => stream.weighted(&[(Plain, 0.7), (Checks, 0.3)]),
        UpperKind::Blazer => Plain,
    }
}

/// Main and second colour of an upper garment, well apart in lightness so that a pattern shows.
pub(super) fn upper_dyes(stream: &mut Stream) -> (Dye, Dye) {
    const MAIN: [(Colour, f32); 19] = [
        (Colour::Black, 0.16),
        (Colour::White, 0.13),
        (Colour::Grey, 0.09),
        (Colour::DarkGrey, 0.04),
        (Colour::Navy, 0.08),
        (Colour::Blue, 0.09),
        (Colour::LightBlue, 0.06),
        (Colour::Teal, 0.02),
        (Colour::Red, 0.09),
        (Colour::Maroon, 0.03),
        (Colour::Pink, 0.04),
        (Colour::Green, 0.04),
        (Colour::DarkGreen, 0.02),
        (Colour::Olive, 0.01),
        (Colour::Yellow, 0.04),
        (Colour::Orange, 0.02),
        (Colour::Purple, 0.02),
        (Colour::Brown, 0.01),
        (Colour::Beige, 0.01),
    ];
    const ON_DARK: [(Colour, f32); 4] = [
        (Colour::White, 0.6),
        (Colour::Grey, 0.1),
        (Colour::Yellow, 0.2),
        (Colour::LightBlue, 0.1),
    ];
    const ON_LIGHT: [(Colour, f32); 4] =
        [(Colour::Black, 0.55), (Colour::Navy, 0.2), (Colour::Red, 0.15), (Colour::Blue, 0.1)];
    let main = dye(&MAIN, stream);
    let accents = if main.colour.rgb().luma() < 118.0 { &ON_DARK } else { &ON_LIGHT };
    (main, dye(accents, stream))
}

pub(super) fn lower(gender: Gender, stream: &mut Stream) -> Lower {
    use LowerKind::{Jeans, Leggings, LongSkirt, Shorts, Skirt, Trousers};
    let kind = match gender {
        Gender::Woman => stream.weighted(&[
            (Jeans, 0.3),
            (Trousers, 0.17),
            (Leggings, 0.13),
            (Shorts, 0.13),
            (Skirt, 0.18),
            (LongSkirt, 0.09),
        ]),
        Gender::Man => stream.weighted(&[(Jeans, 0.36), (Trousers, 0.4), (Shorts, 0.24)]),
    };
    let dye = match kind {
        Jeans => dye(
            &[
                (Colour::Blue, 0.4),
                (Colour::Navy, 0.34),
                (Colour::LightBlue, 0.16),
                (Colour::Black, 0.1),
            ],
            stream,
        ),
        _ => dye(
            &[
                (Colour::Black, 0.28),
                (Colour::DarkGrey, 0.06),
                (Colour::Grey, 0.12),
                (Colour::Navy, 0.08),
                (Colour::Beige, 0.14),
                (Colour::White, 0.1),
                (Colour::Brown, 0.07),
                (Colour::Red, 0.06),
                (Colour::Olive, 0.05),
                (Colour::Maroon, 0.04),
            ],
            stream,
        ),
    };
    Lower { kind, dye }
}

pub(super) fn shoes(gender: Gender, stream: &mut Stream) -> Shoes {
    use ShoeKind::{Boots, Heels, Leather, Sandals, Sneakers};
    let kind = match gender {
        Gender::Woman => stream.weighted(&[
            (Sneakers, 0.44),
            (Boots, 0.2),
            (Sandals, 0.14),
            (Heels, 0.14),
            (Leather, 0.08),
        ]),
        Gender::Man => {
            stream.weighted(&[(Sneakers, 0.62), (Leather, 0.2), (Boots, 0.1), (Sandals, 0.08)])
        }
    };
    let dye = match kind {
        Sneakers => dye(
            &[
                (Colour::White, 0.4),
                (Colour::Black, 0.28),
                (Colour::Grey, 0.1),
                (Colour::Red, 0.12),
                (Colour::Blue, 0.1),
            ],
            stream,
        ),
        _ => dye(
            &[
                (Colour::Black, 0.56),
                (Colour::Brown, 0.28),
                (Colour::Red, 0.06),
                (Colour::White, 0.1),
            ],
            stream,
        ),
    };
    Shoes { kind, dye }
}
