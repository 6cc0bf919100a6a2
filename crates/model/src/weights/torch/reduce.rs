//! The names that a pickle of tensors may use, and what comes of them. None is ever called.

use super::pickle::{Machine, damaged};
use super::value::{Id, Storage, StridedTensor, Value};
use crate::error::ModelError;

/// How the names of the classes start that a TorchScript archive defines.
const TORCHSCRIPT: &str = "__torch__.";

/// Whether a file of tensors may name this. None of them is ever called.
fn is_known(module: &str, name: &str) -> bool {
    match module {
        "collections" => name == "OrderedDict",
        "torch" => name == "Size" || name.ends_with("Storage"),
        "torch._utils" => matches!(name, "_rebuild_tensor_v2" | "_rebuild_parameter"),
        "torch.jit._pickle" => name == "restore_type_tag" || name.starts_with("build_"),
        _ => format!("{module}.").starts_with(TORCHSCRIPT),
    }
}

impl Machine<'_> {
    /// A name, if it is one of those that a file of tensors needs.
    pub(super) fn global(&mut self, module: &str, name: &str) -> Result<(), ModelError> {
        let path = format!("{module}.{name}");
        if !is_known(module, name) {
            return Err(ModelError::UnsafePickle { name: path });
        }
        self.push(Value::Global(path));
        Ok(())
    }

    /// `("storage", class, key, location, length)`: numbers in another file of the archive.
    pub(super) fn persistent(&mut self) -> Result<(), ModelError> {
        let id = self.pop()?;
        let Value::Tuple(items) = &self.values[id] else {
            return Err(damaged("refers to something that is no storage"));
        };
        let &[_, class, key, _, _] = items.as_slice() else {
            return Err(damaged("refers to something that is no storage"));
        };
        let Value::Global(path) = &self.values[class] else {
            return Err(damaged("has a storage without a class"));
        };
        let class = path.rsplit('.').next().unwrap_or_default().to_owned();
        let storage = Storage { class, key: self.as_text(key)? };
        self.push(Value::Storage(storage));
        Ok(())
    }

    /// A call: one of the known functions, none of which does anything but hold its arguments.
    pub(super) fn reduce(&mut self) -> Result<(), ModelError> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let (Value::Global(path), Value::Tuple(arguments)) =
            (&self.values[function], &self.values[arguments])
        else {
            return Err(damaged("calls what is no function"));
        };
        let value = match (path.as_str(), arguments.as_slice()) {
            ("collections.OrderedDict", []) => Value::Dict(Vec::new()),
            ("torch._utils._rebuild_tensor_v2", &[storage, offset, shape, strides, ..]) => {
                self.tensor(storage, offset, shape, strides)?
            }
            // A parameter is its tensor; a tagged or typed list is the list.
            ("torch._utils._rebuild_parameter", &[value, ..])
            | ("torch.Size", &[value])
            | ("torch.jit._pickle.restore_type_tag", &[value, _]) => {
                self.stack.push(value);
                return Ok(());
            }
            (path, &[value]) if path.starts_with("torch.jit._pickle.build_") => {
                self.stack.push(value);
                return Ok(());
            }
            _ => {
                return Err(damaged(&format!("calls {path} with arguments that it does not take")));
            }
        };
        self.push(value);
        Ok(())
    }

    fn tensor(&self, storage: Id, offset: Id, shape: Id, strides: Id) -> Result<Value, ModelError> {
        let Value::Storage(storage) = &self.values[storage] else {
            return Err(damaged("has a tensor without a storage"));
        };
        let (shape, strides) = (self.sizes(shape)?, self.sizes(strides)?);
        if shape.len() != strides.len() {
            return Err(damaged("has a tensor of as many strides as it has no dimensions"));
        }
        let offset = self.size(offset)?;
        Ok(Value::Tensor(StridedTensor { storage: storage.clone(), offset, shape, strides }))
    }

    fn sizes(&self, id: Id) -> Result<Vec<usize>, ModelError> {
        match &self.values[id] {
            Value::Tuple(items) | Value::List(items) => {
                items.iter().map(|&item| self.size(item)).collect()
            }
            _ => Err(damaged("has a tensor without a shape")),
        }
    }

    fn size(&self, id: Id) -> Result<usize, ModelError> {
        match self.values[id] {
            Value::Int(size) => {
                size.try_into().map_err(|_| damaged("has a tensor of a negative size"))
            }
            _ => Err(damaged("has a tensor of a size that is no number")),
        }
    }

    /// An object without its attributes: a module of TorchScript's.
    pub(super) fn new_object(&mut self) -> Result<(), ModelError> {
        let (_arguments, class) = (self.pop()?, self.pop()?);
        match &self.values[class] {
            Value::Global(path) if path.starts_with(TORCHSCRIPT) => self.push(Value::Object(None)),
            other => return Err(damaged(&format!("makes an object of {}", other.kind()))),
        }
        Ok(())
    }

    /// Attributes: a module's; a dictionary has none that matter (torch hangs version numbers on).
    pub(super) fn build(&mut self) -> Result<(), ModelError> {
        let (state, target) = (self.pop()?, self.top()?);
        match &mut self.values[target] {
            Value::Object(attributes) => *attributes = Some(state),
            Value::Dict(_) => {}
            other => return Err(damaged(&format!("gives attributes to {}", other.kind()))),
        }
        Ok(())
    }
}
