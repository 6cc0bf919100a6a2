//! Random flip, shift and erasing, as the IRRA line of work trains with.
//!
//! On the resized 8-bit image: horizontal flip, then zero padding and a crop at a random place.
//! On the normalised image: one random rectangle is filled (Zhong et al. 2020). Every sample draws
//! from a stream of its own, so its pixels do not depend on its neighbours or on threads.

use std::ops::{Range, RangeInclusive};

use crate::error::DataError;
use crate::image::{CLIP_MEAN, ImageSize, TABLE};
use crate::rng::Stream;

/// What [`augment`](self) does to a training image.
#[derive(Debug, Clone, PartialEq)]
pub struct AugmentConfig {
    /// How likely the image is mirrored left to right.
    pub flip_probability: f64,
    /// Black pixels added on each side before the crop back to size; 0 keeps the image in place.
    pub pad_px: usize,
    /// How likely a rectangle is erased.
    pub erase_probability: f64,
    /// Smallest and largest area of the rectangle, as a fraction of the image.
    pub erase_area: RangeInclusive<f64>,
    /// Smallest and largest height of the rectangle over its width, drawn on a log scale.
    pub erase_aspect: RangeInclusive<f64>,
}

impl Default for AugmentConfig {
    /// IRRA's `--img_aug`.
    fn default() -> Self {
        Self {
            flip_probability: 0.5,
            pad_px: 10,
            erase_probability: 0.5,
            erase_area: 0.02..=0.4,
            erase_aspect: 0.3..=3.3,
        }
    }
}

impl AugmentConfig {
    /// Leaves images as they are.
    #[must_use]
    pub fn off() -> Self {
        Self { flip_probability: 0.0, pad_px: 0, erase_probability: 0.0, ..Self::default() }
    }

    /// Refuses values without a meaning.
    ///
    /// # Errors
    ///
    /// [`DataError::Setting`] naming the first bad one.
    pub fn validate(&self) -> Result<(), DataError> {
        let (area, aspect) = (&self.erase_area, &self.erase_aspect);
        let rules = [
            (
                "augment.flip_probability",
                (0.0..=1.0).contains(&self.flip_probability),
                self.flip_probability.to_string(),
                "a number from 0 to 1",
            ),
            (
                "augment.pad_px",
                self.pad_px <= ImageSize::MAX_SIDE,
                self.pad_px.to_string(),
                "at most 4096 pixels",
            ),
            (
                "augment.erase_probability",
                (0.0..=1.0).contains(&self.erase_probability),
                self.erase_probability.to_string(),
                "a number from 0 to 1",
            ),
            (
                "augment.erase_area",
                0.0 < *area.start() && area.start() <= area.end() && *area.end() <= 1.0,
                format!("{area:?}"),
                "two rising fractions above 0 and up to 1",
            ),
            (
                "augment.erase_aspect",
                0.0 < *aspect.start() && aspect.start() <= aspect.end() && aspect.end().is_finite(),
                format!("{aspect:?}"),
                "two rising numbers above 0",
            ),
        ];
        match rules.into_iter().find(|(_, good, _, _)| !good) {
            Some((name, _, value, expected)) => Err(DataError::Setting { name, value, expected }),
            None => Ok(()),
        }
    }
}

/// What happens to one sample: the random part, drawn at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Augmentation {
    flip: bool,
    /// Rows and columns from the crop's corner to the image's, each in `-pad_px..=pad_px`.
    shift: (isize, isize),
    erase: Option<Rectangle>,
}

#[derive(Debug, Clone, PartialEq)]
struct Rectangle {
    top: usize,
    left: usize,
    height: usize,
    width: usize,
}

impl Augmentation {
    /// Draws what happens to an image of `size`.
    #[must_use]
    pub fn draw(config: &AugmentConfig, size: ImageSize, stream: &mut Stream) -> Self {
        let shift = |stream: &mut Stream| {
            stream.below(2 * config.pad_px as u64 + 1) as isize - config.pad_px as isize
        };
        Self {
            flip: stream.unit() < config.flip_probability,
            shift: (shift(stream), shift(stream)),
            erase: match stream.unit() < config.erase_probability {
                true => draw_rectangle(config, size, stream),
                false => None,
            },
        }
    }

