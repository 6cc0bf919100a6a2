//! What a step must do beyond its arithmetic: skip without a trace, refuse what can't train, resume.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in its helpers too")]

use std::collections::BTreeMap;

use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::{Linear, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use tbps_optim::{
    EmaConfig, GradScalerConfig, OptimError, Optimizer, OptimizerConfig, OptimizerState,
    ParamGroup, WarmupCosine,
};

#[derive(Module, Debug)]
struct Net {
    first: Linear,
    second: Linear,
}

impl Net {
    fn new() -> Self {
        let device = Device::flex().autodiff();
        Self {
            first: LinearConfig::new(3, 4).init(&device),
            second: LinearConfig::new(4, 1).with_bias(false).init(&device),
        }
    }

    fn loss(&self, step: usize) -> Tensor<1> {
        let x = Tensor::<2>::from_floats([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.1]], &Device::flex());
        let hidden = self.first.forward(x.mul_scalar(step as f32 + 1.0)).tanh();
        self.second.forward(hidden).sub_scalar(1.0).square().mean()
    }
}

fn config() -> OptimizerConfig {
    let schedule = WarmupCosine { base_lr: 0.05, min_lr: 0.0, warmup_steps: 2, total_steps: 40 };
    OptimizerConfig {
        groups: ParamGroup::without_decay_for(&[], 0.1),
        scaler: Some(GradScalerConfig { growth_interval: 3, ..GradScalerConfig::default() }),
        clip_norm: Some(1.0),
        ema: Some(EmaConfig::default()),
        ..OptimizerConfig::new(schedule)
    }
}

fn gradients(net: &Net, optimizer: &Optimizer, step: usize) -> GradientsParams {
    let mut tape = net.loss(step).mul_scalar(optimizer.loss_scale()).backward();
    GradientsParams::from_module(&mut tape, net)
}

fn train(net: Net, optimizer: &mut Optimizer, steps: std::ops::Range<usize>) -> Net {
    steps.fold(net, |net, step| {
        let grads = gradients(&net, optimizer, step);
        let (net, outcome) = optimizer.step(net, grads).unwrap();
        assert!(outcome.applied);
        net
    })
}

/// Values of all parameters, bit for bit.
fn bits<M: Module>(module: &M) -> Vec<TensorData> {
    struct Values(Vec<TensorData>);
    impl ModuleVisitor for Values {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(param.val().inner().into_data());
        }
    }
    let mut values = Values(Vec::new());
    module.visit(&mut values);
    values.0
}

/// All that a step may change but the scale and the counters of skips.
fn everything(net: &Net, optimizer: &Optimizer) -> (Vec<TensorData>, Vec<(String, TensorData)>) {
    (bits(net), optimizer.state_tensors())
}

#[test]
fn training_lowers_the_loss_and_keeps_ids() {
    let net = Net::new();
    let id = net.first.weight.id;
    let mut optimizer = Optimizer::new(&net, config()).unwrap();
    let before = net.loss(0).into_scalar::<f32>();
    let net = (0..40).fold(net, |net, _| train(net, &mut optimizer, 0..1));
    let after = net.loss(0).into_scalar::<f32>();
    assert!(after < 0.2 * before, "the loss went from {before} to {after}");
    assert_eq!(net.first.weight.id, id);
    assert!(net.first.weight.is_require_grad() && net.first.weight.is_autodiff());
}

#[test]
fn a_skipped_step_changes_the_scale_and_the_skips_alone() {
    let net = Net::new();
    let mut optimizer = Optimizer::new(&net, config()).unwrap();
    let net = train(net, &mut optimizer, 0..2);
    let before = everything(&net, &optimizer);
    let state = optimizer.state();

    let mut grads = gradients(&net, &optimizer, 2);
    let bad = Tensor::<2>::full([3, 4], f32::INFINITY, &Device::flex());
    grads.register(net.first.weight.id, bad);
    let (net, skipped) = optimizer.step(net, grads).unwrap();
    assert!(!skipped.applied && !skipped.grad_norm.is_finite());
    assert_eq!(everything(&net, &optimizer), before);
    let scaler = state.scaler.map(|mut scaler| {
        (scaler.scale, scaler.growth_tracker) = (0.5 * scaler.scale, 0);
        scaler
    });
    let expected = OptimizerState { skipped_steps: 1, consecutive_skips: 1, scaler, ..state };
    assert_eq!(optimizer.state(), expected);

    let grads = gradients(&net, &optimizer, 2);
    let (_, next) = optimizer.step(net, grads).unwrap();
    assert_eq!(next.lr, skipped.lr, "the schedule moved on a skipped step");
    let state = optimizer.state();
    assert_eq!((state.real_steps, state.skipped_steps, state.consecutive_skips), (3, 1, 0));
}

