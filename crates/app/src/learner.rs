//! The model as burn-train's learner sees it: a batch in, a loss and gradients out.
//!
//! Two ways to the same gradients: one tape over everything, or block recomputation, which keeps
//! block inputs and runs each block again in the backward. Loss and gradients are equal to the last
//! bit, because both run the same operations in the same order.

use crate::config::{Config, Loss, Precision, Recompute};
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, ExecutionError, FloatDType, Int, Tensor, TensorData};
use burn::train::{ItemLazy, TrainOutput, TrainStep};
use tbps_data::{Batch, ImageSize};
use tbps_model::Clip;
use tbps_model::block::Block;
use tbps_model::clip::normalize;
use tbps_model::objective::{self, IdClassifier};
use tbps_optim::recompute;

/// Text is cut to the batch's longest caption, rounded up to this, so that shapes stay few.
const LENGTH_STEP: usize = 8;

/// The model and how it is trained.
#[derive(Module, Debug)]
pub(crate) struct Net {
    pub(crate) clip: Clip,
    /// Of the identity loss, when that is trained on.
    pub(crate) classifier: Option<IdClassifier>,
    #[module(skip)]
    pub(crate) policy: Policy,
}

/// What a training step does besides the model's forward.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// What the towers' matrix products run in.
    pub(crate) compute: FloatDType,
    pub(crate) recompute: Recompute,
    /// Their sum is the loss.
    pub(crate) losses: Vec<Loss>,
    /// Factor on the loss before the backward; the optimizer takes it out again.
    pub(crate) loss_scale: f32,
    pub(crate) image_size: ImageSize,
}

impl Policy {
    pub(crate) fn new(config: &Config) -> Self {
        let compute = match config.precision {
            Precision::Fp32 => FloatDType::F32,
            Precision::AmpFp16 => FloatDType::F16,
        };
        Self {
            compute,
            recompute: config.recompute,
            losses: config.objective.losses.clone(),
            loss_scale: 1.0,
            image_size: image_size(config),
        }
    }
}

/// The model's input size.
pub(crate) fn image_size(config: &Config) -> ImageSize {
    let vision = &config.model.vision;
    ImageSize { height: vision.image_height, width: vision.image_width }
}

/// What a step hands to the metrics: the loss `[1]`, without its scale, without a tape.
pub(crate) struct StepOutput {
    pub(crate) loss: Tensor<1>,
}

impl ItemLazy for StepOutput {
    fn sync(self) -> Result<Self, ExecutionError> {
        Ok(self)
    }
}

impl TrainStep for Net {
    type Input = Batch;
    type Output = StepOutput;

    fn step(&self, batch: Batch) -> TrainOutput<StepOutput> {
        let device = self.clip.log_logit_scale.val().device();
        let inputs = Inputs::new(batch, self.policy.image_size, &device);
        let (loss, grads) = match self.policy.recompute {
            Recompute::Off => self.one_tape(inputs),
            Recompute::Block => self.block_by_block(inputs),
        };
        TrainOutput { grads, item: StepOutput { loss: loss.inner() } }
    }
}

impl Net {
    /// `clip` and what its training needs beside it; `num_ids` persons are in the train split.
    pub(crate) fn new(clip: Clip, config: &Config, num_ids: usize) -> Self {
        let device = clip.log_logit_scale.val().device();
        let embed_dim = config.model.embed_dim;
        let classifier = || IdClassifier::new(embed_dim, num_ids, config.seed, &device);
        let classifier = config.objective.has(Loss::Id).then(classifier);
        Self { clip, classifier, policy: Policy::new(config) }
    }

    /// One tape over both towers and the loss.
    fn one_tape(&self, inputs: Inputs) -> (Tensor<1>, GradientsParams) {
        let Policy { compute, loss_scale, .. } = self.policy;
        let image = self.clip.visual.forward(inputs.pixels.clone(), compute);
        let text = self.clip.text.forward(inputs.token_ids.clone(), compute);
        let loss = self.loss(image, text, &inputs);
        let mut grads = GradientsParams::new();
        let mut tape = loss.clone().mul_scalar(loss_scale).backward();
        recompute::collect(self, &mut tape, &mut grads);
        (loss, grads)
    }

