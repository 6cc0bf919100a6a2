//! Bodies and hair.

use crate::synth::palette::Rgb;
use crate::synth::person::{Age, Body, Gender, Hair, HairCut, HairShade};
use crate::synth::stream::Stream;

pub(super) fn body(stream: &mut Stream) -> Body {
    const SKINS: [(Rgb, f32); 6] = [
        (Rgb(244, 214, 190), 0.2),
        (Rgb(232, 190, 158), 0.28),
        (Rgb(216, 168, 130), 0.24),
        (Rgb(180, 130, 94), 0.13),
        (Rgb(134, 90, 62), 0.09),
        (Rgb(88, 58, 42), 0.06),
    ];
    Body {
        height: (1.0 + 0.018 * stream.bell()).clamp(0.96, 1.04),
        width: (1.02 + 0.08 * stream.bell()).clamp(0.87, 1.22),
        skin: stream.weighted(&SKINS),
    }
}

pub(super) fn hair(gender: Gender, age: Age, stream: &mut Stream) -> Hair {
    use HairCut::{Bald, Bun, Long, Medium, Ponytail, Short};
    use HairShade::{Black, Blond, Brown, Grey, Red};
    let cut = match gender {
        Gender::Woman => stream.weighted(&[
            (Short, 0.12),
            (Medium, 0.22),
            (Long, 0.36),
            (Ponytail, 0.2),
            (Bun, 0.1),
        ]),
        Gender::Man => stream.weighted(&[(Bald, 0.09), (Short, 0.8), (Medium, 0.08), (Long, 0.03)]),
    };
    let shade = match age {
        Age::Elderly => stream.weighted(&[(Grey, 0.85), (Black, 0.15)]),
        _ => stream.weighted(&[(Black, 0.5), (Brown, 0.25), (Blond, 0.17), (Red, 0.08)]),
    };
    Hair { cut, shade }
}
