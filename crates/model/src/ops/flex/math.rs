//! Loops over rows of f32 that the compiler vectorises, for the widest registers of the machine.
//!
//! Sums run over a fixed number of lanes, so that their value depends neither on the machine's
//! vector width nor on the number of threads.

/// Partial sums of a reduction: one 512-bit register of f32.
const LANES: usize = 16;

/// Defines a function that is compiled for each vector extension and picks one at run time.
///
/// What it calls must be `#[inline(always)]` functions or small closures: anything else stays
/// compiled for the oldest machine, an order of magnitude slower.
macro_rules! vectorised {
    ($(#[$attribute:meta])* $vis:vis fn $name:ident($($argument:ident: $T:ty),*) $body:block) => {
        $(#[$attribute])*
        $vis fn $name($($argument: $T),*) {
            struct Loops<A>(A);
            impl pulp::NullaryFnOnce for Loops<($($T,)*)> {
                type Output = ();
                #[inline(always)]
                fn call(self) {
                    let ($($argument,)*) = self.0;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Loops(($($argument,)*)))
        }
    };
}
pub(super) use vectorised;

/// `sum(term(a[i], b[i]))`.
#[inline(always)]
pub(super) fn sum(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    reduce(a, b, 0.0, |lane, a, b| lane + term(a, b), |x, y| x + y)
}

/// The largest value; NaN only if all are.
#[inline(always)]
pub(super) fn max(a: &[f32]) -> f32 {
    let larger = |x: f32, y: f32| if y > x { y } else { x };
    reduce(a, a, f32::NEG_INFINITY, |lane, a, _| larger(lane, a), larger)
}

vectorised! {
    /// Adds each row to `sums`.
    pub(super) fn add_rows(sums: &mut [f32], rows: &[f32]) {
        for row in rows.chunks_exact(sums.len()) {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += x;
            }
        }
    }
}

vectorised! {
    /// Adds `row` to each of `rows`.
    pub(super) fn add_to_rows(rows: &mut [f32], row: &[f32]) {
        for sums in rows.chunks_exact_mut(row.len()) {
            for (sum, x) in sums.iter_mut().zip(row) {
                *sum += x;
            }
        }
    }
}

vectorised! {
    /// Multiplies each value by its factor.
    pub(super) fn multiply(values: &mut [f32], factors: &[f32]) {
        for (value, factor) in values.iter_mut().zip(factors) {
            *value *= factor;
        }
    }
}

#[inline(always)]
fn reduce(
    a: &[f32],
    b: &[f32],
    start: f32,
    step: impl Fn(f32, f32, f32) -> f32,
    merge: impl Fn(f32, f32) -> f32,
) -> f32 {
    let mut lanes = [start; LANES];
    let (a_whole, a_rest) = a.as_chunks::<LANES>();
    let (b_whole, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_whole.iter().zip(b_whole) {
        for i in 0..LANES {
            lanes[i] = step(lanes[i], a[i], b[i]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane = step(*lane, *a, *b);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = merge(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// `e^x` to 1 unit in the last place; the smallest and largest finite results are kept outside
/// `[-87, 88]`, and NaN stays NaN.
///
/// `x = n ln 2 + r` with `n` whole and `|r| <= ln 2 / 2`; `e^r` is a polynomial fitted for the
/// least relative error, and `2^n` goes straight into the exponent's bits.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const WHOLE: f32 = 12_582_912.0; // 1.5 * 2^23: a sum with it has its whole part in the low bits
    const LN_2_HIGH: f32 = 0.693_359_4; // 9 bits, so that n * LN_2_HIGH is exact
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, WHOLE);
    let n = shifted - WHOLE;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let p = 0.001_395_060_2_f32.mul_add(r, 0.008_368_954);
    let p = p.mul_add(r, 0.041_666_204);
    let p = p.mul_add(r, 0.166_665_18);
    let p = p.mul_add(r, 0.5);
    let p = p.mul_add(r * r, r) + 1.0;
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    p * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        for i in -8700..=8800 {
            let x = i as f32 * 0.01;
            let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got / want - 1.0).abs() < 1.2e-7, "exp({x}) = {got}, not {want}");
        }
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn reductions_take_every_element_once() {
        let a: Vec<f32> = (1..=37).map(|i| i as f32).collect();
        assert_eq!(sum(&a, &a, |x, y| x + y), 37.0 * 38.0);
        assert_eq!(max(&a), 37.0);
        assert_eq!(max(&[-2.0, -1.0, -3.0]), -1.0);
    }
}
