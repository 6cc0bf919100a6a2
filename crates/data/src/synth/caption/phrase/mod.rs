//! The phrases for each attribute, with synonyms and omissions.

mod body;
mod clothes;
mod luggage;

use super::Carelessness;
use crate::synth::palette::Dye;
use crate::synth::person::{Gender, Person};
use crate::synth::sight::Sight;
use crate::synth::stream::Stream;

/// Chances that a writer doesn't mention something that is in sight.
mod omitted {
    pub(super) const AGE: f32 = 0.75;
    pub(super) const BUILD: f32 = 0.85;
    pub(super) const HAIR: f32 = 0.4;
    pub(super) const HAIR_SHADE: f32 = 0.15;
    pub(super) const HAT: f32 = 0.05;
    pub(super) const GLASSES: f32 = 0.5;
    pub(super) const PATTERN: f32 = 0.04;
    pub(super) const INNER: f32 = 0.5;
    pub(super) const LOWER: f32 = 0.02;
    pub(super) const SHOES: f32 = 0.35;
    pub(super) const BAG: f32 = 0.1;
    pub(super) const BAG_SIDE: f32 = 0.7;
    pub(super) const HELD: f32 = 0.25;
    pub(super) const MOVEMENT: f32 = 0.45;
}

/// One writer at work on one image.
pub(super) struct Phrases<'a> {
    pub(super) person: &'a Person,
    pub(super) stream: &'a mut Stream,
    sight: &'a Sight,
    carelessness: &'a Carelessness,
}

impl<'a> Phrases<'a> {
    pub(super) fn new(
        person: &'a Person,
        sight: &'a Sight,
        carelessness: &'a Carelessness,
        stream: &'a mut Stream,
    ) -> Self {
        Self { person, stream, sight, carelessness }
    }

    fn possessive(&self) -> &'static str {
        match self.person.gender {
            Gender::Woman => "her",
            Gender::Man => "his",
        }
    }

    /// The colour, or nothing where the writer leaves it out.
    fn colour(&mut self, dye: Dye) -> String {
        if self.stream.chance(self.carelessness.no_colour) {
            return String::new();
        }
        self.colour_word(dye)
    }

    fn colour_word(&mut self, dye: Dye) -> String {
        let names = if self.stream.chance(self.carelessness.wrong_colour) {
            dye.colour.mistaken_for()
        } else {
            dye.colour.names()
        };
        // Most writers use the first name.
        if self.stream.chance(0.7) { names[0] } else { self.stream.pick(names) }.to_owned()
    }
}

fn with_article(phrase: &str) -> String {
    let article = if phrase.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {phrase}")
}
