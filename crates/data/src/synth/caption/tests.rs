//! Captions against the people they describe, by a lexicon of their own.

use std::collections::BTreeSet;

use super::*;
use crate::synth::palette::Colour;
use crate::synth::person::{Age, BagKind, Glasses, HairCut, HairShade, HatKind, LowerKind};
use crate::synth::person::{Pattern, ShoeKind, Side, UpperKind};
use crate::synth::sight::HairSight;
use crate::synth::stream::Purpose;
use crate::synth::view::{Facing, Held, View};
use crate::synth::wardrobe;

const SEED: u64 = 11;

const CAREFUL: Carelessness = Carelessness {
    wrong_colour: 0.0,
    no_colour: 0.0,
    typo: 0.0,
    stray_space: 0.0,
    odd_case: 0.0,
    no_stop: 0.0,
};

type Truth = fn(&Person, &Sight) -> bool;

/// A phrase, and what must hold where it is used.
const LEXICON: &[(&str, Truth)] = &[
    ("woman", |p, _| p.gender == Gender::Woman),
    ("he", |p, _| p.gender == Gender::Man),
    ("young", |p, _| p.age == Age::Young),
    ("elderly", |p, _| p.age == Age::Elderly),
    ("long sleeved", |p, _| matches!(p.upper.kind, UpperKind::Shirt | UpperKind::Sweater)),
    ("short sleeved", |p, _| p.upper.kind == UpperKind::TShirt),
    ("hoodie", |p, _| p.upper.kind == UpperKind::Hoodie),
    ("jacket", |p, _| matches!(p.upper.kind, UpperKind::Jacket | UpperKind::Blazer)),
    ("coat", |p, _| p.upper.kind == UpperKind::Coat),
    ("over a", |_, s| s.inner || s.bag.is_some_and(|bag| bag.kind == BagKind::ShoulderBag)),
    ("striped", |_, s| matches!(s.pattern, Pattern::HorizontalStripes | Pattern::VerticalStripes)),
    ("horizontal", |_, s| s.pattern == Pattern::HorizontalStripes),
    ("vertical", |_, s| s.pattern == Pattern::VerticalStripes),
    ("plaid", |_, s| s.pattern == Pattern::Checks),
    ("checkered", |_, s| s.pattern == Pattern::Checks),
    ("polka", |_, s| s.pattern == Pattern::Dots),
    ("logo", |p, s| p.upper.pattern == Pattern::Logo && s.facing == Facing::Front),
    ("sleeves", |_, s| s.pattern == Pattern::Sleeves),
    ("jeans", |p, _| p.lower.is_some_and(|lower| lower.kind == LowerKind::Jeans)),
    ("leggings", |p, _| p.lower.is_some_and(|lower| lower.kind == LowerKind::Leggings)),
    ("shorts", |_, s| s.lower.is_some_and(|lower| lower.kind == LowerKind::Shorts)),
    ("short skirt", |_, s| s.lower.is_some_and(|lower| lower.kind == LowerKind::Skirt)),
    ("long skirt", |_, s| s.lower.is_some_and(|lower| lower.kind == LowerKind::LongSkirt)),
    ("shoes", |_, s| s.shoes.is_some()),
    ("sneakers", |_, s| s.shoes.is_some_and(|shoes| shoes.kind == ShoeKind::Sneakers)),
    ("boots", |_, s| s.shoes.is_some_and(|shoes| shoes.kind == ShoeKind::Boots)),
    ("sandals", |_, s| s.shoes.is_some_and(|shoes| shoes.kind == ShoeKind::Sandals)),
    ("backpack", |_, s| s.bag.is_some_and(|bag| bag.kind == BagKind::Backpack)),
    ("suitcase", |_, s| s.bag.is_some_and(|bag| bag.kind == BagKind::Suitcase)),
    ("handbag", |_, s| s.bag.is_some_and(|bag| bag.kind == BagKind::Handbag)),
    ("left hand", |_, s| s.bag.is_some_and(|bag| bag.side == Side::Left)),
    ("right shoulder", |_, s| s.bag.is_some_and(|bag| bag.side == Side::Right)),
    ("facing left", |_, s| s.facing == Facing::Left),
    ("towards", |_, s| s.is_walking && s.facing == Facing::Front),
    ("cap", |_, s| s.hat.is_some_and(|hat| hat.kind == HatKind::Cap)),
    ("beanie", |_, s| s.hat.is_some_and(|hat| hat.kind == HatKind::Beanie)),
    ("sun hat", |_, s| s.hat.is_some_and(|hat| hat.kind == HatKind::SunHat)),
    ("sunglasses", |p, s| p.glasses == Some(Glasses::Sun) && s.facing != Facing::Back),
    ("ponytail", |_, s| s.hair == Some(HairSight::Cut(HairCut::Ponytail))),
    ("bald", |p, s| p.hair.cut == HairCut::Bald && s.hat.is_none()),
    ("phone", |_, s| s.held == Some(Held::Phone)),
    ("umbrella", |_, s| s.held == Some(Held::Umbrella)),
    ("walking", |_, s| s.is_walking),
    ("sideways", |_, s| s.facing.is_profile()),
    ("away", |_, s| s.facing == Facing::Back),
];

