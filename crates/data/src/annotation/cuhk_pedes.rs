//! CUHK-PEDES as its authors publish it: `reid_raw.json` beside `imgs/`.
//!
//! The file is a list of `{"split", "captions", "file_path", "id"}`, sometimes with
//! `processed_tokens`, which nobody needs here. Ids start at 1 and may have gaps; most images have
//! two captions, some more. The folder of an image says nothing of its split. The download of the
//! images brings `caption_all.json`, which looks alike but has no splits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{CaptionRecord, Dataset, ImageRecord, Split, SplitName};
use crate::error::{DataError, RecordFault};

const ANNOTATION: &str = "reid_raw.json";
const CAPTIONS_WITHOUT_SPLITS: &str = "caption_all.json";

/// The fields of a record, unread, so that a bad one is known by its name.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    split: &'a RawValue,
    #[serde(borrow)]
    captions: &'a RawValue,
    #[serde(borrow)]
    file_path: &'a RawValue,
    #[serde(borrow)]
    id: &'a RawValue,
}

/// Reads `root/reid_raw.json`.
pub(super) fn open(root: &Path) -> Result<Dataset, DataError> {
    let annotation = find_annotation(root)?;
    let text = read_utf8(&annotation)?;
    let mut dataset = Dataset {
        root: root.to_path_buf(),
        annotation: annotation.clone(),
        train: Split::default(),
        val: Split::default(),
        test: Split::default(),
        train_pids: Vec::new(),
    };
    // Raw values first, so that a bad record is known by its position.
    let records: Vec<&RawValue> = serde_json::from_str(&text)
        .map_err(|source| DataError::Json { path: annotation.clone(), source })?;
    let mut first_use = BTreeMap::new();
    for (index, raw) in records.into_iter().enumerate() {
        add_record(&mut dataset, &mut first_use, index, raw)
            .map_err(|fault| DataError::Record { path: annotation.clone(), index, fault })?;
    }
    dataset.train_pids = distinct_pids(&dataset.train);
    Ok(dataset)
}

fn find_annotation(root: &Path) -> Result<PathBuf, DataError> {
    let annotation = root.join(ANNOTATION);
    let root = root.to_path_buf();
    if !root.is_dir() {
        return Err(DataError::RootNotFound { root });
    }
    if !annotation.is_file() {
        return Err(match root.join(CAPTIONS_WITHOUT_SPLITS).is_file() {
            true => DataError::SplitsNotFound { root },
            false => DataError::AnnotationNotFound { root },
        });
    }
    if !root.join("imgs").is_dir() {
        return Err(DataError::ImagesNotFound { root });
    }
    Ok(annotation)
}

/// The text of a file that must be UTF-8; a byte order mark is dropped.
fn read_utf8(path: &Path) -> Result<String, DataError> {
    let bytes = fs::read(path).map_err(DataError::io(path))?;
    let text = String::from_utf8(bytes).map_err(|error| DataError::NotUtf8 {
        path: path.to_path_buf(),
        offset: error.utf8_error().valid_up_to(),
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Adds one record to its split; `first_use` maps each image to the record that named it.
fn add_record(
    dataset: &mut Dataset,
    first_use: &mut BTreeMap<PathBuf, usize>,
    index: usize,
    raw: &RawValue,
) -> Result<(), RecordFault> {
    let record: Record<'_> = serde_json::from_str(raw.get()).map_err(RecordFault::Malformed)?;
    let split: SplitName = field("split", record.split)?;
    let captions: Vec<String> = field("captions", record.captions)?;
    let file_path: String = field("file_path", record.file_path)?;
    let pid: i64 = field("id", record.id)?;
    if captions.is_empty() {
        return Err(RecordFault::NoCaption);
    }
    if pid < 0 {
        return Err(RecordFault::NegativePid(pid));
    }
    let Some(path) = path_below_images(&file_path) else {
        return Err(RecordFault::OutsideImages(file_path));
    };
    if let Some(&first) = first_use.get(&path) {
        return Err(RecordFault::Duplicate { file_path, first });
    }
    first_use.insert(path.clone(), index);

    let split = match split {
        SplitName::Train => &mut dataset.train,
        SplitName::Val => &mut dataset.val,
        SplitName::Test => &mut dataset.test,
    };
    let image = split.images.len();
    split.images.push(ImageRecord { pid, path });
    split.captions.extend(captions.into_iter().map(|text| CaptionRecord { image, pid, text }));
    Ok(())
}

fn field<'a, T: Deserialize<'a>>(field: &'static str, raw: &'a RawValue) -> Result<T, RecordFault> {
    serde_json::from_str(raw.get()).map_err(|source| RecordFault::Field { field, source })
}

/// The path with `.` parts removed, or nothing when it could leave `imgs/`.
fn path_below_images(file_path: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for component in Path::new(file_path).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!path.as_os_str().is_empty()).then_some(path)
}

fn distinct_pids(split: &Split) -> Vec<i64> {
    let mut pids: Vec<i64> = split.images.iter().map(|image| image.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_images_folder() {
        let check = |file_path, expected: Option<&str>| {
            assert_eq!(path_below_images(file_path), expected.map(PathBuf::from), "{file_path}");
        };
        check("CUHK01/0363004.png", Some("CUHK01/0363004.png"));
        check("./cam_a//000_45.bmp", Some("cam_a/000_45.bmp"));
        check("a/..b/c.jpg", Some("a/..b/c.jpg"));
        check("/etc/passwd", None);
        check("../x.jpg", None);
        check("a/../../x.jpg", None);
        check("", None);
        check(".", None);
    }
}
