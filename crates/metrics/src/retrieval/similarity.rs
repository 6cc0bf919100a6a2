//! L2-normalised features and their similarities, in f32.

use std::ops::Range;

use ndarray::{Array2, s};
use rayon::prelude::*;

use crate::error::{MetricsError, Side};

/// Smallest norm that is divided by, as in PyTorch's `normalize`: an all-zero row stays zero.
const MIN_NORM: f64 = 1e-12;

/// Checked rows of unit length, `[rows, D]`.
pub(super) struct Features {
    rows: Array2<f32>,
}

impl Features {
    /// Takes `values` as `[rows, dim]` and divides each row by its L2 norm.
    pub(super) fn normalised(
        side: Side,
        values: &[f32],
        rows: usize,
        dim: usize,
    ) -> Result<Self, MetricsError> {
        check_shape(side, values.len(), rows, dim)?;
        check_finite(side, values, dim)?;
        let mut unit = values.to_vec();
        normalise_rows(&mut unit, dim);
        let rows = Array2::from_shape_vec((rows, dim), unit);
        Ok(Self { rows: rows.expect("check_shape found rows x dim values") })
    }

    /// Dot products of the rows in `range` with all rows of `gallery`: `[range, G]`, row-major.
    ///
    /// Each product sums over D in an order that depends on neither its place in the matrix nor
    /// the number of rows, so equal features tie exactly and chunks do not change any value.
    pub(super) fn similarity(&self, range: Range<usize>, gallery: &Features) -> Vec<f32> {
        let rows = self.rows.slice(s![range, ..]); // [range, D]
        let mut similarity = Array2::zeros((rows.nrows(), gallery.rows.nrows()));
        ndarray::linalg::general_mat_mul(1.0, &rows, &gallery.rows.t(), 0.0, &mut similarity);
        similarity.into_raw_vec_and_offset().0
    }
}

/// Refuses a number of values that is not `rows` times `dim`, and a side without any.
pub(super) fn check_shape(
    side: Side,
    values: usize,
    rows: usize,
    dim: usize,
) -> Result<(), MetricsError> {
    if dim == 0 {
        return Err(MetricsError::ZeroWidth);
    }
    if rows.checked_mul(dim) != Some(values) {
        return Err(MetricsError::FeatureLength { side, values, rows, dim });
    }
    if rows == 0 {
        return Err(MetricsError::Empty { side });
    }
    Ok(())
}

/// Refuses a value that is NaN or infinite.
pub(super) fn check_finite(side: Side, values: &[f32], dim: usize) -> Result<(), MetricsError> {
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(at) => Err(MetricsError::NotFiniteFeature {
            side,
            row: at / dim,
            column: at % dim,
            value: values[at],
        }),
    }
}

/// Divides each row of `values [rows, dim]` by its L2 norm; an all-zero row stays zero.
///
/// # Panics
///
/// When `dim` is 0.
pub fn normalise_rows(values: &mut [f32], dim: usize) {
    values.par_chunks_exact_mut(dim).for_each(normalise);
}

/// Divides a row by its norm, which is taken in f64 so that large finite features do not overflow.
fn normalise(row: &mut [f32]) {
    let norm = row.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt().max(MIN_NORM);
    for x in row {
        *x = (f64::from(*x) / norm) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_unit_length_and_zero_stays_zero() {
        let features =
            Features::normalised(Side::Query, &[3.0, 4.0, 0.0, 0.0, 3e38, 3e38], 3, 2).unwrap();
        let half = std::f32::consts::FRAC_1_SQRT_2;
        assert_eq!(features.rows, ndarray::arr2(&[[0.6, 0.8], [0.0, 0.0], [half, half]]));
    }

    #[test]
    fn similarity_is_the_dot_product_of_unit_rows() {
        let queries = Features::normalised(Side::Query, &[1.0, 0.0, 0.0, 2.0], 2, 2).unwrap();
        let gallery = Features::normalised(Side::Gallery, &[3.0, 4.0, -5.0, 0.0], 2, 2).unwrap();
        assert_eq!(queries.similarity(0..2, &gallery), [0.6, -1.0, 0.8, 0.0]);
        assert_eq!(queries.similarity(1..2, &gallery), [0.8, 0.0]);
    }
}
