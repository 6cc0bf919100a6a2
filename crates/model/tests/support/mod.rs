//! What the comparisons with PyTorch share.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Gradients, Int, Tensor, TensorData};
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;
use tbps_model::Clip;

/// Every gradient on the tape, with its parameter's name.
pub(crate) fn gradients(model: &Clip, tape: Gradients) -> BTreeMap<String, TensorData> {
    let mut visitor = Visitor { path: Vec::new(), tape, found: BTreeMap::new() };
    model.visit(&mut visitor);
    visitor.found
}

/// `pixels` and `token_ids` of a file, on the model's device.
pub(crate) fn inputs(file: &SafeTensors<'_>, model: &Clip) -> (Tensor<4>, Tensor<2, Int>) {
    let device = model.log_logit_scale.val().device();
    let ids = file.tensor("token_ids").unwrap();
    assert_eq!(ids.dtype(), Dtype::I32);
    let ints = ids.data().as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect();
    let ids = TensorData::new::<i32, _>(ints, ids.shape().to_vec());
    let pixels = Tensor::from_data(floats(file, "pixels"), &device);
    (pixels, Tensor::from_data(ids, &device))
}

/// A tensor of f32.
pub(crate) fn floats(file: &SafeTensors<'_>, name: &str) -> TensorData {
    let view = file.tensor(name).unwrap();
    assert_eq!(view.dtype(), Dtype::F32, "{name}");
    let floats = view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    TensorData::new::<f32, _>(floats, view.shape().to_vec())
}

struct Visitor {
    path: Vec<String>,
    tape: Gradients,
    found: BTreeMap<String, TensorData>,
}

impl ModuleVisitor for Visitor {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(grad) = param.val().grad_remove(&mut self.tape) {
            self.found.insert(self.path.join("."), grad.into_data());
        }
    }
}
