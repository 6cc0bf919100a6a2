//! What a pickle of tensors is made of.

/// Index of a value.
pub(super) type Id = usize;

/// What a pickle builds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// A function or class by its name; calling it is up to [`Machine::reduce`].
    Global(String),
    Storage(Storage),
    Tensor(StridedTensor),
    /// A TorchScript module and its attributes.
    Object(Option<Id>),
}

impl Value {
    /// What a message calls it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) | Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dictionary",
            Self::Global(_) => "a name",
            Self::Storage(_) => "a storage",
            Self::Tensor(_) => "a tensor",
            Self::Object(_) => "a module",
        }
    }
}

/// A run of numbers in a file of the archive.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Storage {
    /// torch's class name, such as `HalfStorage`.
    pub(super) class: String,
    /// Name of the file in the archive's `data` folder.
    pub(super) key: String,
}

/// A view of a storage; offset and strides in elements.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StridedTensor {
    pub(super) storage: Storage,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

/// All values of a pickle, and which of them it is about.
#[derive(Debug)]
pub(super) struct Pickle {
    pub(super) values: Vec<Value>,
    pub(super) root: Id,
}

impl Pickle {
    pub(super) fn get(&self, id: Id) -> &Value {
        &self.values[id]
    }
}
