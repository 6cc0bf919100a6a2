//! Captions as crowd workers write them: a grammar with synonyms, omissions and changes of order,
//! and now and then a slip. A caption tells only of what the view shows.

mod phrase;
mod slip;

use self::phrase::Phrases;
use super::person::{Gender, Person};
use super::sight::Sight;
use super::stream::Stream;

/// How often writers go wrong, as probabilities.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carelessness {
    /// Per colour: takes it for a similar one.
    pub(crate) wrong_colour: f32,
    /// Per garment: leaves the colour out.
    pub(crate) no_colour: f32,
    /// Per caption: mistypes one word.
    pub(crate) typo: f32,
    /// Per caption: doubles a space or leaves one at the end.
    pub(crate) stray_space: f32,
    /// Per caption: types without capitals, or in capitals only (a tenth of the cases).
    pub(crate) odd_case: f32,
    /// Per caption: forgets the last full stop.
    pub(crate) no_stop: f32,
}

impl Carelessness {
    /// Stray spaces as often as in the real test split (1,730 of 6,156 captions); the others are
    /// estimates.
    pub(crate) const CROWD: Self = Self {
        wrong_colour: 0.04,
        no_colour: 0.02,
        typo: 0.06,
        stray_space: 0.28,
        odd_case: 0.1,
        no_stop: 0.1,
    };
}

/// Writes one caption.
pub(crate) fn write(
    person: &Person,
    sight: &Sight,
    carelessness: &Carelessness,
    stream: &mut Stream,
) -> String {
    let mut phrases = Phrases::new(person, sight, carelessness, stream);
    let sentences = compose(&mut phrases);
    let text = sentences.iter().map(|text| capitalised(text)).collect::<Vec<_>>().join(". ") + ".";
    slip::apply(text, carelessness, stream)
}

/// What is told, in pieces.
struct Story {
    /// "a young man"
    subject: String,
    /// "the man", for a second mention
    again: String,
    /// "short black hair", where it isn't told otherwise
    hair: Option<String>,
    /// "a red shirt", "blue jeans", ...
    worn: Vec<String>,
    /// "is carrying a bag", "has long hair", ...
    deeds: Vec<String>,
}

fn compose(phrases: &mut Phrases<'_>) -> Vec<String> {
    let mut story = gather(phrases);
    let worn = join(&story.worn, phrases.stream);
    let verb = phrases.stream.weighted(&[
        ("is wearing", 0.5),
        ("wears", 0.3),
        ("is dressed in", 0.1),
        ("has on", 0.1),
    ]);
    let hair = story.hair.take();
    let Story { subject, again, .. } = &story;
    let mut sentences = Vec::new();
    match (phrases.stream.below(10), hair) {
        (0..=2, Some(hair)) => sentences.push(format!("{subject} with {hair} {verb} {worn}")),
        (3, Some(hair)) => sentences.push(format!("{subject} has {hair} and {verb} {worn}")),
        (4, Some(hair)) => {
            sentences.push(format!("wearing {worn}, {again} has {hair}"));
        }
        (5, hair) => {
            sentences.push(format!("{subject} wearing {worn}"));
            story.deeds.extend(hair.map(|hair| format!("has {hair}")));
        }
        (6, hair) => {
            sentences.push(format!("{subject} is seen in {worn}"));
            story.deeds.extend(hair.map(|hair| format!("has {hair}")));
        }
        (_, hair) => {
            sentences.push(format!("{subject} {verb} {worn}"));
            story.deeds.extend(hair.map(|hair| format!("has {hair}")));
        }
    }
    tell_deeds(&mut sentences, story, phrases);
    sentences
}

fn gather(phrases: &mut Phrases<'_>) -> Story {
    let (subject, again) = phrases.subject();
    let hair = phrases.hair();
    let (upper, lower, shoes, hat) =
        (phrases.upper(), phrases.lower(), phrases.shoes(), phrases.hat());
    let mut worn: Vec<String> = [Some(upper), lower, shoes].into_iter().flatten().collect();
    if worn.len() > 1 && phrases.stream.chance(0.08) {
        worn.reverse();
    }
    if let Some(hat) = hat {
        let place = if phrases.stream.chance(0.5) { 0 } else { worn.len() };
        worn.insert(place, hat);
    }
    let mut deeds = Vec::new();
    if let Some(glasses) = phrases.glasses() {
        if phrases.stream.chance(0.5) {
            worn.push(glasses.to_owned());
        } else {
            deeds.push(format!("wears {glasses}"));
        }
    }
    deeds.extend([phrases.bag(), phrases.held(), phrases.movement()].into_iter().flatten());
    Story { subject, again, hair, worn, deeds }
}

/// Adds the deeds: to the last sentence, or as sentences of their own with one or two each.
fn tell_deeds(sentences: &mut Vec<String>, story: Story, phrases: &mut Phrases<'_>) {
    let mut deeds = story.deeds;
    if deeds.len() > 1 && phrases.stream.chance(0.4) {
        deeds.rotate_left(1);
    }
    let pronoun = match phrases.person.gender {
        Gender::Woman => "she",
        Gender::Man => "he",
    };
    let mut deeds = deeds.into_iter().peekable();
    if phrases.stream.chance(0.35)
        && let (Some(deed), Some(last)) = (deeds.next(), sentences.last_mut())
    {
        *last = format!("{last} and {deed}");
    }
    while let Some(deed) = deeds.next() {
        let who = if phrases.stream.chance(0.75) { pronoun } else { &story.again };
        let pair = if phrases.stream.chance(0.6) { deeds.next() } else { None };
        sentences.push(match pair {
            Some(second) => format!("{who} {deed} and {second}"),
            None => format!("{who} {deed}"),
        });
    }
}

/// "a, b and c" and what else people write.
fn join(items: &[String], stream: &mut Stream) -> String {
    let Some((last, rest)) = items.split_last() else { return String::new() };
    if rest.is_empty() {
        return last.clone();
    }
    let before_last = stream.weighted(&[(" and ", 0.7), (", and ", 0.2), (" with ", 0.1)]);
    let between = stream.weighted(&[(", ", 0.8), (" and ", 0.2)]);
    rest.join(between) + before_last + last
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
