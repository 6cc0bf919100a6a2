//! Each operation three ways: the backend's own kernels on the tape, the composed forward under
//! burn's autodiff (the reference), and the composed backward.

use super::{BlockOps, composed};
use crate::config::Activation;
use burn::backend::flex::FlexTensor;
use burn::backend::ops::{FloatTensorOps, IntTensorOps};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend, Flex, TensorMetadata};
use burn::tensor::{FloatDType, TensorData};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

type Tape = Autodiff<Flex>;
type Tracked = FloatTensor<Tape>;

/// Relative to a tensor's largest element. f32: sums of up to 300 terms in another order.
const F32: f32 = 1e-6;
/// Products are rounded to f16 at other places.
const F16: f32 = 4e-3;
/// The same with 3 bits less.
const BF16: f32 = 3.2e-2;
const DTYPES: [(FloatDType, f32); 3] =
    [(FloatDType::F32, F32), (FloatDType::F16, F16), (FloatDType::BF16, BF16)];

/// More than one block of rows and more than one part, none of them even.
const ROWS: usize = 300;

#[test]
fn norm() {
    check(
        &[(&[ROWS, 33], FloatDType::F32), (&[33], FloatDType::F32), (&[33], FloatDType::F32)],
        |[x, gamma, beta]| Tape::norm(x, gamma, beta),
        |[x, gamma, beta]| composed::norm::<Tape>(x, gamma, beta),
        |[x, gamma, _], grad| {
            let (dx, d_gamma, d_beta) = composed::norm_backward::<Flex>(x, gamma, grad);
            [dx, d_gamma, d_beta]
        },
        F32,
    );
}

#[test]
fn norm_linear() {
    DTYPES.into_iter().for_each(|dtype| check_norm_linear([33, 50], dtype));
}

fn check_norm_linear([k, m]: [usize; 2], (compute, tolerance): (FloatDType, f32)) {
    let f32 = FloatDType::F32;
    check(
        &[(&[ROWS, k], f32), (&[k], f32), (&[k], f32), (&[k, m], f32), (&[m], f32)],
        |[x, gamma, beta, w, b]| Tape::norm_linear(x, gamma, beta, w, b, compute),
        |[x, gamma, beta, w, b]| composed::norm_linear::<Tape>(x, gamma, beta, w, b, compute),
        |[x, gamma, beta, w, _], grad| {
            let (dx, d_gamma, d_beta, dw, db) =
                composed::norm_linear_backward::<Flex>(x, gamma, beta, w, grad);
            [dx, d_gamma, d_beta, dw, db]
        },
        tolerance,
    );
}

#[test]
fn linear_onto() {
    for activation in [None, Some(Activation::QuickGelu), Some(Activation::Gelu)] {
        DTYPES.into_iter().for_each(|dtype| check_linear_onto([ROWS, 50, 31], activation, dtype));
    }
}

fn check_linear_onto(
    [r, k, m]: [usize; 3],
    act: Option<Activation>,
    (compute, tolerance): (FloatDType, f32),
) {
    let f32 = FloatDType::F32;
    check(
        &[(&[r, m], f32), (&[r, k], compute), (&[k, m], f32), (&[m], f32)],
        |[residual, x, w, b]| Tape::linear_onto(residual, x, act, w, b),
        |[residual, x, w, b]| composed::linear_onto::<Tape>(residual, x, act, w, b),
        |[_, x, w, _], grad| {
            let (dx, dw, db) = composed::linear_onto_backward::<Flex>(x, act, w, grad.clone());
            [grad, dx, dw, db]
        },
        tolerance,
    );
}

#[test]
fn rows_of_a_table() {
    let index = || FlexTensor::from_data(TensorData::from([3_i32, 0, 3, 6, 3]));
    check(
        &[(&[7, 5], FloatDType::F32)],
        |[table]| Tape::take_rows(table, index()),
        |[table]| Tape::float_select(table, 0, index()),
        |_, grad| [composed::take_rows_backward::<Flex>(7, index(), grad)],
        F32,
    );
}

