//! All that a run must remember to go on as if it had never stopped.

use crate::checkpoint::{self, Contents, Files};
use crate::learner::Net;
use crate::memory::Peaks;
use crate::model_file::recipe_of;
use crate::records::{Epochs, Percent, TargetRecord};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tbps_metrics::chrono::Elapsed;
use tbps_model::config::ClipConfig;
use tbps_model::weights;
use tbps_optim::{Optimizer, OptimizerState};

/// The classifier of the identity loss: training goes on with it, and nothing else uses it.
const CLASSIFIER: &str = "classifier.safetensors";
const WEIGHTS: &str = "weights.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";

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
    /// The step of the latest evaluation; 0 before the first.
    pub(crate) evaluated: u64,
    /// Of the batches of this epoch that are done, in their order; empty before the first.
    pub(crate) batch_hash: String,
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
    pub(crate) epoch: Epochs,
    pub(crate) step: u64,
    pub(crate) val: Percent,
    pub(crate) val_raw: Percent,
    pub(crate) train_s: f64,
    pub(crate) e2e_s: f64,
}

impl State {
    pub(crate) fn new(targets: &[f64]) -> Self {
        Self {
            epoch: 1,
            batch: 0,
            step: 0,
            evaluated: 0,
            batch_hash: String::new(),
            best: None,
            targets: targets.iter().copied().map(TargetRecord::new).collect(),
            elapsed: Elapsed::default(),
            peaks: Peaks::default(),
            metrics_bytes: 0,
            optimizer: None,
        }
    }

    /// Takes account of a batch that was trained on, by its digest.
    pub(crate) fn saw(&mut self, digest: &[u8]) {
        self.batch_hash = checkpoint::sha256(&[self.batch_hash.as_bytes(), digest].concat());
    }

    /// The files of a checkpoint that training can go on from.
    pub(crate) fn to_contents<'a>(
        &self,
        net: &'a Net,
        model: &ClipConfig,
        optimizer: &'a Optimizer,
    ) -> Result<Contents<'a>> {
        let state = Self { optimizer: Some(optimizer.state()), ..self.clone() };
        let recipe = Some(recipe_of(model));
        let mut contents = Contents::from([
            ("state.json", checkpoint::bytes(serde_json::to_vec_pretty(&state)?)),
            (WEIGHTS, checkpoint::tensors(recipe, |see| weights::visit(&net.clip, see))),
            (OPTIMIZER, checkpoint::tensors(None, |see| optimizer.visit_state(see))),
        ]);
        if let Some(classifier) = &net.classifier {
            let content = checkpoint::tensors(None, |see| weights::visit(classifier, see));
            contents.insert(CLASSIFIER, content);
        }
        Ok(contents)
    }

    /// The other way: the state, the network with its weights, and `optimizer` with its own.
    pub(crate) fn from_files(
        mut files: Files,
        mut net: Net,
        optimizer: &mut Optimizer,
    ) -> Result<(Self, Net)> {
        let mut take = |name: &str| files.remove(name).with_context(|| format!("no {name}"));
        let state: Self = serde_json::from_slice(&take("state.json")?).context("state.json")?;
        let numbers = state.optimizer.context("state.json has no optimizer state")?;
        let tensors = checkpoint::from_safetensors(&take(WEIGHTS)?)?;
        net.clip = weights::load(net.clip, tensors)?;
        if let Some(classifier) = net.classifier {
            let tensors = checkpoint::from_safetensors(&take(CLASSIFIER)?)?;
            net.classifier = Some(weights::load(classifier, tensors)?);
        }
        let tensors = checkpoint::from_safetensors(&take(OPTIMIZER)?)?;
        optimizer.load(tensors, numbers)?;
        Ok((state, net))
    }
}
