//! Who it is, hair, glasses, and what the legs do.

use super::{Phrases, omitted, with_article};
use crate::synth::person::{Age, Body, Gender, Glasses, HairCut, HairShade};
use crate::synth::sight::HairSight;
use crate::synth::view::Facing;

impl Phrases<'_> {
    /// First and second mention: "a tall young man", "the man".
    pub(in crate::synth::caption) fn subject(&mut self) -> (String, String) {
        let is_young = self.person.age == Age::Young;
        let noun = match self.person.gender {
            Gender::Woman if is_young => {
                self.stream.weighted(&[("woman", 0.6), ("girl", 0.25), ("lady", 0.15)])
            }
            Gender::Woman => self.stream.weighted(&[("woman", 0.75), ("lady", 0.25)]),
            Gender::Man if is_young => {
                self.stream.weighted(&[("man", 0.75), ("guy", 0.15), ("boy", 0.1)])
            }
            Gender::Man => self.stream.weighted(&[("man", 0.85), ("gentleman", 0.15)]),
        };
        let mut words = Vec::new();
        words.extend(self.build());
        if !self.stream.chance(omitted::AGE) {
            words.push(match self.person.age {
                Age::Young => "young",
                Age::Adult => self.stream.pick(&["middle aged", "middle-aged"]),
                Age::Elderly => self.stream.pick(&["elderly", "old", "older"]),
            });
        }
        words.push(noun);
        let phrase = words.join(" ");
        let first =
            if self.stream.chance(0.25) { format!("the {phrase}") } else { with_article(&phrase) };
        (first, format!("the {noun}"))
    }

    fn build(&mut self) -> Option<&'static str> {
        if self.stream.chance(omitted::BUILD) {
            return None;
        }
        let Body { width, height, .. } = self.person.body;
        if width > Body::HEAVY {
            Some(self.stream.pick(&["heavy", "stocky", "heavyset"]))
        } else if width < Body::SLIM {
            Some(self.stream.pick(&["slim", "thin", "skinny"]))
        } else if height > Body::TALL {
            Some("tall")
        } else if height < Body::SHORT {
            Some("short")
        } else {
            None
        }
    }

    /// "long brown hair", "a bald head".
    pub(in crate::synth::caption) fn hair(&mut self) -> Option<String> {
        let seen = self.sight.hair?;
        if self.stream.chance(omitted::HAIR) {
            return None;
        }
        let shade = if self.stream.chance(omitted::HAIR_SHADE) { "" } else { self.hair_shade() };
        let text = match seen {
            HairSight::Cut(HairCut::Bald) => {
                self.stream.pick(&["a bald head", "no hair"]).to_owned()
            }
            HairSight::Cut(HairCut::Short) => format!("short {shade} hair"),
            HairSight::Cut(HairCut::Medium) => {
                let length = self.stream.pick(&["shoulder length", "medium length"]);
                format!("{length} {shade} hair")
            }
            HairSight::Cut(HairCut::Long) => format!("long {shade} hair"),
            HairSight::Cut(HairCut::Ponytail) => self
                .stream
                .pick(&["{} hair in a ponytail", "a {} ponytail", "{} hair tied in a ponytail"])
                .replace("{}", shade),
            HairSight::Cut(HairCut::Bun) => {
                self.stream.pick(&["{} hair in a bun", "{} hair up in a bun"]).replace("{}", shade)
            }
            HairSight::TiedBack => {
                self.stream.pick(&["{} hair pulled back", "{} hair tied back"]).replace("{}", shade)
            }
        };
        // An omitted shade leaves two spaces, or one in front.
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn hair_shade(&mut self) -> &'static str {
        match self.person.hair.shade {
            HairShade::Black => self.stream.weighted(&[("black", 0.85), ("dark", 0.15)]),
            HairShade::Brown => self.stream.weighted(&[("brown", 0.85), ("dark brown", 0.15)]),
            HairShade::Blond => self.stream.weighted(&[("blonde", 0.7), ("blond", 0.3)]),
            HairShade::Red => self.stream.weighted(&[("red", 0.6), ("reddish brown", 0.4)]),
            HairShade::Grey => {
                self.stream.weighted(&[("grey", 0.55), ("gray", 0.3), ("white", 0.15)])
            }
        }
    }

    pub(in crate::synth::caption) fn glasses(&mut self) -> Option<&'static str> {
        let glasses = self.sight.glasses?;
        if self.stream.chance(omitted::GLASSES) {
            return None;
        }
        Some(match glasses {
            Glasses::Clear => self.stream.weighted(&[("glasses", 0.85), ("eyeglasses", 0.15)]),
            Glasses::Sun => self.stream.weighted(&[("sunglasses", 0.8), ("dark glasses", 0.2)]),
        })
    }

    /// "is walking away from the camera".
    pub(in crate::synth::caption) fn movement(&mut self) -> Option<String> {
        if self.stream.chance(omitted::MOVEMENT) {
            return None;
        }
        let verb = if self.sight.is_walking { "walking" } else { "standing" };
        let options = match self.sight.facing {
            Facing::Front if self.sight.is_walking => ["is {} forward", "is {} towards the camera"],
            Facing::Front => ["is facing the camera", "is facing forward"],
            Facing::Back if self.sight.is_walking => ["is {} away", "is {} away from the camera"],
            Facing::Back => ["is facing away", "is seen from behind"],
            Facing::Left => ["is {} sideways", "is facing left"],
            Facing::Right => ["is {} sideways", "is facing right"],
        };
        Some(self.stream.pick(&options).replace("{}", verb))
    }
}