#[test]
fn a_rehearsal_changes_nothing() {
    let net = Net::new();
    let mut optimizer = Optimizer::new(&net, config()).unwrap();
    let net = train(net, &mut optimizer, 0..2);
    let (before, state) = (everything(&net, &optimizer), optimizer.state());
    optimizer.rehearse(&net, gradients(&net, &optimizer, 2)).unwrap();
    assert_eq!((everything(&net, &optimizer), optimizer.state()), (before, state));
    assert!(optimizer.rehearse(&net, GradientsParams::new()).is_err(), "gradients are missing");
}

#[test]
fn without_a_scaler_bad_gradients_are_reported_and_not_applied() {
    let net = Net::new();
    let settings = OptimizerConfig { scaler: None, ..config() };
    let mut optimizer = Optimizer::new(&net, settings).unwrap();
    let mut grads = gradients(&net, &optimizer, 0);
    let bad = Tensor::<2>::full([3, 4], f32::NAN, &Device::flex());
    grads.register(net.first.weight.id, bad);
    let before = everything(&net, &optimizer);
    let (net, outcome) = optimizer.step(net, grads).unwrap();
    assert!(!outcome.applied && outcome.grad_norm.is_nan() && outcome.scale.is_none());
    assert_eq!(everything(&net, &optimizer), before);
}

#[test]
fn clipping_comes_after_unscaling() {
    let net = Net::new();
    let stepped = [1.0, 65536.0].map(|init_scale| {
        let scaler = Some(GradScalerConfig { init_scale, ..GradScalerConfig::default() });
        let settings = OptimizerConfig { scaler, clip_norm: Some(1e-3), ..config() };
        let mut optimizer = Optimizer::new(&net, settings).unwrap();
        let grads = gradients(&net, &optimizer, 0);
        let (net, outcome) = optimizer.step(net.clone(), grads).unwrap();
        assert!(outcome.grad_norm > 1e-3, "nothing was clipped");
        bits(&net)
    });
    assert_eq!(stepped[0], stepped[1]);
    assert_ne!(stepped[0], bits(&net));
}

#[test]
fn a_groups_factor_scales_its_learning_rate() {
    let net = Net::new();
    let stepped = [(0.05, 0.5), (0.025, 1.0)].map(|(base_lr, lr_scale)| {
        let mut settings = config();
        settings.schedule.base_lr = base_lr;
        settings.groups.iter_mut().for_each(|group| group.lr_scale = lr_scale);
        let mut optimizer = Optimizer::new(&net, settings).unwrap();
        bits(&train(net.clone(), &mut optimizer, 0..3))
    });
    assert_eq!(stepped[0], stepped[1]);
}

#[test]
fn parameters_keep_their_checkpointing_strategy() {
    let device = Device::flex().autodiff().gradient_checkpointing();
    let model = LinearConfig::new(3, 1).init(&device);
    let strategy = model.weight.gradient_checkpointing_strategy();
    let mut optimizer = Optimizer::new(&model, config()).unwrap();
    let mut tape = model.forward(Tensor::<2>::ones([2, 3], &device)).mean().backward();
    let grads = GradientsParams::from_module(&mut tape, &model);
    let (model, _) = optimizer.step(model, grads).unwrap();
    let plain = Tensor::<1>::ones([1], &Device::flex().autodiff());
    assert_ne!(strategy, plain.gradient_checkpointing_strategy());
    assert_eq!(model.weight.gradient_checkpointing_strategy(), strategy);
}

