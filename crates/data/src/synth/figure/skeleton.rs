//! Joints of a posed body in body units: `y` runs from 0 (crown) to 1 (sole), `x` from the body's
//! middle to the viewer's right. Profiles are built facing right; facing left is a mirror image.
//!
//! Limbs come in slots: seen from the front or the back, slot 0 is on the viewer's left; in
//! profile, slot 0 is the far limb and slot 1 the near one.

use tiny_skia::Point;

use crate::synth::person::{Body, Gender, Side};
use crate::synth::raster::at;
use crate::synth::sight::HOLDING_HAND;
use crate::synth::view::{Facing, Pose};

const THIGH: f32 = 0.23;
const SHIN: f32 = 0.215;
const UPPER_ARM: f32 = 0.155;
const FOREARM: f32 = 0.135;
const ANKLE_Y: f32 = 0.945;

/// Where everything is.
pub(super) struct Skeleton {
    pub(super) facing: Facing,
    /// Factor on all widths.
    pub(super) girth: f32,
    /// Half widths of the torso as seen: at the shoulders, the waist and the hips.
    pub(super) shoulder: f32,
    pub(super) waist: f32,
    pub(super) hip: f32,
    /// Vertical offset of head and torso: a long stride lowers the body.
    pub(super) sink: f32,
    pub(super) arms: [Limb; 2],
    pub(super) legs: [Limb; 2],
    /// Horizontal offset of the middle of the chest and face, from a slight turn.
    pub(super) turn: f32,
}

/// Shoulder, elbow, wrist; or hip, knee, ankle.
#[derive(Clone, Copy)]
pub(super) struct Limb {
    pub(super) root: Point,
    pub(super) joint: Point,
    pub(super) end: Point,
}

impl Limb {
    /// The point `share` of the way along the first bone, then along the second (from 1 to 2).
    pub(super) fn along(&self, share: f32) -> Point {
        let (a, b, t) = if share < 1.0 {
            (self.root, self.joint, share)
        } else {
            (self.joint, self.end, share - 1.0)
        };
        at(a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t)
    }
}

impl Skeleton {
    pub(super) fn new(body: &Body, gender: Gender, facing: Facing, pose: &Pose) -> Self {
        let girth = body.width;
        let profile = facing.is_profile();
        let (shoulder, waist, hip) = match (profile, gender) {
            (true, _) => (0.055 * girth, 0.056 * girth, 0.062 * girth),
            (false, Gender::Woman) => (0.104 * girth, 0.076 * girth, 0.1 * girth),
            (false, Gender::Man) => (0.124 * girth, 0.094 * girth, 0.094 * girth),
        };
        let mut legs = if profile { profile_legs(pose) } else { frontal_legs(girth, pose) };
        let lowest = legs[0].end.y.max(legs[1].end.y);
        let sink = ANKLE_Y - lowest;
        for leg in &mut legs {
            for point in [&mut leg.root, &mut leg.joint, &mut leg.end] {
                point.y += sink;
            }
        }
        let mut skeleton =
            Self { facing, girth, shoulder, waist, hip, sink, arms: legs, legs, turn: pose.turn };
        skeleton.arms = [skeleton.arm(0, pose), skeleton.arm(1, pose)];
        skeleton
    }

    /// The height `y` of head or torso, with the body's sinking.
    pub(super) fn y(&self, y: f32) -> f32 {
        y + self.sink
    }

    pub(super) fn is_profile(&self) -> bool {
        self.facing.is_profile()
    }

    /// The slot of the limb on the person's own `side`.
    pub(super) fn slot(&self, side: Side) -> usize {
        let on_the_right = match self.facing {
            Facing::Front => side == Side::Left,
            Facing::Back => side == Side::Right,
            Facing::Left | Facing::Right => self.facing.near_side() == Some(side),
        };
        usize::from(on_the_right)
    }

    /// -1 for the slot on the viewer's left, 1 for the one on the right (seen frontally).
    pub(super) fn direction(slot: usize) -> f32 {
        if slot == 0 { -1.0 } else { 1.0 }
    }

