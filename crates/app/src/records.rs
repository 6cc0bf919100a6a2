//! The records of a run: a line of `metrics.jsonl` per logged step and per evaluation, and
//! `summary.json` at the end. Keys that end in `_s` are times in seconds.

use crate::run_dir::{RunDir, append};
use crate::tensorboard::EventFile;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use tbps_metrics::chrono::Elapsed;
use tbps_metrics::retrieval::Scores;

/// A line of `metrics.jsonl`.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Record {
    Step(StepRecord),
    Eval(EvalRecord),
}

/// An optimizer step, made or skipped.
#[derive(Debug, Serialize)]
pub(crate) struct StepRecord {
    pub(crate) step: u64,
    pub(crate) epoch: usize,
    pub(crate) loss: f32,
    pub(crate) lr: f64,
    /// Before clipping; null when it is not finite.
    pub(crate) grad_norm: Option<f32>,
    pub(crate) scale: Option<f32>,
    pub(crate) skipped: bool,
    #[serde(flatten)]
    pub(crate) parts: StepParts,
    #[serde(flatten)]
    pub(crate) clocks: Elapsed,
}

/// Where the time of one step went, as the host sees it: a device that works on its own is waited
/// for in the update, which reads the gradients' norm.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct StepParts {
    /// Until the loader had a batch.
    pub(crate) wait_s: f64,
    /// Forward and backward.
    pub(crate) compute_s: f64,
    /// Norm, clipping, AdamW and the average.
    pub(crate) update_s: f64,
}

/// An evaluation on the selection split.
#[derive(Debug, Serialize)]
pub(crate) struct EvalRecord {
    pub(crate) step: u64,
    pub(crate) epoch: Epochs,
    /// Text to image, of the weights that are selected on: the average's when there is one.
    pub(crate) val: Percent,
    /// Text to image, of the weights that are trained.
    pub(crate) val_raw: Percent,
    /// Image to text, of the weights that are selected on.
    pub(crate) val_i2t: Percent,
    pub(crate) best: bool,
    /// How many times two pairs of one person shared a batch of the epoch: false negatives of ITC.
    pub(crate) same_pid_pairs: u64,
    /// Held after it, on the device or, where that has no pool, allocated on the host.
    pub(crate) resident_bytes: u64,
    /// Of the batches of this epoch so far, in their order: equal in all cells of a seed.
    pub(crate) batch_hash: String,
    #[serde(flatten)]
    pub(crate) clocks: Elapsed,
}

/// Epochs of training, with a fraction where an evaluation falls within one. Whole ones are written
/// as integers.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(crate) struct Epochs(pub(crate) f64);

impl Serialize for Epochs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.fract() {
            0.0 => serializer.serialize_u64(self.0 as u64),
            _ => serializer.serialize_f64(self.0),
        }
    }
}

/// Scores in percent, as records show them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Percent {
    pub(crate) r1: f64,
    pub(crate) r5: f64,
    pub(crate) r10: f64,
    pub(crate) map: f64,
    pub(crate) minp: f64,
}

impl From<&Scores> for Percent {
    fn from(s: &Scores) -> Self {
        Self { r1: s.r1, r5: s.r5, r10: s.r10, map: s.map, minp: s.minp }
    }
}

/// `metrics.jsonl`, open at its end, and TensorBoard's copy of it.
pub(crate) struct MetricsLog {
    file: File,
    events: Option<EventFile>,
}

/// What the clocks showed at a line, of whatever kind.
#[derive(Deserialize)]
struct Clocks {
    train_s: f64,
    eval_s: f64,
    checkpoint_s: f64,
    warmup_s: f64,
    e2e_s: f64,
}

impl Clocks {
    /// Moves each clock on to what it showed here.
    fn catch_up(&self, elapsed: &mut Elapsed) {
        for (clock, shown) in [
            (&mut elapsed.train_s, self.train_s),
            (&mut elapsed.eval_s, self.eval_s),
            (&mut elapsed.checkpoint_s, self.checkpoint_s),
            (&mut elapsed.warmup_s, self.warmup_s),
            (&mut elapsed.e2e_s, self.e2e_s),
        ] {
            *clock = clock.max(shown);
        }
    }
}

