//! Which data set a folder holds: told by its annotation file.

use std::fs;
use std::path::{Path, PathBuf};

use super::DatasetName;
use super::cuhk_pedes::CAPTIONS_WITHOUT_SPLITS;
use crate::error::DataError;

/// The data set in `root` and its annotation file; `name` decides where there are several.
pub(super) fn find(
    root: &Path,
    name: Option<DatasetName>,
) -> Result<(DatasetName, PathBuf), DataError> {
    if !root.is_dir() {
        return Err(DataError::RootNotFound { root: root.to_path_buf() });
    }
    let asked = name.map_or(DatasetName::ALL.to_vec(), |name| vec![name]);
    let mut found = Vec::new();
    for name in &asked {
        if let Some(annotation) = annotation_of(root, *name)? {
            found.push((*name, annotation));
        }
    }
    let root = root.to_path_buf();
    match (found.pop(), found.pop()) {
        (Some(_), _) if !root.join("imgs").is_dir() => Err(DataError::ImagesNotFound { root }),
        (Some(only), None) => Ok(only),
        (Some((second, _)), Some((first, _))) => {
            Err(DataError::AmbiguousDataset { root, first, second })
        }
        (None, _) => Err(not_found(root, &asked)),
    }
}

fn not_found(root: PathBuf, asked: &[DatasetName]) -> DataError {
    let may_be_cuhk_pedes = asked.contains(&DatasetName::CuhkPedes);
    if may_be_cuhk_pedes && root.join(CAPTIONS_WITHOUT_SPLITS).is_file() {
        return DataError::SplitsNotFound { root };
    }
    let names: Vec<&str> = asked.iter().flat_map(|name| name.layout().files).copied().collect();
    DataError::AnnotationNotFound { root, expected: names.join(" or ") }
}

/// The annotation file of one data set, if it is there.
///
/// Two names for it are one file twice, or nobody can tell which one is meant.
fn annotation_of(root: &Path, name: DatasetName) -> Result<Option<PathBuf>, DataError> {
    let paths = name.layout().files.iter().map(|file| root.join(file));
    let mut paths = paths.filter(|path| path.is_file());
    let Some(first) = paths.next() else { return Ok(None) };
    let read = |path: &Path| fs::read(path).map_err(DataError::io(path));
    for second in paths {
        if read(&first)? != read(&second)? {
            return Err(DataError::AnnotationsDiffer { first, second });
        }
    }
    Ok(Some(first))
}
