//! The optimizer step: unscale, finite test, clip, AdamW and average, each tensor in turn.
//!
//! The gradients are read twice and consumed by the second pass; beside the model, the gradients,
//! the moments and the averages, memory holds temporaries of one tensor.

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Tensor};

use crate::adamw::{self, AdamWConfig, ParamState, Scalars};
use crate::ema::{Ema, EmaConfig};
use crate::error::{OptimError, require};
use crate::grad_norm::{clip_factor, global_norm};
use crate::grad_scaler::{GradScaler, GradScalerConfig};
use crate::param_groups::{ParamEntry, ParamGroup, assign};
use crate::schedule::WarmupCosine;
use crate::state::OptimizerState;

/// All settings of an [`Optimizer`].
#[derive(Clone, Debug)]
pub struct OptimizerConfig {
    /// Betas and epsilon.
    pub adamw: AdamWConfig,
    /// Learning rate by real step.
    pub schedule: WarmupCosine,
    /// Tried in order; the first that matches takes the parameter.
    pub groups: Vec<ParamGroup>,
    /// Loss scaling, needed when activations are f16.
    pub scaler: Option<GradScalerConfig>,
    /// Highest global gradient norm; gradients above it are shrunk.
    pub clip_norm: Option<f32>,
    /// Weight averaging.
    pub ema: Option<EmaConfig>,
}

