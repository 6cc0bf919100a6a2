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

use super::value::{Id, Pickle, Value};
use crate::error::ModelError;
use std::collections::BTreeMap;

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
pub(super) struct Machine<'a> {
    rest: &'a [u8],
    pub(super) values: Vec<Value>,
    pub(super) stack: Vec<Id>,
    /// Heights of the stack at the open marks.
    marks: Vec<usize>,
    memo: BTreeMap<u32, Id>,
}

pub(super) fn damaged(reason: &str) -> ModelError {
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

    pub(super) fn push(&mut self, value: Value) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    pub(super) fn pop(&mut self) -> Result<Id, ModelError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.len() > floor {
            true => Ok(self.stack.pop().expect("it is higher than its floor")),
            false => Err(damaged("takes more than it has")),
        }
    }

    pub(super) fn top(&self) -> Result<Id, ModelError> {
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

    pub(super) fn as_text(&self, id: Id) -> Result<String, ModelError> {
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
