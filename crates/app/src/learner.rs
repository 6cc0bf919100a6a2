//! The model as burn-train's learner sees it: a batch in, a loss and gradients out.
//!
//! Features first, then the loss on leaves, then the towers in reverse. How much a tower keeps in
//! between is its policy's matter (see [`crate::tower`]); loss and gradients are equal to the last
//! bit whatever it is, because all run the same operations in the same order. In micro-batches a
//! tower keeps nothing, and its gradients are sums of the parts': the loss is the whole batch's.

use crate::config::{Config, Loss, Precision, Recompute};
use crate::memory::TapeMeter;
use crate::tower::{Input, Tower};
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, ExecutionError, FloatDType, Int, Tensor, TensorData};
use burn::train::{ItemLazy, TrainOutput, TrainStep};
use std::sync::Arc;
use tbps_data::{Batch, ImageSize};
use tbps_model::Clip;
use tbps_model::clip::normalize;
use tbps_model::objective::{self, IdClassifier};
use tbps_optim::Gathered;

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
    /// Samples whose activations are alive at a time; 0: the batch's.
    pub(crate) micro_batch: usize,
    /// Their sum is the loss.
    pub(crate) losses: Vec<Loss>,
    /// Factor on the loss before the backward; the optimizer takes it out again.
    pub(crate) loss_scale: f32,
    pub(crate) image_size: ImageSize,
    /// Follows the activation memory of the steps, where that is asked for.
    pub(crate) meter: Option<Arc<TapeMeter>>,
}

impl Policy {
    pub(crate) fn new(config: &Config) -> Self {
        let compute = match config.precision {
            Precision::Fp32 => FloatDType::F32,
            Precision::AmpFp16 => FloatDType::F16,
            Precision::AmpBf16 => FloatDType::BF16,
        };
        Self {
            compute,
            recompute: config.recompute,
            micro_batch: config.train.micro_batch,
            losses: config.objective.losses.clone(),
            loss_scale: 1.0,
            image_size: image_size(config),
            meter: None,
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
        let (loss, grads) = self.gradients(&inputs);
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

    fn image_tower<'a>(&'a self, part: &'a Inputs) -> Tower<'a> {
        let Policy { compute, recompute, .. } = self.policy;
        Tower::new(&self.clip, Input::Pixels(&part.pixels), compute, recompute)
    }

    fn text_tower<'a>(&'a self, part: &'a Inputs) -> Tower<'a> {
        let Policy { compute, recompute, .. } = self.policy;
        Tower::new(&self.clip, Input::TokenIds(&part.token_ids), compute, recompute)
    }

    /// The loss `[1]` of a batch, and its gradients times the loss scale.
    fn gradients(&self, batch: &Inputs) -> (Tensor<1>, GradientsParams) {
        let parts = batch.split(self.policy.micro_batch);

        // Forward. Of several parts nothing is kept but the features.
        let mut passes = Vec::new();
        let (mut images, mut captions) = (Vec::new(), Vec::new());
        for part in &parts {
            let pass = [self.image_tower(part).forward(), self.text_tower(part).forward()];
            images.push(pass[0].features());
            captions.push(pass[1].features());
            passes.extend((parts.len() == 1).then_some(pass));
        }

        // The loss of the whole batch, on leaves.
        let leaf = |parts| Tensor::<2>::from_inner(Tensor::cat(parts, 0)).require_grad();
        let (image, caption) = (leaf(images), leaf(captions));
        let loss = self.loss(image.clone(), caption.clone(), batch);
        let watch = |bytes| {
            if let Some(meter) = &self.policy.meter {
                meter.gathered(bytes);
            }
        };
        let mut grads = Gathered::new(&watch);
        let mut tape = loss.clone().mul_scalar(self.policy.loss_scale).backward();
        grads.collect(self, &mut tape);
        let found = "the loss depends on both towers";
        let image = image.grad_remove(&mut tape).expect(found);
        let caption = caption.grad_remove(&mut tape).expect(found);

        // Backward, part by part.
        let mut first = 0;
        for part in &parts {
            let rows = first..first + part.len();
            let (image, caption) =
                (image.clone().slice([rows.clone()]), caption.clone().slice([rows]));
            let again = || [self.image_tower(part).forward(), self.text_tower(part).forward()];
            let [image_pass, text_pass] = passes.pop().unwrap_or_else(again);
            self.image_tower(part).backward(image_pass, image, &mut grads);
            self.text_tower(part).backward(text_pass, caption, &mut grads);
            first += part.len();
        }
        (loss, grads.into_params())
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
#[derive(Clone)]
struct Inputs {
    /// `[batch, 3, height, width]`, without autodiff.
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
            pixels: Tensor::from_data(pixels, device).inner(),
            token_ids: tokens(&batch.token_ids, batch.len, device),
            pids: Tensor::from_data(TensorData::new(batch.pids, [batch.len]), device),
        }
    }

    fn len(&self) -> usize {
        self.pixels.dims()[0]
    }

    /// Parts of `size` samples, the last of what is left; 0 makes one part.
    fn split(&self, size: usize) -> Vec<Self> {
        let len = self.len();
        if size == 0 {
            return vec![self.clone()]; // a slice would be a copy
        }
        let part = |first: usize| {
            let rows = first..(first + size).min(len);
            Self {
                pixels: self.pixels.clone().slice([rows.clone()]),
                token_ids: self.token_ids.clone().slice([rows.clone()]),
                pids: self.pids.clone().slice([rows]),
            }
        };
        (0..len).step_by(size).map(part).collect()
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

/// The lengths that captions may be cut to below `context`, from the longest.
pub(crate) fn shorter_lengths(context: usize) -> impl Iterator<Item = usize> {
    (1..context.div_ceil(LENGTH_STEP)).rev().map(|steps| steps * LENGTH_STEP)
}

/// Tokens up to and with the end of text, the largest id.
fn used_length(row: &[i32]) -> usize {
    let last = (0..row.len()).max_by_key(|&i| (row[i], std::cmp::Reverse(i)));
    last.map_or(0, |i| i + 1)
}

#[cfg(test)]
mod tests;