#[test]
fn cross_entropy() {
    let labels = || FlexTensor::from_data(TensorData::from([2_i64, 0, 1, 2]));
    let column = || Flex::int_reshape(labels(), [4, 1].into());
    check(
        &[(&[4, 3], FloatDType::F32)],
        |[logits]| Tape::cross_entropy(logits, labels()),
        |[logits]| {
            let exp = Tape::float_exp(logits.clone());
            let log_sum = Tape::float_log(Tape::float_sum_dim(exp, 1));
            let right = Tape::float_gather(1, logits, column());
            Tape::float_mean(Tape::float_sub(log_sum, right))
        },
        |[logits], grad| [composed::cross_entropy_backward::<Flex>(logits, labels(), grad)],
        F32,
    );
}

/// The composed backwards take rows and samples in parts when there are many.
#[test]
fn parts_cover_everything_once() {
    assert_eq!(composed::parts(10, 4).collect::<Vec<_>>(), [[0, 4], [4, 8], [8, 10]]);
    assert_eq!(composed::parts(4, 4).collect::<Vec<_>>(), [[0, 4]]);
    let (heads, n) = (2, 1500); // more scores than are kept: a sample at a time
    check(
        &[(&[2, n, 3 * 4], FloatDType::F32)],
        |[qkv]| Tape::self_attention(qkv, heads, true),
        |[qkv]| composed::attention::<Tape>(qkv, heads, true),
        |[qkv], grad| [composed::attention_backward::<Flex>(qkv, heads, true, grad)],
        2.0 * F32,
    );
    // Sums of thousands of terms.
    check_linear_onto([4100, 4, 3], None, (FloatDType::F32, 1e-5));
}

/// The large-weight path: slices of the gradient over all rows.
#[test]
fn a_large_weight() {
    for dtype in DTYPES {
        check_linear_onto([ROWS, 500, 300], Some(Activation::QuickGelu), dtype);
        check_norm_linear([300, 500], dtype);
    }
}

#[test]
fn self_attention() {
    for (compute, tolerance) in DTYPES {
        for causal in [false, true] {
            check(
                &[(&[3, 21, 3 * 15], compute)],
                |[qkv]| Tape::self_attention(qkv, 3, causal),
                |[qkv]| composed::attention::<Tape>(qkv, 3, causal),
                |[qkv], grad| [composed::attention_backward::<Flex>(qkv, 3, causal, grad)],
                tolerance,
            );
        }
    }
}

#[test]
fn attention_at() {
    let last = || FlexTensor::from_data(TensorData::from([20_i64, 0, 7]));
    for (compute, tolerance) in DTYPES {
        check(
            &[(&[3, 15], compute), (&[3, 21, 2 * 15], compute)],
            |[q, kv]| Tape::attention_at(q, kv, last(), 3),
            |[q, kv]| composed::attention_at::<Tape>(q, kv, last(), 3),
            |[q, kv], grad| {
                let (dq, dkv) = composed::attention_at_backward::<Flex>(q, kv, last(), 3, grad);
                [dq, dkv]
            },
            tolerance,
        );
    }
}

#[test]
fn embed() {
    for (k, m) in [(33, 50), (500, 300)] {
        for (compute, tolerance) in DTYPES {
            let x = random(&[(&[ROWS, k], compute)])[0].clone();
            let constant = || Tape::from_inner(x.clone());
            check(
                &[(&[k, m], FloatDType::F32)],
                |[weight]| Tape::embed(constant(), weight),
                |[weight]| composed::embed::<Tape>(constant(), weight),
                |_, grad| [composed::embed_backward::<Flex>(x.clone(), grad)],
                tolerance,
            );
        }
    }
}

