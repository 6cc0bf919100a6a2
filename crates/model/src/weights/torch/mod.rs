//! What `torch.save` and `torch.jit.save` write: a zip archive of a pickle, `data.pkl`, and of one
//! file of numbers per storage.
//!
//! A TorchScript archive also holds code, which is not read. Both are opened without torch.

mod pickle;
mod reduce;
mod value;

use super::import::Container;
use super::tensor::{FileTensor, Numbers};
use crate::error::ModelError;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use value::{Id, Pickle, StridedTensor, Value};
use zip::ZipArchive;

/// Most modules inside one another; CLIP has six.
const MAX_DEPTH: usize = 16;

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

/// The tensors of an archive by name, as they are in the file.
///
/// # Errors
/// Those of [`super::read`].
pub(super) fn read(bytes: &[u8]) -> Result<(Container, BTreeMap<String, FileTensor>), ModelError> {
    // The directory is at the end: without it, the end is missing.
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| ModelError::Truncated)?;
    let folder = folder(&archive)?;
    if let Ok(order) = entry(&mut archive, &format!("{folder}byteorder"))
        && order != b"little"
    {
        return Err(ModelError::Damaged { what: "its numbers are big-endian".into() });
    }
    let container = match archive.index_for_name(&format!("{folder}constants.pkl")) {
        Some(_) => Container::TorchScript,
        None => Container::TorchZip,
    };
    let pickle = pickle::run(&entry(&mut archive, &format!("{folder}data.pkl"))?)?;
    let mut named = Vec::new();
    match container {
        Container::TorchScript => walk(&pickle, pickle.root, String::new(), 0, &mut named)?,
        _ => state_dict(&pickle, &mut named)?,
    }
    Ok((container, gather(&mut archive, &folder, named, bytes.len())?))
}

fn damaged(error: impl std::fmt::Display) -> ModelError {
    ModelError::Damaged { what: error.to_string() }
}

/// The one folder that torch puts everything in, with its slash.
fn folder(archive: &Archive<'_>) -> Result<String, ModelError> {
    let folder = |name: Cow<'_, str>| name.strip_suffix("data.pkl").map(str::to_owned);
    archive.file_names().flatten().find_map(folder).ok_or(ModelError::NoPickle)
}

fn entry(archive: &mut Archive<'_>, name: &str) -> Result<Vec<u8>, ModelError> {
    let mut file =
        archive.by_name(name).map_err(|e| ModelError::Damaged { what: format!("{name}: {e}") })?;
    let mut bytes = Vec::new();
    // The archive's own check sum is compared when the end is reached.
    file.read_to_end(&mut bytes)
        .map_err(|e| ModelError::Damaged { what: format!("{name}: {e}") })?;
    Ok(bytes)
}

/// Tensors of a module and of the modules in it, by the path of attributes to them.
fn walk(
    pickle: &Pickle,
    id: Id,
    path: String,
    depth: usize,
    named: &mut Vec<(String, StridedTensor)>,
) -> Result<(), ModelError> {
    if depth > MAX_DEPTH {
        return Err(ModelError::Damaged { what: "its modules never end".into() });
    }
    match pickle.get(id) {
        Value::Tensor(tensor) => named.push((path, tensor.clone())),
        Value::Object(Some(attributes)) => {
            let Value::Dict(attributes) = pickle.get(*attributes) else {
                return Err(ModelError::Damaged { what: format!("{path} has no attributes") });
            };
            for &(key, value) in attributes {
                let Value::Text(name) = pickle.get(key) else { continue };
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(pickle, value, path, depth + 1, named)?;
            }
        }
        _ => {} // settings such as `training`
    }
    Ok(())
}

/// Tensors of a state dict, or of the one that a training checkpoint holds as `state_dict`.
fn state_dict(pickle: &Pickle, named: &mut Vec<(String, StridedTensor)>) -> Result<(), ModelError> {
    let Value::Dict(root) = pickle.get(pickle.root) else {
        let what = format!("it holds {} and no state dict", pickle.get(pickle.root).kind());
        return Err(ModelError::Damaged { what });
    };
    let inner = root.iter().find_map(|&(key, value)| match (pickle.get(key), pickle.get(value)) {
        (Value::Text(key), Value::Dict(dict)) if key == "state_dict" => Some(dict),
        _ => None,
    });
    for &(key, value) in inner.unwrap_or(root) {
        let name = match pickle.get(key) {
            Value::Text(name) => name.clone(),
            other => return Err(damaged(format!("its state dict has {} as a name", other.kind()))),
        };
        match pickle.get(value) {
            Value::Tensor(tensor) => named.push((name, tensor.clone())),
            other => {
                return Err(damaged(format!("{name} is {} and no tensor", other.kind())));
            }
        }
    }
    Ok(())
}

