//! The run's configuration: TOML over `configs/base.toml`, with typed overrides.
//!
//! Every value stands in the base file, so a configuration is always complete and an unknown key is
//! always a mistake.

use crate::failure::Failure;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tbps_model::config::ClipConfig;
use toml::{Table, Value};

const BASE: &str = include_str!("../../../configs/base.toml");

/// A complete configuration of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) seed: u64,
    pub(crate) precision: Precision,
    pub(crate) recompute: Recompute,
    pub(crate) data: DataConfig,
    pub(crate) augment: AugmentConfig,
    pub(crate) model: ClipConfig,
    pub(crate) objective: ObjectiveConfig,
    pub(crate) train: TrainConfig,
    pub(crate) optim: OptimConfig,
    pub(crate) scaler: ScalerConfig,
    pub(crate) ema: EmaConfig,
    pub(crate) eval: EvalConfig,
}

/// What the towers' matrix products run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Precision {
    Fp32,
    AmpFp16,
}

/// What is kept of the forward for the backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Recompute {
    Off,
    Block,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DataConfig {
    pub(crate) root: PathBuf,
    pub(crate) threads: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AugmentConfig {
    pub(crate) flip_probability: f64,
    pub(crate) pad_px: usize,
    pub(crate) erase_probability: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObjectiveConfig {
    pub(crate) name: Objective,
}

/// The loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Objective {
    Itc,
    Sdm,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrainConfig {
    pub(crate) epochs: usize,
    pub(crate) batch_size: usize,
    pub(crate) checkpoint_every_steps: u64,
    pub(crate) log_every_steps: u64,
    pub(crate) max_consecutive_skips: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OptimConfig {
    pub(crate) lr: f64,
    pub(crate) min_lr: f64,
    pub(crate) warmup_epochs: f64,
    pub(crate) weight_decay: f64,
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) eps: f64,
    pub(crate) clip_norm: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScalerConfig {
    pub(crate) init_scale: f32,
    pub(crate) growth_factor: f32,
    pub(crate) backoff_factor: f32,
    pub(crate) growth_interval: u32,
    pub(crate) min_scale: f32,
    pub(crate) max_scale: f32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmaConfig {
    pub(crate) enabled: bool,
    pub(crate) decay: f64,
    pub(crate) warmup: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EvalConfig {
    pub(crate) batch_size: usize,
    pub(crate) split: SplitName,
    pub(crate) allow_test_selection: bool,
    pub(crate) read_test: bool,
    /// Validation t2i R@1 in percent whose times are recorded.
    pub(crate) targets: Vec<f64>,
}

/// A split to evaluate on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SplitName {
    Val,
    Test,
}

impl Config {
    /// Reads `file` over the base and applies `key=value` overrides.
    ///
    /// # Errors
    /// Usage failures that name the file, the key and what is wrong.
    pub(crate) fn load(file: &Path, overrides: &[String]) -> Result<Self> {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("cannot read {}: {e}", file.display())))?;
        let preset: Table = toml::from_str(&text)
            .map_err(|e| Failure::usage(format!("{}: {}", file.display(), one_line(&e))))?;
        Self::resolve(preset, overrides, &file.display().to_string())
    }

    fn resolve(preset: Table, overrides: &[String], origin: &str) -> Result<Self> {
        let mut table: Table = toml::from_str(BASE).context("configs/base.toml")?;
        merge(&mut table, preset, "").map_err(|e| Failure::usage(format!("{origin}: {e}")))?;
        for text in overrides {
            set(&mut table, text).map_err(|e| Failure::usage(format!("--set {text}: {e}")))?;
        }
        let config: Self =
            table.try_into().map_err(|e| Failure::usage(format!("{origin}: {}", one_line(&e))))?;
        config.validate().map_err(|e| Failure::usage(format!("{origin}: {e}")))?;
        Ok(config)
    }

    /// Reads a run's own `config.toml`, which is complete.
    pub(crate) fn of_run(file: &Path) -> Result<Self> {
        Self::load(file, &[])
    }

    /// The complete configuration as TOML.
    pub(crate) fn to_toml(&self) -> Result<String> {
        toml::to_string(self).context("config.toml")
    }

    /// The name of this cell of the ablation matrix.
    pub(crate) fn cell(&self) -> String {
        let precision = match self.precision {
            Precision::Fp32 => "fp32",
            Precision::AmpFp16 => "amp",
        };
        let ema = if self.ema.enabled { "-ema" } else { "" };
        let gc = if self.recompute == Recompute::Block { "-gc" } else { "" };
        format!("{precision}{ema}{gc}")
    }

    fn validate(&self) -> Result<(), String> {
        let probability = |x: f64| (0.0..=1.0).contains(&x);
        let fraction = |x: f64| (0.0..1.0).contains(&x);
        let (a, t, o, s, e) = (&self.augment, &self.train, &self.optim, &self.scaler, &self.ema);
        let checks = [
            ("data.threads", "at least 1", self.data.threads >= 1),
            ("augment.flip_probability", "in 0 ..= 1", probability(a.flip_probability)),
            ("augment.erase_probability", "in 0 ..= 1", probability(a.erase_probability)),
            ("train.epochs", "at least 1", t.epochs >= 1),
            ("train.batch_size", "at least 2", t.batch_size >= 2),
            ("train.log_every_steps", "at least 1", t.log_every_steps >= 1),
            ("train.max_consecutive_skips", "at least 1", t.max_consecutive_skips >= 1),
            ("optim.lr", "positive", o.lr > 0.0 && o.lr.is_finite()),
            ("optim.min_lr", "in 0 ..= optim.lr", (0.0..=o.lr).contains(&o.min_lr)),
            (
                "optim.warmup_epochs",
                "at least 0 and less than train.epochs",
                o.warmup_epochs >= 0.0 && o.warmup_epochs < t.epochs as f64,
            ),
            ("optim.weight_decay", "at least 0", o.weight_decay >= 0.0),
            ("optim.beta1", "in 0 .. 1", fraction(o.beta1)),
            ("optim.beta2", "in 0 .. 1", fraction(o.beta2)),
            ("optim.eps", "positive", o.eps > 0.0),
            ("optim.clip_norm", "at least 0", o.clip_norm >= 0.0),
            ("scaler.min_scale", "positive", s.min_scale > 0.0),
            (
                "scaler.init_scale",
                "between scaler.min_scale and scaler.max_scale",
                (s.min_scale..=s.max_scale).contains(&s.init_scale),
            ),
            ("scaler.growth_factor", "more than 1", s.growth_factor > 1.0),
            (
                "scaler.backoff_factor",
                "between 0 and 1",
                s.backoff_factor > 0.0 && s.backoff_factor < 1.0,
            ),
            ("scaler.growth_interval", "at least 1", s.growth_interval >= 1),
            ("ema.decay", "in 0 .. 1", fraction(e.decay)),
            ("eval.batch_size", "at least 1", self.eval.batch_size >= 1),
            (
                "eval.split",
                "val, or test with eval.allow_test_selection = true",
                self.eval.split == SplitName::Val || self.eval.allow_test_selection,
            ),
        ];
        if let Some((key, expected, _)) = checks.iter().find(|(_, _, ok)| !ok) {
            return Err(format!("{key} must be {expected}"));
        }
        self.model.validate().map_err(|e| e.to_string())
    }
}

/// Lays `over` over `base`; every key must be in `base`, and of its kind.
fn merge(base: &mut Table, over: Table, prefix: &str) -> Result<(), String> {
    for (key, value) in over {
        let path = format!("{prefix}{key}");
        match (base.get_mut(&key), value) {
            (None, _) => return Err(unknown(&path)),
            (Some(Value::Table(below)), Value::Table(over)) => {
                merge(below, over, &format!("{path}."))?;
            }
            (Some(Value::Table(_)), _) => return Err(format!("`{path}` is a section")),
            (Some(slot), value) => *slot = typed(slot, value, &path)?,
        }
    }
    Ok(())
}

/// Applies one `section.key=value`.
fn set(table: &mut Table, text: &str) -> Result<(), String> {
    let (path, raw) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let path = path.trim();
    let mut keys: Vec<&str> = path.split('.').collect();
    let last = keys.pop().ok_or("expected KEY=VALUE")?;
    let mut section = table;
    for key in keys {
        section =
            section.get_mut(key).and_then(Value::as_table_mut).ok_or_else(|| unknown(path))?;
    }
    let slot = section.get_mut(last).ok_or_else(|| unknown(path))?;
    if slot.is_table() {
        return Err(format!("`{path}` is a section"));
    }
    // A bare word is a string: paths and names need no quotes on a command line.
    let value = toml::from_str::<Table>(&format!("v = {raw}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .filter(|v| !slot.is_str() || v.is_str())
        .unwrap_or_else(|| Value::String(raw.to_owned()));
    *slot = typed(slot, value, path)?;
    Ok(())
}

/// `value` if it has the kind of `slot`; an integer serves where a float is expected.
fn typed(slot: &Value, value: Value, path: &str) -> Result<Value, String> {
    match (slot, value) {
        (Value::Float(_), Value::Integer(i)) => Ok(Value::Float(i as f64)),
        (slot, value) if slot.same_type(&value) => Ok(value),
        (slot, value) => {
            Err(format!("`{path}` is a {}, not the {} {value}", slot.type_str(), value.type_str()))
        }
    }
}

fn unknown(path: &str) -> String {
    format!("unknown key `{path}`; configs/base.toml lists every key")
}

/// A TOML error without its excerpt of the file, on one line.
fn one_line(error: &toml::de::Error) -> String {
    error.message().replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(preset: &str, overrides: &[&str]) -> Result<Config> {
        let overrides: Vec<String> = overrides.iter().map(|s| (*s).to_owned()).collect();
        Config::resolve(toml::from_str(preset).unwrap(), &overrides, "test.toml")
    }

    #[test]
    fn the_base_is_complete_and_valid() {
        let config = resolve("", &[]).unwrap();
        assert_eq!(config.cell(), "fp32");
        assert_eq!(config.model.vision.num_positions(), 193);
    }

    #[test]
    fn overrides_are_typed() {
        let sets = ["optim.lr=1", "data.root=/some/where", "ema.enabled=true", "recompute=block"];
        let config = resolve("precision = 'amp-fp16'", &sets).unwrap();
        assert_eq!(config.optim.lr, 1.0);
        assert_eq!(config.data.root, PathBuf::from("/some/where"));
        assert_eq!(config.cell(), "amp-ema-gc");
    }

    #[test]
    fn mistakes_are_named() {
        for (preset, set, expected) in [
            ("lr = 1", "", "test.toml: unknown key `lr`; configs/base.toml lists every key"),
            ("", "optim.rate=1", "unknown key `optim.rate`"),
            ("", "optim.lr=fast", "`optim.lr` is a float, not the string \"fast\""),
            ("", "optim=1", "`optim` is a section"),
            ("", "optim.lr=-1", "optim.lr must be positive"),
            ("", "precision=fp8", "unknown variant `fp8`"),
            ("", "eval.split=test", "eval.split must be val, or test with"),
            ("", "model.vision.width=100", "model.vision.width = 100 must be a multiple of"),
        ] {
            let sets = if set.is_empty() { vec![] } else { vec![set] };
            let error = resolve(preset, &sets).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
