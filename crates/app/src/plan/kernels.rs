//! What the operations of a block hold while they run, by how a backend computes them.
//!
//! Bytes beside an operation's inputs and results. Letters: `r` rows, `k` width in, `m` width out,
//! `b` batch, `n` positions, `w` width, `h` heads; `c` bytes of the compute dtype.

use tbps_model::ops::{composite, cpu};

/// How the operations are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernels {
    /// Ours, of the CPU backend.
    Fused,
    /// Of the backend's basic operations. What fusion saves is not counted: an upper figure.
    Composed,
}

const F32: u64 = 4;

impl Kernels {
    /// `norm(x) @ weight + bias`.
    pub(super) fn norm_linear(self, [r, k, m]: [u64; 3], c: u64) -> u64 {
        match self {
            Self::Fused => rounded_weight(k, m, c),
            Self::Composed => r * k * (2 * F32 + c) + (k + r) * m * c,
        }
    }

    /// Its gradients.
    pub(super) fn norm_linear_backward(self, [r, k, m]: [u64; 3], c: u64) -> u64 {
        match self {
            Self::Fused => F32 * k * m + kept(r, k, m, c),
            Self::Composed => {
                let rows = r.min(composite::KEPT_ROWS as u64);
                rows * k * (5 * F32 + 2 * c) + F32 * rows * m + k * m * (2 * c + F32)
            }
        }
    }

    /// `residual + activation(x) @ weight + bias`.
    pub(super) fn linear_onto(self, [r, k, m]: [u64; 3], c: u64) -> u64 {
        match self {
            Self::Fused => rounded_weight(k, m, c),
            Self::Composed => 2 * r * k * c + k * m * c + r * m * (c + F32),
        }
    }

    /// Its gradients.
    pub(super) fn linear_onto_backward(self, [r, k, m]: [u64; 3], c: u64) -> u64 {
        match self {
            Self::Fused => F32 * k * m + kept(r, k, m, c),
            Self::Composed => {
                let rows = r.min(composite::KEPT_ROWS as u64);
                4 * rows * k * c + rows * m * (c + F32) + k * m * (2 * c + F32)
            }
        }
    }

    /// Attention over packed projections.
    pub(super) fn attention(self, [b, n, w, h]: [u64; 4], c: u64) -> u64 {
        match self {
            Self::Fused => 0, // scores are a thread's
            Self::Composed => {
                let part = scored([b, n, h]);
                4 * part * n * w * c + part * h * n * n * (3 * F32 + c) + b * n * w * c
            }
        }
    }

    /// Its gradient.
    pub(super) fn attention_backward(self, [b, n, w, h]: [u64; 4], c: u64) -> u64 {
        match self {
            Self::Fused => 0,
            Self::Composed => {
                let part = scored([b, n, h]);
                8 * part * n * w * c + part * h * n * n * (4 * F32 + 2 * c) + 3 * b * n * w * c
            }
        }
    }

    /// Scratch memory that threads keep for good: [`Kernels::Fused`] only.
    pub(super) fn scratch(self, [n, w]: [u64; 2], rows: u64, threads: u64) -> u64 {
        match self {
            Self::Fused => {
                let block = cpu::block_rows(rows as usize) as u64;
                let attention = 7 * n * w + 2 * n * n;
                let mlp = 3 * block * 4 * w;
                threads * F32 * attention.max(mlp)
            }
            Self::Composed => 0,
        }
    }
}

/// Samples whose scores are alive at a time.
fn scored([b, n, h]: [u64; 3]) -> u64 {
    b.min((composite::KEPT_SCORES as u64 / (h * n * n)).max(1))
}

/// A weight as f16 has it, in f32.
fn rounded_weight(k: u64, m: u64, c: u64) -> u64 {
    if c == F32 { 0 } else { F32 * k * m }
}

/// Inputs, and gradients that are not f32 already, of some rows; beside a small weight its
/// partial gradients at most instead.
fn kept(r: u64, k: u64, m: u64, c: u64) -> u64 {
    if F32 * k * m <= cpu::SMALL_WEIGHT as u64 {
        return F32 * (cpu::PARTS as u64).min(r.div_ceil(cpu::BLOCK as u64)) * k * m;
    }
    let rows = r.div_ceil(r.div_ceil(cpu::KEPT_ROWS as u64));
    F32 * rows * (k + if c == F32 { 0 } else { m })
}
