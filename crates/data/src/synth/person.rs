//! What is lasting about a synthetic person: body, hair, clothes and luggage. Nothing here depends
//! on an image; how a person is seen in one is [`super::view::View`].

use super::palette::{Dye, Rgb};

/// Everything that one identity keeps in all of its images.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Person {
    pub(crate) gender: Gender,
    pub(crate) age: Age,
    pub(crate) body: Body,
    pub(crate) hair: Hair,
    pub(crate) hat: Option<Hat>,
    pub(crate) glasses: Option<Glasses>,
    pub(crate) upper: Upper,
    /// `None` exactly for a dress.
    pub(crate) lower: Option<Lower>,
    pub(crate) shoes: Shoes,
    pub(crate) bag: Option<Bag>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gender {
    Woman,
    Man,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    Young,
    Adult,
    Elderly,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Body {
    /// Share of the usual frame height, 0.96 to 1.04.
    pub(crate) height: f32,
    /// Share of the usual width, 0.87 (slim) to 1.22 (heavy).
    pub(crate) width: f32,
    pub(crate) skin: Rgb,
}

impl Body {
    pub(crate) const SLIM: f32 = 0.92;
    pub(crate) const HEAVY: f32 = 1.14;
    pub(crate) const SHORT: f32 = 0.98;
    pub(crate) const TALL: f32 = 1.02;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hair {
    pub(crate) cut: HairCut,
    pub(crate) shade: HairShade,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HairCut {
    Bald,
    Short,
    /// To the shoulders.
    Medium,
    Long,
    Ponytail,
    Bun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HairShade {
    Black,
    Brown,
    Blond,
    Red,
    Grey,
}

impl HairShade {
    pub(crate) fn rgb(self) -> Rgb {
        match self {
            Self::Black => Rgb(26, 22, 22),
            Self::Brown => Rgb(92, 56, 34),
            Self::Blond => Rgb(222, 184, 104),
            Self::Red => Rgb(164, 66, 30),
            Self::Grey => Rgb(176, 174, 172),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hat {
    pub(crate) kind: HatKind,
    pub(crate) dye: Dye,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HatKind {
    Cap,
    Beanie,
    SunHat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Glasses {
    Clear,
    Sun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upper {
    pub(crate) kind: UpperKind,
    pub(crate) dye: Dye,
    pub(crate) pattern: Pattern,
    /// The second colour of a pattern.
    pub(crate) accent: Dye,
    /// What is worn under an open jacket, coat or blazer.
    pub(crate) inner: Dye,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UpperKind {
    TShirt,
    TankTop,
    Shirt,
    Sweater,
    Hoodie,
    Jacket,
    Coat,
    Blazer,
    Dress,
}

/// How far a sleeve reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleeve {
    None,
    Short,
    Long,
}

impl UpperKind {
    pub(crate) fn sleeve(self) -> Sleeve {
        match self {
            Self::TankTop | Self::Dress => Sleeve::None,
            Self::TShirt => Sleeve::Short,
            _ => Sleeve::Long,
        }
    }

    /// Worn open, with something else showing under it.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Jacket | Self::Coat | Self::Blazer)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pattern {
    Plain,
    HorizontalStripes,
    VerticalStripes,
    Checks,
    Dots,
    /// A print on the chest, which only a view from the front shows.
    Logo,
    /// Sleeves in the second colour.
    Sleeves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lower {
    pub(crate) kind: LowerKind,
    pub(crate) dye: Dye,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LowerKind {
    Jeans,
    Trousers,
    Leggings,
    Shorts,
    Skirt,
    LongSkirt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shoes {
    pub(crate) kind: ShoeKind,
    pub(crate) dye: Dye,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShoeKind {
    Sneakers,
    Leather,
    Boots,
    Sandals,
    Heels,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bag {
    pub(crate) kind: BagKind,
    pub(crate) dye: Dye,
    pub(crate) side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BagKind {
    Backpack,
    Handbag,
    ShoulderBag,
    /// On a strap across the chest.
    CrossBody,
    ShoppingBag,
    Suitcase,
}

/// The wearer's own left or right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

impl Side {
    pub(crate) fn other(self) -> Side {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}
