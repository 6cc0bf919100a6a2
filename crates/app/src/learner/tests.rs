//! Recomputation and micro-batches change memory and time, never the loss or its gradients.

use super::*;
use burn::module::{ModuleVisitor, Param};
use tbps_model::config::ClipConfig;

/// Relative L2 error of gradients summed over micro-batches: another order of f32 additions.
const SUMMED: f64 = 1e-5;

const SAMPLES: usize = 8;
const NUM_IDS: usize = 5;

fn net(policy: impl FnOnce(&mut Policy)) -> Net {
    let mut config = ClipConfig::tiny();
    (config.vision.layers, config.text.layers) = (3, 3);
    let device = Device::flex().autodiff();
    let mut own = Policy {
        compute: FloatDType::F32,
        recompute: Recompute::Off,
        micro_batch: 0,
        losses: vec![Loss::Itc, Loss::Sdm, Loss::Id],
        loss_scale: 8.0,
        image_size: ImageSize { height: 32, width: 16 },
        meter: None,
    };
    policy(&mut own);
    let clip = config.init(3, &device).unwrap();
    let classifier = Some(IdClassifier::new(config.embed_dim, NUM_IDS, 3, &device));
    Net { clip, classifier, policy: own }
}

/// Captions of several lengths, so that the cut is not the context.
fn batch() -> Batch {
    let pixel = |i: usize| ((i * 37 % 101) as f32 - 50.0) / 40.0;
    let row = |sample: usize| {
        let mut row = [0; 12];
        row[0] = 62;
        (1..=sample % 5).for_each(|at| row[at] = (sample * 7 + at) as i32 % 60);
        row[sample % 5 + 1] = 63;
        row
    };
    Batch {
        len: SAMPLES,
        pixels: (0..SAMPLES * 3 * 32 * 16).map(pixel).collect(),
        token_ids: (0..SAMPLES).flat_map(row).collect(),
        pids: (0..SAMPLES).map(|i| (i % NUM_IDS) as i64).collect(),
        index: (0..SAMPLES as u32).collect(),
        digest: [0; 32],
    }
}

/// The loss and every gradient, in visit order, of a step on [`batch`].
fn step(net: &Net) -> (f32, Vec<Vec<f32>>) {
    let output = TrainStep::step(net, batch());
    (output.item.loss.into_scalar(), values(net, &output.grads))
}

fn values(net: &Net, grads: &GradientsParams) -> Vec<Vec<f32>> {
    struct Values<'a>(&'a GradientsParams, Vec<Vec<f32>>);
    impl ModuleVisitor for Values<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = self.0.get::<D>(param.id).expect("every parameter is trained");
            self.1.push(gradient.try_into_vec_as().unwrap());
        }
    }
    let mut values = Values(grads, Vec::new());
    net.visit(&mut values);
    values.1
}

/// `|a - b| / |b|` over all gradients.
fn distance(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    let square = |x: f32| f64::from(x) * f64::from(x);
    let pairs = || a.iter().flatten().zip(b.iter().flatten());
    let error: f64 = pairs().map(|(a, b)| square(a - b)).sum();
    (error / pairs().map(|(_, b)| square(*b)).sum::<f64>()).sqrt()
}

#[test]
fn whatever_is_recomputed_the_bits_are_the_same() {
    for compute in [FloatDType::F32, FloatDType::F16] {
        let expected = step(&net(|policy| policy.compute = compute));
        for recompute in
            [Recompute::Block, Recompute::Every(2), Recompute::Every(7), Recompute::Attention]
        {
            let found = step(&net(|policy| {
                (policy.compute, policy.recompute) = (compute, recompute);
            }));
            assert!(found == expected, "{recompute:?} in {compute:?}");
        }
    }
}

#[test]
fn micro_batches_have_the_whole_batchs_loss_and_gradients() {
    for compute in [FloatDType::F32, FloatDType::F16] {
        let (loss, expected) = step(&net(|policy| policy.compute = compute));
        for (micro_batch, recompute) in
            [(1, Recompute::Off), (3, Recompute::Off), (3, Recompute::Block), (4, Recompute::Off)]
        {
            let (found, gradients) = step(&net(|policy| {
                (policy.micro_batch, policy.recompute) = (micro_batch, recompute);
                policy.compute = compute;
            }));
            // Features are the same numbers; a product's blocking may differ with its rows.
            assert!((found - loss).abs() <= 1e-5 * loss, "{found} {loss}");
            let tolerance = if compute == FloatDType::F32 { SUMMED } else { 100.0 * SUMMED };
            let error = distance(&gradients, &expected);
            assert!(error <= tolerance, "micro-batches of {micro_batch} in {compute:?}: {error}");
        }
    }
}

#[test]
fn positions_after_the_longest_caption_change_nothing() {
    const TOLERANCE: f64 = 1e-6; // a product's blocking may differ with its rows
    for recompute in [Recompute::Off, Recompute::Block] {
        let net = net(|policy| policy.recompute = recompute);
        let device = Device::flex().autodiff();
        let cut = Inputs::new(batch(), net.policy.image_size, &device);
        let all = TensorData::new(batch().token_ids, [SAMPLES, 12]);
        let whole = Inputs { token_ids: Tensor::from_data(all, &device), ..cut.clone() };
        assert_eq!((cut.token_ids.dims(), whole.token_ids.dims()), ([SAMPLES, 8], [SAMPLES, 12]));
        let [(cut_loss, cut_grads), (loss, grads)] =
            [cut, whole].map(|inputs| net.gradients(&inputs));
        let [cut_loss, loss] = [cut_loss, loss].map(|loss| loss.into_scalar::<f32>());
        assert!((cut_loss - loss).abs() <= 1e-6 * loss, "{cut_loss} {loss}");
        let error = distance(&values(&net, &cut_grads), &values(&net, &grads));
        assert!(error <= TOLERANCE, "{recompute:?}: {error}");
    }
}

#[test]
fn half_precision_is_near_single() {
    let (loss, expected) = step(&net(|_| ()));
    for (compute, tolerance) in [(FloatDType::F16, 2e-2), (FloatDType::BF16, 1e-1)] {
        let (found, gradients) = step(&net(|policy| policy.compute = compute));
        assert!((found - loss).abs() <= 1e-2 * loss, "{compute:?}: {found} {loss}");
        assert_ne!(found, loss, "{compute:?} computes in f32");
        let error = distance(&gradients, &expected);
        assert!(error <= tolerance, "{compute:?}: {error}");
    }
}

/// What loss scaling is for: gradients that are too small for f16 without it.
#[test]
fn a_scaled_loss_leaves_no_gradient_at_zero() {
    // Towards the end of a training gradients are thousands of times smaller than at its start.
    let lost = |compute, scale| {
        step(&net(|policy| (policy.compute, policy.loss_scale) = (compute, scale))).1
    };
    const SMALL: f32 = 1e-6;
    let single = lost(FloatDType::F32, SMALL);
    let fraction = |scale: f32| {
        let half = lost(FloatDType::F16, SMALL * scale);
        let pairs = half.iter().flatten().zip(single.iter().flatten());
        let lost = pairs.filter(|(half, single)| **half == 0.0 && **single != 0.0).count();
        lost as f64 / single.iter().map(Vec::len).sum::<usize>() as f64
    };
    let (unscaled, scaled) = (fraction(1.0), fraction(65536.0));
    println!("zero in f16 and not in f32: {unscaled} of the gradients, {scaled} with a scale");
    assert!(scaled < 1e-4, "{scaled} of the gradients underflow with a scale");
    assert!(unscaled > 0.01, "{unscaled} without a scale: the test shows nothing");
}