/// The sightings and captions of many people, one view each.
fn samples(carelessness: &Carelessness) -> Vec<(Person, Sight, String)> {
    (1..=600)
        .map(|pid| {
            let person = wardrobe::person(SEED, pid);
            let view = View::draw(&mut Stream::new(SEED, Purpose::View, pid));
            let sight = Sight::of(&person, &view);
            let stream = &mut Stream::new(SEED, Purpose::Caption, pid);
            let caption = write(&person, &sight, carelessness, stream);
            (person, sight, caption)
        })
        .collect()
}

/// Lower case, one space between words and around the whole, no punctuation.
fn plain(caption: &str) -> String {
    let words = caption.split(|c: char| !c.is_alphanumeric() && c != '-');
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    format!(" {} ", words.join(" "))
}

/// Every word that some colour name is made of.
fn colour_words(colours: &[Colour]) -> BTreeSet<&'static str> {
    colours.iter().flat_map(|colour| colour.names()).flat_map(|name| name.split(' ')).collect()
}

/// The colour words that a view justifies.
fn visible_colour_words(person: &Person, sight: &Sight) -> BTreeSet<&'static str> {
    let upper = person.upper;
    let mut colours = vec![upper.dye.colour];
    if sight.pattern != Pattern::Plain {
        colours.push(upper.accent.colour);
    }
    if sight.inner {
        colours.push(upper.inner.colour);
    }
    colours.extend(sight.lower.map(|lower| lower.dye.colour));
    colours.extend(sight.shoes.map(|shoes| shoes.dye.colour));
    colours.extend(sight.bag.map(|bag| bag.dye.colour));
    colours.extend(sight.hat.map(|hat| hat.dye.colour));
    let mut words = colour_words(&colours);
    words.extend(match person.hair.shade {
        HairShade::Black => ["black", "dark"],
        HairShade::Brown => ["brown", "dark"],
        HairShade::Blond => ["blond", "blonde"],
        HairShade::Red => ["red", "brown"],
        HairShade::Grey => ["grey", "gray"],
    });
    if person.hair.shade == HairShade::Grey || sight.held == Some(Held::Book) {
        words.insert("white");
    }
    if person.glasses == Some(Glasses::Sun) {
        words.insert("dark");
    }
    words
}

fn tells_a_wrong_colour(person: &Person, sight: &Sight, caption: &str) -> bool {
    let all = colour_words(&Colour::ALL);
    let visible = visible_colour_words(person, sight);
    plain(caption).split(' ').any(|word| all.contains(word) && !visible.contains(word))
}

#[test]
fn careful_captions_are_true() {
    let samples = samples(&CAREFUL);
    for (phrase, truth) in LEXICON {
        let phrase = format!(" {phrase} ");
        let mut uses = 0;
        for (person, sight, caption) in &samples {
            if plain(caption).contains(&phrase) {
                uses += 1;
                assert!(truth(person, sight), "{phrase:?} in {caption:?}\n{person:?}\n{sight:?}");
            }
        }
        assert!(uses > 0, "{phrase:?} is never used");
    }
}

#[test]
fn careful_captions_name_visible_colours_only() {
    for (person, sight, caption) in samples(&CAREFUL) {
        assert!(!tells_a_wrong_colour(&person, &sight, &caption), "{caption:?}\n{person:?}");
    }
}

#[test]
fn crowd_captions_are_mostly_true() {
    let samples = samples(&Carelessness::CROWD);
    let wrong = samples.iter().filter(|(p, s, caption)| tells_a_wrong_colour(p, s, caption));
    let share = wrong.count() as f32 / samples.len() as f32;
    assert!((0.02..0.25).contains(&share), "{share}");
}

#[test]
fn captions_are_as_long_as_real_ones() {
    let lengths: Vec<usize> = samples(&Carelessness::CROWD)
        .iter()
        .map(|(_, _, caption)| caption.split_whitespace().count())
        .collect();
    let mean = lengths.iter().sum::<usize>() as f32 / lengths.len() as f32;
    assert!((22.0..26.0).contains(&mean), "{mean}");
    assert!(lengths.iter().all(|length| (3..=75).contains(length)), "{lengths:?}");
}

#[test]
fn captions_of_one_sighting_vary() {
    let person = wardrobe::person(SEED, 1);
    let view = View::draw(&mut Stream::new(SEED, Purpose::View, 0));
    let sight = Sight::of(&person, &view);
    let stream = &mut Stream::new(SEED, Purpose::Caption, 0);
    let captions: BTreeSet<String> =
        (0..20).map(|_| write(&person, &sight, &Carelessness::CROWD, stream)).collect();
    assert!(captions.len() >= 18, "{captions:?}");
}
