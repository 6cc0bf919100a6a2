//! The training loop, as a strategy of burn-train.
//!
//! burn-train brings the learner, the metrics, their event store and the interrupter; the loop is
//! ours, because its own steps the schedule on skipped steps and cannot keep the protocol's clocks.

mod strategy;

pub(crate) use strategy::Measured;

use crate::checkpoint::{self, Contents};
use crate::config::Config;
use crate::evaluate::Evaluation;
use crate::feed::Feed;
use crate::hold::{self, Place};
use crate::lap::Lap;
use crate::learner::Net;
use crate::memory::Probe;
use crate::model_file::recipe_of;
use crate::progress::Progress;
use crate::ranks;
use crate::records::{Epochs, EvalRecord, MetricsLog, Percent, Record, StepParts, StepRecord};
use crate::run_dir::RunDir;
use crate::state::{Best, State};
use anyhow::{Context, Result, anyhow};
use burn::module::Module;
use burn::tensor::Device;
use burn::train::{TrainLoader, TrainOutput, TrainStep, TrainingItem, ValidLoader};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use strategy::Events;
use tbps_metrics::chrono::{Chrono, Monotonic, Phase};
use tbps_model::weights;
use tbps_optim::{Optimizer, StepOutcome};

/// A run under way: everything beside the model.
pub(crate) struct Run {
    pub(crate) config: Config,
    pub(crate) dir: RunDir,
    pub(crate) device: Device,
    pub(crate) feed: Arc<Feed>,
    pub(crate) optimizer: Optimizer,
    pub(crate) state: State,
    pub(crate) chrono: Chrono<Monotonic>,
    pub(crate) log: MetricsLog,
    pub(crate) progress: Progress,
    pub(crate) probe: Probe,
    /// The end-to-end clock when `last` was written, or when this attempt began.
    pub(crate) saved_at_s: f64,
    /// Takes a byte per executed step.
    pub(crate) executed: File,
}

/// How training came to its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    Done,
    /// Before the last epoch, as the configuration asked; why.
    Stopped(String),
    Interrupted,
    /// Why.
    Diverged(String),
}

/// Trains from the run's state to the last epoch.
fn train(
    run: &mut Run,
    mut net: Net,
    events: &mut Events,
    batches: &TrainLoader<Net>,
    split: &ValidLoader<Net>,
) -> Result<(Net, End)> {
    while run.state.epoch <= run.config.train.epochs {
        if let Some(why) = run.stops_here() {
            return Ok((net, End::Stopped(why)));
        }
        // A stretch of steps, up to the next evaluation.
        events.start_stretch(batches.num_items());
        run.feed.seek(run.state.epoch, run.state.batch);
        run.probe.begin();
        run.chrono.enter(Phase::Train);
        let mut iterator = batches.iter();
        let mut lap = Lap::start();
        while !run.evaluation_is_due()
            && let Some(batch) = iterator.next()
        {
            let (batch, wait_s) = (batch?, lap.split());
            run.state.saw(&batch.digest);

            // Forward and backward, with or without recomputation.
            hold::at(Place::Step);
            net.policy.loss_scale = run.optimizer.loss_scale();
            let TrainOutput { grads, item } = TrainStep::step(&net, batch);
            let compute_s = lap.split();

            // Unscale, finite test, clip, AdamW or skip, average.
            let outcome;
            (net, outcome) = run.optimizer.step(net, grads)?;
            let parts = StepParts { wait_s, compute_s, update_s: lap.split() };

            // Account for it.
            run.executed.write_all(b".").context("cannot write executed_steps")?;
            run.state.step += 1;
            run.state.batch += 1;
            let loss = item.loss.clone().into_scalar::<f32>();
            run.log_step(loss, &outcome, parts)?;
            events.step(TrainingItem::new(
                item,
                iterator.progress(),
                None,
                Some(outcome.lr.into()),
            ));

            // Stop, or leave a checkpoint behind.
            if let Some(why) = run.divergence(loss, &outcome) {
                return Ok((net, End::Diverged(why)));
            }
            if events.interrupter.should_stop() {
                drop(iterator);
                run.save_last(&net)?;
                return Ok((net, End::Interrupted));
            }
            if run.checkpoint_is_due() {
                run.save_last(&net)?;
            }
            if run.out_of_time().is_some() {
                break;
            }
            lap.split(); // accounting and checkpoints are no wait for data
        }
        drop(iterator);
        run.probe.end_training();

        // Evaluate, select, save.
        let averaged = run.optimizer.ema().map(|ema| ema.module(&net)); // on the train clock
        let raw = net.valid();
        run.synchronise()?;
        run.chrono.enter(Phase::Eval);
        run.probe.begin();
        events.end_training();
        let selected = averaged.unwrap_or_else(|| raw.clone());
        let of_raw = run.config.ema.enabled.then_some(&raw);
        let (val, val_raw) = events.evaluate(&selected, of_raw, split)?;
        run.probe.end_evaluation();
        run.chrono.leave();
        let is_best = run.select(events.r1()?, &val, &val_raw)?;
        if is_best {
            run.save_best(&selected, of_raw, &val)?;
        }
        drop((selected, raw)); // else the next step could not overwrite the weights in place
        if run.state.batch == run.feed.batches_per_epoch() {
            run.state.epoch += 1;
            run.state.batch = 0;
            run.state.batch_hash.clear();
        }
        run.save_last(&net)?;
        if events.interrupter.should_stop() {
            return Ok((net, End::Interrupted));
        }
    }
    Ok((net, End::Done))
}

