//! Antialiased bilinear resize, the same to the bit as `PIL.Image.resize` with `BILINEAR`.
//!
//! Person search models are trained on images squashed to their input size, aspect ratio lost.
//! When an image shrinks, the triangle filter widens with the factor, so that every source pixel
//! counts. Rows first, then columns; between the two passes the image is rounded to 8 bits, and
//! the weights are fixed-point numbers, as in PIL: a float version differs by one level here and
//! there. So does Pillow 13, which takes columns first for some sizes; published models saw the
//! images of its predecessors.

use std::borrow::Cow;
use std::ops::Range;

use image::RgbImage;
use pulp::{Arch, NullaryFnOnce};

use super::ImageSize;

/// Fraction bits of a weight: 32 less 8 for the pixel and 2 for headroom.
const WEIGHT_BITS: u32 = 22;
/// Rows that are resized at once.
const LANES: usize = 8;
/// Rounds to nearest when shifted out.
const HALF: i32 = 1 << (WEIGHT_BITS - 1);

/// Squashes an image to `size`.
///
/// # Panics
///
/// When the image or `size` has a side of 0, which neither [`decode`](super::decode) nor
/// [`ImageSize::validate`] lets through.
#[must_use]
pub fn resize(image: &RgbImage, size: ImageSize) -> RgbImage {
    let (width, height) = (image.width() as usize, image.height() as usize);
    assert!(
        width * height * size.width * size.height > 0,
        "cannot resize {height}x{width} to {size}"
    );
    // The widest vectors of this processor. Whole numbers: any width gives the same pixels.
    let pixels = Arch::new().dispatch(Squash { pixels: image.as_raw(), height, width, size });
    RgbImage::from_raw(size.width as u32, size.height as u32, pixels)
        .expect("both passes give size.height rows of size.width pixels")
}

/// The work, to be compiled once for each kind of processor; hence `inline(always)` below.
struct Squash<'a> {
    /// `[height, width, 3]`
    pixels: &'a [u8],
    height: usize,
    width: usize,
    size: ImageSize,
}

impl NullaryFnOnce for Squash<'_> {
    /// `[size.height, size.width, 3]`
    type Output = Vec<u8>;

    #[inline(always)]
    fn call(self) -> Vec<u8> {
        let Self { pixels, height, width, size } = self;
        // A pass that keeps its side is the identity.
        let rows = match width == size.width {
            true => Cow::Borrowed(pixels),
            false => Cow::Owned(resize_rows(pixels, width, &windows(width, size.width))),
        };
        match height == size.height {
            true => rows.into_owned(),
            false => resize_columns(&rows, 3 * size.width, &windows(height, size.height)),
        }
    }
}

/// The source pixels that make up one destination pixel, and the weight of each.
struct Window {
    sources: Range<usize>,
    weights: Vec<i32>,
}

/// One window per destination pixel along a side.
fn windows(from: usize, to: usize) -> Vec<Window> {
    let scale = from as f64 / to as f64;
    // The triangle reaches one source pixel to each side, or more when several become one.
    let radius = scale.max(1.0);
    let narrow = 1.0 / radius;
    let window = |index: usize| {
        let center = (index as f64 + 0.5) * scale;
        let start = (center - radius + 0.5).max(0.0) as usize;
        let end = ((center + radius + 0.5) as usize).min(from);
        let sources = start..end;
        let weights = sources
            .clone()
            .map(|source| (1.0 - ((source as f64 - center + 0.5) * narrow).abs()).max(0.0));
        Window { weights: fixed_point(weights.collect()), sources }
    };
    (0..to).map(window).collect()
}

/// Weights that sum to one, as fixed-point numbers.
fn fixed_point(weights: Vec<f64>) -> Vec<i32> {
    let scale = 1.0 / weights.iter().sum::<f64>();
    let one = f64::from(1 << WEIGHT_BITS);
    weights.into_iter().map(|weight| (weight * scale * one + 0.5) as i32).collect()
}

