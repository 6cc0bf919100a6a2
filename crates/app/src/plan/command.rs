//! The table of the eight cells, what fits, and the fastest setting that does.

use super::{Prediction, predict};
use crate::cli::PlanArgs;
use crate::config::{Config, Precision, Recompute};
use crate::device::DeviceName;
use crate::failure::Failure;
use crate::print;
use crate::run_dir::write_json;
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write;
use tbps_metrics::memory::{GIB, gib, nvml};

/// What was predicted, as `--json` writes it. Bytes; nothing here is measured.
#[derive(Debug, Serialize)]
struct Plan {
    device: String,
    batch_size: usize,
    /// What the device has; null where nobody said and nobody could be asked.
    memory: Option<u64>,
    cells: Vec<Row>,
    choices: Vec<Row>,
    /// The fastest setting that fits; null where none does or the memory is not known.
    suggestion: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    #[serde(flatten)]
    prediction: Prediction,
    fits: Option<bool>,
}

/// Predicts and prints.
pub(crate) fn run(args: &PlanArgs) -> Result<()> {
    let config = Config::load(&args.config, &args.overrides)?;
    let memory = match args.memory_gib {
        Some(gib) if gib > 0.0 && gib.is_finite() => Some((gib * GIB as f64) as u64),
        Some(gib) => {
            return Err(Failure::usage(format!("--memory-gib {gib}: expected a positive number")));
        }
        None => args.device.driver().and_then(|id| nvml::describe(&id)).map(|d| d.total_bytes),
    };
    let plan = plan(&config, args.device, memory);
    if let Some(path) = &args.json {
        write_json(path, &plan)?;
    }
    print(&shown(&plan))
}

fn plan(config: &Config, device: DeviceName, memory: Option<u64>) -> Plan {
    let row = |name: String, config: &Config| {
        let prediction = predict(config, device);
        Row { name, prediction, fits: memory.map(|memory| prediction.peak <= memory) }
    };
    let cells = cells(config).into_iter().map(|cell| row(cell.cell(), &cell)).collect();
    let mut choices: Vec<Row> =
        choices(config).into_iter().map(|(name, choice)| row(name, &choice)).collect();
    choices.sort_by(|a, b| a.prediction.work.total_cmp(&b.prediction.work));
    let suggestion = choices.iter().find(|row| row.fits == Some(true)).map(|row| row.name.clone());
    let batch_size = config.train.batch_size;
    Plan { device: device.to_string(), batch_size, memory, cells, choices, suggestion }
}

/// The ablation's cells of a configuration.
fn cells(config: &Config) -> Vec<Config> {
    let mut cells = Vec::new();
    for precision in [Precision::Fp32, Precision::AmpFp16] {
        for ema in [false, true] {
            for recompute in [Recompute::Off, Recompute::Block] {
                let mut cell = Config { precision, recompute, ..config.clone() };
                cell.ema.enabled = ema;
                cells.push(cell);
            }
        }
    }
    cells
}

/// The ways to train the configuration's own precision and average, with what sets them.
fn choices(config: &Config) -> Vec<(String, Config)> {
    let layers = config.model.vision.layers.max(config.model.text.layers);
    let mut recomputes = vec![Recompute::Off, Recompute::Attention, Recompute::Block];
    recomputes.extend([2, 3].into_iter().filter(|k| *k < layers).map(Recompute::Every));
    let batch = config.train.batch_size;
    let halves = std::iter::successors(Some(batch), |m| (m % 2 == 0).then_some(m / 2));
    let mut choices = Vec::new();
    for micro_batch in halves {
        for recompute in &recomputes {
            let mut choice = Config { recompute: *recompute, ..config.clone() };
            choice.train.micro_batch = if micro_batch == batch { 0 } else { micro_batch };
            let mut name = format!("recompute = \"{}\"", String::from(*recompute));
            if choice.train.micro_batch > 0 {
                _ = write!(name, ", train.micro_batch = {micro_batch}");
            }
            choices.push((name, choice));
        }
    }
    choices
}

fn shown(plan: &Plan) -> String {
    let mut text = format!(
        "Predicted for {}, batch {}; nothing here is measured. GiB.\n\n",
        plan.device, plan.batch_size
    );
    let width = plan.cells.iter().chain(&plan.choices).map(|row| row.name.len()).max().unwrap_or(0);
    for (title, rows) in [("cell", &plan.cells), ("setting", &plan.choices)] {
        _ = writeln!(
            text,
            "{title:width$}  {:>8}  {:>8}  {:>8}  {:>6}  fits",
            "resident", "tape", "peak", "work"
        );
        for row in rows {
            let p = &row.prediction;
            let fits = row.fits.map_or("?", |fits| if fits { "yes" } else { "no" });
            _ = writeln!(
                text,
                "{:width$}  {:8.2}  {:8.2}  {:8.2}  {:6.2}  {fits}",
                row.name,
                gib(p.resident),
                gib(p.tape),
                gib(p.peak),
                p.work,
            );
        }
        text.push('\n');
    }
    text.push_str(&match (&plan.suggestion, plan.memory) {
        (Some(name), Some(memory)) => {
            format!("The fastest that fits {:.2} GiB: {name}\n", gib(memory))
        }
        (None, Some(memory)) => format!(
            "Nothing here fits {:.2} GiB: try precision = \"amp-fp16\" or a smaller batch\n",
            gib(memory)
        ),
        _ => "The device's memory is not known: give it as --memory-gib\n".to_owned(),
    });
    text
}
