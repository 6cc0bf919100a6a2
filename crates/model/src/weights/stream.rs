//! Safetensors files that are written one tensor at a time, so that no copy of a whole model is
//! ever held beside it.

use super::Recipe;
use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Tensor, TensorData};
use std::io::{Error, Result, Write};

/// Is shown a tensor: its name, its shape, and how to copy it to the host.
pub type See<'a> = dyn FnMut(&str, &[usize], &dyn Fn() -> TensorData) + 'a;

/// Shows every parameter of `model` in visit order.
pub fn visit<M: Module>(model: &M, see: &mut See<'_>) {
    model.visit(&mut Visitor { path: Vec::new(), see });
}

/// Writes the f32 tensors that `visit` shows as a safetensors file, which says with `recipe` which
/// model they are of. `visit` is called twice, and shows the same tensors in the same order.
///
/// # Errors
/// When `out` does not take them, or a tensor is not f32.
pub fn write(
    out: &mut dyn Write,
    recipe: Option<&Recipe>,
    visit: &dyn Fn(&mut See<'_>),
) -> Result<()> {
    let mut infos = Vec::new();
    let mut end = 0;
    visit(&mut |name, shape, _| {
        let begin = end;
        end += shape.iter().product::<usize>() * size_of::<f32>();
        let data_offsets = (begin, end);
        infos.push((
            name.to_owned(),
            TensorInfo { dtype: Dtype::F32, shape: shape.to_vec(), data_offsets },
        ));
    });
    let recipe = recipe.map(serde_json::to_string).transpose()?;
    let metadata = recipe.map(|json| [("tbps".to_owned(), json)].into_iter().collect());
    let metadata = Metadata::new(metadata, infos).map_err(Error::other)?;
    let mut header = serde_json::to_vec(&metadata)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(&header)?;

    let mut written = Ok(());
    visit(&mut |name, _, read| {
        if written.is_ok() {
            written = write_tensor(out, name, &read());
        }
    });
    written
}

fn write_tensor(out: &mut dyn Write, name: &str, data: &TensorData) -> Result<()> {
    match data.dtype() {
        DType::F32 => out.write_all(data.as_bytes()),
        other => Err(Error::other(format!("{name} is {other:?}, not f32"))),
    }
}

struct Visitor<'a, 'b> {
    path: Vec<String>,
    see: &'a mut See<'b>,
}

impl ModuleVisitor for Visitor<'_, '_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        (self.see)(&self.path.join("."), &value.dims(), &|| value.clone().into_data());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ClipConfig;
    use crate::weights;
    use burn::tensor::Device;
    use std::collections::BTreeMap;

    #[test]
    fn a_file_holds_what_was_shown() {
        let config = ClipConfig::tiny();
        let model = config.init(3, &Device::flex()).unwrap();
        let recipe = Recipe { model: config, pixel_mean: [0.5; 3], pixel_std: [0.25; 3] };
        let mut file = Vec::new();
        write(&mut file, Some(&recipe), &|see| visit(&model, see)).unwrap();
        let read = weights::read(&file).unwrap();
        let expected: BTreeMap<_, _> = weights::state_dict(&model).into_iter().collect();
        assert_eq!(read.tensors, expected);
        assert_eq!(read.recipe, Some(recipe));
    }

    #[test]
    fn a_full_disk_is_told() {
        let model = ClipConfig::tiny().init(3, &Device::flex()).unwrap();
        let mut room = [0; 20_000];
        let mut out = &mut room[..];
        let error = write(&mut out, None, &|see| visit(&model, see)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WriteZero);
    }
}
