//! The operations of a block and their gradients from a backend's basic operations.
//!
//! Letters: `r` rows, `k` width in, `m` width out, `b` batch, `n` positions, `w` width, `h` heads,
//! `d` width of a head.

#![expect(clippy::type_complexity, reason = "as in the trait whose bodies these are")]

use super::EPSILON;
use super::matmul::record;
use crate::config::Activation;
use burn::backend::tensor::{FloatTensor, IndexingUpdateOp, IntTensor};
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{DType, FloatDType, Shape, Slice};

pub(super) fn norm<B: Backend>(
    x: FloatTensor<B>,
    gamma: FloatTensor<B>,
    beta: FloatTensor<B>,
) -> FloatTensor<B> {
    affine::<B>(normalize::<B>(x).0, gamma, beta)
}

pub(super) fn norm_backward<B: Backend>(
    x: FloatTensor<B>,
    gamma: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    normalized_backward::<B>(normalize::<B>(x), gamma, grad)
}

/// [`norm_backward`] from what [`normalize`] made of `x`.
fn normalized_backward<B: Backend>(
    (normalized, scale): (FloatTensor<B>, FloatTensor<B>),
    gamma: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let d_gamma = sum_rows::<B>(B::float_mul(grad.clone(), normalized.clone()));
    let d_beta = sum_rows::<B>(grad.clone());
    let grad = B::float_mul(grad, row::<B>(gamma));
    let level = B::float_mean_dim(grad.clone(), 1); // [r, 1]
    let slope = B::float_mean_dim(B::float_mul(grad.clone(), normalized.clone()), 1);
    let straight = B::float_sub(B::float_sub(grad, level), B::float_mul(normalized, slope));
    (B::float_mul(straight, scale), d_gamma, d_beta)
}

pub(super) fn take_rows_backward<B: Backend>(
    rows: usize,
    index: IntTensor<B>,
    grad: FloatTensor<B>,
) -> FloatTensor<B> {
    let shape = Shape::from([rows, grad.shape()[1]]);
    let zeros = B::float_zeros(shape, &grad.device(), compute_dtype::<B>(&grad));
    B::float_select_assign(zeros, 0, index, grad, IndexingUpdateOp::Add)
}

pub(super) fn cross_entropy<B: Backend>(
    logits: FloatTensor<B>,
    labels: IntTensor<B>,
) -> FloatTensor<B> {
    let r = logits.shape()[0];
    let shifted = B::float_sub(logits.clone(), B::float_max_dim(logits, 1));
    let right = B::float_gather(1, shifted.clone(), column::<B>(labels)); // [r, 1]
    let log_sum = B::float_log(B::float_sum_dim(B::float_exp(shifted), 1)); // [r, 1]
    let sum = B::float_sum(B::float_sub(log_sum, right));
    B::float_mul_scalar(sum, (1.0 / r as f64).into())
}

pub(super) fn cross_entropy_backward<B: Backend>(
    logits: FloatTensor<B>,
    labels: IntTensor<B>,
    grad: FloatTensor<B>,
) -> FloatTensor<B> {
    let r = logits.shape()[0];
    let shifted = B::float_sub(logits.clone(), B::float_max_dim(logits, 1));
    let exp = B::float_exp(shifted);
    let p = B::float_div(exp.clone(), B::float_sum_dim(exp, 1));
    let ones = B::float_ones(Shape::from([r, 1]), &p.device(), FloatDType::F32);
    let p = B::float_scatter(1, p, column::<B>(labels), B::float_neg(ones), IndexingUpdateOp::Add);
    let grad =
        B::float_reshape(B::float_mul_scalar(grad, (1.0 / r as f64).into()), Shape::from([1, 1]));
    B::float_mul(p, grad)
}

pub(super) fn embed<B: Backend>(x: FloatTensor<B>, weight: FloatTensor<B>) -> FloatTensor<B> {
    let weight = B::float_cast(weight, compute_dtype::<B>(&x));
    B::float_cast(product::<B>(x, weight), FloatDType::F32)
}

