//! Which people there are. Attributes follow skewed distributions (much black, few sun hats), and
//! people come in families of near-twins who differ in a few attributes only: neither a colour
//! histogram nor a single word tells such people apart.

mod body;
mod clothes;
mod extras;

use self::body::{body, hair};
use self::clothes::{lower, pattern, shoes, upper, upper_dyes, upper_kind};
use self::extras::{bag, glasses, hat};
use super::palette::{Colour, Dye};
use super::person::{Age, Bag, Gender, Lower, Person, UpperKind};
use super::stream::{Purpose, Stream};

/// How many of the even ids are near-twins of the odd id before them.
const TWIN_SHARE: f32 = 0.5;

/// The person with id `pid` (from 1) under `seed`.
pub(crate) fn person(seed: u64, pid: u64) -> Person {
    let stream = &mut Stream::new(seed, Purpose::Person, pid);
    let is_twin = stream.chance(TWIN_SHARE) && pid.is_multiple_of(2);
    if !is_twin {
        return stranger(stream);
    }
    let first = person(seed, pid - 1);
    let mut twin = Person { body: body(stream), ..first.clone() };
    let changes = stream.weighted(&[(1, 1.0), (2, 2.0), (3, 2.0)]);
    while looks_the_same(&twin, &first) {
        for _ in 0..changes {
            redraw_one_attribute(&mut twin, stream);
        }
    }
    twin
}

/// A person drawn without regard to any other.
fn stranger(stream: &mut Stream) -> Person {
    let gender = stream.weighted(&[(Gender::Woman, 0.48), (Gender::Man, 0.52)]);
    let age = stream.weighted(&[(Age::Young, 0.5), (Age::Adult, 0.38), (Age::Elderly, 0.12)]);
    let upper = upper(gender, stream);
    Person {
        gender,
        age,
        body: body(stream),
        hair: hair(gender, age, stream),
        hat: hat(stream),
        glasses: glasses(stream),
        lower: (upper.kind != UpperKind::Dress).then(|| lower(gender, stream)),
        upper,
        shoes: shoes(gender, stream),
        bag: bag(gender, stream),
    }
}

/// Mostly shapes and patterns change and colours stay, so that colours alone do not tell who it is.
fn redraw_one_attribute(person: &mut Person, stream: &mut Stream) {
    let gender = person.gender;
    let upper = &mut person.upper;
    match stream.below(10) {
        0 => person.hair = hair(gender, person.age, stream),
        1 => person.hat = hat(stream),
        2 | 3 => upper.pattern = pattern(upper.kind, stream),
        4 => {
            upper.kind = upper_kind(gender, stream);
            upper.pattern = pattern(upper.kind, stream);
        }
        5 => (upper.dye, upper.accent) = upper_dyes(stream),
        6 => {
            let dye = person.lower.map(|lower| lower.dye);
            let other = lower(gender, stream);
            person.lower = Some(Lower { dye: dye.unwrap_or(other.dye), ..other });
        }
        7 => person.shoes.kind = shoes(gender, stream).kind,
        _ => {
            let dye = person.bag.map(|bag| bag.dye);
            person.bag = bag(gender, stream).map(|bag| Bag { dye: dye.unwrap_or(bag.dye), ..bag });
        }
    }
    let wears_dress = person.upper.kind == UpperKind::Dress;
    if wears_dress {
        person.lower = None;
    } else if person.lower.is_none() {
        person.lower = Some(lower(gender, stream));
    }
}

/// Whether a caption could tell the two apart: shades within one colour name don't count.
fn looks_the_same(a: &Person, b: &Person) -> bool {
    let bag = |p: &Person| p.bag.map(|bag| (bag.kind, bag.dye.colour));
    let lower = |p: &Person| p.lower.map(|lower| (lower.kind, lower.dye.colour));
    let upper = |p: &Person| (p.upper.kind, p.upper.pattern, p.upper.dye.colour);
    let shoes = |p: &Person| (p.shoes.kind, p.shoes.dye.colour);
    let hat = |p: &Person| p.hat.map(|hat| (hat.kind, hat.dye.colour));
    a.hair == b.hair
        && hat(a) == hat(b)
        && upper(a) == upper(b)
        && lower(a) == lower(b)
        && shoes(a) == shoes(b)
        && bag(a) == bag(b)
}

fn dye(colours: &[(Colour, f32)], stream: &mut Stream) -> Dye {
    Dye::new(stream.weighted(colours), stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_depends_on_seed_and_pid_alone() {
        assert_eq!(person(5, 40), person(5, 40));
        assert_ne!(person(5, 40), person(6, 40));
    }

    #[test]
    fn many_people_have_a_twin_who_differs_in_little_but_something() {
        let mut twins = 0;
        for pid in (2..=600).step_by(2) {
            let (a, b) = (person(3, pid - 1), person(3, pid));
            assert!(!looks_the_same(&a, &b), "{pid}");
            let shared = [
                a.gender == b.gender,
                a.age == b.age,
                a.hair == b.hair,
                a.hat == b.hat,
                a.upper == b.upper,
                a.lower == b.lower,
                a.shoes == b.shoes,
                a.bag == b.bag,
            ];
            // Strangers share a dye or a hair cut by chance, hardly ever five of eight attributes.
            twins += usize::from(shared.iter().filter(|shared| **shared).count() >= 5);
        }
        assert!((120..=180).contains(&twins), "{twins} of 300");
    }

    #[test]
    fn only_a_dress_goes_without_a_lower_garment() {
        for pid in 1..=900 {
            let person = person(1, pid);
            assert_eq!(person.lower.is_none(), person.upper.kind == UpperKind::Dress, "{pid}");
        }
    }
}
