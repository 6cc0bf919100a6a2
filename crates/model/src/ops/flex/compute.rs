//! The dtypes that the fused kernels compute in, and scratch memory.

use super::narrow::{narrow_bf16, narrow_f16, round_bf16, round_f16, widen_bf16, widen_f16};
use burn::backend::flex::FlexTensor;
use burn::tensor::{DType, Element, TensorData, bf16, f16};
use rayon::prelude::*;
use std::borrow::Cow;
use std::cell::Cell;

/// A dtype of activations: stored in it, multiplied in it with sums in f32.
///
/// A product in 16 bits is computed by the f32 kernel on 16-bit values: they are exact in f32, so that
/// the result is the one of hardware that accumulates in f32.
pub(super) trait Compute: Element + Send + Sync {
    const ZERO: Self;

    /// The elements of a contiguous tensor.
    fn slice(tensor: &FlexTensor) -> Option<&[Self]>;

    /// Lends `src` as f32, through `scratch` of the same length where the dtypes differ.
    fn read<'a>(src: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32];

    /// Lets `fill` write f32 that end up in `dst`, through `scratch` where the dtypes differ.
    fn write(dst: &mut [Self], scratch: &mut [f32], fill: impl FnOnce(&mut [f32]));

    /// The nearest values that this dtype can hold.
    fn round(values: &mut [f32]);

    /// Lends the nearest values to `src`, through `scratch` of the same length where they are others.
    fn nearest<'a>(src: &'a [f32], scratch: &'a mut [f32]) -> &'a [f32] {
        scratch.copy_from_slice(src);
        Self::round(scratch);
        scratch
    }
}

impl Compute for f32 {
    const ZERO: Self = 0.0;

    fn slice(tensor: &FlexTensor) -> Option<&[Self]> {
        tensor.as_slice()
    }

    fn read<'a>(src: &'a [Self], _: &'a mut [f32]) -> &'a [f32] {
        src
    }

    fn write(dst: &mut [Self], _: &mut [f32], fill: impl FnOnce(&mut [f32])) {
        fill(dst);
    }

    fn round(_: &mut [f32]) {}

    fn nearest<'a>(src: &'a [f32], _: &'a mut [f32]) -> &'a [f32] {
        src
    }
}

/// The 16-bit dtypes differ in nothing but their conversions.
macro_rules! compute_in_16_bits {
    ($half:ty, $widen:ident, $narrow:ident, $round:ident) => {
        impl Compute for $half {
            const ZERO: Self = <$half>::ZERO;

            fn slice(tensor: &FlexTensor) -> Option<&[Self]> {
                tensor.as_slice()
            }

            fn read<'a>(src: &'a [Self], scratch: &'a mut [f32]) -> &'a [f32] {
                $widen(src, scratch);
                scratch
            }

            fn write(dst: &mut [Self], scratch: &mut [f32], fill: impl FnOnce(&mut [f32])) {
                fill(scratch);
                $narrow(scratch, dst);
            }

            fn round(values: &mut [f32]) {
                $round(values);
            }
        }
    };
}
compute_in_16_bits!(f16, widen_f16, narrow_f16, round_f16);
compute_in_16_bits!(bf16, widen_bf16, narrow_bf16, round_bf16);

/// An f32 parameter as this dtype holds it.
pub(super) fn rounded<T: Compute>(parameter: &[f32]) -> Cow<'_, [f32]> {
    match T::dtype() {
        DType::F32 => Cow::Borrowed(parameter),
        _ => {
            let mut values = parameter.to_vec();
            values.par_chunks_mut(16 * 1024).for_each(T::round);
            Cow::Owned(values)
        }
    }
}

/// The transpose of the row-major `[rows, columns]` matrix, tile by tile.
pub(super) fn transposed(matrix: &[f32], columns: usize) -> Vec<f32> {
    const TILE: usize = 16;
    let rows = matrix.len() / columns;
    let mut out = vec![0.0; matrix.len()];
    out.par_chunks_mut(TILE * rows).enumerate().for_each(|(tile, out)| {
        let first = tile * TILE;
        for (from, block) in matrix.chunks(TILE * columns).enumerate() {
            for (i, row) in block.chunks(columns).enumerate() {
                for (j, value) in row[first..].iter().take(TILE).enumerate() {
                    out[j * rows + from * TILE + i] = *value;
                }
            }
        }
    });
    out
}

/// A new tensor of these elements.
pub(super) fn tensor<T: Element>(elements: Vec<T>, shape: &[usize]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(elements, shape.to_vec()))
}

/// Lends `N` uninitialised buffers (holding old values) that the thread keeps for its next call.
pub(super) fn with_scratch<const N: usize, R>(
    lengths: [usize; N],
    use_buffers: impl FnOnce([&mut [f32]; N]) -> R,
) -> R {
    thread_local!(static KEPT: Cell<Vec<f32>> = const { Cell::new(Vec::new()) });
    let mut memory = KEPT.take(); // a nested call finds nothing and allocates
    let total = lengths.iter().sum();
    if memory.len() < total {
        memory.resize(total, 0.0);
    }
    let mut rest = memory.as_mut_slice();
    let result = use_buffers(lengths.map(|length| {
        let (buffer, tail) = std::mem::take(&mut rest).split_at_mut(length);
        rest = tail;
        buffer
    }));
    KEPT.set(memory);
    result
}