#[test]
fn a_parameter_without_a_gradient_is_named() {
    let net = Net::new();
    let mut optimizer = Optimizer::new(&net, config()).unwrap();
    let mut grads = gradients(&net, &optimizer, 0);
    grads.remove::<2>(net.second.weight.id);
    let error = optimizer.step(net, grads).unwrap_err();
    assert_eq!(error, OptimError::MissingGradient { path: "second.weight".into() });
}

#[test]
fn frozen_parameters_stay() {
    let mut net = Net::new();
    net.first = net.first.no_grad();
    let frozen = bits(&net.first);
    let mut optimizer = Optimizer::new(&net, config()).unwrap();
    assert_eq!(optimizer.entries().len(), 1);
    let net = train(net, &mut optimizer, 0..2);
    assert_eq!(bits(&net.first), frozen);
    assert!(!net.first.weight.is_require_grad());
    assert_eq!(bits(&optimizer.ema().unwrap().module(&net).first), frozen);
}

#[test]
fn the_first_average_is_a_copy_and_the_later_ones_lag() {
    let net = Net::new();
    let mut optimizer = Optimizer::new(&net, config()).unwrap();
    let net = train(net, &mut optimizer, 0..1);
    assert_eq!(bits(&optimizer.ema().unwrap().module(&net)), bits(&net));
    let net = train(net, &mut optimizer, 1..3);
    assert_ne!(bits(&optimizer.ema().unwrap().module(&net)), bits(&net));
    assert_eq!(optimizer.ema().unwrap().updates(), 3);
}

#[test]
fn resuming_equals_going_on_to_the_bit() {
    let start = Net::new();
    let mut straight = Optimizer::new(&start, config()).unwrap();
    let net = train(start, &mut straight, 0..4);
    let tensors: BTreeMap<_, _> = straight.state_tensors().into_iter().collect();
    let state = serde_json::to_string(&straight.state()).unwrap();
    let saved = net.clone();
    let net = train(net, &mut straight, 4..8);

    let mut resumed = Optimizer::new(&saved, config()).unwrap();
    resumed.load(tensors, serde_json::from_str(&state).unwrap()).unwrap();
    let saved = train(saved, &mut resumed, 4..8);
    assert_eq!(everything(&saved, &resumed), everything(&net, &straight));
    assert_eq!(resumed.state(), straight.state());
}

#[test]
fn a_state_that_does_not_fit_is_refused_and_changes_nothing() {
    let net = Net::new();
    let mut optimizer = Optimizer::new(&net, config()).unwrap();
    let net = train(net, &mut optimizer, 0..1);
    let good: BTreeMap<_, _> = optimizer.state_tensors().into_iter().collect();
    let state = optimizer.state();
    assert_eq!(good["ema.first.weight"].shape().to_vec(), [3, 4]);

    let mut missing = good.clone();
    missing.remove("exp_avg.first.bias");
    let mut extra = good.clone();
    extra.insert("ema.third.weight".into(), TensorData::from([1.0_f32]));
    let mut flat = good.clone();
    flat.insert("ema.first.weight".into(), TensorData::zeros::<f32, _>([12]));
    let mut double = good.clone();
    double.insert("ema.first.weight".into(), TensorData::zeros::<f64, _>([3, 4]));
    let unscaled = OptimizerState { scaler: None, ..state };
    let unaveraged = OptimizerState { ema_updates: None, ..state };

    let mut other = Optimizer::new(&net, config()).unwrap();
    let before = everything(&net, &other);
    let mut check = |tensors: &BTreeMap<_, _>, state, expected: &str| {
        let error = other.load(tensors.clone(), state).unwrap_err().to_string();
        assert!(error.contains(expected), "`{error}` lacks `{expected}`");
        assert_eq!(everything(&net, &other), before);
        assert_eq!(other.state().real_steps, 0);
    };
    check(&missing, state, "exp_avg.first.bias");
    check(&extra, state, "ema.third.weight");
    check(&flat, state, "[12]");
    check(&double, state, "F64");
    check(&good, unscaled, "loss scaling");
    check(&good, unaveraged, "weight averaging");
    other.load(good, state).unwrap();
    assert_ne!(everything(&net, &other), before);
}
