//! Conversions between f32 and the 16-bit dtypes, to the nearest value and to the even one of two.
//!
//! `half` converts eight values a call; these loops have no calls and no branches.

use super::math::vectorised;
use burn::tensor::{bf16, f16};

vectorised! {
    /// `src` in f32, which is exact.
    pub(super) fn widen_f16(src: &[f16], dst: &mut [f32]) {
        for (x, y) in src.iter().zip(dst) {
            *y = from_f16(x.to_bits());
        }
    }
}

vectorised! {
    /// `src` in f16.
    pub(super) fn narrow_f16(src: &[f32], dst: &mut [f16]) {
        for (x, y) in src.iter().zip(dst) {
            *y = f16::from_bits(to_f16(*x));
        }
    }
}

vectorised! {
    /// Values as f16 has them.
    pub(super) fn round_f16(values: &mut [f32]) {
        for x in values {
            *x = as_f16(*x);
        }
    }
}

vectorised! {
    /// `src` in f32, which is exact.
    pub(super) fn widen_bf16(src: &[bf16], dst: &mut [f32]) {
        for (x, y) in src.iter().zip(dst) {
            *y = f32::from_bits(u32::from(x.to_bits()) << 16);
        }
    }
}

vectorised! {
    /// `src` in bf16.
    pub(super) fn narrow_bf16(src: &[f32], dst: &mut [bf16]) {
        for (x, y) in src.iter().zip(dst) {
            *y = bf16::from_bits((as_bf16(*x) >> 16) as u16);
        }
    }
}

vectorised! {
    /// Values as bf16 has them.
    pub(super) fn round_bf16(values: &mut [f32]) {
        for x in values {
            *x = f32::from_bits(as_bf16(*x));
        }
    }
}

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = f32::INFINITY.to_bits();
/// Bits of an f32's mantissa that f16 lacks.
const LOST: u32 = 13;
/// What the exponents' biases differ by, in an f32's place.
const REBIAS: u32 = (127 - 15) << 23;
/// The smallest normal f16.
const SMALLEST_NORMAL: u32 = (127 - 14) << 23;
/// Half of f32's spacing above the largest f16 becomes infinite: 65520.
const OVERFLOW: u32 = 0x477f_f000;

#[inline(always)]
fn from_f16(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let magnitude = (bits & 0x7fff) << LOST;
    let exponent = magnitude & (0x7c00 << LOST);
    // A subnormal's bits count steps of 2^-24: as the mantissa of 2^-14, less 2^-14.
    let step = f32::from_bits(SMALLEST_NORMAL);
    let subnormal = f32::from_bits(magnitude + SMALLEST_NORMAL) - step;
    let normal = magnitude + REBIAS;
    let endless = magnitude + 2 * REBIAS; // infinities and NaN
    let value = if exponent == 0 { subnormal.to_bits() } else { normal };
    let value = if exponent == 0x7c00 << LOST { endless } else { value };
    f32::from_bits(value | (bits & 0x8000) << 16)
}

/// The nearest f16's magnitude and the sign, both in f32.
#[inline(always)]
fn nearest_f16(x: f32) -> (u32, u32) {
    let sign = x.to_bits() & SIGN;
    let magnitude = x.to_bits() & !SIGN;
    let odd = (magnitude >> LOST) & 1;
    let normal = (magnitude + 0xfff + odd) & !0x1fff;
    // f16 counts what is smaller in steps of 2^-24, as f32 does between 0.5 and 1.
    let subnormal = (f32::from_bits(magnitude) + 0.5) - 0.5;
    let value = if magnitude < SMALLEST_NORMAL { subnormal.to_bits() } else { normal };
    let value = if magnitude >= OVERFLOW { INFINITY } else { value };
    let value = if magnitude > INFINITY { magnitude | 1 << 22 } else { value }; // a quiet NaN
    (value, sign)
}