impl Run {
    /// Waits for the device, so that a clock's edge means what it says.
    fn synchronise(&self) -> Result<()> {
        self.device.sync().map_err(|e| anyhow!("the device failed: {e}"))
    }

    fn record(&mut self, record: &Record) -> Result<()> {
        self.progress.show(record);
        self.log.write(record)
    }

    /// Writes down every so many steps, and the first.
    fn log_step(&mut self, loss: f32, outcome: &StepOutcome, parts: StepParts) -> Result<()> {
        let step = self.state.step;
        if step > 1 && !step.is_multiple_of(self.config.train.log_every_steps) {
            return Ok(());
        }
        self.record(&Record::Step(StepRecord {
            step,
            epoch: self.state.epoch,
            loss,
            lr: outcome.lr,
            grad_norm: outcome.applied.then_some(outcome.grad_norm),
            scale: outcome.scale,
            skipped: !outcome.applied,
            parts,
            clocks: self.chrono.elapsed(),
        }))
    }

    /// Whether the weights are to be evaluated before the next step of the epoch.
    fn evaluation_is_due(&self) -> bool {
        let (step, every) = (self.state.step, self.config.eval.every_steps);
        every > 0 && step > self.state.evaluated && step.is_multiple_of(every)
    }

    /// Whether a checkpoint is to be left behind within the epoch.
    fn checkpoint_is_due(&self) -> bool {
        let train = &self.config.train;
        let (steps, minutes) = (train.checkpoint_every_steps, train.checkpoint_every_min);
        let since = self.chrono.elapsed().e2e_s - self.saved_at_s;
        steps > 0 && self.state.step.is_multiple_of(steps)
            || minutes > 0.0 && since >= 60.0 * minutes
    }

    /// Says so when the run is over before its last epoch, which it is only after an evaluation.
    fn stops_here(&self) -> Option<String> {
        let evaluated = self.state.step > 0 && self.state.step == self.state.evaluated;
        evaluated.then(|| self.out_of_time().or_else(|| self.targets_reached()))?
    }

    /// Says so when the run has had its time.
    fn out_of_time(&self) -> Option<String> {
        let hours = self.config.train.max_hours;
        (hours > 0.0 && self.chrono.elapsed().e2e_s >= 3600.0 * hours)
            .then(|| format!("stopped after train.max_hours = {hours:?}"))
    }

    /// Says so when the run has nothing left to reach.
    fn targets_reached(&self) -> Option<String> {
        let reached = self.state.targets.iter().all(|target| target.epoch.is_some());
        (self.config.train.stop_at_target && reached)
            .then(|| "stopped: every target is reached".to_owned())
    }

