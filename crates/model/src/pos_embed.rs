//! Position embeddings of one patch grid resized to another, on the host.
//!
//! Pretrained towers know the grid of a square image (14x14 at 224 px); a person's image is tall
//! (24x8 at 384x128). Which interpolation is used changes the model, so it has a name.

use serde::{Deserialize, Serialize};

/// How the grid is interpolated, each in PyTorch's definition with `align_corners=False`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosEmbedResize {
    /// Cubic convolution (a = -0.5), its kernel widened when the grid shrinks: `open_clip`'s.
    BicubicAntialias,
    /// The nearest two of each axis, at any scale: IRRA's.
    Bilinear,
}

/// Resizes the grid of `pos_embed`, `[1 + h * w, width]` row-major with the class token's row first
/// and `from = [h, w]`, to `to`. The class token's row stays. Computed in f64.
///
/// # Panics
/// When `pos_embed` hasn't the length of that shape, or a side is zero.
pub fn resize(
    pos_embed: &[f32],
    width: usize,
    from: [usize; 2],
    to: [usize; 2],
    method: PosEmbedResize,
) -> Vec<f32> {
    let [rows, columns] = from;
    assert_eq!(pos_embed.len(), (1 + rows * columns) * width, "a {rows}x{columns} grid of {width}");
    assert!(!from.contains(&0) && !to.contains(&0), "{from:?} to {to:?}");
    let (class, grid) = pos_embed.split_at(width);
    let grid: Vec<f64> = grid.iter().map(|&value| f64::from(value)).collect();
    let grid = resize_axis(&grid, columns, width, &taps(columns, to[1], method));
    let grid = resize_axis(&grid, rows, to[1] * width, &taps(rows, to[0], method));
    class.iter().copied().chain(grid.into_iter().map(|value| value as f32)).collect()
}

/// One output position as a weighted sum of the input positions from `first` on.
struct Taps {
    first: usize,
    weights: Vec<f64>,
}

/// Resizes the middle axis of `[outer, length, inner]`.
fn resize_axis(x: &[f64], length: usize, inner: usize, taps: &[Taps]) -> Vec<f64> {
    let mut out = Vec::with_capacity(x.len() / length * taps.len());
    for outer in x.chunks_exact(length * inner) {
        for Taps { first, weights } in taps {
            let rows = outer[first * inner..].chunks_exact(inner);
            let mut sum = vec![0.0; inner];
            for (row, weight) in rows.zip(weights) {
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
            }
            out.append(&mut sum);
        }
    }
    out
}

fn taps(from: usize, to: usize, method: PosEmbedResize) -> Vec<Taps> {
    let scale = from as f64 / to as f64;
    let tap = |i| match method {
        PosEmbedResize::BicubicAntialias => bicubic_antialias(i, from, scale),
        PosEmbedResize::Bilinear => bilinear(i, from, scale),
    };
    (0..to).map(tap).collect()
}

fn bilinear(i: usize, from: usize, scale: f64) -> Taps {
    let at = (scale * (i as f64 + 0.5) - 0.5).max(0.0);
    let first = (at as usize).min(from - 1);
    let fraction = at - first as f64;
    match first + 1 < from {
        true => Taps { first, weights: vec![1.0 - fraction, fraction] },
        false => Taps { first, weights: vec![1.0] },
    }
}

fn bicubic_antialias(i: usize, from: usize, scale: f64) -> Taps {
    let stretch = scale.max(1.0);
    let (centre, reach) = (scale * (i as f64 + 0.5), 2.0 * stretch);
    // Truncation towards zero is PyTorch's; the first of them is clamped at zero anyway.
    let first = (centre - reach + 0.5).max(0.0) as usize;
    let end = ((centre + reach + 0.5) as usize).min(from);
    let weight = |j: usize| cubic((j as f64 + 0.5 - centre) / stretch);
    let weights: Vec<f64> = (first..end).map(weight).collect();
    let total: f64 = weights.iter().sum();
    Taps { first, weights: weights.into_iter().map(|weight| weight / total).collect() }
}

