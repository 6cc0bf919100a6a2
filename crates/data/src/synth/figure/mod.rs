//! Drawing a person as seen in one view: luggage behind, limbs from far to near, clothes, head,
//! luggage in front.

mod cloth;
mod head;
mod legs;
mod luggage;
mod skeleton;
mod torso;

use tiny_skia::Transform;

use self::cloth::Cloth;
use self::skeleton::Skeleton;
use super::palette::Rgb;
use super::person::Person;
use super::raster::{Canvas, Ink, ellipse};
use super::sight::{self, HOLDING_HAND};
use super::view::{Facing, Pose, View};

/// Draws `person` into a frame of `width x height` pixels that already shows the background.
pub(crate) fn draw(canvas: &mut Canvas, person: &Person, view: &View, width: u32, height: u32) {
    let held = sight::held(person, view);
    let pose = Pose { held, ..view.pose };
    let skeleton = Skeleton::new(&person.body, person.gender, view.facing, &pose);
    canvas.set_transform(placement(person, view, width as f32, height as f32));
    // A profile facing left is drawn facing right and mirrored, and so is the light on it.
    let mirrored = if view.facing == Facing::Left { -1.0 } else { 1.0 };
    canvas.set_shade(view.camera.side_light * mirrored);

    canvas.fill(&ellipse(0.02, 0.975, 0.15, 0.022), Ink::Veil(Rgb(0, 0, 0), 0.35));
    let far_hand_holds = skeleton.is_profile() && skeleton.slot(HOLDING_HAND) == 0;
    luggage::draw_behind(canvas, person, &skeleton);
    if skeleton.is_profile() {
        torso::draw_arm(canvas, person, &skeleton, 0);
        if far_hand_holds {
            luggage::draw_held(canvas, held, &skeleton);
        }
    }
    legs::draw(canvas, person, &skeleton);
    torso::draw(canvas, person, &skeleton);
    head::draw(canvas, person, &skeleton);
    luggage::draw_worn(canvas, person, &skeleton);
    if !skeleton.is_profile() {
        torso::draw_arm(canvas, person, &skeleton, 0);
    }
    torso::draw_arm(canvas, person, &skeleton, 1);
    luggage::draw_in_hand(canvas, person, &skeleton);
    if !far_hand_holds {
        luggage::draw_held(canvas, held, &skeleton);
    }
}

/// From body units to pixels of the frame.
fn placement(person: &Person, view: &View, width: f32, height: f32) -> Transform {
    let framing = &view.framing;
    let scale = framing.scale * person.body.height * height;
    let mirror = if view.facing == Facing::Left { -1.0 } else { 1.0 };
    Transform::from_scale(mirror * scale, scale)
        .post_concat(Transform::from_rotate_at(framing.tilt, 0.0, 0.5 * scale))
        .post_translate(width * (0.5 + framing.shift_x), height * framing.top)
}
