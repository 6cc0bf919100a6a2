//! A pickle machine that can build data and nothing else.
//!
//! A pickle is a program. Python's machine may call any function that the program names; this one
//! knows the few that a file of tensors needs, builds a value for each, and refuses every other
//! name when it meets it. It executes nothing.
//!
//! Values live in one list and refer to each other by index, because pickles share them and fill
//! containers after they have been referred to. Every instruction adds at most one value, so a
//! pickle cannot grow beyond its own length.
//!
//! Opcodes: Python's `pickletools`. Reductions: `torch/_utils.py` and the TorchScript pickler.

use crate::error::ModelError;
use std::collections::BTreeMap;

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
    values: Vec<Value>,
    pub(super) root: Id,
}

impl Pickle {
    pub(super) fn get(&self, id: Id) -> &Value {
        &self.values[id]
    }
}

/// Runs a pickle.
///
/// # Errors
/// [`ModelError::UnsafePickle`] when it names what no weights need; [`ModelError::Damaged`] when
/// it is no pickle, is cut off, or builds something that makes no sense.
pub(super) fn run(program: &[u8]) -> Result<Pickle, ModelError> {
    let mut machine = Machine { rest: program, ..Machine::default() };
    loop {
        if let Some(root) = machine.step()? {
            return Ok(Pickle { values: machine.values, root });
        }
    }
}

#[derive(Default)]
struct Machine<'a> {
    rest: &'a [u8],
    values: Vec<Value>,
    stack: Vec<Id>,
    /// Heights of the stack at the open marks.
    marks: Vec<usize>,
    memo: BTreeMap<u32, Id>,
}

fn damaged(reason: &str) -> ModelError {
    ModelError::Damaged { what: format!("its pickle {reason}") }
}