    /// Both towers off the tape, the heads and the loss on one, then the towers in reverse.
    fn block_by_block(&self, inputs: Inputs) -> (Tensor<1>, GradientsParams) {
        let Policy { compute, loss_scale, .. } = self.policy;
        let (visual, text) = (&self.clip.visual, &self.clip.text);
        let block = |block: &Block, x: Tensor<3>| block.forward(x, compute);

        // Forward: one kept input per block.
        let stem = visual.stem.valid().forward(inputs.pixels.clone().inner(), compute);
        let image_sweep = recompute::forward(&visual.blocks, stem, &block);
        let stem = text.stem.valid().forward(inputs.token_ids.clone());
        let text_sweep = recompute::forward(&text.blocks, stem, &block);

        // Heads and loss, on leaves.
        let image_leaf = Tensor::from_inner(image_sweep.output).require_grad();
        let text_leaf = Tensor::from_inner(text_sweep.output).require_grad();
        let image = visual.head.forward(image_leaf.clone());
        let caption = text.head.forward(text_leaf.clone(), inputs.token_ids.clone());
        let loss = self.loss(image, caption, &inputs);
        let mut grads = GradientsParams::new();
        let mut tape = loss.clone().mul_scalar(loss_scale).backward();
        recompute::collect(self, &mut tape, &mut grads);
        let found = "the loss depends on both towers";
        let image_grad = image_leaf.grad_remove(&mut tape).expect(found);
        let text_grad = text_leaf.grad_remove(&mut tape).expect(found);

        // Backward: each block on a tape of its own, then the stems.
        let inputs_kept = image_sweep.inputs;
        let upstream =
            recompute::backward(&visual.blocks, inputs_kept, image_grad, &block, &mut grads);
        let mut tape = (visual.stem.forward(inputs.pixels, compute) * upstream).backward();
        recompute::collect(&visual.stem, &mut tape, &mut grads);
        let inputs_kept = text_sweep.inputs;
        let upstream =
            recompute::backward(&text.blocks, inputs_kept, text_grad, &block, &mut grads);
        let mut tape = (text.stem.forward(inputs.token_ids) * upstream).backward();
        recompute::collect(&text.stem, &mut tape, &mut grads);
        (loss, grads)
    }

    /// The sum of the losses, of features `[b, embed_dim]` as the towers give them.
    fn loss(&self, image: Tensor<2>, text: Tensor<2>, inputs: &Inputs) -> Tensor<1> {
        let (unit_image, unit_text) = (normalize(image.clone()), normalize(text.clone()));
        let of = |loss: &Loss| match loss {
            Loss::Itc => {
                objective::itc(unit_image.clone(), unit_text.clone(), self.clip.logit_scale())
            }
            Loss::Sdm => objective::sdm(
                unit_image.clone(),
                unit_text.clone(),
                self.clip.logit_scale(),
                inputs.pids.clone(),
            ),
            Loss::Id => {
                let classifier = self.classifier.as_ref().expect("Net::new makes it for this loss");
                classifier.loss(image.clone(), text.clone(), inputs.pids.clone())
            }
        };
        let sum = self.policy.losses.iter().map(of).reduce(|sum, loss| sum + loss);
        sum.expect("a configuration has at least one loss")
    }
}

/// A batch on the device.
struct Inputs {
    /// `[batch, 3, height, width]`
    pixels: Tensor<4>,
    /// `[batch, longest caption]`
    token_ids: Tensor<2, Int>,
    /// Dense train labels, `[batch]`.
    pids: Tensor<1, Int>,
}

impl Inputs {
    fn new(batch: Batch, size: ImageSize, device: &Device) -> Self {
        let pixels = TensorData::new(batch.pixels, [batch.len, 3, size.height, size.width]);
        Self {
            pixels: Tensor::from_data(pixels, device),
            token_ids: tokens(&batch.token_ids, batch.len, device),
            pids: Tensor::from_data(TensorData::new(batch.pids, [batch.len]), device),
        }
    }
}

/// `[rows, context]` ids, row-major, cut to the longest row and rounded up: the positions that are
/// left out hold padding only, and no position before them sees them.
pub(crate) fn tokens(ids: &[i32], rows: usize, device: &Device) -> Tensor<2, Int> {
    let context = ids.len() / rows;
    let longest = ids.chunks(context).map(used_length).max().unwrap_or(context);
    let length = longest.next_multiple_of(LENGTH_STEP).min(context);
    let cut: Vec<i32> = ids.chunks(context).flat_map(|row| &row[..length]).copied().collect();
    Tensor::from_data(TensorData::new(cut, [rows, length]), device)
}

/// Tokens up to and with the end of text, the largest id.
fn used_length(row: &[i32]) -> usize {
    let last = (0..row.len()).max_by_key(|&i| (row[i], std::cmp::Reverse(i)));
    last.map_or(0, |i| i + 1)
}
