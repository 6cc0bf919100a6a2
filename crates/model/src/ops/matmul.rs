//! The record of the dtypes that matrix products ran in.

use burn::tensor::DType;
use std::sync::atomic::{AtomicU8, Ordering};

static SEEN: AtomicU8 = AtomicU8::new(0);
const F32: u8 = 1;
const F16: u8 = 2;
const BF16: u8 = 4;
const OTHER: u8 = 8;

/// Which dtypes entered matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatmulDtypes(u8);

impl MatmulDtypes {
    /// The names of the dtypes, such as `["f16"]`.
    pub fn names(self) -> Vec<&'static str> {
        [(F32, "f32"), (F16, "f16"), (BF16, "bf16"), (OTHER, "other")]
            .into_iter()
            .filter(|(bit, _)| self.0 & bit != 0)
            .map(|(_, name)| name)
            .collect()
    }
}

/// The dtypes that entered the blocks' matrix products of this process since the last call: what a
/// run record states as really computed in.
pub fn take_matmul_dtypes() -> MatmulDtypes {
    MatmulDtypes(SEEN.swap(0, Ordering::Relaxed))
}

/// Remembers that a matrix product ran in this dtype.
pub(super) fn record(dtype: DType) {
    let bit = match dtype {
        DType::F32 => F32,
        DType::F16 => F16,
        DType::BF16 => BF16,
        _ => OTHER,
    };
    SEEN.fetch_or(bit, Ordering::Relaxed);
}
