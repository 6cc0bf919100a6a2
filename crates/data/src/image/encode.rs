//! Small pictures for people to look at.

use image::RgbImage;
use image::codecs::jpeg::JpegEncoder;

use super::{ImageSize, resize};

/// JPEG quality, of 100: no blocks to be seen at the size of a thumbnail.
const QUALITY: u8 = 85;

/// The image as a JPEG file, shrunk to fit `max_side` pixels with its aspect ratio kept; smaller
/// images keep their size.
///
/// # Panics
///
/// When `max_side` or a side of the image is 0.
#[must_use]
pub fn thumbnail(image: &RgbImage, max_side: usize) -> Vec<u8> {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let longest = width.max(height).max(max_side);
    let fit = |side: usize| (side * max_side / longest).max(1);
    let small = resize(image, ImageSize { height: fit(height), width: fit(width) });
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, QUALITY);
    small.write_with_encoder(encoder).expect("8-bit RGB below 65,536 pixels a side is JPEG");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_side_fits_and_nothing_is_enlarged() {
        for (from, max_side, expected) in [
            ((100, 300), 150, (50, 150)),
            ((300, 100), 150, (150, 50)),
            ((20, 30), 150, (20, 30)),
            ((1, 1_000), 100, (1, 100)),
        ] {
            let bytes = thumbnail(&RgbImage::new(from.0, from.1), max_side);
            let found = image::load_from_memory(&bytes).unwrap();
            assert_eq!((found.width(), found.height()), expected, "{from:?}");
        }
    }
}
