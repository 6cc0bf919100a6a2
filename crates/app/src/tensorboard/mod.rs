//! The records of a run as TensorBoard event files: one file per attempt, in `tensorboard/`.

mod wire;

use crate::records::{EvalRecord, Percent, Record, StepRecord};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use wire::Event;

/// An event file, open at its end.
pub(crate) struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Begins a file in `folder` for a run that goes on after `step`. TensorBoard forgets what an
    /// earlier file has beyond it.
    pub(crate) fn begin(folder: &Path, step: u64) -> Result<Self> {
        let shown = folder.display();
        fs::create_dir_all(folder).with_context(|| format!("cannot create {shown}"))?;
        let now_s = now_s();
        // TensorBoard reads the files of a folder in the order of their names, and takes those with
        // `tfevents` in it.
        let name = format!("events.out.tfevents.{now_s:017.6}.{}", std::process::id());
        let path = folder.join(name);
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()));
        let mut events = Self { file: file?, path };
        events.write(&Event::version(now_s))?;
        events.write(&Event::restart(now_s, step + 1))?;
        Ok(events)
    }

    /// Adds a record's scalars.
    pub(crate) fn record(&mut self, record: &Record) -> Result<()> {
        let (step, scalars) = match record {
            Record::Step(record) => (record.step, of_step(record)),
            Record::Eval(record) => (record.step, of_evaluation(record)),
        };
        self.write(&Event::scalars(now_s(), step, &scalars))
    }

    fn write(&mut self, event: &Event) -> Result<()> {
        let written = self.file.write_all(&event.framed());
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn of_step(record: &StepRecord) -> Vec<(String, f32)> {
    let values = [
        ("loss", Some(record.loss)),
        ("lr", Some(record.lr as f32)),
        ("grad_norm", record.grad_norm),
        ("loss_scale", record.scale),
        ("skipped", Some(f32::from(u8::from(record.skipped)))),
    ];
    let known = values.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.map(|(name, value)| (format!("train/{name}"), value)).collect()
}

fn of_evaluation(record: &EvalRecord) -> Vec<(String, f32)> {
    let of = |group: &str, Percent { r1, r5, r10, map, minp }: Percent| {
        [("r1", r1), ("r5", r5), ("r10", r10), ("map", map), ("minp", minp)]
            .map(|(name, value)| (format!("{group}/{name}"), value as f32))
    };
    let (val, raw, i2t) = (record.val, record.val_raw, record.val_i2t);
    [of("val_t2i", val), of("val_t2i_raw", raw), of("val_i2t", i2t)].into_iter().flatten().collect()
}

/// Seconds since 1970-01-01 UTC.
fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}