impl MetricsLog {
    /// Opens the log of a run that goes on from a point at which the log had `len` bytes: what was
    /// written after it is cut off, since it will be written again.
    ///
    /// `elapsed` moves to the times of the last line that is cut off: time that was spent counts,
    /// also when its work is lost.
    pub(crate) fn open(run: &RunDir, len: u64, elapsed: &mut Elapsed) -> Result<Self> {
        let path = run.metrics();
        let written = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e).with_context(|| format!("cannot read {}", path.display())),
        };
        let lost = written.get(len as usize..).unwrap_or_default();
        let mut lines = lost.split(|b| *b == b'\n').rev();
        if let Some(last) = lines.find_map(|l| serde_json::from_slice::<Clocks>(l).ok()) {
            last.catch_up(elapsed);
        }
        let file = append(&path)?;
        file.set_len(len).with_context(|| format!("cannot cut {}", path.display()))?;
        Ok(Self { file, events: None })
    }

    /// Writes every record into an event file too.
    pub(crate) fn with_events(self, events: Option<EventFile>) -> Self {
        Self { events, ..self }
    }

    pub(crate) fn write(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.file.write_all(&line).context("cannot write metrics.jsonl")?;
        self.events.as_mut().map_or(Ok(()), |events| events.record(record))
    }

    /// Bytes written, after the disk has them.
    pub(crate) fn sync(&self) -> Result<u64> {
        self.file.sync_all().context("cannot write metrics.jsonl")?;
        Ok(self.file.metadata()?.len())
    }
}

/// `summary.json`: the result of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) cell: String,
    pub(crate) seed: u64,
    pub(crate) status: Status,
    /// What went wrong and what to try; null when done.
    pub(crate) message: Option<String>,
    pub(crate) epochs: usize,
    pub(crate) best_epoch: Option<Epochs>,
    pub(crate) val: Option<Percent>,
    pub(crate) val_raw: Option<Percent>,
    pub(crate) test: Option<Percent>,
    pub(crate) train_s_to_best: Option<f64>,
    pub(crate) e2e_s_to_best: Option<f64>,
    pub(crate) train_s: Option<f64>,
    pub(crate) e2e_s: Option<f64>,
    pub(crate) eval_s: Option<f64>,
    pub(crate) checkpoint_s: Option<f64>,
    pub(crate) warmup_s: Option<f64>,
    pub(crate) time_to_target: Vec<TargetRecord>,
    pub(crate) samples_per_s: Option<f64>,
    pub(crate) steps: Option<u64>,
    pub(crate) skipped_steps: Option<u64>,
    pub(crate) executed_steps: u64,
    pub(crate) final_scale: Option<f32>,
    #[serde(flatten)]
    pub(crate) memory: crate::memory::MemoryRecord,
    pub(crate) best_weights_sha256: Option<String>,
    pub(crate) tf32: bool,
}

impl Summary {
    /// A summary that knows nothing but how the run ended.
    pub(crate) fn of(status: Status) -> Self {
        Self {
            cell: String::new(),
            seed: 0,
            status,
            message: None,
            epochs: 0,
            best_epoch: None,
            val: None,
            val_raw: None,
            test: None,
            train_s_to_best: None,
            e2e_s_to_best: None,
            train_s: None,
            e2e_s: None,
            eval_s: None,
            checkpoint_s: None,
            warmup_s: None,
            time_to_target: Vec::new(),
            samples_per_s: None,
            steps: None,
            skipped_steps: None,
            executed_steps: 0,
            final_scale: None,
            memory: crate::memory::Peaks::default().into(),
            best_weights_sha256: None,
            tf32: false,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Done,
    Failed,
    Oom,
    Diverged,
}

/// When a validation t2i R@1 was first reached; nulls when it was not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct TargetRecord {
    pub(crate) r1: f64,
    pub(crate) train_s: Option<f64>,
    pub(crate) e2e_s: Option<f64>,
    pub(crate) epoch: Option<Epochs>,
    pub(crate) step: Option<u64>,
}

impl TargetRecord {
    pub(crate) fn new(r1: f64) -> Self {
        Self { r1, train_s: None, e2e_s: None, epoch: None, step: None }
    }
}
