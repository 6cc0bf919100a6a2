//! All that a run must remember to go on as if it had never stopped.

use crate::checkpoint::{self, Files};
use crate::memory::Peaks;
use crate::records::{Percent, TargetRecord};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tbps_metrics::chrono::Elapsed;
use tbps_model::{Clip, weights};
use tbps_optim::{Optimizer, OptimizerState};

/// Progress of a run, as a checkpoint saves it beside the tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// The epoch that is next or under way, from 1.
    pub(crate) epoch: usize,
    /// Batches of it that are done.
    pub(crate) batch: usize,
    /// Steps done, skipped ones included.
    pub(crate) step: u64,
    pub(crate) best: Option<Best>,
    pub(crate) targets: Vec<TargetRecord>,
    pub(crate) elapsed: Elapsed,
    pub(crate) peaks: Peaks,
    /// Bytes of `metrics.jsonl` that belong to this state.
    pub(crate) metrics_bytes: u64,
    pub(crate) optimizer: Option<OptimizerState>,
}

/// The evaluation that the best checkpoint was selected by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Best {
    pub(crate) epoch: usize,
    pub(crate) step: u64,
    pub(crate) val: Percent,
    pub(crate) val_raw: Percent,
    pub(crate) train_s: f64,
    pub(crate) e2e_s: f64,
}

impl State {
    pub(crate) fn new(targets: &[f64]) -> Self {
        let target = |r1: &f64| TargetRecord { r1: *r1, train_s: None, e2e_s: None, epoch: None };
        Self {
            epoch: 1,
            batch: 0,
            step: 0,
            best: None,
            targets: targets.iter().map(target).collect(),
            elapsed: Elapsed::default(),
            peaks: Peaks::default(),
            metrics_bytes: 0,
            optimizer: None,
        }
    }

    /// The files of a checkpoint that training can go on from.
    pub(crate) fn to_files(&self, clip: &Clip, optimizer: &Optimizer) -> Result<Files> {
        let state = Self { optimizer: Some(optimizer.state()), ..self.clone() };
        let tensors = optimizer.state_tensors();
        Ok(Files::from([
            ("state.json".to_owned(), serde_json::to_vec_pretty(&state)?),
            ("weights.safetensors".to_owned(), weights_file(clip)?),
            ("optimizer.safetensors".to_owned(), checkpoint::to_safetensors(&tensors)?),
        ]))
    }

    /// The other way: the state, the model with its weights, and `optimizer` with its own.
    pub(crate) fn from_files(
        mut files: Files,
        clip: Clip,
        optimizer: &mut Optimizer,
    ) -> Result<(Self, Clip)> {
        let mut take = |name: &str| files.remove(name).with_context(|| format!("no {name}"));
        let state: Self = serde_json::from_slice(&take("state.json")?).context("state.json")?;
        let numbers = state.optimizer.context("state.json has no optimizer state")?;
        let tensors = checkpoint::from_safetensors(&take("weights.safetensors")?)?;
        let clip = weights::load(clip, tensors)?;
        let tensors = checkpoint::from_safetensors(&take("optimizer.safetensors")?)?;
        optimizer.load(tensors, numbers)?;
        Ok((state, clip))
    }
}

/// The model's parameters as a safetensors file.
pub(crate) fn weights_file(clip: &Clip) -> Result<Vec<u8>> {
    checkpoint::to_safetensors(&weights::state_dict(clip))
}
