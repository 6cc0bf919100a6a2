//! The record of what operations read and write: the dtypes of a model as they really were, for
//! tests and for whoever wants to see them.

use burn::tensor::{DType, Tensor};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static USED: Mutex<BTreeSet<Used>> = Mutex::new(BTreeSet::new());

/// An operation and the dtypes that it was called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Used {
    /// Its name in docs/PROTOCOL.md.
    pub operation: &'static str,
    /// Of the activations that it read.
    pub reads: &'static str,
    /// Of its result.
    pub writes: &'static str,
}

/// What was used in this process since the last call, in the order of names.
pub fn take_used() -> Vec<Used> {
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut *used).into_iter().collect()
}

/// Remembers a call and passes on its result.
pub(crate) fn used<const D: usize>(
    operation: &'static str,
    reads: DType,
    result: Tensor<D>,
) -> Tensor<D> {
    let used = Used { operation, reads: name(reads), writes: name(result.dtype()) };
    USED.lock().unwrap_or_else(PoisonError::into_inner).insert(used);
    result
}

fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        _ => "other",
    }
}
