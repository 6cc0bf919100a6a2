//! 8-bit RGB to the `f32` array that CLIP takes.

use std::sync::LazyLock;

/// Mean of the red, green and blue channel in `[0, 1]`, from OpenAI's CLIP.
pub const CLIP_MEAN: [f32; 3] = [0.481_454_66, 0.457_827_5, 0.408_210_73];
/// Standard deviation of the red, green and blue channel, from OpenAI's CLIP.
pub const CLIP_STD: [f32; 3] = [0.268_629_54, 0.261_302_6, 0.275_777_1];

/// Normalised value of every byte, per channel: three divisions per pixel saved.
pub(crate) static TABLE: LazyLock<[[f32; 256]; 3]> = LazyLock::new(|| {
    std::array::from_fn(|channel| {
        std::array::from_fn(|byte| (byte as f32 / 255.0 - CLIP_MEAN[channel]) / CLIP_STD[channel])
    })
});

/// Writes `(pixel / 255 - mean) / std` of an 8-bit image `[height, width, 3]` into `out`,
/// `[3, height, width]`.
///
/// # Panics
///
/// When `out` does not have as many elements as `image`.
pub fn normalize(image: &[u8], out: &mut [f32]) {
    assert_eq!(out.len(), image.len(), "elements of an image and its normalised copy");
    let plane = out.len() / 3;
    for (channel, (out, table)) in out.chunks_exact_mut(plane.max(1)).zip(TABLE.iter()).enumerate()
    {
        for (out, rgb) in out.iter_mut().zip(image.chunks_exact(3)) {
            *out = table[usize::from(rgb[channel])];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_become_planes() {
        let mut out = [0.0; 6];
        normalize(&[0, 255, 51, 255, 0, 102], &mut out);
        // By hand: (0 - .48145466) / .26862954, (1 - .48145466) / .26862954, ...
        let expected = [-1.792_263, 1.930_336, 2.074_883, -1.752_097, -0.755_000, -0.029_773];
        for (out, expected) in out.iter().zip(expected) {
            assert!((out - expected).abs() < 1e-5, "{out} for {expected}");
        }
    }
}
