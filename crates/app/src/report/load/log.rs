//! What metrics.jsonl tells of a run, finished or not.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The lines of a metrics.jsonl, summed up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Log {
    /// By step.
    pub(crate) evaluations: Vec<Evaluation>,
    /// The last step that has a line.
    pub(crate) last_step: Option<u64>,
    /// None before there is a step line that has them.
    pub(crate) step_means: Option<StepMeans>,
    pub(crate) scaler: Scaler,
}

/// One evaluation during training.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Evaluation {
    pub(crate) step: u64,
    pub(crate) epoch: f64,
    /// On the train clock.
    pub(crate) train_s: f64,
    /// Text-to-image R@1 on the selection split, in percent.
    pub(crate) r1: f64,
    /// Of the epoch's batches up to here.
    #[serde(skip)]
    pub(crate) batch_hash: Option<String>,
}

/// Means over the step lines, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct StepMeans {
    pub(crate) wait_s: f64,
    pub(crate) compute_s: f64,
    pub(crate) update_s: f64,
}

/// The loss scale over the steps; empty without one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Scaler {
    /// (step, scale): the first step of each scale, and the last step of all.
    pub(crate) points: Vec<(u64, f64)>,
    /// Steps whose gradients overflowed.
    pub(crate) skipped: Vec<u64>,
}

/// Any line: those of other kinds have none of it.
#[derive(Deserialize)]
struct Line {
    kind: String,
    step: Option<u64>,
    epoch: Option<f64>,
    train_s: Option<f64>,
    val: Option<Scores>,
    batch_hash: Option<String>,
    scale: Option<f64>,
    #[serde(default)]
    skipped: bool,
    wait_s: Option<f64>,
    compute_s: Option<f64>,
    update_s: Option<f64>,
}

#[derive(Deserialize)]
struct Scores {
    r1: f64,
}

/// Reads the lines in order. A torn last line is what a killed run leaves, or one that is being
/// written right now.
pub(super) fn parse(text: &str) -> Result<Log> {
    let mut log = Log::default();
    let mut evaluations = BTreeMap::new();
    let (mut sums, mut num_sums) = (StepMeans::default(), 0_u32);
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let line: Line = match serde_json::from_str(line) {
            Ok(line) => line,
            Err(_) if !line.ends_with('\n') || line.trim().is_empty() => continue,
            Err(error) => return Err(error).with_context(|| format!("metrics.jsonl:{}", i + 1)),
        };
        let Some(step) = line.step else { continue };
        match line.kind.as_str() {
            "step" => {
                if let (Some(wait_s), Some(compute_s), Some(update_s)) =
                    (line.wait_s, line.compute_s, line.update_s)
                {
                    sums.wait_s += wait_s;
                    sums.compute_s += compute_s;
                    sums.update_s += update_s;
                    num_sums += 1;
                }
                log.scaler.add(step, line.scale, line.skipped);
                log.last_step = Some(step);
            }
            "eval" => {
                if let (Some(train_s), Some(val)) = (line.train_s, line.val) {
                    let (epoch, r1) = (line.epoch.unwrap_or_default(), val.r1);
                    let batch_hash = line.batch_hash;
                    let evaluation = Evaluation { step, epoch, train_s, r1, batch_hash };
                    evaluations.insert(step, evaluation);
                }
            }
            _ => {}
        }
    }
    let mean = |sum: f64| sum / f64::from(num_sums);
    log.step_means = (num_sums > 0).then(|| StepMeans {
        wait_s: mean(sums.wait_s),
        compute_s: mean(sums.compute_s),
        update_s: mean(sums.update_s),
    });
    log.evaluations = evaluations.into_values().collect();
    Ok(log)
}

impl Scaler {
    /// Adds a step; one that keeps the scale moves the end of its span.
    fn add(&mut self, step: u64, scale: Option<f64>, skipped: bool) {
        if skipped {
            self.skipped.push(step);
        }
        let Some(scale) = scale else { return };
        match self.points[..] {
            [.., (_, before), (_, last)] if before == last && last == scale => {
                self.points.pop();
            }
            _ => {}
        }
        self.points.push((step, scale));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step: u64, scale: f64, skipped: bool, wait_s: f64) -> String {
        let line = serde_json::json!({"kind": "step", "step": step, "scale": scale,
            "skipped": skipped, "wait_s": wait_s, "compute_s": 2.0, "update_s": 1.0});
        format!("{line}\n")
    }

    #[test]
    fn steps_are_summed_up() {
        let text = [
            step(1, 8.0, true, 0.0),
            step(2, 4.0, false, 1.0),
            step(3, 4.0, false, 2.0),
            step(4, 4.0, false, 3.0),
            "{\"kind\":\"other\",\"step\":9}\n{\"kind\":\"step\",\"st".to_owned(),
        ];
        let log = parse(&text.concat()).unwrap();
        assert_eq!(log.last_step, Some(4));
        assert_eq!(log.scaler.skipped, [1]);
        assert_eq!(log.scaler.points, [(1, 8.0), (2, 4.0), (4, 4.0)]);
        let means = StepMeans { wait_s: 1.5, compute_s: 2.0, update_s: 1.0 };
        assert_eq!(log.step_means, Some(means));
    }

    #[test]
    fn a_line_that_is_no_json_is_named_unless_it_is_torn() {
        assert!(parse("{\"kind\":\"step\",").unwrap().last_step.is_none());
        let error = format!("{:#}", parse("{}\nnonsense\n").unwrap_err());
        assert!(error.starts_with("metrics.jsonl:1"), "{error}");
    }
}
