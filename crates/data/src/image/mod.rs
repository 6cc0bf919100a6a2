//! Images: from a file to a normalised array.
//!
//! [`decode`] gives 8-bit RGB, [`resize`] squashes it to the model's input size, and [`normalize`]
//! makes it the `f32` array `[3, height, width]` that CLIP's weights were trained on.

mod decode;
mod encode;
mod jpeg;
mod normalize;
mod resize;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

pub use ::image::RgbImage;
pub use decode::{decode, decode_bytes};
pub use encode::thumbnail;
pub(crate) use normalize::TABLE;
pub use normalize::{CLIP_MEAN, CLIP_STD, normalize};
pub use resize::resize;

use crate::error::DataError;

/// The input size of a model, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSize {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl ImageSize {
    /// The largest side that is accepted, in pixels; larger ones are typing errors.
    pub const MAX_SIDE: usize = 4096;

    /// Elements of one normalised image: `3 * height * width`.
    #[must_use]
    pub fn num_elements(self) -> usize {
        3 * self.height * self.width
    }

    /// Refuses sides of 0 and sides above [`ImageSize::MAX_SIDE`].
    ///
    /// # Errors
    ///
    /// [`DataError::Setting`] with the size.
    pub fn validate(self) -> Result<(), DataError> {
        let sides = 1..=Self::MAX_SIDE;
        if sides.contains(&self.height) && sides.contains(&self.width) {
            return Ok(());
        }
        Err(bad_size(self.to_string()))
    }
}

impl fmt::Display for ImageSize {
    /// As `HEIGHTxWIDTH`, such as `384x128`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.height, self.width)
    }
}

impl FromStr for ImageSize {
    type Err = DataError;

    /// Reads `HEIGHTxWIDTH`, such as `384x128`.
    fn from_str(text: &str) -> Result<Self, DataError> {
        let parse = || {
            let (height, width) = text.split_once('x')?;
            Some(Self { height: height.parse().ok()?, width: width.parse().ok()? })
        };
        let size = parse().ok_or_else(|| bad_size(text.to_owned()))?;
        size.validate().map(|()| size)
    }
}

fn bad_size(value: String) -> DataError {
    DataError::Setting {
        name: "image size",
        value,
        expected: "HEIGHTxWIDTH with sides from 1 to 4096, such as 384x128",
    }
}

/// One image as a model takes it in evaluation: decoded, squashed to `size`, normalised with
/// CLIP's mean and standard deviation; `[3, height, width]`.
///
/// # Errors
///
/// When the size is out of range, or the file cannot be read or decoded.
pub fn pixels(path: &Path, size: ImageSize) -> Result<Vec<f32>, DataError> {
    size.validate()?;
    let mut pixels = vec![0.0; size.num_elements()];
    normalize(&resize(&decode(path)?, size), &mut pixels);
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_height_first() {
        let size: ImageSize = "384x128".parse().unwrap();
        assert_eq!(size, ImageSize { height: 384, width: 128 });
        assert_eq!(size.to_string(), "384x128");
        assert_eq!(size.num_elements(), 147_456);
    }

    #[test]
    fn bad_sizes_are_refused() {
        for text in ["", "384", "384x", "x128", "384x128x3", "0x128", "384x-1", "384x4097"] {
            let error = text.parse::<ImageSize>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("image size = {text}: expected")), "{error}");
        }
    }
}
