//! A synthetic stand-in for CUHK-PEDES: drawn pedestrians with captions, in the same files and
//! folders, free of any licence and of real people.
//!
//! Each id is a person whose attributes never change; each image is a view of one (pose, place,
//! light, camera, file format) drawn without regard to who it is; each caption tells what that
//! image shows, in a crowd worker's words and with a crowd worker's slips. Ids are confusable on
//! purpose: many people share most attributes, and half of them have a near-twin.
//!
//! The same preset and seed give the same bytes for any number of threads.

mod archive;
mod camera;
mod caption;
mod figure;
mod palette;
mod person;
mod preset;
mod raster;
mod scene;
mod sight;
mod stream;
mod view;
mod wardrobe;
mod write;

use std::path::Path;

use image::RgbImage;

use self::archive::Archive;
use self::caption::Carelessness;
use self::person::Person;
use self::preset::PlannedImage;
pub use self::preset::Preset;
use self::raster::Canvas;
use self::sight::Sight;
use self::stream::{Purpose, Stream};
use self::view::View;
use crate::annotation::SplitName;
use crate::error::DataError;

/// What was generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The train split.
    pub train: Counts,
    /// The validation split.
    pub val: Counts,
    /// The test split.
    pub test: Counts,
}

/// The size of one split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// People.
    pub ids: usize,
    /// Images, at least one per id.
    pub images: usize,
    /// Captions, at least two per image.
    pub captions: usize,
}

/// Writes the data set of `preset` and `seed` to the folder `out`: `reid_raw.json` and `imgs/`.
///
/// `progress` is called now and then from the calling thread with the images done and their total.
/// `out` appears at the end, complete; until then files go to a hidden folder beside it.
///
/// # Errors
///
/// [`DataError::OutputNotEmpty`] when `out` already holds something, [`DataError::Io`] and
/// [`DataError::Encode`] when a file cannot be written.
pub fn generate(
    preset: Preset,
    seed: u64,
    out: &Path,
    progress: &dyn Fn(usize, usize),
) -> Result<Summary, DataError> {
    let plan = preset::plan(preset, seed);
    write::write(&plan, seed, out, progress)?;
    Ok(summarise(&plan))
}

fn summarise(plan: &[PlannedImage]) -> Summary {
    let mut summary = Summary::default();
    let mut last_pid = 0;
    for image in plan {
        let counts = match image.split {
            SplitName::Train => &mut summary.train,
            SplitName::Val => &mut summary.val,
            SplitName::Test => &mut summary.test,
        };
        // The images of one id follow each other.
        counts.ids += usize::from(image.pid != last_pid);
        counts.images += 1;
        counts.captions += image.num_captions;
        last_pid = image.pid;
    }
    summary
}

/// One person in one view.
struct Sighting {
    seed: u64,
    serial: u64,
    person: Person,
    view: View,
    archive: Archive,
    /// Width and height in pixels.
    frame: (u32, u32),
}

impl Sighting {
    fn new(planned: &PlannedImage, seed: u64) -> Self {
        let stream = &mut Stream::new(seed, Purpose::View, planned.serial);
        let archive = Archive::draw(stream);
        Self {
            seed,
            serial: planned.serial,
            person: wardrobe::person(seed, planned.pid),
            frame: archive.frame(stream),
            archive,
            view: View::draw(stream),
        }
    }

    fn render(&self) -> RgbImage {
        let (width, height) = self.frame;
        let mut canvas = Canvas::new(width, height, self.view.scene.ground());
        self.view.scene.paint(&mut canvas, width, height);
        figure::draw(&mut canvas, &self.person, &self.view, width, height);
        let clean = RgbImage::from_raw(width, height, canvas.into_rgb())
            .expect("a canvas has three bytes for each pixel of the frame");
        self.view.camera.expose(clean, &mut Stream::new(self.seed, Purpose::Sensor, self.serial))
    }

    fn captions(&self, count: usize) -> Vec<String> {
        let sight = Sight::of(&self.person, &self.view);
        let stream = &mut Stream::new(self.seed, Purpose::Caption, self.serial);
        (0..count)
            .map(|_| caption::write(&self.person, &sight, &Carelessness::CROWD, stream))
            .collect()
    }
}
