//! From a plan to files: renders in parallel, writes into a hidden sibling folder, and renames it
//! at the end, so that a data set is either complete or absent.

use std::fs;
use std::io::{BufWriter, Cursor, Write};
use std::path::{Path, PathBuf};

use image::codecs::jpeg::JpegEncoder;
use image::{ImageFormat, RgbImage};
use rayon::prelude::*;
use serde::Serialize;

use super::Sighting;
use super::archive::Archive;
use super::preset::PlannedImage;
use crate::error::DataError;

/// Images between two progress reports.
const CHUNK: usize = 128;

/// One entry of `reid_raw.json`, fields in the order of the original.
#[derive(Serialize)]
struct Record {
    split: String,
    captions: Vec<String>,
    file_path: String,
    processed_tokens: Vec<Vec<String>>,
    id: u64,
}

/// Renders and writes the images of `plan`, then the annotation, to the folder `out`.
pub(crate) fn write(
    plan: &[PlannedImage],
    seed: u64,
    out: &Path,
    progress: &dyn Fn(usize, usize),
) -> Result<(), DataError> {
    refuse_occupied(out)?;
    // An existing folder may be given as `.` or `..`, which has no sibling by that name.
    let out = &fs::canonicalize(out).unwrap_or_else(|_| out.to_owned());
    let staging = Staging::create(out)?;
    for archive in Archive::ALL {
        let folder = staging.path.join("imgs").join(archive.folder());
        fs::create_dir_all(&folder).map_err(DataError::io(&folder))?;
    }
    let mut records = Vec::with_capacity(plan.len());
    for chunk in plan.chunks(CHUNK) {
        let written: Result<Vec<Record>, DataError> = chunk
            .par_iter()
            .map(|planned| write_image(planned, seed, &staging.path.join("imgs")))
            .collect();
        records.extend(written?);
        progress(records.len(), plan.len());
    }
    write_annotation(&records, &staging.path.join("reid_raw.json"))?;
    staging.publish(out)
}

fn write_image(planned: &PlannedImage, seed: u64, images: &Path) -> Result<Record, DataError> {
    let sighting = Sighting::new(planned, seed);
    let file_path = sighting.archive.file_path(planned);
    let path = images.join(&file_path);
    let bytes = encode(&sighting.render(), &sighting)
        .map_err(|source| DataError::Encode { path: path.clone(), source })?;
    fs::write(&path, bytes).map_err(DataError::io(&path))?;
    let captions = sighting.captions(planned.num_captions);
    Ok(Record {
        split: planned.split.to_string(),
        processed_tokens: captions.iter().map(|caption| tokens(caption)).collect(),
        captions,
        file_path,
        id: planned.pid,
    })
}

fn encode(image: &RgbImage, sighting: &Sighting) -> image::ImageResult<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    match sighting.archive.format() {
        ImageFormat::Jpeg => {
            let quality = sighting.view.camera.jpeg_quality;
            JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(image)?;
        }
        format => image.write_to(&mut bytes, format)?,
    }
    Ok(bytes.into_inner())
}

/// Lower-case words without punctuation.
fn tokens(caption: &str) -> Vec<String> {
    caption
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn write_annotation(records: &[Record], path: &Path) -> Result<(), DataError> {
    let file = fs::File::create(path).map_err(DataError::io(path))?;
    let mut writer = BufWriter::new(file);
    serde_json::to_writer(&mut writer, records)
        .map_err(|error| DataError::io(path)(error.into()))?;
    writer.flush().map_err(DataError::io(path))
}

fn refuse_occupied(out: &Path) -> Result<(), DataError> {
    match fs::read_dir(out) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(DataError::OutputNotEmpty { path: out.to_owned() }),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(DataError::io(out)(error)),
    }
}

/// A folder that disappears unless it is published.
struct Staging {
    path: PathBuf,
    published: bool,
}

impl Staging {
    /// Creates an empty folder beside `out`, on the same file system.
    fn create(out: &Path) -> Result<Self, DataError> {
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        let path = out.with_file_name(format!(".{name}.partial-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(DataError::io(&path))?;
        Ok(Self { path, published: false })
    }

    fn publish(mut self, out: &Path) -> Result<(), DataError> {
        // An empty folder in the way is replaced; renaming onto it fails on some systems.
        if out.is_dir() {
            fs::remove_dir(out).map_err(DataError::io(out))?;
        }
        fs::rename(&self.path, out).map_err(DataError::io(out))?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.published {
            // The error that stopped the work is the one to report.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}