/// The weighted sum is in `0..=255` up to rounding, never negative.
#[inline(always)]
fn to_byte(sum: i32) -> u8 {
    (sum >> WEIGHT_BITS).clamp(0, 255) as u8
}

/// `[height, width, 3]` to `[height, windows.len(), 3]`.
#[inline(always)]
fn resize_rows(pixels: &[u8], width: usize, windows: &[Window]) -> Vec<u8> {
    let stride = 3 * windows.len();
    let mut out = vec![0; pixels.len() / (3 * width) * stride];
    // Some rows side by side, so that the inner loop runs over neighbours in memory.
    let mut columns = vec![[0; LANES]; 3 * width];
    for (rows, out) in pixels.chunks(LANES * 3 * width).zip(out.chunks_mut(LANES * stride)) {
        for (lane, row) in rows.chunks_exact(3 * width).enumerate() {
            for (column, &value) in columns.iter_mut().zip(row) {
                column[lane] = value.into();
            }
        }
        for (x, window) in windows.iter().enumerate() {
            let sources = &columns[3 * window.sources.start..3 * window.sources.end];
            let mut sums = [[HALF; LANES]; 3];
            for (rgb, &weight) in sources.chunks_exact(3).zip(&window.weights) {
                for (sums, values) in sums.iter_mut().zip(rgb) {
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum += value * weight;
                    }
                }
            }
            for (lane, row) in out.chunks_exact_mut(stride).enumerate() {
                for (out, sums) in row[3 * x..3 * x + 3].iter_mut().zip(&sums) {
                    *out = to_byte(sums[lane]);
                }
            }
        }
    }
    out
}

/// `[height, stride]` to `[windows.len(), stride]`, where a row of pixels has `stride` bytes.
#[inline(always)]
fn resize_columns(pixels: &[u8], stride: usize, windows: &[Window]) -> Vec<u8> {
    let mut out = Vec::with_capacity(stride * windows.len());
    let mut sums = vec![0; stride];
    for window in windows {
        sums.fill(HALF);
        let rows =
            pixels[stride * window.sources.start..stride * window.sources.end].chunks_exact(stride);
        // Whole rows at a time: the inner loop runs over neighbours in memory.
        for (row, weight) in rows.zip(&window.weights) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += i32::from(value) * weight;
            }
        }
        out.extend(sums.iter().map(|&sum| to_byte(sum)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(width: u32, values: &[u8]) -> RgbImage {
        let pixels: Vec<u8> = values.iter().flat_map(|&value| [value; 3]).collect();
        RgbImage::from_raw(width, values.len() as u32 / width, pixels).unwrap()
    }

    fn check(image: &RgbImage, height: usize, width: usize, expected: &[u8]) {
        let resized = resize(image, ImageSize { height, width });
        let values: Vec<u8> = resized.pixels().map(|pixel| pixel.0[0]).collect();
        assert_eq!(values, expected, "{:?} to {height}x{width}", image.dimensions());
    }

    #[test]
    fn halving_weighs_four_neighbours() {
        // Radius 2: weights 3 3 1 over 7 at the left border, 1 3 3 1 over 8 inside, 1 3 3 over 7.
        check(&grey(6, &[0, 70, 140, 140, 70, 7]), 1, 3, &[50, 123, 53]);
    }

    #[test]
    fn doubling_blends_neighbours() {
        check(&grey(2, &[0, 100]), 1, 4, &[0, 25, 75, 100]);
        check(&grey(1, &[0, 100]), 4, 1, &[0, 25, 75, 100]);
    }

    #[test]
    fn one_pixel_fills_any_size() {
        check(&grey(1, &[137]), 2, 3, &[137; 6]);
    }

    #[test]
    fn the_same_size_is_the_same_image() {
        check(&grey(2, &[1, 2, 3, 4]), 2, 2, &[1, 2, 3, 4]);
    }
}