    /// Writes an 8-bit image `[height, width, 3]` flipped, shifted, normalised and erased into `out`,
    /// `[3, height, width]`, in one pass.
    ///
    /// What comes in from outside is black. The rectangle is filled with CLIP's mean itself, which
    /// is not the normalised mean (that would be 0): the published recipes erase after normalising,
    /// and their scores come with that.
    ///
    /// # Panics
    ///
    /// When `image` or `out` does not have `3 * height * width` elements.
    pub fn apply(&self, image: &[u8], size: ImageSize, out: &mut [f32]) {
        let ImageSize { height, width } = size;
        assert_eq!((image.len(), out.len()), (3 * height * width, 3 * height * width), "{size}");
        let (down, right) = self.shift;
        let rows = inside(down, height);
        let columns = inside(right, width);
        // Where the columns come from, in an image that is not flipped.
        let from = match columns.is_empty() {
            true => 0..0,
            false => {
                columns.start.wrapping_add_signed(right)..columns.end.wrapping_add_signed(right)
            }
        };
        let from = if self.flip { width - from.end..width - from.start } else { from };
        for (channel, plane) in out.chunks_exact_mut(height * width).enumerate() {
            let table = &TABLE[channel];
            for (y, row) in plane.chunks_exact_mut(width).enumerate() {
                if !rows.contains(&y) {
                    row.fill(table[0]);
                    continue;
                }
                let source = &image[3 * width * y.wrapping_add_signed(down)..][..3 * width];
                row[..columns.start].fill(table[0]);
                row[columns.end..].fill(table[0]);
                let source = source[3 * from.start..3 * from.end].chunks_exact(3);
                let write = |(out, rgb): (&mut f32, &[u8])| *out = table[usize::from(rgb[channel])];
                match self.flip {
                    true => row[columns.clone()].iter_mut().zip(source.rev()).for_each(write),
                    false => row[columns.clone()].iter_mut().zip(source).for_each(write),
                }
            }
            self.erase(plane, width, CLIP_MEAN[channel]);
        }
    }

    /// Fills the rectangle in one plane.
    fn erase(&self, plane: &mut [f32], width: usize, mean: f32) {
        let Some(rectangle) = &self.erase else { return };
        let columns = rectangle.left..rectangle.left + rectangle.width;
        for row in plane.chunks_exact_mut(width).skip(rectangle.top).take(rectangle.height) {
            row[columns.clone()].fill(mean);
        }
    }
}

/// The places along a side that a shifted image covers.
fn inside(shift: isize, side: usize) -> Range<usize> {
    let side = side as isize;
    let start = (-shift).clamp(0, side);
    let end = (side - shift).clamp(start, side);
    start as usize..end as usize
}

