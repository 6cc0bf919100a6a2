//! A data set of a few pixels in a temporary folder, for the tests to break.

use std::fs;
use std::path::{Path, PathBuf};

use image::{ImageFormat, Rgb, RgbImage};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Six images of four people in three splits and in all three file formats.
///
/// Train ids 5, 9, 12 have gaps; image 0 has three captions, image 1 two, the others one.
pub(crate) fn records() -> Vec<Value> {
    vec![
        record("train", 9, "cam_a/000_45.bmp", &["A man.", "a  MAN in black ", "He walks."]),
        record("train", 5, "CUHK01/0001.png", &["A woman.", "She runs."]),
        record("train", 12, "train_query/p1.jpg", &["A red bag &amp; a hat."]),
        record("train", 9, "train_query/p2.jpg", &["!!!"]),
        record("val", 20, "test_query/p3.jpg", &["Someone."]),
        record("test", 21, "Market/p4.jpg", &["Two\nlines."]),
    ]
}

pub(crate) fn record(split: &str, id: i64, file_path: &str, captions: &[&str]) -> Value {
    json!({ "split": split, "id": id, "file_path": file_path, "captions": captions })
}

/// A folder with an annotation file and an image for every record that has a proper path.
pub(crate) struct Tiny {
    dir: TempDir,
    annotation: &'static str,
}

impl Tiny {
    /// Of CUHK-PEDES.
    pub(crate) fn new(records: &[Value]) -> Self {
        Self::named("reid_raw.json", records)
    }

    /// Of whichever data set has an annotation file of that name.
    pub(crate) fn named(annotation: &'static str, records: &[Value]) -> Self {
        let tiny = Self { dir: tempfile::tempdir().unwrap(), annotation };
        fs::create_dir(tiny.root().join("imgs")).unwrap();
        tiny.write_annotation(&serde_json::to_vec(records).unwrap());
        for (index, record) in records.iter().enumerate() {
            let path = record.get("file_path").or_else(|| record.get("img_path"));
            if let Some(path) = path.and_then(Value::as_str) {
                save(&tiny.image(path), index as u32);
            }
        }
        tiny
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn image(&self, file_path: &str) -> PathBuf {
        self.root().join("imgs").join(file_path)
    }

    pub(crate) fn write_annotation(&self, bytes: &[u8]) {
        fs::write(self.root().join(self.annotation), bytes).unwrap();
    }
}

/// An image that looks unlike that of any other `index`, in the format of its file name.
fn save(path: &Path, index: u32) {
    let image = RgbImage::from_fn(20 + index, 50 + index, |x, y| {
        Rgb([(x * 12) as u8, (y * 5) as u8, (index * 40) as u8])
    });
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    image.save_with_format(path, ImageFormat::from_path(path).unwrap()).unwrap();
}
