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
    let tensors = tensors.into_iter().map(|(name, data)| {
        let floats = floats(name, data)?;
        Ok((name.clone(), data.shape().to_vec(), to_bytes(floats)))
    });
    write(tensors.collect::<Result<_, ModelError>>()?, recipe)
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
    write(theirs.collect::<Result<_, ModelError>>()?, recipe)
}

fn floats<'a>(name: &str, data: &'a TensorData) -> Result<&'a [f32], ModelError> {
    data.as_slice().map_err(|_| ModelError::Unexpected { names: vec![name.to_owned()] })
}

fn to_bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn write(
    tensors: Vec<(String, Vec<usize>, Vec<u8>)>,
    recipe: &Recipe,
) -> Result<Vec<u8>, ModelError> {
    let failed = |e: &dyn std::fmt::Display| ModelError::Damaged { what: e.to_string() };
    let json = serde_json::to_string(recipe).map_err(|e| failed(&e))?;
    let views = tensors.iter().map(|(name, shape, bytes)| {
        Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(|e| failed(&e))?))
    });
    let views = views.collect::<Result<Vec<_>, ModelError>>()?;
    let metadata = [("tbps".to_owned(), json)].into_iter().collect();
    ::safetensors::serialize(views, Some(metadata)).map_err(|e| failed(&e))
}
