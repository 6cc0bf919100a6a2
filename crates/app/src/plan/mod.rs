//! `tbps plan`: the memory of a training, from its configuration alone.
//!
//! A step is walked through as the learner takes it ([`walk`]), on a [`ledger`]; nothing is computed
//! and no device is opened but to ask how much memory it has.

mod command;
mod kernels;
mod ledger;
mod walk;

pub(crate) use command::run;

use crate::config::{Config, Loss, Precision, Recompute};
use crate::device::DeviceName;
use kernels::Kernels;
use ledger::Ledger;
use serde::Serialize;
use walk::{Tower, TowerSize};

const F32: u64 = 4;

/// Batches on the host: two that wait, one in the making and one at work.
const BATCHES: u64 = 4;

/// What a CUDA context and the kernels' code take before the first tensor: the size that drivers of
/// CUDA 12 and 13 show for one context. Not measured here.
const CUDA_CONTEXT: u64 = 500 << 20;

/// What a pool of pages reserves beyond what is in use, as a share of it: an allowance, not measured.
const POOL_SLACK: f64 = 0.1;

/// Persons of the classifier when the configuration has one: those that CUHK-PEDES trains on.
const NUM_IDS: u64 = 11_003;

/// Predicted bytes of a training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Prediction {
    pub(crate) parameters: u64,
    /// Weights, moments and averages: held between steps.
    pub(crate) resident: u64,
    /// Activation memory of a step, beside gathered gradients.
    pub(crate) tape: u64,
    /// The most that tensors hold in a step, gradients included.
    pub(crate) step: u64,
    /// The most that tensors hold in an evaluation.
    pub(crate) evaluation: u64,
    /// The peak: of allocations on the host, of the process's memory on a GPU.
    pub(crate) peak: u64,
    /// Work of a step, in multiplications and additions of one forward of the towers' blocks.
    pub(crate) work: f64,
}

/// Predicts the memory of `config` on a device, with captions of full length.
pub(crate) fn predict(config: &Config, device: DeviceName) -> Prediction {
    let (kernels, host) = match device {
        DeviceName::Flex => (Kernels::Fused, true),
        DeviceName::Cuda(_) => (Kernels::Composed, false),
        DeviceName::CubeCpu => (Kernels::Composed, true),
    };
    let sizes = tower_sizes(config);
    let classifier = match config.objective.has(Loss::Id) {
        true => (config.model.embed_dim as u64 + 1) * NUM_IDS,
        false => 0,
    };
    let parameters = sizes.iter().map(TowerSize::parameters).sum::<u64>() + 1 + classifier;
    let copies = if config.ema.enabled { 4 } else { 3 }; // weights, two moments, averages
    let resident = F32 * parameters * copies;

    let pixels = |batch: usize| {
        let vision = &config.model.vision;
        F32 * (batch * 3 * vision.image_height * vision.image_width) as u64
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let scratch = |batch: u64| {
        let of =
            |s: &TowerSize| kernels.scratch([s.positions, s.width], batch * s.positions, threads);
        sizes.iter().map(of).max().unwrap_or(0)
    };
    let train_batch = config.train.batch_size;
    let at_work = match host {
        true => BATCHES * pixels(train_batch) + scratch(train_batch as u64),
        false => pixels(train_batch),
    };
    let (mut step, work) = walk_step(config, &sizes, kernels);
    step.hold(F32 * classifier);
    let eval_batch = config.eval.batch_size as u64;
    let mut evaluation = Ledger::default();
    for size in &sizes {
        tower(*size, eval_batch, config, kernels, Recompute::Block).forward_alone(&mut evaluation);
    }
    let eval_host = pixels(config.eval.batch_size) + if host { scratch(eval_batch) } else { 0 };
    let step_peak = resident + at_work + step.peak();
    let evaluation_peak = resident + eval_host + evaluation.peak();
    let tensors = step_peak.max(evaluation_peak);
    let peak = match host {
        true => tensors,
        false => (tensors as f64 * (1.0 + POOL_SLACK)) as u64 + CUDA_CONTEXT,
    };
    Prediction {
        parameters,
        resident,
        tape: step.tape_peak(),
        step: step_peak,
        evaluation: evaluation_peak,
        peak,
        work,
    }
}

/// A step's forward and backward, and its work beside that of one forward.
fn walk_step(config: &Config, sizes: &[TowerSize; 2], kernels: Kernels) -> (Ledger, f64) {
    let batch = config.train.batch_size as u64;
    let micro = config.train.micro_batch as u64;
    let whole = micro == 0 || micro >= batch;
    let part = if whole { batch } else { micro };
    let mut ledger = Ledger::default();
    let towers = |first_part| {
        let of = |size| tower(size, part, config, kernels, config.recompute);
        sizes.map(|size| Tower { first_part, ..of(size) })
    };
    if !whole {
        // Features first, with nothing kept.
        towers(true).iter().for_each(|tower| tower.forward_alone(&mut ledger));
    }
    // Later parts are like the second.
    for first_part in if whole { vec![true] } else { vec![true, false] } {
        let towers = towers(first_part);
        towers.iter().for_each(|tower| tower.forward(&mut ledger));
        towers.iter().for_each(|tower| tower.backward(&mut ledger));
    }
    let (forward, recomputed) = sizes
        .iter()
        .map(|s| s.work(config.recompute))
        .fold((0.0, 0.0), |(forward, again), (f, a)| (forward + f, again + a));
    let passes = if whole { 3.0 } else { 4.0 };
    (ledger, passes + recomputed / forward)
}

fn tower(
    size: TowerSize,
    batch: u64,
    config: &Config,
    kernels: Kernels,
    recompute: Recompute,
) -> Tower {
    let compute = match config.precision {
        Precision::Fp32 => 4,
        Precision::AmpFp16 | Precision::AmpBf16 => 2,
    };
    Tower { size, batch, compute, recompute, kernels, first_part: true }
}

fn tower_sizes(config: &Config) -> [TowerSize; 2] {
    let (vision, text) = (&config.model.vision, &config.model.text);
    let embed_dim = config.model.embed_dim as u64;
    let patch = 3 * (vision.patch_size * vision.patch_size) as u64;
    let (image_positions, image_width) = (vision.num_positions() as u64, vision.width as u64);
    let (vocab, context) = (text.vocab_size as u64, text.context_length as u64);
    [
        TowerSize {
            positions: image_positions,
            width: image_width,
            layers: vision.layers as u64,
            heads: vision.heads as u64,
            embed_dim,
            stem_parameters: image_width * (patch + 1 + image_positions + 2),
            patch,
        },
        TowerSize {
            positions: context,
            width: text.width as u64,
            layers: text.layers as u64,
            heads: text.heads as u64,
            embed_dim,
            stem_parameters: text.width as u64 * (vocab + context),
            patch: 0,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_the_model() {
        let config = Config::parse("", &[], "test").unwrap();
        assert_eq!(predict(&config, DeviceName::Flex).parameters, 149_617_665);
    }

    #[test]
    fn what_saves_memory_is_predicted_to_save_it() {
        let peak = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let config = Config::parse("", &sets, "test").unwrap();
            predict(&config, DeviceName::Cuda(0)).peak
        };
        let peaks = [
            peak(&["ema.enabled=true"]),
            peak(&[]),
            peak(&["recompute=attention"]),
            peak(&["recompute=block"]),
            peak(&["recompute=block", "precision=amp-fp16"]),
            peak(&["recompute=block", "precision=amp-fp16", "train.micro_batch=8"]),
        ];
        assert!(peaks.is_sorted_by(|a, b| a > b), "{peaks:?}");
    }
}
