//! The non-linearities of an MLP and their slopes, value by value in f32.

use super::math::{exp, vectorised};
use crate::config::Activation;

vectorised! {
    /// The activation of `x` into `y`.
    pub(super) fn forward(activation: Activation, x: &[f32], y: &mut [f32]) {
        match activation {
            Activation::QuickGelu => {
                for (x, y) in x.iter().zip(y) {
                    *y = quick_gelu(*x).0;
                }
            }
            Activation::Gelu => {
                for (x, y) in x.iter().zip(y) {
                    *y = gelu(*x).0;
                }
            }
        }
    }
}

vectorised! {
    /// The activation of `x` into `y` and its derivative at `x` into `slope`.
    pub(super) fn forward_and_slope(
        activation: Activation, x: &[f32], y: &mut [f32], slope: &mut [f32]
    ) {
        match activation {
            Activation::QuickGelu => {
                for (x, (y, slope)) in x.iter().zip(y.iter_mut().zip(slope)) {
                    (*y, *slope) = quick_gelu(*x);
                }
            }
            Activation::Gelu => {
                for (x, (y, slope)) in x.iter().zip(y.iter_mut().zip(slope)) {
                    (*y, *slope) = gelu(*x);
                }
            }
        }
    }
}

/// `x * sigmoid(1.702 x)` and its derivative.
#[inline(always)]
fn quick_gelu(x: f32) -> (f32, f32) {
    let scaled = 1.702 * x;
    let sigmoid = 1.0 / (1.0 + exp(-scaled));
    (x * sigmoid, sigmoid * scaled.mul_add(1.0 - sigmoid, 1.0))
}

/// `x * Phi(x)` and its derivative, `Phi(x) + x * phi(x)`.
///
/// `Phi(x) = erfc(-x / sqrt 2) / 2`, and for `z = |x| / sqrt 2`, `e^(z^2) erfc(z)` is a polynomial
/// in `1 / (1 + z / 2)`, fitted to `scipy`'s `erfcx` on `[0, 9.5]` for the least relative error
/// (4e-8).
#[inline(always)]
fn gelu(x: f32) -> (f32, f32) {
    const FIT: [f32; 9] = [
        0.282_087_68,
        0.282_353_46,
        0.243_261_18,
        0.202_069_15,
        -0.025_176_052,
        0.275_975_76,
        -0.485_381_6,
        0.283_700_94,
        -0.058_890_56,
    ];
    const INV_SQRT_2_PI: f32 = 0.398_942_3;
    let bell = exp(-0.5 * x * x);
    let t = 1.0 / (x.abs() * std::f32::consts::FRAC_1_SQRT_2).mul_add(0.5, 1.0);
    let polynomial = FIT.iter().rev().fold(0.0_f32, |sum, c| sum.mul_add(t, *c)) * t;
    let tail = 0.5 * polynomial * bell;
    let below = if x > 0.0 { 1.0 - tail } else { tail };
    (x * below, (x * INV_SQRT_2_PI).mul_add(bell, below))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x`, then value and derivative of QuickGELU and of GELU, by `scipy` in f64.
    const POINTS: [[f32; 5]; 6] = [
        [-6.0, -2.203_535_5e-4, -3.383_023_8e-4, -5.919_525_9e-9, -3.546_871e-8],
        [-1.5, -0.108_337_8, -0.098_848_06, -0.100_210_8, -0.127_469_2],
        [-0.1, -0.045_755_24, 0.415_309_1, -0.046_017_22, 0.420_476_9],
        [0.0, 0.0, 0.5, 0.0, 0.5],
        [0.7, 0.536_893_95, 0.979_913_1, 0.530_625_44, 0.976_614_1],
        [3.0, 2.981_928_7, 1.024_548_3, 2.995_950_3, 1.011_945_7],
    ];
    /// Relative: a few units in the last place, which a slope near its root multiplies.
    const TOLERANCE: f32 = 2e-6;

    #[test]
    fn values_and_slopes() {
        check(Activation::QuickGelu, 1);
        check(Activation::Gelu, 3);
    }

    fn check(activation: Activation, column: usize) {
        let x = POINTS.map(|row| row[0]);
        let (mut y, mut y_again, mut slope) = ([0.0; 6], [0.0; 6], [0.0; 6]);
        forward(activation, &x, &mut y);
        forward_and_slope(activation, &x, &mut y_again, &mut slope);
        assert_eq!(y, y_again);
        for (i, row) in POINTS.iter().enumerate() {
            for (got, want) in [(y[i], row[column]), (slope[i], row[column + 1])] {
                let error = (got - want).abs();
                assert!(error <= TOLERANCE * want.abs(), "{got}, not {want}, at {}", x[i]);
            }
        }
    }
}
