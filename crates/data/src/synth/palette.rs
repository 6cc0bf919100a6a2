//! The colours of clothes: how they look, what people call them, and what they mistake them for.

use super::stream::Stream;

/// A colour as 8-bit sRGB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rgb(pub(crate) u8, pub(crate) u8, pub(crate) u8);

impl Rgb {
    /// This colour moved towards `other` by `share` (0 keeps it, 1 replaces it).
    pub(crate) fn mix(self, other: Rgb, share: f32) -> Rgb {
        let blend = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * share) as u8;
        Rgb(blend(self.0, other.0), blend(self.1, other.1), blend(self.2, other.2))
    }

    /// Darker for `factor < 1`, lighter (and saturating) for `factor > 1`.
    pub(crate) fn scaled(self, factor: f32) -> Rgb {
        let scale = |a: u8| (f32::from(a) * factor).clamp(0.0, 255.0) as u8;
        Rgb(scale(self.0), scale(self.1), scale(self.2))
    }

    /// Perceived lightness in `[0, 255]` (Rec. 601 weights).
    pub(crate) fn luma(self) -> f32 {
        0.299 * f32::from(self.0) + 0.587 * f32::from(self.1) + 0.114 * f32::from(self.2)
    }
}

/// A named colour of a garment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Colour {
    Black,
    DarkGrey,
    Grey,
    White,
    Navy,
    Blue,
    LightBlue,
    Teal,
    DarkGreen,
    Green,
    Olive,
    Yellow,
    Orange,
    Red,
    Maroon,
    Pink,
    Purple,
    Brown,
    Beige,
}

impl Colour {
    /// Every colour.
    pub(crate) const ALL: [Colour; 19] = [
        Self::Black,
        Self::DarkGrey,
        Self::Grey,
        Self::White,
        Self::Navy,
        Self::Blue,
        Self::LightBlue,
        Self::Teal,
        Self::DarkGreen,
        Self::Green,
        Self::Olive,
        Self::Yellow,
        Self::Orange,
        Self::Red,
        Self::Maroon,
        Self::Pink,
        Self::Purple,
        Self::Brown,
        Self::Beige,
    ];

    /// The typical shade.
    pub(crate) fn rgb(self) -> Rgb {
        match self {
            Self::Black => Rgb(28, 27, 30),
            Self::DarkGrey => Rgb(78, 79, 84),
            Self::Grey => Rgb(145, 146, 150),
            Self::White => Rgb(236, 236, 234),
            Self::Navy => Rgb(32, 42, 88),
            Self::Blue => Rgb(44, 88, 186),
            Self::LightBlue => Rgb(138, 184, 230),
            Self::Teal => Rgb(26, 138, 142),
            Self::DarkGreen => Rgb(24, 78, 48),
            Self::Green => Rgb(58, 158, 72),
            Self::Olive => Rgb(104, 104, 56),
            Self::Yellow => Rgb(240, 206, 56),
            Self::Orange => Rgb(232, 124, 38),
            Self::Red => Rgb(204, 34, 42),
            Self::Maroon => Rgb(112, 24, 40),
            Self::Pink => Rgb(238, 150, 182),
            Self::Purple => Rgb(112, 62, 152),
            Self::Brown => Rgb(110, 70, 42),
            Self::Beige => Rgb(212, 188, 148),
        }
    }

    /// What people who see it well call it, the usual name first.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Self::Black => &["black"],
            Self::DarkGrey => &["dark grey", "dark gray", "charcoal"],
            Self::Grey => &["grey", "gray"],
            Self::White => &["white"],
            Self::Navy => &["navy", "dark blue", "navy blue"],
            Self::Blue => &["blue"],
            Self::LightBlue => &["light blue", "pale blue", "sky blue"],
            Self::Teal => &["teal", "turquoise"],
            Self::DarkGreen => &["dark green"],
            Self::Green => &["green"],
            Self::Olive => &["olive", "army green", "olive green"],
            Self::Yellow => &["yellow"],
            Self::Orange => &["orange"],
            Self::Red => &["red"],
            Self::Maroon => &["maroon", "dark red", "burgundy"],
            Self::Pink => &["pink"],
            Self::Purple => &["purple"],
            Self::Brown => &["brown"],
            Self::Beige => &["beige", "tan", "khaki"],
        }
    }

    /// What it is taken for in poor light or by a hasty eye.
    pub(crate) fn mistaken_for(self) -> &'static [&'static str] {
        match self {
            Self::Black => &["dark", "navy", "dark grey"],
            Self::DarkGrey => &["grey", "black", "dark"],
            Self::Grey => &["light blue", "silver", "white"],
            Self::White => &["light grey", "cream", "light colored"],
            Self::Navy => &["black", "blue", "dark"],
            Self::Blue => &["purple", "navy", "bright blue"],
            Self::LightBlue => &["blue", "grey", "white"],
            Self::Teal => &["green", "blue"],
            Self::DarkGreen => &["green", "black", "dark"],
            Self::Green => &["bright green", "dark green"],
            Self::Olive => &["green", "brown", "khaki"],
            Self::Yellow => &["orange", "gold", "bright yellow"],
            Self::Orange => &["red", "bright orange"],
            Self::Red => &["orange", "pink", "bright red"],
            Self::Maroon => &["red", "brown", "purple"],
            Self::Pink => &["light pink", "purple", "peach"],
            Self::Purple => &["dark blue", "pink", "violet"],
            Self::Brown => &["dark brown", "maroon", "dark"],
            Self::Beige => &["cream", "light brown", "white"],
        }
    }
}

/// A colour as one particular garment has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dye {
    pub(crate) colour: Colour,
    pub(crate) rgb: Rgb,
}

impl Dye {
    /// A shade of `colour`, a little off the typical one.
    pub(crate) fn new(colour: Colour, stream: &mut Stream) -> Self {
        let lightness = 1.0 + 0.07 * stream.bell();
        let Rgb(r, g, b) = colour.rgb().scaled(lightness);
        let mut off = |channel: u8| (f32::from(channel) + 5.0 * stream.bell()).clamp(6.0, 250.0);
        Self { colour, rgb: Rgb(off(r) as u8, off(g) as u8, off(b) as u8) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_and_scaling_stay_in_range() {
        assert_eq!(Rgb(0, 100, 200).mix(Rgb(100, 0, 200), 0.5), Rgb(50, 50, 200));
        assert_eq!(Rgb(200, 10, 0).scaled(2.0), Rgb(255, 20, 0));
        assert_eq!(Colour::Navy.names()[0], "navy");
    }
}
