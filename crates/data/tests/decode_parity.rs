//! Image files of many kinds against the pixels of PIL and the arrays of torchvision
//! (`fixtures/decode`).

#![expect(clippy::unwrap_used, reason = "a test helper that fails should fail the test")]

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tbps_data::image::{CLIP_STD, ImageSize, decode};
use tbps_data::pixels;

/// Input size of the recorded arrays.
const SIZE: ImageSize = ImageSize { height: 20, width: 9 };
/// JPEG's inverse transform, its upsampling and its colours are rounded differently from libjpeg's,
/// so a value may be off by a few levels of 255: this much on average in a file, ...
const JPEG_MEAN_LEVELS: f64 = 0.4;
/// ... and no more than this for 99 of 100 values.
const JPEG_MOST_LEVELS: f64 = 2.0;
/// Five and six bits a channel are spread over eight by rounding, where PIL cuts off.
const FEW_BITS_LEVELS: f64 = 1.0;
/// A normalised value is one rounding of f32 away from torchvision's, in levels.
const F32_LEVELS: f64 = 1e-3;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/decode")
}

/// The image files of a folder, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let is_expected = |path: &PathBuf| path.to_str().unwrap().ends_with(".rgb.png");
    let mut files: Vec<PathBuf> = entries.filter(|path| !is_expected(path)).collect();
    files.sort();
    files
}

/// Differences from PIL of all values of a file, in levels of 255.
fn differences(path: &Path) -> Vec<f64> {
    let ours = decode(path).unwrap();
    let theirs = decode(&path.with_extension("rgb.png")).unwrap();
    assert_eq!(ours.dimensions(), theirs.dimensions(), "{}", path.display());
    let pairs = ours.iter().zip(theirs.iter());
    pairs.map(|(ours, theirs)| f64::from(ours.abs_diff(*theirs))).collect()
}

/// Refuses differences beyond what JPEG decoders are allowed.
fn check_jpeg(path: &Path, mut levels: Vec<f64>) {
    levels.sort_by(f64::total_cmp);
    let mean = levels.iter().sum::<f64>() / levels.len() as f64;
    let most = levels[(levels.len() * 99).div_ceil(100) - 1];
    let report = format!("{}: mean {mean:.3}, 99 % within {most}", path.display());
    assert!(mean <= JPEG_MEAN_LEVELS && most <= JPEG_MOST_LEVELS, "{report}");
}

/// How far a PNG or BMP file may be off.
fn levels_of(path: &Path) -> f64 {
    match path.file_stem().unwrap().to_str().unwrap() {
        "rgb555" | "rgb565" => FEW_BITS_LEVELS,
        _ => 0.0,
    }
}

#[test]
fn png_and_bmp_equal_pil() {
    let files = [files("png"), files("bmp")].concat();
    assert!(files.len() >= 33, "only {} files", files.len());
    let worst = |path: &PathBuf| differences(path).into_iter().fold(0.0, f64::max);
    let wrong: Vec<&PathBuf> = files.iter().filter(|path| worst(path) > levels_of(path)).collect();
    assert!(wrong.is_empty(), "these differ from PIL: {wrong:?}");
}

#[test]
fn jpeg_is_close_to_pil() {
    let files = files("jpeg");
    assert!(files.len() >= 19, "only {} files", files.len());
    for path in files {
        check_jpeg(&path, differences(&path));
    }
}

#[test]
fn resized_and_normalised_arrays_are_those_of_torchvision() {
    let mut bytes = Vec::new();
    let file = File::open(root().join("normalized.f32.gz")).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    let recorded: Vec<f32> =
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    // In the order of the exporter.
    let paths = [files("bmp"), files("jpeg"), files("png")].concat();
    assert_eq!(recorded.len(), paths.len() * SIZE.num_elements());
    for (path, theirs) in paths.iter().zip(recorded.chunks_exact(SIZE.num_elements())) {
        let ours = pixels(path, SIZE).unwrap();
        let plane = SIZE.height * SIZE.width;
        let levels = ours.iter().zip(theirs).enumerate().map(|(index, (ours, theirs))| {
            f64::from((ours - theirs).abs() * CLIP_STD[index / plane] * 255.0)
        });
        match path.extension().unwrap() == "jpg" {
            true => check_jpeg(path, levels.collect()),
            false => {
                let most = levels.fold(0.0, f64::max);
                assert!(most <= levels_of(path) + F32_LEVELS, "{}: {most}", path.display());
            }
        }
    }
}
