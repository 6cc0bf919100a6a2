//! Parameters out of a model and into it.

use crate::error::ModelError;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use std::collections::BTreeMap;

/// Every parameter of `model` in visit order, copied to the host.
pub fn state_dict<M: Module>(model: &M) -> Vec<(String, TensorData)> {
    let mut reader = Reader::default();
    model.visit(&mut reader);
    reader.tensors
}

/// `model` with every parameter replaced by the tensor of its name; ids, devices and what is
/// trainable stay.
///
/// # Errors
/// A tensor that is missing, superfluous or of another shape; all of them are named.
pub fn load<M: Module>(model: M, tensors: BTreeMap<String, TensorData>) -> Result<M, ModelError> {
    let mut writer =
        Writer { path: Vec::new(), tensors, missing: Vec::new(), misshapen: Vec::new() };
    let model = model.map(&mut writer);
    let unexpected: Vec<String> = writer.tensors.into_keys().collect();
    if writer.missing.is_empty() && unexpected.is_empty() && writer.misshapen.is_empty() {
        return Ok(model);
    }
    Err(ModelError::Weights { missing: writer.missing, unexpected, misshapen: writer.misshapen })
}

#[derive(Default)]
struct Reader {
    path: Vec<String>,
    tensors: Vec<(String, TensorData)>,
}

impl ModuleVisitor for Reader {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.tensors.push((self.path.join("."), param.val().into_data()));
    }
}

struct Writer {
    path: Vec<String>,
    tensors: BTreeMap<String, TensorData>,
    missing: Vec<String>,
    misshapen: Vec<String>,
}

impl ModuleMapper for Writer {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let Some(data) = self.tensors.remove(&name) else {
            self.missing.push(name);
            return param;
        };
        let (expected, found) = (param.val().dims().to_vec(), data.shape().to_vec());
        if found != expected {
            self.misshapen.push(format!("{name} is {found:?}, not {expected:?}"));
            return param;
        }
        let trainable = param.is_require_grad();
        param.map(|old| {
            let new = Tensor::from_data(data, &old.device());
            if trainable { new.require_grad() } else { new }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ClipConfig;
    use burn::tensor::Device;

    fn tensors(seed: u64) -> BTreeMap<String, TensorData> {
        let model = ClipConfig::tiny().init(seed, &Device::flex()).unwrap();
        state_dict(&model).into_iter().collect()
    }

    #[test]
    fn a_round_trip_changes_nothing() {
        let model = ClipConfig::tiny().init(1, &Device::flex().autodiff()).unwrap();
        let model = load(model, tensors(2)).unwrap();
        let loaded: BTreeMap<_, _> = state_dict(&model).into_iter().collect();
        assert_eq!(loaded, tensors(2));
        assert_ne!(loaded, tensors(1));
        assert!(model.visual.stem.pos_embed.is_require_grad());
    }

    #[test]
    fn every_difference_is_named() {
        let model = ClipConfig::tiny().init(1, &Device::flex()).unwrap();
        let mut tensors = tensors(2);
        tensors.remove("visual.head.proj").unwrap();
        tensors.insert("extra".into(), TensorData::from([1.0f32]));
        tensors.insert("log_logit_scale".into(), TensorData::from([1.0f32, 2.0]));
        assert_eq!(
            load(model, tensors).unwrap_err().to_string(),
            "these weights are of another model: missing [visual.head.proj], unexpected [extra], \
             wrong shape [log_logit_scale is [2], not [1]]"
        );
    }
}