/// A rectangle of random area, shape and place, or none when ten tries give none that fits.
fn draw_rectangle(
    config: &AugmentConfig,
    size: ImageSize,
    stream: &mut Stream,
) -> Option<Rectangle> {
    const TRIES: usize = 10;
    let image_area = (size.height * size.width) as f64;
    let (area, aspect) = (&config.erase_area, &config.erase_aspect);
    for _ in 0..TRIES {
        let area = image_area * stream.uniform(*area.start(), *area.end());
        let aspect = stream.uniform(aspect.start().ln(), aspect.end().ln()).exp();
        let height = (area * aspect).sqrt().round_ties_even() as usize;
        let width = (area / aspect).sqrt().round_ties_even() as usize;
        if height < size.height && width < size.width {
            return Some(Rectangle {
                top: stream.below((size.height - height + 1) as u64) as usize,
                left: stream.below((size.width - width + 1) as u64) as usize,
                height,
                width,
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    const SIZE: ImageSize = ImageSize { height: 384, width: 128 };

    fn draws(config: &AugmentConfig, count: u64) -> Vec<Augmentation> {
        (0..count)
            .map(|index| {
                Augmentation::draw(config, SIZE, &mut Stream::new(3, Purpose::Augment, &[index]))
            })
            .collect()
    }

    #[test]
    fn flip_and_shift_move_pixels_and_fill_with_black() {
        let size = ImageSize { height: 2, width: 3 };
        let image: Vec<u8> = [1, 2, 3, 4, 5, 6].iter().flat_map(|&v| [v, v + 10, v + 20]).collect();
        let check = |flip, shift, expected: [u8; 6]| {
            let mut out = [0.0; 18];
            Augmentation { flip, shift, erase: None }.apply(&image, size, &mut out);
            for (channel, plane) in out.chunks(6).enumerate() {
                // 0 is black in all channels.
                let value = |v: u8| if v == 0 { 0 } else { v + 10 * channel as u8 };
                let expected = expected.map(|v| TABLE[channel][usize::from(value(v))]);
                assert_eq!(plane, expected, "flip {flip}, shift {shift:?}, channel {channel}");
            }
        };
        check(false, (0, 0), [1, 2, 3, 4, 5, 6]);
        check(true, (0, 0), [3, 2, 1, 6, 5, 4]);
        check(false, (1, 0), [4, 5, 6, 0, 0, 0]);
        check(false, (-1, 0), [0, 0, 0, 1, 2, 3]);
        check(false, (0, -1), [0, 1, 2, 0, 4, 5]);
        check(true, (0, 1), [2, 1, 0, 5, 4, 0]);
        check(true, (0, -2), [0, 0, 3, 0, 0, 6]);
        check(false, (0, 7), [0; 6]);
        check(true, (-5, -3), [0; 6]);
    }

    #[test]
    fn erasing_fills_the_rectangle_with_the_raw_mean() {
        let size = ImageSize { height: 2, width: 2 };
        let erase = Some(Rectangle { top: 1, left: 0, height: 1, width: 1 });
        let mut out = [9.0; 12];
        Augmentation { flip: false, shift: (0, 0), erase }.apply(&[255; 12], size, &mut out);
        for (channel, plane) in out.chunks(4).enumerate() {
            let white = TABLE[channel][255];
            assert_eq!(plane, [white, white, CLIP_MEAN[channel], white]);
        }
    }

    #[test]
    fn draws_follow_the_config() {
        let draws = draws(&AugmentConfig::default(), 2_000);
        let share = |test: fn(&&Augmentation) -> bool| {
            draws.iter().filter(test).count() as f64 / draws.len() as f64
        };
        // Standard deviation 0.011: 0.05 is more than four of them.
        assert!((share(|draw| draw.flip) - 0.5).abs() < 0.05);
        assert!((share(|draw| draw.erase.is_some()) - 0.5).abs() < 0.05);
        for edge in [-10, 10] {
            assert!(draws.iter().any(|draw| draw.shift.0 == edge));
            assert!(draws.iter().any(|draw| draw.shift.1 == edge));
        }
        assert!(draws.iter().all(|draw| draw.shift.0.abs() <= 10 && draw.shift.1.abs() <= 10));
    }

    #[test]
    fn erased_rectangles_have_the_configured_area_and_shape() {
        let config = AugmentConfig { erase_probability: 1.0, ..AugmentConfig::default() };
        let rectangles: Vec<Rectangle> =
            draws(&config, 1_000).into_iter().filter_map(|draw| draw.erase).collect();
        assert!(rectangles.len() > 950, "{} of 1000 fit", rectangles.len());
        for Rectangle { top, left, height, width } in rectangles {
            assert!(top + height <= SIZE.height && left + width <= SIZE.width);
            let area = (height * width) as f64 / (SIZE.height * SIZE.width) as f64;
            let aspect = height as f64 / width as f64;
            // Sides are rounded to whole pixels.
            assert!((0.019..0.41).contains(&area), "area {area}");
            assert!((0.28..3.5).contains(&aspect), "aspect {aspect}");
        }
    }

    #[test]
    fn off_leaves_every_sample_alone() {
        let untouched = Augmentation { flip: false, shift: (0, 0), erase: None };
        assert!(draws(&AugmentConfig::off(), 100).iter().all(|draw| *draw == untouched));
    }

    #[test]
    fn bad_settings_are_named() {
        let check = |name: &str, change: fn(&mut AugmentConfig)| {
            let mut config = AugmentConfig::default();
            change(&mut config);
            let error = config.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("augment.{name} = ")), "{error}");
        };
        check("flip_probability", |config| config.flip_probability = 1.5);
        check("pad_px", |config| config.pad_px = 5_000);
        check("erase_probability", |config| config.erase_probability = f64::NAN);
        check("erase_area", |config| config.erase_area = 0.0..=0.4);
        check("erase_area", |config| config.erase_area = 0.5..=0.4);
        check("erase_aspect", |config| config.erase_aspect = -1.0..=3.3);
        AugmentConfig::default().validate().unwrap();
        AugmentConfig::off().validate().unwrap();
    }
}