/// Values and gradients, bit by bit, on one thread and on three.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let run = || {
        let f32 = FloatDType::F32;
        let inputs = [(&[ROWS, 33][..], f32), (&[33], f32), (&[33], f32), (&[33, 48], f32)];
        let [x, gamma, beta, w] = random(&inputs).map(leaf);
        let b = leaf(random(&[(&[48], f32)])[0].clone());
        let leaves = [x.clone(), w.clone()];
        let qkv = Tape::norm_linear(x.clone(), gamma, beta, w.clone(), b.clone(), FloatDType::F16);
        let qkv = Tape::float_reshape(qkv, [20, 15, 48].into());
        let y = Tape::float_reshape(Tape::self_attention(qkv, 4, true), [ROWS, 16].into());
        let out = leaf(random(&[(&[16, 33], f32)])[0].clone());
        let shift = leaf(random(&[(&[33], f32)])[0].clone());
        let y = Tape::linear_onto(x, y, Some(Activation::QuickGelu), out, shift);
        let (y, grads) = differentiate(y, leaves);
        [y].into_iter().chain(grads).map(FlexTensor::into_data).collect::<Vec<_>>()
    };
    let on = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    assert_eq!(on(1).install(run), on(3).install(run));
}

/// Compares values and the gradients of a random projection of them at every input.
fn check<const N: usize>(
    inputs: &[(&[usize], FloatDType); N],
    lean: impl Fn([Tracked; N]) -> Tracked,
    reference: impl Fn([Tracked; N]) -> Tracked,
    backward: impl Fn([FlexTensor; N], FlexTensor) -> [FlexTensor; N],
    tolerance: f32,
) {
    let values = random(inputs);
    let leaves = values.clone().map(leaf);
    let (want, want_grads) = differentiate(reference(leaves.clone()), leaves);
    let leaves = values.clone().map(leaf);
    let (got, grads) = differentiate(lean(leaves.clone()), leaves);
    assert_close("value", got, want.clone(), tolerance);
    let composed = backward(values, projection(&want));
    for (i, ((got, composed), want)) in grads.into_iter().zip(composed).zip(want_grads).enumerate()
    {
        assert_close(&format!("kernel's gradient {i}"), got, want.clone(), tolerance);
        assert_close(&format!("composed gradient {i}"), composed, want, tolerance);
    }
}

fn leaf(value: FlexTensor) -> Tracked {
    Tape::from_inner(value).require_grad()
}

/// The value and the gradients of its random projection.
fn differentiate<const N: usize>(
    y: Tracked,
    leaves: [Tracked; N],
) -> (FlexTensor, [FlexTensor; N]) {
    let value = y.primitive().clone();
    let projected = Tape::float_mul(y, Tape::from_inner(projection(&value)));
    let grads = Tape::float_sum(projected).backward();
    (value, leaves.map(|leaf| leaf.grad(&grads).expect("the value depends on every input")))
}

fn projection(like: &FlexTensor) -> FlexTensor {
    let dtype = like.dtype().into();
    random(&[(&like.shape(), dtype)])[0].clone()
}

fn random<const N: usize>(specs: &[(&[usize], FloatDType); N]) -> [FlexTensor; N] {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    specs.map(|(shape, dtype)| {
        let draw = |_| -> f32 { StandardNormal.sample(&mut rng) };
        let values: Vec<f32> = (0..shape.iter().product()).map(draw).collect();
        let tensor = FlexTensor::from_data(TensorData::new(values, shape.to_vec()));
        Flex::float_cast(tensor, dtype)
    })
}

fn assert_close(what: &str, got: FlexTensor, want: FlexTensor, tolerance: f32) {
    assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()), "{what}");
    let values = |tensor: FlexTensor| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
    let (got, want) = (values(got), values(want));
    let largest = want.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
    let error = got.iter().zip(&want).fold(0.0_f32, |max, (a, b)| max.max((a - b).abs()));
    assert!(error <= tolerance * largest, "{what}: off by {} of the largest", error / largest);
}
