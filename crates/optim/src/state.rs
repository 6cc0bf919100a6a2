//! The optimizer's state as named tensors and a few numbers, for checkpoints.
//!
//! Tensors are named `exp_avg.<path>`, `exp_avg_sq.<path>` and `ema.<path>`, and have the shape of
//! the parameter at that path.

use std::collections::BTreeMap;

use burn::tensor::{DType, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::error::OptimError;
use crate::grad_scaler::{GradScaler, GradScalerState};
use crate::param_groups::ParamEntry;
use crate::step::{Moments, Optimizer};

/// The numbers of an optimizer's state; with the tensors, all that a resumed run needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimizerState {
    /// Updates made; the schedule and the bias corrections count these.
    pub real_steps: u64,
    /// Steps skipped for gradients that were not finite.
    pub skipped_steps: u64,
    /// Skipped steps since the last real one.
    pub consecutive_skips: u64,
    /// Loss scale and growth tracker, when losses are scaled.
    pub scaler: Option<GradScalerState>,
    /// Updates of the average, when weights are averaged.
    pub ema_updates: Option<u64>,
}

/// Is shown a tensor: its name, its shape, and how to copy it to the host.
pub type See<'a> = dyn FnMut(&str, &[usize], &dyn Fn() -> TensorData) + 'a;

impl Optimizer {
    /// The numbers to save.
    pub fn state(&self) -> OptimizerState {
        OptimizerState {
            scaler: self.scaler.as_ref().map(GradScaler::state),
            ema_updates: self.ema.as_ref().map(|ema| ema.updates),
            ..self.counters
        }
    }

    /// The tensors to save, as a copy on the host.
    pub fn state_tensors(&self) -> Vec<(String, TensorData)> {
        let mut tensors = Vec::new();
        self.visit_state(&mut |name, _, read| tensors.push((name.to_owned(), read())));
        tensors
    }

    /// Shows the tensors to save one after another, always in the same order.
    pub fn visit_state(&self, see: &mut See<'_>) {
        for (i, entry) in self.entries.iter().enumerate() {
            let mut show = |kind: &str, tensor: &Tensor<1>| {
                let name = format!("{kind}.{}", entry.path);
                see(&name, &entry.shape, &|| shaped(tensor, &entry.shape));
            };
            show("exp_avg", &self.moments[i].exp_avg);
            show("exp_avg_sq", &self.moments[i].exp_avg_sq);
            if let Some(ema) = &self.ema {
                show("ema", &ema.shadow[i]);
            }
        }
    }

    /// Goes on from a saved state; nothing changes on an error.
    ///
    /// # Errors
    ///
    /// A tensor that is missing, of another shape or type, or without use; loss scaling or weight
    /// averaging in only one of the state and the settings; a loss scale out of range.
    pub fn load(
        &mut self,
        mut tensors: BTreeMap<String, TensorData>,
        state: OptimizerState,
    ) -> Result<(), OptimError> {
        let mut scaler = self.scaler.clone();
        match (&mut scaler, state.scaler) {
            (Some(scaler), Some(state)) => scaler.load(state)?,
            (None, None) => {}
            _ => return Err(OptimError::StateMismatch { part: "loss scaling" }),
        }
        if self.ema.is_some() != state.ema_updates.is_some() {
            return Err(OptimError::StateMismatch { part: "weight averaging" });
        }

        let mut moments = Vec::with_capacity(self.entries.len());
        let mut shadow = Vec::new();
        for (entry, old) in self.entries.iter().zip(&self.moments) {
            let device = old.exp_avg.device();
            let mut take = |kind: &str| take(&mut tensors, kind, entry, &device);
            let (exp_avg, exp_avg_sq) = (take("exp_avg")?, take("exp_avg_sq")?);
            moments.push(Moments { exp_avg, exp_avg_sq });
            if self.ema.is_some() {
                shadow.push(take("ema")?);
            }
        }
        if let Some((name, _)) = tensors.pop_first() {
            return Err(OptimError::UnexpectedTensor { name });
        }

        (self.scaler, self.moments, self.counters) = (scaler, moments, state);
        if let (Some(ema), Some(updates)) = (&mut self.ema, state.ema_updates) {
            (ema.shadow, ema.updates) = (shadow, updates);
        }
        Ok(())
    }
}

/// `tensor` `[n]` on the host, with `shape`.
fn shaped(tensor: &Tensor<1>, shape: &[usize]) -> TensorData {
    let (bytes, _, dtype) = tensor.to_data().into_parts();
    TensorData::from_bytes(bytes, shape.to_vec(), dtype)
}

/// Takes `<kind>.<path>` out of `tensors`, as a flat tensor `[n]` on `device`.
fn take(
    tensors: &mut BTreeMap<String, TensorData>,
    kind: &str,
    entry: &ParamEntry,
    device: &Device,
) -> Result<Tensor<1>, OptimError> {
    let name = format!("{kind}.{}", entry.path);
    let Some(data) = tensors.remove(&name) else {
        return Err(OptimError::MissingTensor { name });
    };
    let (bytes, found, found_dtype) = data.into_parts();
    let found = found.to_vec();
    if found != entry.shape || found_dtype != DType::F32 {
        let expected = entry.shape.clone();
        return Err(OptimError::WrongTensor { name, expected, found, found_dtype });
    }
    let data = TensorData::from_bytes(bytes, [entry.num_elements], DType::F32);
    Ok(Tensor::from_data(data, (device, DType::F32)))
}