#[inline(always)]
fn as_f16(x: f32) -> f32 {
    let (value, sign) = nearest_f16(x);
    f32::from_bits(value | sign)
}

#[inline(always)]
fn to_f16(x: f32) -> u16 {
    let (value, sign) = nearest_f16(x);
    let subnormal = (f32::from_bits(value) + 0.5).to_bits() - 0.5_f32.to_bits();
    let normal = value.wrapping_sub(REBIAS) >> LOST;
    let endless = 0x7c00 | ((value & !INFINITY) >> LOST);
    let bits = if value < SMALLEST_NORMAL { subnormal } else { normal };
    let bits = if value >= INFINITY { endless } else { bits };
    (bits | sign >> 16) as u16
}

#[inline(always)]
fn as_bf16(x: f32) -> u32 {
    let bits = x.to_bits();
    let odd = (bits >> 16) & 1;
    let nearest = bits.wrapping_add(0x7fff + odd) & 0xffff_0000;
    if bits & !SIGN > INFINITY { (bits | 1 << 22) & 0xffff_0000 } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 16-bit value, its neighbours in f32, and the middles between two with theirs.
    fn values() -> Vec<f32> {
        let near = |bits: u32| [bits.wrapping_sub(1), bits, bits.wrapping_add(1)];
        let halves = (0..=u16::MAX).flat_map(|bits| {
            let coarse = near(u32::from(bits) << 16);
            let middle = near(u32::from(bits) << 16 | 0x8000);
            let f16 = f16::from_bits(bits).to_f32().to_bits();
            let above = f16.wrapping_add(1 << (LOST - 1));
            // Below f16's normal values the middle is at another bit.
            let small = (f32::from(bits) + 0.5) * (-24_f32).exp2();
            [coarse, middle, near(f16), near(above), near(small.to_bits())].concat()
        });
        halves.map(f32::from_bits).collect()
    }

    #[test]
    fn narrowing_is_halfs() {
        let values = values();
        let mut f16s = vec![f16::ZERO; values.len()];
        narrow_f16(&values, &mut f16s);
        let mut bf16s = vec![bf16::ZERO; values.len()];
        narrow_bf16(&values, &mut bf16s);
        for (x, (f, b)) in values.iter().zip(f16s.iter().zip(&bf16s)) {
            let (want_f, want_b) = (f16::from_f32_const(*x), bf16::from_f32_const(*x));
            match x.is_nan() {
                true => assert!(f.is_nan() && b.is_nan(), "{x}"),
                false => assert_eq!(
                    (f.to_bits(), b.to_bits()),
                    (want_f.to_bits(), want_b.to_bits()),
                    "{x:e}"
                ),
            }
        }
    }

    #[test]
    fn widening_is_exact_and_rounding_is_both() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        let f16s: Vec<f16> = bits.iter().map(|bits| f16::from_bits(*bits)).collect();
        let bf16s: Vec<bf16> = bits.iter().map(|bits| bf16::from_bits(*bits)).collect();
        let mut wide = vec![0.0; bits.len()];
        let same = |got: f32, want: f32| {
            got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan())
        };
        widen_f16(&f16s, &mut wide);
        assert!(wide.iter().zip(&f16s).all(|(got, x)| same(*got, x.to_f32_const())));
        widen_bf16(&bf16s, &mut wide);
        assert!(wide.iter().zip(&bf16s).all(|(got, x)| same(*got, x.to_f32_const())));

        let values = values();
        let mut rounded = values.clone();
        round_f16(&mut rounded);
        let want = values.iter().map(|x| f16::from_f32_const(*x).to_f32_const());
        assert!(rounded.iter().zip(want).all(|(got, want)| same(*got, want)));
        rounded.copy_from_slice(&values);
        round_bf16(&mut rounded);
        let want = values.iter().map(|x| bf16::from_f32_const(*x).to_f32_const());
        assert!(rounded.iter().zip(want).all(|(got, want)| same(*got, want)));
    }
}
