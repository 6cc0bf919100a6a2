//! How a person is seen in one image: facing, pose, what the hands hold, and where the frame cuts.
//! Everything here is drawn independently of who is seen.

use super::camera::Camera;
use super::person::Side;
use super::scene::Scene;
use super::stream::Stream;

/// One sighting.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) facing: Facing,
    pub(crate) pose: Pose,
    pub(crate) framing: Framing,
    pub(crate) scene: Scene,
    pub(crate) camera: Camera,
}

/// Where the person is turned, as the viewer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Facing {
    Front,
    Back,
    Left,
    Right,
}

impl Facing {
    pub(crate) fn is_profile(self) -> bool {
        matches!(self, Self::Left | Self::Right)
    }

    /// In profile, the side of the body that is turned to the viewer.
    pub(crate) fn near_side(self) -> Option<Side> {
        match self {
            Self::Left => Some(Side::Left),
            Self::Right => Some(Side::Right),
            Self::Front | Self::Back => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pose {
    /// Swing of the legs in `[-1, 1]`; exactly 0 when standing.
    pub(crate) stride: f32,
    /// Slight turn of head and chest in `[-1, 1]`.
    pub(crate) turn: f32,
    /// Bend of each elbow in radians, left then right.
    pub(crate) elbows: [f32; 2],
    pub(crate) held: Option<Held>,
}

impl Pose {
    pub(crate) fn is_walking(&self) -> bool {
        self.stride != 0.0
    }
}

/// Something in the hand that no bag is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Held {
    Phone,
    Cup,
    Book,
    /// Folded, and hanging from the hand.
    Umbrella,
}

impl Held {
    /// Held up in front of the chest.
    pub(crate) fn is_raised(self) -> bool {
        self != Self::Umbrella
    }
}

/// Where the frame lies around the person.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framing {
    /// Body height as a share of the frame height.
    pub(crate) scale: f32,
    /// Offset of the body's middle from the frame's, in frame widths.
    pub(crate) shift_x: f32,
    /// Space above the head, in frame heights (negative cuts into the hair).
    pub(crate) top: f32,
    /// Rotation in degrees.
    pub(crate) tilt: f32,
}

impl Framing {
    /// Whether feet fall into the frame of a person `height` body units tall.
    pub(crate) fn shows_feet(&self, height: f32) -> bool {
        self.top + self.scale * height < 1.015
    }
}

impl View {
    pub(crate) fn draw(stream: &mut Stream) -> Self {
        let facing = stream.weighted(&[
            (Facing::Front, 0.46),
            (Facing::Back, 0.3),
            (Facing::Left, 0.12),
            (Facing::Right, 0.12),
        ]);
        Self {
            facing,
            pose: pose(stream),
            framing: framing(stream),
            scene: Scene::draw(stream),
            camera: Camera::draw(stream),
        }
    }
}

fn pose(stream: &mut Stream) -> Pose {
    let swing = stream.range(0.35, 1.0) * stream.pick(&[-1.0, 1.0]);
    let stride = if stream.chance(0.3) { 0.0 } else { swing };
    let held = stream.weighted(&[
        (None, 0.8),
        (Some(Held::Phone), 0.08),
        (Some(Held::Cup), 0.04),
        (Some(Held::Book), 0.04),
        (Some(Held::Umbrella), 0.04),
    ]);
    let elbows = [stream.range(0.05, 0.45), stream.range(0.05, 0.45)];
    Pose { stride, turn: stream.range(-1.0, 1.0), elbows, held }
}

fn framing(stream: &mut Stream) -> Framing {
    let cut = stream.chance(0.05);
    let scale = if cut { stream.range(1.06, 1.14) } else { stream.range(0.88, 0.93) };
    Framing {
        scale,
        shift_x: stream.range(-0.045, 0.045),
        top: stream.range(0.02, 0.045),
        tilt: 1.2 * stream.bell(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Purpose;
    use super::*;

    #[test]
    fn most_views_show_the_feet_and_some_do_not() {
        let shown = (0..1000)
            .map(|index| View::draw(&mut Stream::new(2, Purpose::View, index)))
            .filter(|view| view.framing.shows_feet(1.0))
            .count();
        assert!((920..=980).contains(&shown), "{shown}");
    }
}
