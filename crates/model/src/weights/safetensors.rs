//! Safetensors: a JSON header and the numbers.

use super::tensor::{FileTensor, Numbers};
use crate::error::ModelError;
use safetensors::{SafeTensorError, SafeTensors};
use std::collections::BTreeMap;

/// Texts beside the tensors.
pub(super) type Metadata = BTreeMap<String, String>;

/// The tensors of a file by name, and its metadata.
///
/// # Errors
/// Those of [`super::read`].
pub(super) fn read(bytes: &[u8]) -> Result<(BTreeMap<String, FileTensor>, Metadata), ModelError> {
    let damaged = |e: SafeTensorError| match e {
        SafeTensorError::MetadataIncompleteBuffer | SafeTensorError::InvalidHeaderLength => {
            ModelError::Truncated
        }
        other => ModelError::Damaged { what: other.to_string() },
    };
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let tensors = file.tensors().into_iter().map(|(name, view)| {
        let numbers = Numbers::of_safetensors(&view.dtype().to_string(), view.data())?;
        Ok((name, FileTensor { shape: view.shape().to_vec(), numbers }))
    });
    Ok((tensors.collect::<Result<_, ModelError>>()?, metadata))
}
