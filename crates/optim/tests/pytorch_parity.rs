//! Replays 50 steps recorded from PyTorch's AdamW and GradScaler and timm's ModelEmaV3.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

use std::collections::BTreeMap;

use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use serde_json::Value;
use tbps_optim::{
    AdamWConfig, EmaConfig, GradScalerConfig, Optimizer, OptimizerConfig, ParamGroup, WarmupCosine,
};

/// Largest error, relative to the largest element of the tensor. Both sides compute in f32; they
/// differ by one rounding in `lerp` (a fused multiply-add there, two operations here), in the order
/// of the norm's sum, and by what 45 steps make of that.
const TOLERANCE: f32 = 1e-6;

const FIXTURE: &str = include_str!("fixtures/adamw_scaler_ema/trajectory.json");

#[derive(Module, Debug)]
struct Net {
    w1: Param<Tensor<2>>,
    b1: Param<Tensor<1>>,
    w2: Param<Tensor<2>>,
    b2: Param<Tensor<1>>,
    logit_scale: Param<Tensor<1>>,
}

fn floats(value: &Value) -> Vec<f32> {
    let float = |v: &Value| match v.as_str() {
        Some(name) => name.parse().unwrap(),
        None => v.as_f64().unwrap() as f32,
    };
    value.as_array().unwrap().iter().map(float).collect()
}

fn tensor<const D: usize>(value: &Value, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(floats(value), shape), device)
}

fn net(values: &Value) -> Net {
    let device = Device::flex().autodiff();
    Net {
        w1: Param::from_tensor(tensor(&values["w1"], [4, 3], &device)),
        b1: Param::from_tensor(tensor(&values["b1"], [4], &device)),
        w2: Param::from_tensor(tensor(&values["w2"], [2, 4], &device)),
        b2: Param::from_tensor(tensor(&values["b2"], [2], &device)),
        logit_scale: Param::from_tensor(tensor(&values["logit_scale"], [1], &device)),
    }
}

fn gradients(net: &Net, values: &Value) -> GradientsParams {
    let device = Device::flex();
    let mut grads = GradientsParams::new();
    grads.register(net.w1.id, tensor(&values["w1"], [4, 3], &device));
    grads.register(net.b1.id, tensor(&values["b1"], [4], &device));
    grads.register(net.w2.id, tensor(&values["w2"], [2, 4], &device));
    grads.register(net.b2.id, tensor(&values["b2"], [2], &device));
    grads.register(net.logit_scale.id, tensor(&values["logit_scale"], [1], &device));
    grads
}

/// The parameters' values under the names of their fields.
fn values(net: &Net) -> BTreeMap<String, Vec<f32>> {
    fn vec<const D: usize>(param: &Param<Tensor<D>>) -> Vec<f32> {
        param.val().inner().try_into_vec_as().unwrap()
    }
    BTreeMap::from([
        ("w1".to_owned(), vec(&net.w1)),
        ("b1".to_owned(), vec(&net.b1)),
        ("w2".to_owned(), vec(&net.w2)),
        ("b2".to_owned(), vec(&net.b2)),
        ("logit_scale".to_owned(), vec(&net.logit_scale)),
    ])
}

fn check(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0_f32, |max, v| max.max(v.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs();
        assert!(error <= TOLERANCE * largest, "{what}[{i}]: {found} is not {expected}");
    }
}

fn check_state(step: usize, net: &Net, optimizer: &Optimizer, expected: &Value) {
    for (name, found) in values(net) {
        check(&format!("step {step}: {name}"), &found, &floats(&expected["param"][&name]));
    }
    for (name, data) in optimizer.state_tensors() {
        let (kind, path) = name.split_once('.').unwrap();
        let expected = &expected[kind][path];
        let found = data.as_slice::<f32>().unwrap();
        if expected.is_null() {
            assert!(found.iter().all(|&v| v == 0.0), "step {step}: {name} before the first step");
        } else {
            check(&format!("step {step}: {name}"), found, &floats(expected));
        }
    }
}

fn config() -> OptimizerConfig {
    let mut groups = ParamGroup::without_decay_for(&[], 0.2);
    let scale = ParamGroup {
        clamp_max: Some(100.0_f64.ln()),
        ..ParamGroup::new("scale", vec![tbps_optim::Rule::Path("logit_scale".into())], 0.0)
    };
    groups.insert(0, scale);
    OptimizerConfig {
        adamw: AdamWConfig { beta1: 0.9, beta2: 0.98, eps: 1e-6 },
        groups,
        scaler: Some(GradScalerConfig {
            init_scale: 1024.0,
            growth_interval: 7,
            ..GradScalerConfig::default()
        }),
        clip_norm: Some(1.5),
        ema: Some(EmaConfig { decay: 0.95, update_after: 2, ..EmaConfig::default() }),
        ..OptimizerConfig::new(WarmupCosine {
            base_lr: 3e-2,
            min_lr: 0.0,
            warmup_steps: 6,
            total_steps: 50,
        })
    }
}

#[test]
fn fifty_steps_equal_pytorchs() {
    let fixture: Value = serde_json::from_str(FIXTURE).unwrap();
    let mut net = net(&fixture["initial"]);
    let mut optimizer = Optimizer::new(&net, config()).unwrap();
    let mut states = 0;
    for (step, expected) in fixture["steps"].as_array().unwrap().iter().enumerate() {
        let scale = expected["scale"].as_f64().unwrap() as f32;
        assert_eq!(optimizer.loss_scale(), scale, "step {step}");
        let grads = gradients(&net, &expected["grads"]);
        let (next, outcome) = optimizer.step(net, grads).unwrap();
        net = next;

        assert_eq!(outcome.applied, expected["applied"].as_bool().unwrap(), "step {step}");
        assert_eq!(outcome.scale, Some(scale), "step {step}");
        let lr = expected["lr"].as_f64().unwrap();
        assert!((outcome.lr - lr).abs() < 1e-12, "step {step}: {} is not {lr}", outcome.lr);
        match expected["grad_norm"].as_f64() {
            Some(norm) => check("grad_norm", &[outcome.grad_norm], &[norm as f32]),
            None => assert!(!outcome.grad_norm.is_finite(), "step {step}"),
        }
        let scaler = optimizer.state().scaler.unwrap();
        assert_eq!(f64::from(scaler.scale), expected["scale_after"].as_f64().unwrap());
        let tracker = expected["growth_tracker_after"].as_u64().unwrap();
        assert_eq!(u64::from(scaler.growth_tracker), tracker, "step {step}");
        if let Some(state) = expected.get("state") {
            check_state(step, &net, &optimizer, state);
            states += 1;
        }
    }
    assert_eq!(states, 8);
    let state = optimizer.state();
    assert_eq!((state.real_steps, state.skipped_steps, state.ema_updates), (45, 5, Some(45)));
}
