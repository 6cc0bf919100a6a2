//! Annotation files: a JSON list of records, checked one by one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::layout::Layout;
use super::{CaptionRecord, ImageRecord, Split, SplitName};
use crate::error::{DataError, RecordFault};

/// The splits of an annotation file.
#[derive(Default)]
pub(super) struct Splits {
    pub(super) train: Split,
    pub(super) val: Split,
    pub(super) test: Split,
    /// Where each image is: the first record that named it, its split, its place there.
    seen: BTreeMap<PathBuf, (usize, SplitName, usize)>,
}

/// The fields of a record, unread, so that a bad one is known by its name.
type Fields<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Reads every record of an annotation file.
pub(super) fn read(annotation: &Path, layout: &Layout) -> Result<Splits, DataError> {
    let text = read_utf8(annotation)?;
    // Raw values first, so that a bad record is known by its position.
    let records: Vec<&RawValue> = serde_json::from_str(&text)
        .map_err(|source| DataError::Json { path: annotation.to_path_buf(), source })?;
    let mut splits = Splits::default();
    for (index, raw) in records.into_iter().enumerate() {
        splits.add(layout, index, raw).map_err(|fault| DataError::Record {
            path: annotation.to_path_buf(),
            index,
            fault,
        })?;
    }
    Ok(splits)
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

impl Splits {
    fn add(&mut self, layout: &Layout, index: usize, raw: &RawValue) -> Result<(), RecordFault> {
        let field = layout.path_field;
        let fields: Fields<'_> = serde_json::from_str(raw.get()).map_err(RecordFault::Malformed)?;
        let name: SplitName = read_field(&fields, "split")?;
        let captions: Vec<String> = read_field(&fields, "captions")?;
        let path_text: String = read_field(&fields, field)?;
        let pid: i64 = read_field(&fields, "id")?;
        if captions.is_empty() {
            return Err(RecordFault::NoCaption);
        }
        if pid < 0 {
            return Err(RecordFault::NegativePid(pid));
        }
        let Some(path) = path_below_images(&path_text) else {
            return Err(RecordFault::OutsideImages { field, path: path_text });
        };
        let split = match name {
            SplitName::Train => &mut self.train,
            SplitName::Val => &mut self.val,
            SplitName::Test => &mut self.test,
        };
        let image = match self.seen.get(&path) {
            None => {
                self.seen.insert(path.clone(), (index, name, split.images.len()));
                split.images.push(ImageRecord { pid, path });
                split.images.len() - 1
            }
            Some(&(_, of, image))
                if layout.joins_records && of == name && split.images[image].pid == pid =>
            {
                image
            }
            Some(&(first, ..)) => {
                return Err(RecordFault::Duplicate { field, path: path_text, first });
            }
        };
        split.captions.extend(captions.into_iter().map(|text| CaptionRecord { image, pid, text }));
        Ok(())
    }
}

fn read_field<'a, T: Deserialize<'a>>(
    fields: &Fields<'a>,
    field: &'static str,
) -> Result<T, RecordFault> {
    let raw = fields.get(field).ok_or(RecordFault::MissingField(field))?;
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
