//! A tensor as a file has it: any shape, several number formats.

use crate::error::ModelError;
use half::{bf16, f16};

/// A tensor of a weights file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileTensor {
    /// Its dimensions as the file has them.
    pub(super) shape: Vec<usize>,
    pub(super) numbers: Numbers,
}

impl FileTensor {
    /// The file's number format, in torch's words: `float32`, `float16`, `int64`.
    pub(super) fn dtype(&self) -> &'static str {
        self.numbers.dtype
    }
}

/// Numbers in row order. Integers are kept by their count only: no parameter is one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Numbers {
    dtype: &'static str,
    len: usize,
    /// As f32; `None` of integers.
    pub(super) floats: Option<Vec<f32>>,
}

/// A number format: torch's name, its storage class, safetensors' name, bytes each.
const FORMATS: [(&str, &str, &str, usize); 10] = [
    ("float32", "FloatStorage", "F32", 4),
    ("float16", "HalfStorage", "F16", 2),
    ("bfloat16", "BFloat16Storage", "BF16", 2),
    ("float64", "DoubleStorage", "F64", 8),
    ("int64", "LongStorage", "I64", 8),
    ("int32", "IntStorage", "I32", 4),
    ("int16", "ShortStorage", "I16", 2),
    ("int8", "CharStorage", "I8", 1),
    ("uint8", "ByteStorage", "U8", 1),
    ("bool", "BoolStorage", "BOOL", 1),
];

impl Numbers {
    /// The content of a storage of torch's.
    pub(super) fn of_storage(class: &str, bytes: Vec<u8>) -> Result<Self, ModelError> {
        let format = FORMATS.iter().find(|(_, storage, _, _)| *storage == class);
        Self::decode(format, class, &bytes)
    }

    /// The bytes of a tensor of a safetensors file.
    pub(super) fn of_safetensors(dtype: &str, bytes: &[u8]) -> Result<Self, ModelError> {
        let format = FORMATS.iter().find(|(_, _, name, _)| *name == dtype);
        Self::decode(format, dtype, bytes)
    }

    fn decode(
        format: Option<&(&'static str, &str, &str, usize)>,
        name: &str,
        bytes: &[u8],
    ) -> Result<Self, ModelError> {
        let &(dtype, _, _, size) =
            format.ok_or_else(|| ModelError::Damaged { what: format!("it has {name} numbers") })?;
        let floats = match dtype {
            "float32" => Some(each(bytes, f32::from_le_bytes)),
            "float16" => Some(each(bytes, |b| f16::from_le_bytes(b).to_f32())),
            "bfloat16" => Some(each(bytes, |b| bf16::from_le_bytes(b).to_f32())),
            "float64" => Some(each(bytes, |b| f64::from_le_bytes(b) as f32)),
            _ => None,
        };
        Ok(Self { dtype, len: bytes.len() / size, floats })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The numbers at these positions.
    pub(super) fn select(&self, positions: Vec<usize>) -> Self {
        let len = positions.len();
        let pick = |floats: &Vec<f32>| positions.iter().map(|&at| floats[at]).collect();
        Self { dtype: self.dtype, len, floats: self.floats.as_ref().map(pick) }
    }
}

fn each<const N: usize>(bytes: &[u8], decode: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| decode(*bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_becomes_f32() {
        let half = [f16::from_f32(1.5), f16::from_f32(-65504.0)].map(f16::to_le_bytes).concat();
        let numbers = Numbers::of_storage("HalfStorage", half).unwrap();
        assert_eq!((numbers.dtype, numbers.len()), ("float16", 2));
        assert_eq!(numbers.floats, Some(vec![1.5, -65504.0]));
        let wide = [0.1f64, -2.0].map(f64::to_le_bytes).concat();
        let numbers = Numbers::of_safetensors("F64", &wide).unwrap();
        assert_eq!(numbers.select(vec![1, 0, 1]).floats, Some(vec![-2.0, 0.1, -2.0]));
        let brain = bf16::from_f32(3.0).to_le_bytes();
        assert_eq!(Numbers::of_safetensors("BF16", &brain).unwrap().floats, Some(vec![3.0]));
        let numbers = Numbers::of_storage("LongStorage", vec![0; 16]).unwrap();
        assert_eq!((numbers.len(), numbers.floats), (2, None));
        assert_eq!(
            Numbers::of_storage("QInt8Storage", vec![]).unwrap_err().to_string(),
            "the file is damaged or no weights file: it has QInt8Storage numbers"
        );
    }
}
