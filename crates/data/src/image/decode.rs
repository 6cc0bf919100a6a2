//! JPEG, PNG and BMP files to 8-bit RGB.
//!
//! The format is told by the content, not by the name. Alpha is dropped, grey is repeated in all
//! channels and of 16 bits the high byte is kept, as PIL does for colour. Orientation tags are
//! not followed. JPEG decoders may differ from one another by a few levels; all other steps of
//! this crate are the same to the bit as in PIL and torchvision.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageReader, Limits, RgbImage};

use super::jpeg;
use crate::error::DataError;

/// The largest side of an image file, in pixels. Person crops are well under 2,000.
const MAX_SIDE_PX: u32 = 16_384;
/// The most memory that decoding one file may take.
const MAX_ALLOC_BYTES: u64 = 512 << 20;

/// Decodes an image file.
///
/// # Errors
///
/// [`DataError::Io`] when the file cannot be read, [`DataError::Truncated`] for a JPEG that ends
/// early, [`DataError::Decode`] for anything that is not a good JPEG, PNG or BMP within limits of
/// 16,384 pixels a side and 512 MiB; all name the path.
pub fn decode(path: &Path) -> Result<RgbImage, DataError> {
    let bytes = fs::read(path).map_err(DataError::io(path))?;
    decode_bytes(&bytes, path, MAX_ALLOC_BYTES)
}

/// Decodes the content of an image file in at most `max_bytes` of memory.
///
/// # Errors
///
/// As [`decode`]; `name` stands in for the path.
pub fn decode_bytes(bytes: &[u8], name: &Path, max_bytes: u64) -> Result<RgbImage, DataError> {
    if jpeg::is_truncated(bytes) {
        return Err(DataError::Truncated { path: name.to_path_buf() });
    }
    let mut reader =
        ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(DataError::io(name))?;
    reader.limits(limits(max_bytes));
    let image =
        reader.decode().map_err(|source| DataError::Decode { path: name.to_path_buf(), source })?;
    Ok(into_rgb8(image))
}

fn limits(max_bytes: u64) -> Limits {
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE_PX);
    limits.max_image_height = Some(MAX_SIDE_PX);
    limits.max_alloc = Some(max_bytes);
    limits
}

fn into_rgb8(image: DynamicImage) -> RgbImage {
    match image {
        DynamicImage::ImageLuma16(_)
        | DynamicImage::ImageLumaA16(_)
        | DynamicImage::ImageRgb16(_)
        | DynamicImage::ImageRgba16(_) => high_bytes(image),
        other => other.into_rgb8(),
    }
}

fn high_bytes(image: DynamicImage) -> RgbImage {
    let wide = image.into_rgb16();
    let mut narrow = RgbImage::new(wide.width(), wide.height());
    for (to, from) in narrow.iter_mut().zip(wide.iter()) {
        *to = (from >> 8) as u8;
    }
    narrow
}

#[cfg(test)]
mod tests {
    use image::{ImageBuffer, Luma, LumaA, Rgb, Rgba};

    use super::*;

    #[test]
    fn sixteen_bits_keep_the_high_byte() {
        let grey = ImageBuffer::from_pixel(1, 1, Luma([0x12ff_u16]));
        let colour = ImageBuffer::from_pixel(1, 1, Rgb([0x00ff_u16, 0x80ff, 0xffff]));
        assert_eq!(into_rgb8(grey.into()).into_raw(), [0x12; 3]);
        assert_eq!(into_rgb8(colour.into()).into_raw(), [0x00, 0x80, 0xff]);
    }

    #[test]
    fn alpha_is_dropped_and_not_blended() {
        let colour = ImageBuffer::from_pixel(1, 1, Rgba([10_u8, 20, 30, 0]));
        let grey = ImageBuffer::from_pixel(1, 1, LumaA([40_u8, 128]));
        assert_eq!(into_rgb8(colour.into()).into_raw(), [10, 20, 30]);
        assert_eq!(into_rgb8(grey.into()).into_raw(), [40; 3]);
    }
}