    /// Why training must not go on, if it must not.
    fn divergence(&self, loss: f32, outcome: &StepOutcome) -> Option<String> {
        let skips = self.optimizer.state().consecutive_skips;
        let step = self.state.step;
        if !loss.is_finite() {
            return Some(format!("the loss is {loss} at step {step}: try a lower optim.lr"));
        }
        if outcome.scale.is_none() && !outcome.applied {
            return Some(format!(
                "the gradients overflow f32 at step {step}: try a lower optim.lr"
            ));
        }
        (skips >= self.config.train.max_consecutive_skips).then(|| {
            format!("{skips} steps in a row overflowed up to step {step}: try a lower optim.lr")
        })
    }

    /// Records an evaluation and says whether it is the best so far; of equals the first is.
    fn select(&mut self, r1: f64, val: &Evaluation, val_raw: &Evaluation) -> Result<bool> {
        let clocks = self.chrono.elapsed();
        let is_best = self.state.best.is_none_or(|best| r1 > best.val.r1);
        let (val, val_i2t) = (Percent::from(&val.t2i.scores), Percent::from(&val.i2t.scores));
        let val_raw = Percent::from(&val_raw.t2i.scores);
        let (train_s, e2e_s, step) = (clocks.train_s, clocks.e2e_s, self.state.step);
        let epoch = self.epochs();
        self.state.evaluated = step;
        if is_best {
            self.state.best = Some(Best { epoch, step, val, val_raw, train_s, e2e_s });
        }
        for target in self.state.targets.iter_mut().filter(|t| t.epoch.is_none() && r1 >= t.r1) {
            (target.train_s, target.e2e_s) = (Some(train_s), Some(e2e_s));
            (target.epoch, target.step) = (Some(epoch), Some(step));
        }
        self.record(&Record::Eval(EvalRecord {
            step,
            epoch,
            val,
            val_raw,
            val_i2t,
            best: is_best,
            same_pid_pairs: self.feed.same_pid_pairs(self.state.epoch),
            resident_bytes: self.probe.peaks.resident,
            batch_hash: self.state.batch_hash.clone(),
            clocks,
        }))?;
        Ok(is_best)
    }

    /// Epochs that are done, with the part of the one under way.
    fn epochs(&self) -> Epochs {
        let part = self.state.batch as f64 / self.feed.batches_per_epoch() as f64;
        Epochs((self.state.epoch - 1) as f64 + part)
    }

    /// Saves the selected weights, the trained ones where they differ, and the ranks behind the
    /// score.
    fn save_best(&mut self, selected: &Net, raw: Option<&Net>, val: &Evaluation) -> Result<()> {
        let before = self.chrono.enter(Phase::Checkpoint);
        let weights = if raw.is_some() { "ema" } else { "raw" };
        let ranks = ranks::pack(self.config.eval.split, weights, val)?;
        let of = |net: &Net| {
            let clip = net.clip.clone(); // handles to the same tensors
            checkpoint::tensors(Some(recipe_of(&self.config.model)), move |see| {
                weights::visit(&clip, see);
            })
        };
        let mut files = Contents::from([
            ("config.toml", checkpoint::bytes(self.config.to_toml()?.into_bytes())),
            (ranks::FILE, checkpoint::bytes(ranks)),
            ("weights.safetensors", of(selected)),
        ]);
        files.extend(raw.map(|raw| ("raw.safetensors", of(raw))));
        checkpoint::write(&self.dir.checkpoints(), "best", &files)?;
        self.chrono.switch(before);
        Ok(())
    }

    /// Saves everything that training needs to go on.
    fn save_last(&mut self, net: &Net) -> Result<()> {
        self.synchronise()?;
        let before = self.chrono.enter(Phase::Checkpoint);
        self.state.metrics_bytes = self.log.sync()?;
        self.executed.sync_data().context("cannot write executed_steps")?;
        self.state.elapsed = self.chrono.elapsed();
        self.state.peaks = self.probe.peaks;
        let files = self.state.to_contents(net, &self.config.model, &self.optimizer)?;
        checkpoint::write(&self.dir.checkpoints(), "last", &files)?;
        self.chrono.switch(before);
        self.saved_at_s = self.chrono.elapsed().e2e_s;
        Ok(())
    }
}
