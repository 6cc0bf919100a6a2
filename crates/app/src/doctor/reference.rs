//! The operations in f64 on the host, straight from their definitions.

/// Numbers in -1..1 that repeat in no pattern of a matrix's sides.
pub(super) fn values(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    (0..len)
        .map(|_| {
            // xorshift32
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0) as f32
        })
        .collect()
}

/// `[n, k] x [k, m] -> [n, m]`
pub(super) fn matmul(a: &[f32], b: &[f32], k: usize, m: usize) -> Vec<f64> {
    a.chunks_exact(k)
        .flat_map(|row| {
            (0..m).map(move |column| {
                let terms = row.iter().enumerate();
                terms.map(|(i, &x)| f64::from(x) * f64::from(b[i * m + column])).sum()
            })
        })
        .collect()
}

/// Over the last dimension of `[.., w]`.
pub(super) fn softmax(x: &[f64], w: usize) -> Vec<f64> {
    x.chunks_exact(w)
        .flat_map(|row| {
            let most = row.iter().fold(f64::NEG_INFINITY, |most, &x| most.max(x));
            let powers: Vec<f64> = row.iter().map(|x| (x - most).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.into_iter().map(move |power| power / sum)
        })
        .collect()
}

/// Over the last dimension of `[.., w]`, with the epsilon of CLIP.
pub(super) fn layer_norm(x: &[f32], gamma: &[f32], beta: &[f32]) -> Vec<f64> {
    let w = gamma.len() as f64;
    x.chunks_exact(gamma.len())
        .flat_map(|row| {
            let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / w;
            let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / w;
            let scale = 1.0 / (variance + 1e-5).sqrt();
            row.iter().zip(gamma.iter().zip(beta)).map(move |(&x, (&gamma, &beta))| {
                (f64::from(x) - mean) * scale * f64::from(gamma) + f64::from(beta)
            })
        })
        .collect()
}

/// Multi-head attention of `qkv [b, n, 3w]`, to `[b, n, w]`.
pub(super) fn attention(qkv: &[f32], n: usize, w: usize, heads: usize, causal: bool) -> Vec<f64> {
    let size = w / heads;
    let mut out = vec![0.0; qkv.len() / 3];
    for (sample, qkv) in qkv.chunks_exact(n * 3 * w).enumerate() {
        for head in 0..heads {
            // Part 0 is the query, 1 the key, 2 the value.
            let at = |part: usize, position: usize, i: usize| {
                f64::from(qkv[position * 3 * w + part * w + head * size + i])
            };
            for position in 0..n {
                let seen = if causal { position + 1 } else { n };
                let scores: Vec<f64> = (0..seen)
                    .map(|other| {
                        let dot: f64 =
                            (0..size).map(|i| at(0, position, i) * at(1, other, i)).sum();
                        dot / (size as f64).sqrt()
                    })
                    .collect();
                let weights = softmax(&scores, seen);
                for i in 0..size {
                    out[(sample * n + position) * w + head * size + i] =
                        (0..seen).map(|other| weights[other] * at(2, other, i)).sum();
                }
            }
        }
    }
    out
}

/// `x * sigmoid(1.702 x)`
pub(super) fn quick_gelu(x: f64) -> f64 {
    x / (1.0 + (-1.702 * x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases_by_hand() {
        assert_eq!(matmul(&[1.0, 2.0], &[3.0, 4.0, 5.0, 6.0], 2, 2), [13.0, 16.0]);
        assert_eq!(softmax(&[0.0, 0.0, 5.0], 1), [1.0, 1.0, 1.0]);
        assert_eq!(softmax(&[1.0, 1.0], 2), [0.5, 0.5]);
        let norm = layer_norm(&[-1.0, 1.0], &[2.0, 2.0], &[1.0, 1.0]);
        assert!((norm[0] + 1.0).abs() < 1e-4 && (norm[1] - 3.0).abs() < 1e-4);
        // One position sees itself alone: its value.
        assert_eq!(attention(&[9.0, 9.0, 4.0], 1, 1, 1, false), [4.0]);
        // Equal keys: the mean of the values seen so far.
        let qkv = [0.0, 1.0, 2.0, 0.0, 1.0, 4.0];
        assert_eq!(attention(&qkv, 2, 1, 1, true), [2.0, 3.0]);
    }
}