pub(super) fn embed_backward<B: Backend>(
    x: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> FloatTensor<B> {
    let grad = B::float_cast(grad, compute_dtype::<B>(&x));
    B::float_cast(product::<B>(turned::<B>(x), grad), FloatDType::F32)
}

pub(super) fn norm_linear<B: Backend>(
    x: FloatTensor<B>,
    gamma: FloatTensor<B>,
    beta: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    compute: FloatDType,
) -> FloatTensor<B> {
    let a = B::float_cast(norm::<B>(x, gamma, beta), compute);
    let y = product::<B>(a, B::float_cast(weight, compute));
    B::float_add(y, row::<B>(B::float_cast(bias, compute)))
}

pub(super) fn norm_linear_backward<B: Backend>(
    x: FloatTensor<B>,
    gamma: FloatTensor<B>,
    beta: FloatTensor<B>,
    weight: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let compute = compute_dtype::<B>(&grad);
    let weight = B::float_cast(weight, compute);
    let parts = parts(x.shape()[0], KEPT_ROWS).map(|rows| {
        let (x, grad) = (of::<B>(&x, rows), of::<B>(&grad, rows));
        let (normalized, scale) = normalize::<B>(x);
        let a = affine::<B>(normalized.clone(), gamma.clone(), beta.clone());
        let a = B::float_cast(a, compute);
        let (da, d_weight, d_bias) = map_backward::<B>(a, weight.clone(), grad);
        let da = B::float_cast(da, FloatDType::F32);
        let normalized = (normalized, scale);
        let (dx, d_gamma, d_beta) = normalized_backward::<B>(normalized, gamma.clone(), da);
        (dx, [d_gamma, d_beta, d_weight, d_bias])
    });
    let (dx, [d_gamma, d_beta, d_weight, d_bias]) = joined::<B, 4>(parts);
    (dx, d_gamma, d_beta, d_weight, d_bias)
}

pub(super) fn linear_onto<B: Backend>(
    residual: FloatTensor<B>,
    x: FloatTensor<B>,
    activation: Option<Activation>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
) -> FloatTensor<B> {
    let compute = compute_dtype::<B>(&x);
    let a = activated::<B>(x, activation);
    let y = product::<B>(a, B::float_cast(weight, compute));
    let y = B::float_add(y, row::<B>(B::float_cast(bias, compute)));
    B::float_add(residual, B::float_cast(y, FloatDType::F32))
}

pub(super) fn linear_onto_backward<B: Backend>(
    x: FloatTensor<B>,
    activation: Option<Activation>,
    weight: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let compute = compute_dtype::<B>(&x);
    let weight = B::float_cast(weight, compute);
    let parts = parts(x.shape()[0], KEPT_ROWS).map(|rows| {
        let (x, grad) = (of::<B>(&x, rows), of::<B>(&grad, rows));
        let grad = B::float_cast(grad, compute);
        let a = activated::<B>(x.clone(), activation);
        let (da, d_weight, d_bias) = map_backward::<B>(a, weight.clone(), grad);
        (activation_backward::<B>(x, activation, da), [d_weight, d_bias])
    });
    let (dx, [d_weight, d_bias]) = joined::<B, 2>(parts);
    (dx, d_weight, d_bias)
}

pub(super) fn attention<B: Backend>(
    qkv: FloatTensor<B>,
    heads: usize,
    causal: bool,
) -> FloatTensor<B> {
    let parts = samples(&qkv, heads).map(|samples| {
        let [q, k, v] = packed::<B, 3>(of::<B>(&qkv, samples), heads);
        merge::<B>(product::<B>(probabilities::<B>(q, k, causal), v))
    });
    B::float_cat(parts.collect(), 0)
}

pub(super) fn attention_backward<B: Backend>(
    qkv: FloatTensor<B>,
    heads: usize,
    causal: bool,
    grad: FloatTensor<B>,
) -> FloatTensor<B> {
    let parts = samples(&qkv, heads).map(|samples| {
        part_backward::<B>(of::<B>(&qkv, samples), heads, causal, of::<B>(&grad, samples))
    });
    B::float_cat(parts.collect(), 0)
}

/// [`attention_backward`] of some samples.
fn part_backward<B: Backend>(
    qkv: FloatTensor<B>,
    heads: usize,
    causal: bool,
    grad: FloatTensor<B>,
) -> FloatTensor<B> {
    let [b, n, w3] = dims(&qkv);
    let [q, k, v] = packed::<B, 3>(qkv, heads);
    let dy = B::float_reshape(grad, Shape::from([b, n, heads, w3 / 3 / heads]));
    let dy = B::float_swap_dims(dy, 1, 2); // [b, h, n, d]
    let p = probabilities::<B>(q.clone(), k.clone(), causal); // [b, h, n, n]
    let (dv, ds) = scores_backward::<B>(p, v, dy);
    let dq = product::<B>(ds.clone(), k);
    let dk = product::<B>(turned::<B>(ds), q);
    B::float_cat([dq, dk, dv].map(merge::<B>).into(), 2)
}

pub(super) fn attention_at<B: Backend>(
    q: FloatTensor<B>,
    kv: FloatTensor<B>,
    last: IntTensor<B>,
    heads: usize,
) -> FloatTensor<B> {
    let shape = q.shape();
    let [k, v] = packed::<B, 2>(kv, heads);
    let p = probabilities_at::<B>(one::<B>(q, heads), k, last);
    B::float_reshape(product::<B>(p, v), shape)
}

pub(super) fn attention_at_backward<B: Backend>(
    q: FloatTensor<B>,
    kv: FloatTensor<B>,
    last: IntTensor<B>,
    heads: usize,
    grad: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let shape = q.shape();
    let [k, v] = packed::<B, 2>(kv, heads);
    let (q, dy) = (one::<B>(q, heads), one::<B>(grad, heads)); // [b, h, 1, d]
    let p = probabilities_at::<B>(q.clone(), k.clone(), last);
    let (dv, ds) = scores_backward::<B>(p, v, dy);
    let dq = B::float_reshape(product::<B>(ds.clone(), k), shape);
    let dk = product::<B>(turned::<B>(ds), q);
    (dq, B::float_cat([dk, dv].map(merge::<B>).into(), 2))
}

/// Rows whose intermediate results are alive at a time in a backward.
pub const KEPT_ROWS: usize = 4096;

/// Scores that are alive at a time in an attention, in values.
pub const KEPT_SCORES: usize = 8 << 20;

/// `0..total` in even parts of at most `most`.
pub(super) fn parts(total: usize, most: usize) -> impl Iterator<Item = [usize; 2]> {
    let size = total.div_ceil(total.div_ceil(most));
    (0..total).step_by(size).map(move |first| [first, (first + size).min(total)])
}

/// The samples of `qkv [b, n, 3w]` in parts whose scores are few enough.
fn samples<T: TensorMetadata>(qkv: &T, heads: usize) -> impl Iterator<Item = [usize; 2]> {
    let [b, n, _] = dims(qkv);
    parts(b, (KEPT_SCORES / (heads * n * n)).max(1))
}

/// A part of a tensor's first dimension; all of it is no copy.
fn of<B: Backend>(x: &FloatTensor<B>, [first, end]: [usize; 2]) -> FloatTensor<B> {
    match end - first == x.shape()[0] {
        true => x.clone(),
        false => B::float_slice(x.clone(), &[Slice::from(first..end)]),
    }
}

/// Parts of a gradient side by side, and the sums of those that each part has a share in.
fn joined<B: Backend, const N: usize>(
    parts: impl Iterator<Item = (FloatTensor<B>, [FloatTensor<B>; N])>,
) -> (FloatTensor<B>, [FloatTensor<B>; N]) {
    let mut dx = Vec::new();
    let sums = parts.map(|(part, shares)| {
        dx.push(part);
        shares
    });
    let sums = sums.reduce(|sums, shares| {
        let mut shares = shares.into_iter();
        sums.map(|sum| B::float_add(sum, shares.next().expect("as many shares as sums")))
    });
    let sums = sums.expect("a batch has rows");
    let dx = match dx.len() {
        1 => dx.remove(0),
        _ => B::float_cat(dx, 0),
    };
    (dx, sums)
}

/// Rows of mean 0 and variance 1, and the factor on each row, `[r, 1]`.
fn normalize<B: Backend>(x: FloatTensor<B>) -> (FloatTensor<B>, FloatTensor<B>) {
    let centered = B::float_sub(x.clone(), B::float_mean_dim(x, 1));
    let variance = B::float_mean_dim(B::float_mul(centered.clone(), centered.clone()), 1);
    let scale = B::float_recip(B::float_sqrt(B::float_add_scalar(variance, EPSILON.into())));
    (B::float_mul(centered, scale.clone()), scale)
}

/// Rows scaled by `gamma` and shifted by `beta`.
fn affine<B: Backend>(
    rows: FloatTensor<B>,
    gamma: FloatTensor<B>,
    beta: FloatTensor<B>,
) -> FloatTensor<B> {
    B::float_add(B::float_mul(rows, row::<B>(gamma)), row::<B>(beta))
}

/// Gradients of `a @ weight + bias` at `a`, `weight` and `bias`, the latter two in f32.
fn map_backward<B: Backend>(
    a: FloatTensor<B>,
    weight: FloatTensor<B>,
    grad: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let d_bias = sum_rows::<B>(B::float_cast(grad.clone(), FloatDType::F32));
    let d_weight = product::<B>(turned::<B>(a), grad.clone());
    let da = product::<B>(grad, turned::<B>(weight));
    (da, B::float_cast(d_weight, FloatDType::F32), d_bias)
}

fn activated<B: Backend>(x: FloatTensor<B>, activation: Option<Activation>) -> FloatTensor<B> {
    match activation {
        None => x,
        Some(Activation::QuickGelu) => {
            let s = B::sigmoid(B::float_mul_scalar(x.clone(), QUICK_GELU.into()));
            B::float_mul(x, s)
        }
        Some(Activation::Gelu) => B::gelu(x),
    }
}

/// `grad` times the activation's derivative at `x`.
fn activation_backward<B: Backend>(
    x: FloatTensor<B>,
    activation: Option<Activation>,
    grad: FloatTensor<B>,
) -> FloatTensor<B> {
    match activation {
        None => grad,
        Some(Activation::QuickGelu) => {
            let x = B::float_mul_scalar(x, QUICK_GELU.into());
            let s = B::sigmoid(x.clone());
            let rest = B::float_add_scalar(B::float_neg(s.clone()), 1.0.into());
            let slope = B::float_add_scalar(B::float_mul(x, rest), 1.0.into());
            B::float_mul(grad, B::float_mul(s, slope))
        }
        Some(Activation::Gelu) => B::gelu_backward(x, grad),
    }
}

/// The factor inside QuickGELU's sigmoid.
const QUICK_GELU: f64 = 1.702;

/// `softmax(q k^T / sqrt(d))`, `[b, h, n, n]`, in the dtype of `q`; the softmax itself in f32.
fn probabilities<B: Backend>(q: FloatTensor<B>, k: FloatTensor<B>, causal: bool) -> FloatTensor<B> {
    let (n, compute) = (q.shape()[2], compute_dtype::<B>(&q));
    let scores = scores::<B>(q, k);
    let scores = match causal {
        false => scores,
        true => {
            let future = future::<B>(n, &scores);
            B::float_add(scores, future)
        }
    };
    B::float_cast(softmax::<B>(scores), compute)
}

/// The same of one query a sample that sees the keys `0..=last`: `[b, h, 1, n]`.
fn probabilities_at<B: Backend>(
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    last: IntTensor<B>,
) -> FloatTensor<B> {
    const FAR_BELOW: f64 = -1e30; // of any score; `0 * -inf` would be NaN
    let (n, compute) = (k.shape()[2], compute_dtype::<B>(&q));
    let scores = scores::<B>(q, k);
    let positions: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let positions = burn::tensor::TensorData::new(positions, [1, 1, 1, n]);
    let positions = B::float_from_data(positions, &scores.device());
    let last = B::int_into_float(last, FloatDType::F32);
    let b = last.shape()[0];
    let beyond = B::float_sub(positions, B::float_reshape(last, Shape::from([b, 1, 1, 1])));
    let future = B::float_clamp(beyond, 0.0.into(), 1.0.into()); // [b, 1, 1, n]
    let scores = B::float_add(scores, B::float_mul_scalar(future, FAR_BELOW.into()));
    B::float_cast(softmax::<B>(scores), compute)
}

/// `q k^T / sqrt(d)` in f32.
fn scores<B: Backend>(q: FloatTensor<B>, k: FloatTensor<B>) -> FloatTensor<B> {
    let d = q.shape()[3];
    let scores = B::float_cast(product::<B>(q, turned::<B>(k)), FloatDType::F32);
    B::float_mul_scalar(scores, scale(d))
}

/// Over the last of four dimensions.
fn softmax<B: Backend>(scores: FloatTensor<B>) -> FloatTensor<B> {
    let exp = B::float_exp(B::float_sub(scores.clone(), B::float_max_dim(scores, 3)));
    B::float_div(exp.clone(), B::float_sum_dim(exp, 3))
}

/// From the gradient `dy` at `p @ v` those at `v` and at `q k^T`, in the dtype of `dy`.
fn scores_backward<B: Backend>(
    p: FloatTensor<B>,
    v: FloatTensor<B>,
    dy: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (d, compute) = (v.shape()[3], compute_dtype::<B>(&dy));
    let dv = product::<B>(turned::<B>(p.clone()), dy.clone());
    let dp = B::float_cast(product::<B>(dy, turned::<B>(v)), FloatDType::F32);
    let p = B::float_cast(p, FloatDType::F32);
    let mean = B::float_sum_dim(B::float_mul(p.clone(), dp.clone()), 3);
    let ds = B::float_mul(B::float_sub(dp, mean), p);
    (dv, B::float_cast(B::float_mul_scalar(ds, scale(d)), compute))
}

/// `[1, 1, n, n]` f32, minus infinity where the column is after the row.
fn future<B: Backend>(n: usize, like: &FloatTensor<B>) -> FloatTensor<B> {
    let value = |i: usize| if i % n > i / n { f32::NEG_INFINITY } else { 0.0 };
    let values: Vec<f32> = (0..n * n).map(value).collect();
    B::float_from_data(burn::tensor::TensorData::new(values, [1, 1, n, n]), &like.device())
}

/// `N` of queries, keys and values side by side, `[b, n, N * w]`, to `[b, h, n, d]` each.
fn packed<B: Backend, const N: usize>(packed: FloatTensor<B>, heads: usize) -> [FloatTensor<B>; N] {
    let [b, n, width] = dims(&packed);
    let d = width / N / heads;
    let packed = B::float_reshape(packed, Shape::from([b, n, N, heads, d]));
    let packed = B::float_permute(packed, &[2, 0, 3, 1, 4]); // [N, b, h, n, d]
    std::array::from_fn(|i| {
        let part = B::float_slice(packed.clone(), &[Slice::from(i..i + 1)]);
        B::float_reshape(part, Shape::from([b, heads, n, d]))
    })
}

/// `[b, w]` to `[b, h, 1, d]`.
fn one<B: Backend>(x: FloatTensor<B>, heads: usize) -> FloatTensor<B> {
    let shape = x.shape();
    B::float_reshape(x, Shape::from([shape[0], heads, 1, shape[1] / heads]))
}

/// `[b, h, n, d]` to `[b, n, w]`.
fn merge<B: Backend>(heads: FloatTensor<B>) -> FloatTensor<B> {
    let shape = heads.shape();
    let merged = Shape::from([shape[0], shape[2], shape[1] * shape[3]]);
    B::float_reshape(B::float_swap_dims(heads, 1, 2), merged)
}

/// The product that all others here go through.
///
/// # Panics
/// If the dtypes differ: a broken invariant of the caller, never of a user's input.
fn product<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
    assert_eq!(a.dtype(), b.dtype(), "matrix product of two dtypes");
    record(a.dtype());
    B::float_matmul(a, b)
}