/// Keys's cubic convolution kernel with a = -0.5, zero from 2 on.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    let x = x.abs();
    match x {
        _ if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
        _ if x < 2.0 => (((x - 5.0) * x + 8.0) * x - 4.0) * A,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::PosEmbedResize::{BicubicAntialias, Bilinear};
    use super::*;
    use safetensors::SafeTensors;

    /// Values of `i^2`, 14 long, resized along one axis, by torch 2.15.
    #[test]
    fn one_axis_golden() {
        const TOLERANCE: f32 = 5e-5; // the last digit of the golden values
        let column: Vec<f32> = [-7.0].into_iter().chain((0..14).map(|i| (i * i) as f32)).collect();
        let cases: [(_, usize, &[f32]); 4] = [
            (Bilinear, 8, &[0.375, 4.625, 15.125, 31.875, 54.625, 83.375, 118.375, 159.625]),
            (
                BicubicAntialias,
                8,
                &[0.2257, 4.4222, 15.1003, 31.8388, 54.1488, 83.0404, 119.3035, 158.8292],
            ),
            (Bilinear, 24, &[0.0, 0.375, 0.9583, 2.625, 4.625, 7.5417, 11.0417, 15.125]),
            (
                BicubicAntialias,
                24,
                &[-0.0777, 0.1993, 0.9185, 2.3767, 4.5156, 7.3351, 10.8351, 15.0156],
            ),
        ];
        for (method, to, expected) in cases {
            for (from, to) in [([14, 1], [to, 1]), ([1, 14], [1, to])] {
                let resized = resize(&column, 1, from, to, method);
                assert_eq!(resized.len(), 1 + to[0] * to[1]);
                assert_eq!(resized[0], -7.0);
                for (value, expected) in resized[1..].iter().zip(expected) {
                    assert!((value - expected).abs() <= TOLERANCE, "{method:?} {to:?} {resized:?}");
                }
            }
        }
    }

    #[test]
    fn grids_are_pytorchs() {
        const TOLERANCE: f32 = 1e-6;
        let fixture = include_bytes!("../tests/fixtures/pos_embed/pos_embed.safetensors");
        let fixture = SafeTensors::deserialize(fixture).unwrap();
        let tensor = |name: &str| -> Vec<f32> {
            let bytes = fixture.tensor(name).unwrap().data().as_chunks::<4>().0;
            bytes.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        };
        for (from, to) in
            [([14, 14], [24, 8]), ([14, 14], [17, 23]), ([14, 14], [5, 3]), ([6, 11], [13, 4])]
        {
            let source = tensor(&format!("{}x{}", from[0], from[1]));
            for (method, name) in [(BicubicAntialias, "bicubic_antialias"), (Bilinear, "bilinear")]
            {
                let name = format!("{}x{}_{}x{}.{name}", from[0], from[1], to[0], to[1]);
                let (resized, expected) = (resize(&source, 3, from, to, method), tensor(&name));
                assert_eq!(resized.len(), expected.len(), "{name}");
                let error = |(a, b): (&f32, &f32)| (a - b).abs();
                let worst = resized.iter().zip(&expected).map(error).fold(0.0, f32::max);
                assert!(worst <= TOLERANCE, "{name}: off by {worst}");
            }
        }
    }

    #[test]
    fn the_same_grid_stays() {
        let source: Vec<f32> = (0..26).map(|i| (i as f32).sin()).collect();
        for method in [Bilinear, BicubicAntialias] {
            assert_eq!(resize(&source, 2, [3, 4], [3, 4], method), source, "{method:?}");
        }
    }

    #[test]
    fn names_are_kebab_case() {
        use serde::de::value::{Error, StrDeserializer};
        let named =
            |name| PosEmbedResize::deserialize(StrDeserializer::<Error>::new(name)).unwrap();
        assert_eq!(named("bicubic-antialias"), BicubicAntialias);
        assert_eq!(named("bilinear"), Bilinear);
    }
}
