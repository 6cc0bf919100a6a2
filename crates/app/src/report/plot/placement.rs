//! Where labels go beside their points: the nearest free place, so that none covers another label
//! or a point.

use std::ops::Range;

/// A label's place, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// The upper corner that the text starts from, or ends at.
    pub(super) corner: (i32, i32),
    /// Whether it ends there: a label on the left keeps its distance whatever the face's width.
    pub(super) ends_there: bool,
    /// Where a line from the point should end, when the label stands too far to need none.
    pub(super) leader: Option<(i32, i32)>,
}

/// A rectangle in pixels: left, top, right, bottom.
#[derive(Clone, Copy, Debug)]
struct Rect(i32, i32, i32, i32);

impl Rect {
    fn overlap(self, other: Rect) -> i32 {
        let width = self.2.min(other.2) - self.0.max(other.0);
        let height = self.3.min(other.3) - self.1.max(other.1);
        width.max(0) * height.max(0)
    }

    fn area(self) -> i32 {
        (self.2 - self.0) * (self.3 - self.1)
    }
}

/// Half the side of the square that a point keeps free.
const POINT_PX: i32 = 7;
/// Gaps between point and label that are tried, nearest first.
const GAPS_PX: [i32; 6] = [9, 15, 23, 33, 45, 60];
/// Beyond this gap a line leads to the label.
const LEADER_FROM_PX: i32 = 15;
/// Right, left, above, below, then the diagonals; right reads best.
const DIRECTIONS: [(i32, i32); 8] =
    [(1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 1), (-1, -1), (-1, 1)];

/// Places `labels` beside `points`, one after the other, within `bounds` (x and y ranges). Each
/// takes the first candidate that hides nothing, or else the one that hides least.
pub(super) fn place_labels(
    points: &[(i32, i32)],
    labels: &[&str],
    font_px: f64,
    bounds: (Range<i32>, Range<i32>),
) -> Vec<Placed> {
    let bounds = Rect(bounds.0.start, bounds.1.start, bounds.0.end, bounds.1.end);
    let mut taken: Vec<Rect> = points.iter().map(|&point| around(point)).collect();
    let mut placed = Vec::with_capacity(points.len());
    for (&point, label) in points.iter().zip(labels) {
        // Capitals and digits of a wide sans-serif face are about 0.74 em wide.
        let width = (0.74 * font_px * label.chars().count() as f64).ceil() as i32;
        let size = (width, font_px.ceil() as i32 + 2);
        let candidates = GAPS_PX.iter().flat_map(|&gap| DIRECTIONS.map(|d| (gap, d)));
        let best = candidates
            .map(|(gap, direction)| (gap, direction, beside(point, direction, gap, size)))
            .min_by_key(|&(_, _, rect)| hidden(rect, &taken, bounds));
        let Some((gap, direction, rect)) = best else { continue };
        taken.push(rect);
        let leader = (gap > LEADER_FROM_PX).then(|| nearest(rect, point));
        let ends_there = direction.0 == -1;
        let corner = (if ends_there { rect.2 } else { rect.0 }, rect.1);
        placed.push(Placed { corner, ends_there, leader });
    }
    placed
}

fn around((x, y): (i32, i32)) -> Rect {
    Rect(x - POINT_PX, y - POINT_PX, x + POINT_PX, y + POINT_PX)
}

/// A rectangle of `size` at `gap` from the point in one direction.
fn beside((x, y): (i32, i32), direction: (i32, i32), gap: i32, size: (i32, i32)) -> Rect {
    // On a diagonal the same distance is shorter along each axis.
    let gap = if direction.0 != 0 && direction.1 != 0 { gap * 2 / 3 } else { gap };
    let start = |at: i32, direction: i32, length: i32| match direction {
        1 => at + gap,
        -1 => at - gap - length,
        _ => at - length / 2,
    };
    let (left, top) = (start(x, direction.0, size.0), start(y, direction.1, size.1));
    Rect(left, top, left + size.0, top + size.1)
}

/// How many square pixels are covered by or outside of something else.
fn hidden(rect: Rect, taken: &[Rect], bounds: Rect) -> i32 {
    let outside = rect.area() - rect.overlap(bounds);
    outside * 4 + taken.iter().map(|other| rect.overlap(*other)).sum::<i32>()
}

fn nearest(rect: Rect, (x, y): (i32, i32)) -> (i32, i32) {
    (x.clamp(rect.0, rect.2), y.clamp(rect.1, rect.3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_crowded_points_hide_nothing() {
        let points = [(50, 50), (55, 52), (60, 48), (52, 58), (300, 50), (302, 50)];
        let labels = ["FP32+EMA+GC"; 6];
        let placed = place_labels(&points, &labels, 12.0, (0..320, 0..200));
        assert_eq!(placed.len(), points.len());
        let rect = |p: &Placed| {
            let left = p.corner.0 - if p.ends_there { 98 } else { 0 };
            Rect(left, p.corner.1, left + 98, p.corner.1 + 14)
        };
        for (i, a) in placed.iter().enumerate() {
            assert_eq!(rect(a).overlap(Rect(0, 0, 320, 200)), rect(a).area(), "{a:?} is cut");
            for b in &placed[i + 1..] {
                assert_eq!(rect(a).overlap(rect(b)), 0, "{a:?} {b:?}");
            }
            for &point in &points {
                assert_eq!(rect(a).overlap(around(point)), 0, "{a:?} hides {point:?}");
            }
        }
    }

    #[test]
    fn a_lonely_label_stands_to_the_right() {
        let placed = place_labels(&[(50, 50)], &["AMP"], 10.0, (0..320, 0..100));
        assert_eq!(placed, [Placed { corner: (59, 44), ends_there: false, leader: None }]);
    }
}