    fn arm(&self, slot: usize, pose: &Pose) -> Limb {
        let holds =
            pose.held.is_some_and(|held| held.is_raised()) && self.slot(HOLDING_HAND) == slot;
        let bend = if holds { 1.75 } else { pose.elbows[slot] };
        if self.is_profile() {
            // Arms swing against the legs of the same side.
            let swing = if holds { 0.15 } else { -0.5 * pose.stride * Self::direction(slot) };
            return chain(at(0.0, self.y(0.2)), [swing, swing + bend], [UPPER_ARM, FOREARM]);
        }
        let out = Self::direction(slot);
        let root = at(out * (self.shoulder - 0.03), self.y(0.197));
        if holds {
            let elbow = at(root.x + out * 0.022, root.y + UPPER_ARM);
            return Limb { root, joint: elbow, end: at(out * 0.05, self.y(0.285)) };
        }
        let spread = 0.2 + 0.1 * bend;
        chain(root, [out * spread, out * (spread - 0.5 * bend)], [UPPER_ARM, FOREARM])
    }
}

/// Two bones hanging from `root`, each at an angle from straight down towards the right.
fn chain(root: Point, angles: [f32; 2], lengths: [f32; 2]) -> Limb {
    let step = |from: Point, i: usize| {
        at(from.x + lengths[i] * angles[i].sin(), from.y + lengths[i] * angles[i].cos())
    };
    let joint = step(root, 0);
    Limb { root, joint, end: step(joint, 1) }
}

fn profile_legs(pose: &Pose) -> [Limb; 2] {
    let leg = |forward: f32| {
        let thigh = 0.42 * forward;
        // The trailing leg bends at the knee.
        let bend = if forward < 0.0 { -0.5 * forward } else { 0.06 };
        chain(at(0.0, 0.5), [thigh, thigh - bend], [THIGH, SHIN])
    };
    [leg(-pose.stride), leg(pose.stride)]
}

fn frontal_legs(girth: f32, pose: &Pose) -> [Limb; 2] {
    let leg = |slot: usize, forward: f32| {
        let out = Skeleton::direction(slot);
        // A leg that is behind looks shorter, a walker's feet come down near the middle line.
        let short = 1.0 - 0.1 * (-forward).max(0.0);
        let inwards = if pose.is_walking() { 0.07 } else { -0.02 };
        let root = at(out * 0.05 * girth, 0.5);
        chain(root, [-out * inwards, -out * inwards * 1.2], [THIGH, SHIN * short])
    };
    [leg(0, -pose.stride), leg(1, pose.stride)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::palette::Rgb;

    fn skeleton(facing: Facing, stride: f32) -> Skeleton {
        let body = Body { height: 1.0, width: 1.0, skin: Rgb(0, 0, 0) };
        let pose = Pose { stride, turn: 0.0, elbows: [0.2, 0.2], held: None };
        Skeleton::new(&body, Gender::Man, facing, &pose)
    }

    #[test]
    fn left_and_right_are_the_persons_own() {
        assert_eq!(skeleton(Facing::Front, 0.0).slot(Side::Left), 1);
        assert_eq!(skeleton(Facing::Back, 0.0).slot(Side::Left), 0);
        assert_eq!(skeleton(Facing::Left, 0.0).slot(Side::Left), 1);
        assert_eq!(skeleton(Facing::Right, 0.0).slot(Side::Left), 0);
    }

    #[test]
    fn the_lower_foot_stands_on_the_ground() {
        for facing in [Facing::Front, Facing::Right] {
            for stride in [-1.0, -0.3, 0.0, 0.8] {
                let legs = skeleton(facing, stride).legs;
                let lowest = legs[0].end.y.max(legs[1].end.y);
                assert!((lowest - ANKLE_Y).abs() < 1e-5, "{facing:?} {stride}: {lowest}");
            }
        }
    }
}