impl<'a> Machine<'a> {
    /// One instruction; at the last, the value that the pickle is of.
    fn step(&mut self) -> Result<Option<Id>, ModelError> {
        match self.byte()? {
            0x80 => drop(self.take(1)?), // PROTO
            0x95 => drop(self.take(8)?), // FRAME
            b'.' => return self.pop().map(Some),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'K' => self.int::<1>(|b| i64::from(b[0]))?,
            b'M' => self.int(|b| i64::from(u16::from_le_bytes(b)))?,
            b'J' => self.int(|b| i64::from(i32::from_le_bytes(b)))?,
            0x8a => self.long()?,
            b'G' => {
                let float = f64::from_be_bytes(self.array()?);
                self.push(Value::Float(float));
            }
            b'X' => self.text(4)?,
            0x8c => self.text(1)?,
            b'U' => self.text(1)?, // SHORT_BINSTRING, of Python 2
            b')' => self.push(Value::Tuple(Vec::new())),
            0x85 => self.tuple(1)?,
            0x86 => self.tuple(2)?,
            0x87 => self.tuple(3)?,
            b't' => {
                let items = self.pop_mark()?;
                self.push(Value::Tuple(items));
            }
            b']' => self.push(Value::List(Vec::new())),
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.pop_mark()?;
                self.append(items)?;
            }
            b'}' => self.push(Value::Dict(Vec::new())),
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set_items(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_mark()?;
                self.set_items(&items)?;
            }
            b'q' => {
                let key = self.byte()?.into();
                self.remember(key)?;
            }
            b'r' => {
                let key = u32::from_le_bytes(self.array()?);
                self.remember(key)?;
            }
            0x94 => {
                let key = self.memo.len() as u32;
                self.remember(key)?;
            }
            b'h' => {
                let key = self.byte()?.into();
                self.recall(key)?;
            }
            b'j' => {
                let key = u32::from_le_bytes(self.array()?);
                self.recall(key)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(&module, &name)?;
            }
            0x93 => {
                let (name, module) = (self.pop_text()?, self.pop_text()?);
                self.global(&module, &name)?;
            }
            b'Q' => self.persistent()?,
            b'R' => self.reduce()?,
            0x81 => self.new_object()?,
            b'b' => self.build()?,
            code => return Err(damaged(&format!("has the instruction {code:#04x}"))),
        }
        Ok(None)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], ModelError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| damaged("is cut off"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, ModelError> {
        Ok(self.take(1)?[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ModelError> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("`take` gives as many bytes as it is asked for"))
    }

    /// Up to a line feed, as GLOBAL has its arguments.
    fn line(&mut self) -> Result<String, ModelError> {
        let end = self.rest.iter().position(|&b| b == b'\n');
        let line = self.take(end.ok_or_else(|| damaged("is cut off"))?)?;
        self.byte()?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    fn int<const N: usize>(&mut self, decode: impl Fn([u8; N]) -> i64) -> Result<(), ModelError> {
        let value = decode(self.array()?);
        self.push(Value::Int(value));
        Ok(())
    }

    /// A little-endian two's complement number of at most 8 bytes.
    fn long(&mut self) -> Result<(), ModelError> {
        let len = self.byte()?.into();
        let bytes = self.take(len)?;
        if len > 8 {
            return Err(damaged("has a number of more than 64 bits"));
        }
        let fill = if bytes.last().is_some_and(|&b| b >= 0x80) { 0xff } else { 0 };
        let mut wide = [fill; 8];
        wide[..len].copy_from_slice(bytes);
        self.push(Value::Int(i64::from_le_bytes(wide)));
        Ok(())
    }

    /// A text whose length is a number of `len_bytes` bytes.
    fn text(&mut self, len_bytes: usize) -> Result<(), ModelError> {
        let mut len = [0; 4];
        len[..len_bytes].copy_from_slice(self.take(len_bytes)?);
        let bytes = self.take(u32::from_le_bytes(len) as usize)?;
        let text =
            std::str::from_utf8(bytes).map_err(|_| damaged("has a text that is not UTF-8"))?;
        self.push(Value::Text(text.to_owned()));
        Ok(())
    }

    fn push(&mut self, value: Value) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn pop(&mut self) -> Result<Id, ModelError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() > floor {
            true => Ok(self.stack.pop().expect("it is higher than its floor")),
            false => Err(damaged("takes more than it has")),
        }
    }

    fn top(&self) -> Result<Id, ModelError> {
        self.stack.last().copied().ok_or_else(|| damaged("takes more than it has"))
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>, ModelError> {
        let mark = self.marks.pop().ok_or_else(|| damaged("closes a mark that is not open"))?;
        Ok(self.stack.split_off(mark))
    }

    fn pop_text(&mut self) -> Result<String, ModelError> {
        let id = self.pop()?;
        self.as_text(id)
    }

    fn as_text(&self, id: Id) -> Result<String, ModelError> {
        match &self.values[id] {
            Value::Text(text) => Ok(text.clone()),
            other => Err(damaged(&format!("has {} where a text belongs", other.kind()))),
        }
    }

    fn tuple(&mut self, len: usize) -> Result<(), ModelError> {
        let mut items = Vec::with_capacity(len);
        for _ in 0..len {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(Value::Tuple(items));
        Ok(())
    }

    fn append(&mut self, items: Vec<Id>) -> Result<(), ModelError> {
        let list = self.top()?;
        match &mut self.values[list] {
            Value::List(list) => list.extend(items),
            other => return Err(damaged(&format!("appends to {}", other.kind()))),
        }
        Ok(())
    }

    fn set_items(&mut self, items: &[Id]) -> Result<(), ModelError> {
        let dict = self.top()?;
        let (pairs, []) = items.as_chunks::<2>() else {
            return Err(damaged("has a key without a value"));
        };
        match &mut self.values[dict] {
            Value::Dict(dict) => dict.extend(pairs.iter().map(|&[key, value]| (key, value))),
            other => return Err(damaged(&format!("sets items of {}", other.kind()))),
        }
        Ok(())
    }

    fn remember(&mut self, key: u32) -> Result<(), ModelError> {
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> Result<(), ModelError> {
        let id = self.memo.get(&key).ok_or_else(|| damaged("recalls what it did not remember"))?;
        self.stack.push(*id);
        Ok(())
    }

    /// A name, if it is one of those that a file of tensors needs.
    fn global(&mut self, module: &str, name: &str) -> Result<(), ModelError> {
        let path = format!("{module}.{name}");
        if !is_known(module, name) {
            return Err(ModelError::UnsafePickle { name: path });
        }
        self.push(Value::Global(path));
        Ok(())
    }

    /// `("storage", class, key, location, length)`: numbers in another file of the archive.
    fn persistent(&mut self) -> Result<(), ModelError> {
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
    fn reduce(&mut self) -> Result<(), ModelError> {
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
    fn new_object(&mut self) -> Result<(), ModelError> {
        let (_arguments, class) = (self.pop()?, self.pop()?);
        match &self.values[class] {
            Value::Global(path) if path.starts_with(TORCHSCRIPT) => self.push(Value::Object(None)),
            other => return Err(damaged(&format!("makes an object of {}", other.kind()))),
        }
        Ok(())
    }

    /// Attributes: a module's; a dictionary has none that matter (torch hangs version numbers on).
    fn build(&mut self) -> Result<(), ModelError> {
        let (state, target) = (self.pop()?, self.top()?);
        match &mut self.values[target] {
            Value::Object(attributes) => *attributes = Some(state),
            Value::Dict(_) => {}
            other => return Err(damaged(&format!("gives attributes to {}", other.kind()))),
        }
        Ok(())
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&[0x8c, text.len() as u8][..], text.as_bytes()].concat()
    }

    #[test]
    fn containers_are_filled_after_they_are_shared() {
        // d = {}; t = (d, d); d["a"] = -2
        let program = [
            b"\x80\x02}q\x00h\x00\x86q\x010h\x00".as_slice(),
            &text("a"),
            b"J\xfe\xff\xff\xffs0h\x01.",
        ]
        .concat();
        let pickle = run(&program).unwrap();
        let Value::Tuple(items) = pickle.get(pickle.root) else { panic!() };
        assert_eq!(items[0], items[1]);
        let Value::Dict(pairs) = pickle.get(items[0]) else { panic!() };
        assert_eq!(pickle.get(pairs[0].0), &Value::Text("a".into()));
        assert_eq!(pickle.get(pairs[0].1), &Value::Int(-2));
    }

    #[test]
    fn a_pickle_that_would_run_a_command_is_refused() {
        for (program, name) in [
            (&b"cos\nsystem\n(X\x02\x00\x00\x00lstR."[..], "os.system"),
            (b"cbuiltins\neval\n.", "builtins.eval"),
            (b"ctorch\nload\n.", "torch.load"),
            (b"c__torch__\nx\n.", "__torch__.x"),
        ] {
            let result = run(program);
            if name == "__torch__.x" {
                assert!(matches!(result.unwrap().get(0), Value::Global(_))); // a name, never called
                continue;
            }
            assert_eq!(result.unwrap_err(), ModelError::UnsafePickle { name: name.into() });
        }
    }

    #[test]
    fn nonsense_is_damage() {
        for program in [
            &b""[..],
            b"\x80",
            b".",
            b"0",
            b"e.",
            b"K",
            b"h\x07.",
            b"N\x85\x85R.",
            b"(0.",
            b"}K\x01a.",
            b"K\x01Q.",
            b"X\xff\xff\xff\xffa.",
            b"\x8a\x09123456789.",
            b"\xff",
            b"ccollections\nOrderedDict\nK\x01\x85R.",
            b"ctorch._utils\n_rebuild_tensor_v2\n(NNNNtR.",
        ] {
            let error = run(program).unwrap_err();
            assert!(matches!(error, ModelError::Damaged { .. }), "{program:?}: {error}");
        }
    }
}
