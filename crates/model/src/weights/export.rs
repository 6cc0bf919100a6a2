//! Our weights to files: our own, and open_clip's.

use super::Recipe;
use super::naming::OPEN_CLIP;
use crate::error::ModelError;
use ::safetensors::tensor::{Dtype, TensorView};
use burn::tensor::TensorData;
use std::collections::BTreeMap;

/// Our tensors as a safetensors file that says which model they are of.
///
/// # Errors
/// When a tensor is not f32, or the file cannot be made.
pub fn serialize<'a>(
    tensors: impl IntoIterator<Item = (&'a String, &'a TensorData)>,
    recipe: &Recipe,
) -> Result<Vec<u8>, ModelError> {
    let views = tensors.into_iter().map(|(name, data)| {
        floats(name, data)?; // nothing but f32
        view(name, &data.shape().to_vec(), data.as_bytes())
    });
    write(views.collect::<Result<_, ModelError>>()?, recipe)
}

/// Our tensors as open_clip's `ViT` models name and lay them out, in a safetensors file that
/// open_clip loads strictly.
///
/// # Errors
/// When a tensor is no CLIP's, or the file cannot be made.
pub fn export(
    tensors: &BTreeMap<String, TensorData>,
    recipe: &Recipe,
) -> Result<Vec<u8>, ModelError> {
    let theirs = tensors.iter().map(|(name, data)| {
        let unexpected = || ModelError::Unexpected { names: vec![name.clone()] };
        let (their_name, layout) = OPEN_CLIP.theirs(name).ok_or_else(unexpected)?;
        let shape = data.shape().to_vec();
        let (floats, mut shape) =
            layout.to_theirs(floats(name, data)?, &shape).ok_or_else(unexpected)?;
        if their_name == "logit_scale" {
            shape.clear(); // a scalar there
        }
        Ok((their_name, shape, to_bytes(&floats)))
    });
    let theirs = theirs.collect::<Result<Vec<_>, ModelError>>()?;
    let views = theirs.iter().map(|(name, shape, bytes)| view(name, shape, bytes));
    write(views.collect::<Result<_, ModelError>>()?, recipe)
}

fn floats<'a>(name: &str, data: &'a TensorData) -> Result<&'a [f32], ModelError> {
    data.as_slice().map_err(|_| ModelError::Unexpected { names: vec![name.to_owned()] })
}

fn to_bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn view<'a>(
    name: &str,
    shape: &[usize],
    bytes: &'a [u8],
) -> Result<(String, TensorView<'a>), ModelError> {
    let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes).map_err(failed)?;
    Ok((name.to_owned(), view))
}

fn write(views: Vec<(String, TensorView<'_>)>, recipe: &Recipe) -> Result<Vec<u8>, ModelError> {
    let json = serde_json::to_string(recipe).map_err(failed)?;
    let metadata = [("tbps".to_owned(), json)].into_iter().collect();
    ::safetensors::serialize(views, Some(metadata)).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> ModelError {
    ModelError::Damaged { what: error.to_string() }
}
