//! The integrity check on data sets with known faults.

#![expect(clippy::unwrap_used, reason = "a test helper that fails should fail the test")]

mod tiny;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::json;
use tbps_data::check::{Fault, check};
use tbps_data::{DataError, Dataset, ImageSize, SplitName, load_images, pixels};
use tiny::{Tiny, record, records};

const SIZE: ImageSize = ImageSize { height: 8, width: 4 };

fn faults(tiny: &Tiny) -> Vec<Fault> {
    check(&Dataset::open(tiny.root()).unwrap(), &|_, _| {}).faults
}

#[test]
fn a_good_copy_is_clean_and_every_image_is_reported() {
    let tiny = Tiny::new(&records());
    let calls = Mutex::new(Vec::new());
    let report = check(&Dataset::open(tiny.root()).unwrap(), &|done, total| {
        calls.lock().unwrap().push((done, total));
    });
    assert_eq!(report.faults, []);
    assert!(report.is_clean());
    assert_eq!(report.num_images, 6);
    let mut calls = calls.into_inner().unwrap();
    calls.sort_unstable();
    assert_eq!(calls, [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (6, 6)]);
}

#[test]
fn missing_files_are_counted_by_folder() {
    let tiny = Tiny::new(&records());
    fs::remove_dir_all(tiny.image("cam_a")).unwrap();
    fs::remove_file(tiny.image("train_query/p2.jpg")).unwrap();
    let missing = |folder: &str, num_listed, file: &str| Fault::MissingFiles {
        folder: folder.into(),
        num_listed,
        files: vec![file.into()],
    };
    let faults = faults(&tiny);
    assert_eq!(
        faults,
        [missing("cam_a", 1, "cam_a/000_45.bmp"), missing("train_query", 2, "train_query/p2.jpg"),]
    );
    assert_eq!(
        faults[1].to_string(),
        "imgs/train_query: 1 of 2 files missing, first train_query/p2.jpg"
    );
}

#[test]
fn files_cut_short_are_found_in_every_format() {
    for file_path in ["train_query/p1.jpg", "CUHK01/0001.png", "cam_a/000_45.bmp"] {
        let tiny = Tiny::new(&records());
        let whole = fs::read(tiny.image(file_path)).unwrap();
        // The last 12 bytes of a PNG are an empty chunk: without them the image is still whole.
        for len in [0, 1, 100, whole.len() / 2, whole.len() - 20] {
            fs::write(tiny.image(file_path), &whole[..len]).unwrap();
            match &faults(&tiny)[..] {
                [Fault::Undecodable { path, reason }] => {
                    assert_eq!(path, &PathBuf::from(file_path));
                    assert!(reason.contains("download it again"), "{reason}");
                }
                other => panic!("{file_path} cut to {len} bytes: {other:?}"),
            }
        }
    }
}

#[test]
fn a_wrong_extension_does_no_harm() {
    let tiny = Tiny::new(&records());
    fs::copy(tiny.image("CUHK01/0001.png"), tiny.image("train_query/p1.jpg")).unwrap();
    assert_eq!(faults(&tiny), []);
}

#[test]
fn blank_captions_are_found() {
    let tiny = Tiny::new(&[record("val", 1, "a.png", &["A man.", " \n"])]);
    assert_eq!(
        faults(&tiny),
        [Fault::BlankCaption { split: SplitName::Val, path: "a.png".into() }]
    );
}

#[test]
fn faults_are_a_list_that_machines_read() {
    let tiny = Tiny::new(&[
        record("train", 1, "cam_a/1.bmp", &["A man."]),
        record("train", 1, "cam_a/2.bmp", &["A man."]),
        record("val", 2, "b.png", &[" "]),
    ]);
    fs::remove_dir_all(tiny.image("cam_a")).unwrap();
    let report = check(&Dataset::open(tiny.root()).unwrap(), &|_, _| {});
    assert_eq!(
        serde_json::to_value(report).unwrap(),
        json!({
            "num_images": 3,
            "faults": [
                {
                    "kind": "missing_files",
                    "folder": "cam_a",
                    "path": "cam_a/1.bmp",
                    "message": "imgs/cam_a: 2 of 2 files missing, first cam_a/1.bmp",
                    "num_missing": 2,
                    "num_listed": 2,
                    "files": ["cam_a/1.bmp", "cam_a/2.bmp"],
                },
                {
                    "kind": "blank_caption",
                    "folder": "",
                    "path": "b.png",
                    "message": "imgs/b.png: blank caption in split val",
                },
            ],
        })
    );
}

#[test]
fn loading_names_the_first_bad_file() {
    let tiny = Tiny::new(&records());
    let paths: Vec<PathBuf> = ["CUHK01/0001.png", "train_query/p1.jpg", "cam_a/000_45.bmp"]
        .map(|file_path| tiny.image(file_path))
        .into();
    let images = load_images(&paths, SIZE, 2, None).unwrap();
    let one_by_one: Vec<f32> = paths.iter().flat_map(|path| pixels(path, SIZE).unwrap()).collect();
    assert_eq!(images, one_by_one);

    fs::write(&paths[1], b"not an image").unwrap();
    fs::remove_file(&paths[2]).unwrap();
    let error = load_images(&paths, SIZE, 2, None).unwrap_err();
    assert!(matches!(error, DataError::Decode { .. }), "{error}");
    assert!(error.to_string().contains("p1.jpg"), "{error}");
}