impl OptimizerConfig {
    /// AdamW with PyTorch's defaults and no weight decay, scaling, clipping or averaging.
    pub fn new(schedule: WarmupCosine) -> Self {
        Self {
            adamw: AdamWConfig::default(),
            schedule,
            groups: ParamGroup::without_decay_for(&[], 0.0),
            scaler: None,
            clip_norm: None,
            ema: None,
        }
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepOutcome {
    /// Learning rate of the schedule, before any group's factor.
    pub lr: f64,
    /// Global L2 norm of the unscaled gradients, before clipping.
    pub grad_norm: f32,
    /// Whether the update was made. If not, `grad_norm` is infinite or NaN: with a loss scale that
    /// is ordinary now and then, without one the training has diverged.
    pub applied: bool,
    /// Loss scale of this step, when losses are scaled.
    pub scale: Option<f32>,
}

/// Running means of one parameter's gradient and of its square, each `[n]`.
#[derive(Clone, Debug)]
pub(crate) struct Moments {
    pub(crate) exp_avg: Tensor<1>,
    pub(crate) exp_avg_sq: Tensor<1>,
}

/// AdamW with everything that a training step does to the weights.
#[derive(Clone, Debug)]
pub struct Optimizer {
    adamw: AdamWConfig,
    schedule: WarmupCosine,
    groups: Vec<ParamGroup>,
    clip_norm: Option<f32>,
    pub(crate) scaler: Option<GradScaler>,
    pub(crate) ema: Option<Ema>,
    /// Trainable parameters in visit order, and their moments.
    pub(crate) entries: Vec<ParamEntry>,
    pub(crate) moments: Vec<Moments>,
    /// The steps; scaler and EMA keep their own numbers.
    pub(crate) counters: OptimizerState,
}

impl Optimizer {
    /// An optimizer for `model`, which must be on an autodiff device.
    ///
    /// # Errors
    ///
    /// A setting out of range or without effect; see [`assign`] for what the model must be.
    pub fn new<M: Module>(model: &M, config: OptimizerConfig) -> Result<Self, OptimError> {
        config.adamw.validate()?;
        config.schedule.validate()?;
        if let Some(max) = config.clip_norm {
            require(max > 0.0 && max.is_finite(), "clip_norm", max.into(), "positive and finite")?;
        }
        let mut entries = assign(model, &config.groups)?;
        entries.retain(|entry| entry.trainable);
        Ok(Self {
            adamw: config.adamw,
            schedule: config.schedule,
            groups: config.groups,
            clip_norm: config.clip_norm,
            scaler: config.scaler.map(GradScaler::new).transpose()?,
            ema: config.ema.map(|ema| Ema::new(model, ema)).transpose()?,
            moments: zero_moments(model, &entries),
            entries,
            counters: OptimizerState {
                real_steps: 0,
                skipped_steps: 0,
                consecutive_skips: 0,
                scaler: None,
                ema_updates: None,
            },
        })
    }

    /// Factor for the loss before `backward()`: 1 without loss scaling.
    pub fn loss_scale(&self) -> f32 {
        self.scaler.as_ref().map_or(1.0, GradScaler::scale)
    }

    /// The trainable parameters in visit order, each with its group.
    pub fn entries(&self) -> &[ParamEntry] {
        &self.entries
    }

    /// The groups that [`ParamEntry::group`] counts.
    pub fn groups(&self) -> &[ParamGroup] {
        &self.groups
    }

    /// The weight average, when there is one.
    pub fn ema(&self) -> Option<&Ema> {
        self.ema.as_ref()
    }

    /// Updates `model` by `grads`, the gradients of the loss times [`loss_scale`](Self::loss_scale).
    ///
    /// When the gradients aren't finite, nothing changes but the loss scale and the count of
    /// skipped steps: neither the parameters, moments and averages, nor the schedule.
    /// The parameters stay trainable and keep their ids.
    ///
    /// # Errors
    ///
    /// See [`global_norm`]. The optimizer is unchanged then, but the model has been consumed.
    pub fn step<M: Module>(
        &mut self,
        model: M,
        grads: GradientsParams,
    ) -> Result<(M, StepOutcome), OptimError> {
        let inv_scale = self.scaler.as_ref().map_or(1.0, GradScaler::inv_scale);
        let grad_norm = global_norm(&model, &grads, &self.entries, inv_scale)?;
        let outcome = StepOutcome {
            lr: self.schedule.lr(self.counters.real_steps),
            grad_norm,
            applied: grad_norm.is_finite(),
            scale: self.scaler.as_ref().map(GradScaler::scale),
        };
        if let Some(scaler) = &mut self.scaler {
            scaler.update(!outcome.applied);
        }
        if !outcome.applied {
            self.counters.skipped_steps += 1;
            self.counters.consecutive_skips += 1;
            return Ok((model, outcome));
        }
        let clip = self.clip_norm.map_or(1.0, |max| clip_factor(grad_norm, max));
        let model = self.update(model, grads, outcome.lr, inv_scale * clip);
        Ok((model, outcome))
    }

    /// The pass over the parameters of a step that is known to be good.
    fn update<M: Module>(
        &mut self,
        model: M,
        grads: GradientsParams,
        lr: f64,
        grad_factor: f32,
    ) -> M {
        let mut pass = Pass {
            scalars: self.scalars(lr, grad_factor),
            entries: self.entries.iter(),
            grads,
            old: std::mem::take(&mut self.moments).into_iter(),
            new: Vec::with_capacity(self.entries.len()),
            old_ema: self.ema.as_mut().map(|ema| std::mem::take(&mut ema.shadow).into_iter()),
            new_ema: Vec::new(),
        };
        let model = model.map(&mut pass);
        self.moments = pass.new;
        if let Some(ema) = &mut self.ema {
            ema.shadow = pass.new_ema;
            ema.updates += 1;
        }
        self.counters.real_steps += 1;
        self.counters.consecutive_skips = 0;
        model
    }

    /// The scalars of the next update, by group.
    pub(crate) fn scalars(&self, lr: f64, grad_factor: f32) -> Vec<Scalars> {
        let update = self.counters.real_steps + 1;
        let ema_weight = self.ema.as_ref().map_or(0.0, Ema::next_weight);
        let of_group = |group: &ParamGroup| Scalars {
            grad_factor,
            ema_weight,
            clamp_max: group.clamp_max.map(|max| max as f32),
            ..self.adamw.scalars(update, lr * group.lr_scale, group.weight_decay)
        };
        self.groups.iter().map(of_group).collect()
    }
}

/// Maps each trainable parameter to its updated self, moving moments and averages from old to new.
struct Pass<'a> {
    scalars: Vec<Scalars>,
    entries: std::slice::Iter<'a, ParamEntry>,
    grads: GradientsParams,
    old: std::vec::IntoIter<Moments>,
    new: Vec<Moments>,
    old_ema: Option<std::vec::IntoIter<Tensor<1>>>,
    new_ema: Vec<Tensor<1>>,
}

/// Why a pass finds everything it looks for.
const CHECKED: &str = "`global_norm` found the same parameters and all their gradients";

impl ModuleMapper for Pass<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !param.is_require_grad() {
            return param;
        }
        let entry = self.entries.next().expect(CHECKED);
        let grad = self.grads.remove::<D>(param.id).expect(CHECKED);
        let grad = grad.inner().reshape([entry.num_elements]);
        let Moments { exp_avg, exp_avg_sq } = self.old.next().expect(CHECKED);
        let ema = self.old_ema.as_mut().map(|ema| ema.next().expect(CHECKED));
        let scalars = &self.scalars[entry.group];

        // `map` moves the value out of the parameter, so that it can be overwritten in place.
        param.map(|value| {
            let shape = value.shape();
            let strategy = value.gradient_checkpointing_strategy();
            let param = value.inner().reshape([entry.num_elements]);
            let state = ParamState { param, exp_avg, exp_avg_sq, ema };
            let ParamState { param, exp_avg, exp_avg_sq, ema } =
                adamw::update(state, grad, scalars);
            self.new.push(Moments { exp_avg, exp_avg_sq });
            self.new_ema.extend(ema);
            let leaf = Tensor::from_inner(param.reshape(shape));
            let strategy = strategy.expect("a parameter that requires gradients has autodiff");
            leaf.with_gradient_checkpointing_strategy(strategy).require_grad()
        })
    }
}

/// Zeros beside each trainable parameter, on its device.
fn zero_moments<M: Module>(model: &M, entries: &[ParamEntry]) -> Vec<Moments> {
    let device = model.devices().first().map(|device| device.clone().inner());
    let device = device.expect("`assign` found a trainable parameter, which is on a device");
    let zeros = |entry: &ParamEntry| Tensor::zeros([entry.num_elements], (&device, DType::F32));
    entries
        .iter()
        .map(|entry| Moments { exp_avg: zeros(entry), exp_avg_sq: zeros(entry) })
        .collect()
}
