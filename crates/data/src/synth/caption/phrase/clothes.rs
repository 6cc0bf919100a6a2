//! What is worn.

use super::{Phrases, omitted, with_article};
use crate::synth::person::{Gender, HatKind, Lower, LowerKind, Pattern, ShoeKind, UpperKind};

impl Phrases<'_> {
    /// "a red and white striped shirt".
    pub(in crate::synth::caption) fn upper(&mut self) -> String {
        let upper = self.person.upper;
        let noun = self.upper_noun();
        let main = self.colour(upper.dye);
        let pattern =
            if self.stream.chance(omitted::PATTERN) { Pattern::Plain } else { self.sight.pattern };
        let accent = match pattern {
            Pattern::Plain => String::new(),
            _ => self.colour_word(upper.accent),
        };
        let both = if main.is_empty() { accent.clone() } else { format!("{main} and {accent}") };
        let text = match pattern {
            Pattern::Plain => format!("{main} {noun}"),
            Pattern::HorizontalStripes => match self.stream.below(5) {
                0 | 1 => format!("{both} striped {noun}"),
                2 => format!("{both} horizontal striped {noun}"),
                3 => format!("{main} {noun} with {accent} stripes"),
                _ => format!("{main} {noun} with {accent} horizontal stripes"),
            },
            Pattern::VerticalStripes => match self.stream.below(3) {
                0 => format!("{both} vertical striped {noun}"),
                1 => format!("{main} {noun} with {accent} vertical stripes"),
                _ => format!("{main} {noun} with vertical {accent} stripes"),
            },
            Pattern::Checks => {
                let word =
                    self.stream.weighted(&[("plaid", 0.45), ("checkered", 0.3), ("checked", 0.25)]);
                format!("{} {word} {noun}", if self.stream.chance(0.7) { both } else { main })
            }
            Pattern::Dots => match self.stream.below(2) {
                0 => format!("{both} polka dot {noun}"),
                _ => format!("{main} {noun} with {accent} polka dots"),
            },
            Pattern::Logo => {
                let print = self.stream.pick(&["logo", "print", "picture", "design"]);
                let place = self.stream.pick(&["front", "chest"]);
                format!("{main} {noun} with a {accent} {print} on the {place}")
            }
            Pattern::Sleeves => format!("{main} {noun} with {accent} sleeves"),
        };
        with_article(text.trim()) + &self.under_it()
    }

    fn upper_noun(&mut self) -> &'static str {
        let is_woman = self.person.gender == Gender::Woman;
        match self.person.upper.kind {
            UpperKind::TShirt => self.stream.weighted(&[
                ("t-shirt", 0.5),
                ("short sleeved shirt", 0.2),
                ("shirt", 0.15),
                ("tshirt", 0.15),
            ]),
            UpperKind::TankTop => self.stream.weighted(&[
                ("tank top", 0.65),
                ("sleeveless top", 0.2),
                ("sleeveless shirt", 0.15),
            ]),
            UpperKind::Shirt if is_woman => self.stream.weighted(&[
                ("shirt", 0.3),
                ("blouse", 0.3),
                ("long sleeved shirt", 0.2),
                ("button up shirt", 0.2),
            ]),
            UpperKind::Shirt => self.stream.weighted(&[
                ("shirt", 0.3),
                ("long sleeved shirt", 0.25),
                ("button up shirt", 0.25),
                ("dress shirt", 0.2),
            ]),
            UpperKind::Sweater => self.stream.weighted(&[
                ("sweater", 0.75),
                ("pullover", 0.15),
                ("long sleeved top", 0.1),
            ]),
            UpperKind::Hoodie => self.stream.weighted(&[
                ("hoodie", 0.65),
                ("hooded sweatshirt", 0.25),
                ("sweatshirt with a hood", 0.1),
            ]),
            UpperKind::Jacket => self.stream.weighted(&[("jacket", 0.85), ("open jacket", 0.15)]),
            UpperKind::Coat => {
                self.stream.weighted(&[("coat", 0.45), ("long coat", 0.45), ("overcoat", 0.1)])
            }
            UpperKind::Blazer if is_woman => "blazer",
            UpperKind::Blazer => self.stream.weighted(&[("suit jacket", 0.6), ("blazer", 0.4)]),
            UpperKind::Dress => self.stream.weighted(&[("dress", 0.8), ("sleeveless dress", 0.2)]),
        }
    }

    /// " over a white shirt", where something shows under an open garment.
    fn under_it(&mut self) -> String {
        if !self.sight.inner || self.stream.chance(omitted::INNER) {
            return String::new();
        }
        let inner = self.colour_word(self.person.upper.inner);
        let noun = self.stream.weighted(&[("shirt", 0.8), ("top", 0.2)]);
        let over = self.stream.weighted(&[("over", 0.8), ("on top of", 0.2)]);
        format!(" {over} {}", with_article(&format!("{inner} {noun}")))
    }

    /// "blue jeans", "a black skirt".
    pub(in crate::synth::caption) fn lower(&mut self) -> Option<String> {
        let Lower { kind, dye } = self.sight.lower?;
        if self.stream.chance(omitted::LOWER) {
            return None;
        }
        let noun = match kind {
            LowerKind::Jeans => self.stream.weighted(&[("jeans", 0.85), ("denim pants", 0.15)]),
            LowerKind::Trousers => {
                self.stream.weighted(&[("pants", 0.65), ("trousers", 0.25), ("slacks", 0.1)])
            }
            LowerKind::Leggings => self.stream.weighted(&[("leggings", 0.7), ("tight pants", 0.3)]),
            LowerKind::Shorts => "shorts",
            LowerKind::Skirt => self.stream.weighted(&[("skirt", 0.6), ("short skirt", 0.4)]),
            LowerKind::LongSkirt => {
                self.stream.weighted(&[("long skirt", 0.85), ("maxi skirt", 0.15)])
            }
        };
        let phrase = format!("{} {noun}", self.colour(dye));
        let phrase = phrase.trim();
        let is_single = matches!(kind, LowerKind::Skirt | LowerKind::LongSkirt);
        Some(if is_single {
            with_article(phrase)
        } else if self.stream.chance(0.12) {
            format!("a pair of {phrase}")
        } else {
            phrase.to_owned()
        })
    }

    /// "white sneakers".
    pub(in crate::synth::caption) fn shoes(&mut self) -> Option<String> {
        let shoes = self.sight.shoes?;
        if self.stream.chance(omitted::SHOES) {
            return None;
        }
        let noun = match shoes.kind {
            ShoeKind::Sneakers => {
                self.stream.weighted(&[("sneakers", 0.5), ("shoes", 0.3), ("tennis shoes", 0.2)])
            }
            ShoeKind::Leather => self.stream.weighted(&[
                ("shoes", 0.6),
                ("dress shoes", 0.25),
                ("leather shoes", 0.15),
            ]),
            ShoeKind::Boots => "boots",
            ShoeKind::Sandals => self.stream.weighted(&[("sandals", 0.8), ("flip flops", 0.2)]),
            ShoeKind::Heels => self.stream.weighted(&[("heels", 0.5), ("high heels", 0.5)]),
        };
        let phrase = format!("{} {noun}", self.colour(shoes.dye));
        let prefix = if self.stream.chance(0.08) { "a pair of " } else { "" };
        Some(format!("{prefix}{}", phrase.trim()))
    }

    /// "a red cap".
    pub(in crate::synth::caption) fn hat(&mut self) -> Option<String> {
        let hat = self.sight.hat?;
        if self.stream.chance(omitted::HAT) {
            return None;
        }
        let noun = match hat.kind {
            HatKind::Cap => {
                self.stream.weighted(&[("cap", 0.5), ("baseball cap", 0.4), ("hat", 0.1)])
            }
            HatKind::Beanie => {
                self.stream.weighted(&[("beanie", 0.6), ("knit hat", 0.25), ("hat", 0.15)])
            }
            HatKind::SunHat => {
                self.stream.weighted(&[("sun hat", 0.5), ("brimmed hat", 0.3), ("hat", 0.2)])
            }
        };
        let colour = self.colour(hat.dye);
        Some(with_article(format!("{colour} {noun}").trim()))
    }
}
