//! What is carried.

use super::{Phrases, omitted, with_article};
use crate::synth::person::{Bag, BagKind, Side};
use crate::synth::view::Held;

impl Phrases<'_> {
    /// "is carrying a black backpack".
    pub(in crate::synth::caption) fn bag(&mut self) -> Option<String> {
        let bag = self.sight.bag?;
        if self.stream.chance(omitted::BAG) {
            return None;
        }
        let noun = match bag.kind {
            BagKind::Backpack => {
                self.stream.weighted(&[("backpack", 0.8), ("back pack", 0.1), ("rucksack", 0.1)])
            }
            BagKind::Handbag => {
                self.stream.weighted(&[("handbag", 0.5), ("purse", 0.4), ("bag", 0.1)])
            }
            BagKind::ShoulderBag => {
                self.stream.weighted(&[("shoulder bag", 0.5), ("bag", 0.3), ("purse", 0.2)])
            }
            BagKind::CrossBody => self.stream.weighted(&[
                ("messenger bag", 0.5),
                ("bag", 0.3),
                ("crossbody bag", 0.2),
            ]),
            BagKind::ShoppingBag => {
                self.stream.weighted(&[("shopping bag", 0.6), ("plastic bag", 0.3), ("bag", 0.1)])
            }
            BagKind::Suitcase => {
                self.stream.weighted(&[("suitcase", 0.75), ("rolling suitcase", 0.25)])
            }
        };
        let colour = self.colour(bag.dye);
        let verb = match bag.kind {
            BagKind::Suitcase => self.stream.pick(&["is pulling", "pulls", "is rolling"]),
            BagKind::Handbag | BagKind::ShoppingBag => {
                self.stream.pick(&["is carrying", "is holding", "carries"])
            }
            _ => self.stream.pick(&["is carrying", "has", "carries"]),
        };
        let thing = with_article(format!("{colour} {noun}").trim());
        Some(format!("{verb} {thing}{}", self.bag_place(&bag)))
    }

    fn bag_place(&mut self, bag: &Bag) -> String {
        if self.stream.chance(omitted::BAG_SIDE) {
            return String::new();
        }
        let own = self.possessive();
        let side = match bag.side {
            Side::Left => "left",
            Side::Right => "right",
        };
        match bag.kind {
            BagKind::Backpack => format!(" on {own} back"),
            BagKind::Handbag | BagKind::ShoppingBag => format!(" in {own} {side} hand"),
            BagKind::ShoulderBag => {
                format!(" {} {own} {side} shoulder", self.stream.pick(&["on", "over"]))
            }
            BagKind::CrossBody => {
                format!(" across {own} {}", self.stream.pick(&["chest", "body"]))
            }
            BagKind::Suitcase => format!(" with {own} {side} hand"),
        }
    }

    /// "is looking at a phone".
    pub(in crate::synth::caption) fn held(&mut self) -> Option<String> {
        let held = self.sight.held?;
        if self.stream.chance(omitted::HELD) {
            return None;
        }
        let verb = self.stream.pick(&["is holding", "holds"]);
        let thing = match held {
            Held::Phone => self.stream.pick(&["a phone", "a cell phone", "a mobile phone"]),
            Held::Cup => self.stream.pick(&["a cup", "a cup of coffee", "a drink"]),
            Held::Book => self.stream.pick(&["a book", "some papers", "a white book"]),
            Held::Umbrella => self.stream.pick(&["an umbrella", "a folded umbrella"]),
        };
        Some(format!("{verb} {thing}"))
    }
}
