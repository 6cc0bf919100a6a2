//! burn-train's side of the loop: the strategy that it calls, its events and their store.

use super::{End, Run, train};
use crate::config::Config;
use crate::evaluate::{EvalSet, Evaluation};
use crate::learner::Net;
use crate::learner_metrics::T2iR1;
use anyhow::{Context, Result, anyhow, ensure};
use burn::train::metric::store::{Aggregate, EventStoreClient, Split};
use burn::train::{
    EventProcessorTraining, InferenceStep, Interrupter, Learner, LearnerEvent,
    SupervisedLearningStrategy, SupervisedTrainingEventProcessor, TrainLoader, TrainStep,
    TrainingComponents, TrainingItem, ValidLoader,
};
use std::sync::{Arc, Mutex, PoisonError};

/// burn-train's side of the loop: metrics, their store, and the wish to stop.
pub(super) struct Events {
    processor: SupervisedTrainingEventProcessor<Net>,
    store: Arc<EventStoreClient>,
    pub(super) interrupter: Interrupter,
    /// Stretches between evaluations, which are burn-train's epochs: a resumed run begins a new event
    /// store, which counts from 1.
    stretch: usize,
}

type TrainOf = <Net as TrainStep>::Output;
type ValidOf = <Net as InferenceStep>::Output;

impl Events {
    fn train(&mut self, event: LearnerEvent<TrainOf>) {
        self.interrupter.fail_on_error(self.processor.process_train(event));
    }

    fn valid(&mut self, event: LearnerEvent<ValidOf>) {
        self.interrupter.fail_on_error(self.processor.process_valid(event));
    }

    pub(super) fn start_stretch(&mut self, total_items: usize) {
        self.stretch += 1;
        self.train(LearnerEvent::StartSplit { epoch_number: self.stretch, total_items });
    }

    pub(super) fn step(&mut self, item: TrainingItem<TrainOf>) {
        self.train(LearnerEvent::ProcessedItem(item));
    }

    pub(super) fn end_training(&mut self) {
        self.train(LearnerEvent::EndSplit(self.stretch));
    }

    /// Evaluates the weights that are selected on, and the trained ones where they differ.
    pub(super) fn evaluate(
        &mut self,
        selected: &Net,
        raw: Option<&Net>,
        split: &ValidLoader<Net>,
    ) -> Result<(Arc<Evaluation>, Arc<Evaluation>)> {
        let epoch = self.stretch;
        self.valid(LearnerEvent::StartSplit { epoch_number: epoch, total_items: 1 });
        let mut iterator = split.iter();
        let set: Arc<EvalSet> = iterator.next().context("a split is one item")??;
        let output = InferenceStep::step(selected, Arc::clone(&set));
        let val = output.0.as_ref().map_err(|e| anyhow!("{e:#}"))?.clone();
        self.valid(LearnerEvent::ProcessedItem(TrainingItem::new(
            output,
            iterator.progress(),
            None,
            None,
        )));
        self.valid(LearnerEvent::EndSplit(epoch));
        self.train(LearnerEvent::EndEpoch(epoch));
        self.interrupter.fail_on_error(self.processor.flush());
        let val_raw = match raw {
            Some(raw) => InferenceStep::step(raw, set).0?,
            None => Arc::clone(&val),
        };
        Ok((val, val_raw))
    }

    /// The R@1 that burn-train's metric recorded last: what selects the best checkpoint.
    pub(super) fn r1(&self) -> Result<f64> {
        let r1 = self.store.find_metric(T2iR1::NAME, self.stretch, Aggregate::Mean, &Split::Valid);
        let r1 = r1.context("the event store has no R@1 of this evaluation")?;
        ensure!(r1.is_finite(), "R@1 is {r1}");
        Ok(r1)
    }
}

/// Hands a [`Run`] through burn-train and back.
pub(crate) struct Measured {
    run: Mutex<Option<Run>>,
    end: Mutex<Option<(Run, Result<End>)>>,
}

impl Measured {
    pub(crate) fn new(run: Run) -> Self {
        Self { run: Mutex::new(Some(run)), end: Mutex::new(None) }
    }

    /// The run and how it ended; `None` before burn-train has called the strategy.
    pub(crate) fn end(&self) -> Option<(Run, Result<End>)> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl SupervisedLearningStrategy<Net> for Measured {
    fn fit(
        &self,
        parts: TrainingComponents<Net>,
        learner: Learner<Net>,
        batches: TrainLoader<Net>,
        split: ValidLoader<Net>,
        _starting_epoch: usize,
    ) -> (Net, SupervisedTrainingEventProcessor<Net>) {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut run = run.expect("burn-train calls a strategy once");
        let net = learner.model();
        drop(learner); // its handles would keep the first weights alive
        let TrainingComponents { event_processor, event_store, interrupter, .. } = parts;
        let mut events =
            Events { processor: event_processor, store: event_store, interrupter, stretch: 0 };
        let (net, end) = match train(&mut run, net, &mut events, &batches, &split) {
            Ok((net, end)) => (net, Ok(end)),
            Err(error) => {
                // burn-train wants a model back; this one is never used.
                let Config { model, seed, .. } = &run.config;
                let clip = model.init(*seed, &run.device).expect("it was valid before");
                (Net::new(clip, &run.config, 1), Err(error))
            }
        };
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some((run, end));
        (net, events.processor)
    }
}
