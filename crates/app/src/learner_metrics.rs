//! What burn-train follows: the loss of each step, and validation t2i R@1 of each evaluation,
//! which selects the best checkpoint.

use crate::evaluate::{EvalOutput, EvalSet};
use crate::learner::{Net, StepOutput};
use burn::tensor::{ExecutionError, TensorReadError};
use burn::train::metric::{
    Adaptor, LossInput, Metric, MetricAttributes, MetricMetadata, MetricName, Numeric,
    NumericAttributes, NumericEntry, SerializedEntry,
};
use burn::train::{InferenceStep, ItemLazy};
use std::sync::Arc;

impl Adaptor<LossInput> for StepOutput {
    fn adapt(&self) -> LossInput {
        LossInput::new(self.loss.clone())
    }
}

impl InferenceStep for Net {
    type Input = Arc<EvalSet>;
    type Output = EvalOutput;

    /// A whole split is one item: retrieval has no meaning on a part of it.
    fn step(&self, split: Arc<EvalSet>) -> EvalOutput {
        EvalOutput(split.evaluate(&self.clip, self.policy.compute).map(Arc::new))
    }
}

impl ItemLazy for EvalOutput {
    fn sync(self) -> Result<Self, ExecutionError> {
        Ok(self)
    }
}

impl Adaptor<f64> for EvalOutput {
    fn adapt(&self) -> f64 {
        self.0.as_ref().map_or(f64::NAN, |evaluation| evaluation.t2i.scores.r1)
    }
}

/// Text-to-image R@1 of an evaluation, in percent.
#[derive(Clone, Default)]
pub(crate) struct T2iR1 {
    r1: f64,
}

impl T2iR1 {
    pub(crate) const NAME: &str = "t2i R@1";
}

impl Metric for T2iR1 {
    type Input = f64;

    fn name(&self) -> MetricName {
        Arc::new(Self::NAME.to_owned())
    }

    fn attributes(&self) -> MetricAttributes {
        NumericAttributes { unit: Some("%".to_owned()), higher_is_better: true }.into()
    }

    fn update(&mut self, r1: &f64, _: &MetricMetadata) -> Result<SerializedEntry, TensorReadError> {
        self.r1 = *r1;
        Ok(SerializedEntry::not_available(Some("%")))
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        let shown = format!("{:.2} %", self.r1);
        Ok(SerializedEntry::new(shown, self.final_value().serialize()))
    }

    fn clear(&mut self) {}
}

impl Numeric for T2iR1 {
    fn value(&self) -> Option<NumericEntry> {
        None
    }

    fn running_value(&self) -> Option<NumericEntry> {
        None
    }

    fn final_value(&self) -> NumericEntry {
        NumericEntry::Final(self.r1)
    }
}