/// The transpose of the last two dimensions.
fn turned<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    B::float_transpose(x)
}

/// `[r]` to `[r, 1]`.
fn column<B: Backend>(vector: IntTensor<B>) -> IntTensor<B> {
    let r = vector.shape()[0];
    B::int_reshape(vector, Shape::from([r, 1]))
}

/// `[w]` to `[1, w]`.
fn row<B: Backend>(vector: FloatTensor<B>) -> FloatTensor<B> {
    let w = vector.shape()[0];
    B::float_reshape(vector, Shape::from([1, w]))
}

/// `[r, w]` to the sum of its rows, `[w]`.
fn sum_rows<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let w = x.shape()[1];
    B::float_reshape(B::float_sum_dim(x, 0), Shape::from([w]))
}

fn scale(d: usize) -> Scalar {
    (d as f64).powf(-0.5).into()
}

fn dims<T: TensorMetadata>(tensor: &T) -> [usize; 3] {
    let shape = tensor.shape();
    [shape[0], shape[1], shape[2]]
}

fn compute_dtype<B: Backend>(tensor: &FloatTensor<B>) -> FloatDType {
    match tensor.dtype() {
        DType::F64 => FloatDType::F64,
        DType::F16 => FloatDType::F16,
        DType::BF16 => FloatDType::BF16,
        _ => FloatDType::F32,
    }
}
