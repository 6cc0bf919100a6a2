//! What of a person a view shows. The painter and the caption writer both go by it, so that a
//! caption never tells of what cannot be seen.

use super::person::{
    Bag, BagKind, Glasses, HairCut, Hat, Lower, LowerKind, Pattern, Person, Shoes, Side, UpperKind,
};
use super::view::{Facing, Held, View};

/// The hand that holds things other than bags.
pub(crate) const HOLDING_HAND: Side = Side::Right;

/// The visible part of a person's attributes.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    pub(crate) facing: Facing,
    pub(crate) is_walking: bool,
    /// `None` when a hat hides it.
    pub(crate) hair: Option<HairSight>,
    pub(crate) hat: Option<Hat>,
    pub(crate) glasses: Option<Glasses>,
    /// `Plain` where the pattern is turned away.
    pub(crate) pattern: Pattern,
    /// Whether what is worn under an open garment shows.
    pub(crate) inner: bool,
    pub(crate) lower: Option<Lower>,
    pub(crate) shoes: Option<Shoes>,
    pub(crate) bag: Option<Bag>,
    pub(crate) held: Option<Held>,
}

/// How the hair's cut appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HairSight {
    Cut(HairCut),
    /// A ponytail seen from the front.
    TiedBack,
}

impl Sight {
    pub(crate) fn of(person: &Person, view: &View) -> Self {
        let facing = view.facing;
        let hides_logo = person.upper.pattern == Pattern::Logo && facing != Facing::Front;
        Self {
            facing,
            is_walking: view.pose.is_walking(),
            hair: hair(person, facing),
            hat: person.hat,
            glasses: person.glasses.filter(|_| facing != Facing::Back),
            pattern: if hides_logo { Pattern::Plain } else { person.upper.pattern },
            inner: person.upper.kind.is_open() && facing != Facing::Back,
            lower: person.lower.filter(|lower| !is_under_coat(person.upper.kind, lower.kind)),
            shoes: Some(person.shoes).filter(|_| view.framing.shows_feet(person.body.height)),
            bag: person.bag.filter(|bag| shows_bag(bag, facing)),
            held: held(person, view),
        }
    }
}

/// What the holding hand visibly holds: nothing while it has a bag, and nothing that the body
/// stands in front of.
pub(crate) fn held(person: &Person, view: &View) -> Option<Held> {
    let hand_has_bag = person.bag.is_some_and(|bag| {
        let in_hand = [BagKind::Handbag, BagKind::ShoppingBag, BagKind::Suitcase];
        bag.side == HOLDING_HAND && in_hand.contains(&bag.kind)
    });
    let far = view.facing.near_side() == Some(HOLDING_HAND.other());
    view.pose.held.filter(|held| {
        let hidden = if held.is_raised() { view.facing == Facing::Back } else { far };
        !hand_has_bag && !hidden
    })
}

fn hair(person: &Person, facing: Facing) -> Option<HairSight> {
    let cut = person.hair.cut;
    let hidden_by_hat = matches!(cut, HairCut::Bald | HairCut::Short | HairCut::Bun);
    if person.hat.is_some()
        && (hidden_by_hat || (cut == HairCut::Ponytail && facing == Facing::Front))
    {
        return None;
    }
    if cut == HairCut::Ponytail && facing == Facing::Front {
        return Some(HairSight::TiedBack);
    }
    Some(HairSight::Cut(cut))
}

/// A coat reaches below shorts and short skirts.
fn is_under_coat(upper: UpperKind, lower: LowerKind) -> bool {
    upper == UpperKind::Coat && matches!(lower, LowerKind::Shorts | LowerKind::Skirt)
}

/// The body hides small bags on its far side.
fn shows_bag(bag: &Bag, facing: Facing) -> bool {
    let always = matches!(bag.kind, BagKind::Backpack | BagKind::Suitcase);
    always || facing.near_side().is_none_or(|near| near == bag.side)
}
