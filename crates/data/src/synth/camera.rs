//! From a clean drawing to what a surveillance camera delivers: soft focus, light, colour cast,
//! noise. Independent of who is in the picture.

use image::RgbImage;
use image::imageops::{self, FilterType};

use super::stream::{Stream, bell_of};

/// The state of camera and light for one image.
#[derive(Clone, Debug)]
pub(crate) struct Camera {
    /// Light from the side in `[-1, 1]`; negative from the left.
    pub(crate) side_light: f32,
    /// Share of the frame's pixels that the optics resolve, along each axis.
    resolution: f32,
    /// Gain of red, green and blue.
    gain: [f32; 3],
    /// Contrast around middle grey.
    contrast: f32,
    /// Light added to everything, as haze or glare does, in 8-bit steps.
    haze: f32,
    /// Change of brightness from the left edge to the right, and from the top to the bottom.
    slopes: [f32; 2],
    /// Standard deviation of the sensor noise, in 8-bit steps.
    noise: f32,
    /// JPEG quality, 1 to 100.
    pub(crate) jpeg_quality: u8,
}

impl Camera {
    pub(crate) fn draw(stream: &mut Stream) -> Self {
        let exposure = (0.22 * stream.bell()).clamp(-0.55, 0.34).exp();
        let mut gain = || exposure * (1.0 + 0.085 * stream.bell());
        let gain = [gain(), gain(), gain()];
        Self {
            side_light: stream.range(0.45, 1.0) * stream.pick(&[-1.0, 1.0]),
            resolution: stream.range(0.6, 1.0),
            gain,
            contrast: stream.range(0.62, 1.12),
            haze: stream.range(0.0, 34.0),
            slopes: [0.15 * stream.bell(), 0.2 * stream.bell()],
            noise: stream.range(1.0, 5.0),
            jpeg_quality: stream.range(42.0, 92.0) as u8,
        }
    }

    /// Takes the picture; `sensor` is the stream of its noise.
    pub(crate) fn expose(&self, clean: RgbImage, sensor: &mut Stream) -> RgbImage {
        let mut image = self.defocus(clean);
        let (width, height) = image.dimensions();
        for (x, y, pixel) in image.enumerate_pixels_mut() {
            let across = x as f32 / width as f32 - 0.5;
            let down = y as f32 / height as f32 - 0.5;
            let light = 1.0 + self.slopes[0] * across + self.slopes[1] * down;
            // Sensors err mostly in brightness, a little in colour.
            let luma_noise = self.noise * bell_of(sensor.bits());
            let chroma = sensor.bits();
            for (channel, value) in pixel.0.iter_mut().enumerate() {
                let lit = f32::from(*value) * self.gain[channel] * light;
                let toned = (lit - 118.0) * self.contrast + 118.0 + self.haze;
                let spread = ((chroma >> (16 * channel)) & 0xFFFF) as f32 / 65_536.0 - 0.5;
                *value = (toned + luma_noise + self.noise * spread).clamp(0.0, 255.0) as u8;
            }
        }
        image
    }

    fn defocus(&self, clean: RgbImage) -> RgbImage {
        let (width, height) = clean.dimensions();
        let resolved = |size: u32| ((size as f32 * self.resolution) as u32).max(1);
        let small =
            imageops::resize(&clean, resolved(width), resolved(height), FilterType::Triangle);
        imageops::resize(&small, width, height, FilterType::CatmullRom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::Purpose;
    use super::*;

    #[test]
    fn exposure_keeps_the_size_and_adds_noise_that_the_stream_decides() {
        let camera = Camera::draw(&mut Stream::new(1, Purpose::View, 1));
        let clean = RgbImage::from_pixel(12, 30, image::Rgb([120, 130, 140]));
        let shot = |index| {
            camera.expose(clean.clone(), &mut Stream::new(1, Purpose::Sensor, index)).into_raw()
        };
        assert_eq!(shot(1).len(), 12 * 30 * 3);
        assert_eq!(shot(1), shot(1));
        assert_ne!(shot(1), shot(2));
    }
}
