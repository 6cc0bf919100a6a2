//! A block's operations, values and gradients, against PyTorch in f64 and against finite
//! differences.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

use burn::tensor::{DType, Device, FloatDType, Gradients, Tensor, TensorData};
use safetensors::SafeTensors;
use tbps_model::config::Activation;
use tbps_model::ops;

/// Largest error relative to the largest element: both sides are exact to f32's last bits.
const F32: f32 = 2e-6;
/// Inputs are exact in f16; weights, norms, probabilities and gradients are rounded to it (2^-11)
/// before a product of up to 15 terms.
const F16: f32 = 2e-3;
const DTYPES: [(FloatDType, f32); 2] = [(FloatDType::F32, F32), (FloatDType::F16, F16)];

const FIXTURE: &[u8] = include_bytes!("fixtures/ops/ops.safetensors");

#[test]
fn layer_norm_is_pytorchs() {
    let (x, [gamma, beta]) = (leaf("layer_norm", 0), [1, 2].map(|i| leaf("layer_norm", i)));
    let y = ops::layer_norm::<2>(x.clone(), gamma.clone(), beta.clone());
    let grads = compare("layer_norm", y, F32);
    grads.compare(0, x, F32);
    grads.compare(1, gamma, F32);
    grads.compare(2, beta, F32);
}

#[test]
fn norm_linear_is_pytorchs() {
    for (compute, tolerance) in DTYPES {
        let x = leaf("norm_linear", 0);
        let norm = [1, 2].map(|i| leaf("norm_linear", i));
        let (weight, bias) = (leaf("norm_linear", 3), leaf("norm_linear", 4));
        let y = ops::norm_linear(x.clone(), norm.clone(), weight.clone(), bias.clone(), compute);
        let grads = compare("norm_linear", y, tolerance);
        grads.compare(0, x, tolerance);
        let [gamma, beta] = norm;
        grads.compare(1, gamma, tolerance);
        grads.compare(2, beta, tolerance);
        grads.compare(3, weight, tolerance);
        grads.compare(4, bias, tolerance);
    }
}

#[test]
fn linear_onto_is_pytorchs() {
    let cases = [
        ("linear_onto.none", None),
        ("linear_onto.quick_gelu", Some(Activation::QuickGelu)),
        ("linear_onto.gelu", Some(Activation::Gelu)),
    ];
    for (case, activation) in cases {
        for (compute, tolerance) in DTYPES {
            let (residual, x) = (leaf(case, 0), leaf(case, 1));
            let (weight, bias) = (leaf(case, 2), leaf(case, 3));
            let y = ops::linear_onto(
                residual.clone(),
                x.clone().cast(compute),
                activation,
                weight.clone(),
                bias.clone(),
            );
            let grads = compare(case, y, tolerance);
            grads.compare(0, residual, tolerance);
            grads.compare(1, x, tolerance);
            grads.compare(2, weight, tolerance);
            grads.compare(3, bias, tolerance);
        }
    }
}

#[test]
fn attention_is_pytorchs() {
    for (case, causal) in [("attention.full", false), ("attention.causal", true)] {
        for (compute, tolerance) in DTYPES {
            let qkv = leaf(case, 0);
            let y = ops::attention(qkv.clone().cast(compute), 3, causal);
            compare(case, y, tolerance).compare(0, qkv, tolerance);
        }
    }
}

/// The derivative along a random direction of a whole block's chain, by central differences.
#[test]
fn gradients_are_slopes() {
    const STEP: f32 = 1e-2; // truncation and rounding errors are about equal here
    const TOLERANCE: f32 = 1e-3;
    let [gamma, beta] = [1, 2].map(|i| leaf("norm_linear", i));
    let (weight, bias) = (leaf::<2>("norm_linear", 3), leaf("norm_linear", 4)); // [6, 9], [9]
    let out = weight.clone().transpose().narrow(0, 0, 3); // [3, 6]
    let chain = |x: Tensor<2>| {
        let norm = [gamma.clone(), beta.clone()];
        let qkv = ops::norm_linear(x.clone(), norm, weight.clone(), bias.clone(), FloatDType::F32);
        let mixed = ops::attention(qkv.unsqueeze(), 1, true).reshape([5, 3]);
        ops::linear_onto(x, mixed, Some(Activation::Gelu), out.clone(), beta.clone()).sum()
    };
    let x: Tensor<2> = leaf("norm_linear", 0);
    let direction: Tensor<2> = leaf("linear_onto.none", 1).inner();
    let grads = chain(x.clone()).backward();
    let slope = (x.grad(&grads).unwrap() * direction.clone()).sum().into_scalar::<f32>();
    let at = |t: f32| chain(Tensor::from_inner(x.clone().inner() + direction.clone() * t));
    let difference = (at(STEP) - at(-STEP)).into_scalar::<f32>() / (2.0 * STEP);
    assert!((slope - difference).abs() < TOLERANCE * slope.abs(), "{slope} is not {difference}");
}

#[test]
fn products_are_recorded_by_dtype() {
    let qkv = leaf::<3>("attention.full", 0).cast(FloatDType::F16);
    ops::attention(qkv, 3, false);
    assert!(ops::take_matmul_dtypes().names().contains(&"f16"));
}

/// Gradients of a case's projected output.
struct Grads {
    case: &'static str,
    tape: Gradients,
}

/// Compares a case's output and differentiates its projection.
fn compare<const D: usize>(case: &'static str, y: Tensor<D>, tolerance: f32) -> Grads {
    let y = y.cast(FloatDType::F32);
    assert_close(&format!("{case}.output"), y.clone().inner(), tolerance);
    let projection = Tensor::from_inner(fixture(&format!("{case}.projection")));
    Grads { case, tape: (y * projection).sum().backward() }
}

impl Grads {
    fn compare<const D: usize>(&self, i: usize, leaf: Tensor<D>, tolerance: f32) {
        let grad = leaf.grad(&self.tape).unwrap();
        assert_close(&format!("{}.grad_{i}", self.case), grad, tolerance);
    }
}

fn leaf<const D: usize>(case: &str, i: usize) -> Tensor<D> {
    Tensor::from_inner(fixture(&format!("{case}.input_{i}"))).require_grad()
}

fn fixture<const D: usize>(name: &str) -> Tensor<D> {
    let file = SafeTensors::deserialize(FIXTURE).unwrap();
    let view = file.tensor(name).unwrap();
    let values = view.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let data = TensorData::new(values.collect::<Vec<_>>(), view.shape().to_vec());
    Tensor::from_data(data, &Device::flex())
}

fn assert_close<const D: usize>(name: &str, got: Tensor<D>, tolerance: f32) {
    assert_eq!(got.dtype(), DType::F32, "{name}");
    let want = fixture::<D>(name);
    let largest = want.clone().abs().max().into_scalar::<f32>();
    let error = (got - want).abs().max().into_scalar::<f32>() / largest;
    assert!(error <= tolerance, "{name}: off by {error} of the largest element");
}