/// Reads every tensor's numbers, in row order.
fn gather(
    archive: &mut Archive<'_>,
    folder: &str,
    named: Vec<(String, StridedTensor)>,
    file_len: usize,
) -> Result<BTreeMap<String, FileTensor>, ModelError> {
    let mut room = file_len; // tensors may share storages, but not become more than the file
    let mut tensors = BTreeMap::new();
    for (name, view) in named {
        let numbers = entry(archive, &format!("{folder}data/{}", view.storage.key))?;
        let numbers = Numbers::of_storage(&view.storage.class, numbers)?;
        let len = elements(&view, numbers.len()).ok_or_else(|| {
            damaged(format!("{name} reaches beyond its {} numbers", numbers.len()))
        })?;
        room = room
            .checked_sub(len)
            .ok_or_else(|| damaged("its tensors are larger than the file".to_owned()))?;
        let numbers = match len {
            0 => numbers.select(Vec::new()),
            _ if view.offset == 0 && len == numbers.len() && is_row_major(&view) => numbers,
            _ => numbers.select(positions(&view)),
        };
        if tensors.insert(name.clone(), FileTensor { shape: view.shape, numbers }).is_some() {
            return Err(damaged(format!("it holds {name} twice")));
        }
    }
    Ok(tensors)
}

/// Number of elements of a view, if all of them are within `len`.
fn elements(view: &StridedTensor, len: usize) -> Option<usize> {
    let count = view.shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size))?;
    if count == 0 {
        return Some(0);
    }
    let last = view
        .shape
        .iter()
        .zip(&view.strides)
        .try_fold(view.offset, |last, (&n, &s)| last.checked_add((n - 1).checked_mul(s)?))?;
    (last < len && count <= len).then_some(count)
}

fn is_row_major(view: &StridedTensor) -> bool {
    let mut step = 1;
    view.shape.iter().zip(&view.strides).rev().all(|(&size, &stride)| {
        let fits = size == 1 || stride == step;
        step *= size;
        fits
    })
}

/// Indices into the storage of a view's elements, in row order.
fn positions(view: &StridedTensor) -> Vec<usize> {
    let mut positions = vec![view.offset];
    for (&size, &stride) in view.shape.iter().zip(&view.strides) {
        let along = |start: usize| (0..size).map(move |i| start + i * stride);
        positions = positions.into_iter().flat_map(along).collect();
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::value::Storage;
    use super::*;

    fn view(offset: usize, shape: &[usize], strides: &[usize]) -> StridedTensor {
        let storage = Storage { class: "FloatStorage".into(), key: "0".into() };
        StridedTensor { storage, offset, shape: shape.to_vec(), strides: strides.to_vec() }
    }

    #[test]
    fn views_are_read_in_row_order() {
        assert_eq!(positions(&view(1, &[2, 3], &[1, 2])), [1, 3, 5, 2, 4, 6]);
        assert_eq!(positions(&view(4, &[], &[])), [4]);
        assert!(is_row_major(&view(0, &[2, 1, 3], &[3, 7, 1])));
        assert!(!is_row_major(&view(0, &[2, 3], &[1, 2])));
    }

    #[test]
    fn views_stay_inside_their_storage() {
        assert_eq!(elements(&view(1, &[2, 3], &[1, 2]), 7), Some(6));
        assert_eq!(elements(&view(1, &[2, 3], &[1, 2]), 6), None);
        assert_eq!(elements(&view(0, &[9], &[0]), 4), None); // more elements than numbers
        assert_eq!(elements(&view(9, &[0, 3], &[3, 1]), 4), Some(0));
        assert_eq!(elements(&view(0, &[usize::MAX, 2], &[1, 1]), 4), None);
        assert_eq!(elements(&view(usize::MAX, &[2], &[1]), 4), None);
    }
}
