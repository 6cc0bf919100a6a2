//! The run's configuration: TOML over `configs/base.toml`, with typed overrides.
//!
//! Every value stands in the base file, so a configuration is always complete and an unknown key is
//! always a mistake.

mod recompute;
mod validate;

pub(crate) use recompute::Recompute;

use crate::failure::Failure;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tbps_data::{DatasetName, Sampler};
use tbps_model::config::ClipConfig;
use tbps_model::pos_embed::PosEmbedResize;
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
    pub(crate) weights: WeightsConfig,
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
    AmpBf16,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DataConfig {
    pub(crate) root: PathBuf,
    pub(crate) dataset: DatasetChoice,
    /// People of train to hold out as the val split, for a data set that has none.
    pub(crate) holdout_ids: usize,
    pub(crate) holdout_seed: u64,
    pub(crate) sampler: Sampler,
    pub(crate) threads: usize,
    /// Folder for the resized images; empty: they are decoded each time.
    pub(crate) cache: PathBuf,
}

/// Which data set is in `data.root`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DatasetChoice {
    /// The one whose annotation file is there.
    Auto,
    CuhkPedes,
    IcfgPedes,
    Rstpreid,
}

impl DatasetChoice {
    pub(crate) fn name(self) -> Option<DatasetName> {
        match self {
            Self::Auto => None,
            Self::CuhkPedes => Some(DatasetName::CuhkPedes),
            Self::IcfgPedes => Some(DatasetName::IcfgPedes),
            Self::Rstpreid => Some(DatasetName::RstpReid),
        }
    }
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
pub(crate) struct WeightsConfig {
    /// Any weights of the same model; empty: random parameters.
    pub(crate) file: PathBuf,
    /// How the position embedding gets from the file's image size to the model's.
    pub(crate) pos_embed: PosEmbedResize,
    /// Whether another activation or preprocessing than the file says is let through.
    pub(crate) allow_mismatch: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObjectiveConfig {
    /// One or more, each once; their sum is minimised.
    pub(crate) losses: Vec<Loss>,
}

impl ObjectiveConfig {
    pub(crate) fn has(&self, loss: Loss) -> bool {
        self.losses.contains(&loss)
    }
}

/// A loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Loss {
    Itc,
    Sdm,
    Id,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrainConfig {
    pub(crate) epochs: usize,
    pub(crate) batch_size: usize,
    /// Samples whose activations are alive at a time, with the loss of the whole batch; 0: all.
    pub(crate) micro_batch: usize,
    /// Batches of an epoch, the first of its order; 0: all.
    pub(crate) max_batches: usize,
    /// Hours end to end after which the run is over; 0: no limit.
    pub(crate) max_hours: f64,
    /// Whether the run is over once every target is reached.
    pub(crate) stop_at_target: bool,
    pub(crate) checkpoint_every_steps: u64,
    /// Minutes between checkpoints within an epoch; 0: not by time.
    pub(crate) checkpoint_every_min: f64,
    pub(crate) log_every_steps: u64,
    /// Whether the log is written as TensorBoard event files too.
    pub(crate) tensorboard: bool,
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
    /// On the learning rate, for the classifier of the identity loss.
    pub(crate) classifier_lr_scale: f64,
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
    /// Steps between evaluations within an epoch; 0: at the end of each epoch only.
    pub(crate) every_steps: u64,
    /// Captions that are evaluated, the first of the split; 0: all.
    pub(crate) max_queries: usize,
    /// Images that are evaluated, the first of the split; 0: all.
    pub(crate) max_images: usize,
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

impl TrainConfig {
    /// Batches of an epoch, of `all` that the data has.
    pub(crate) fn batches(&self, all: usize) -> usize {
        match self.max_batches {
            0 => all,
            most => all.min(most),
        }
    }
}

impl Config {
    /// Reads `file` over the base and applies `key=value` overrides.
    ///
    /// # Errors
    /// Usage failures that name the file, the key and what is wrong.
    pub(crate) fn load(file: &Path, overrides: &[String]) -> Result<Self> {
        let shown = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("cannot read {shown}: {e}")))?;
        let mut config = Self::parse(&text, overrides, &shown)?;
        // A run is read again from other folders.
        for path in [&mut config.data.root, &mut config.weights.file] {
            if !path.as_os_str().is_empty() {
                *path = std::path::absolute(&path).context("the working directory is gone")?;
            }
        }
        Ok(config)
    }

    /// As [`Config::load`], of a text that messages call `origin`.
    pub(crate) fn parse(text: &str, overrides: &[String], origin: &str) -> Result<Self> {
        let preset = toml::from_str(text)
            .map_err(|e| Failure::usage(format!("{origin}{}", with_line(&e, text))))?;
        Self::resolve(preset, overrides, origin)
    }

    fn resolve(preset: Table, overrides: &[String], origin: &str) -> Result<Self> {
        let mut table: Table = toml::from_str(BASE).context("configs/base.toml")?;
        merge(&mut table, preset, "").map_err(|e| Failure::usage(format!("{origin}: {e}")))?;
        for text in overrides {
            set(&mut table, text).map_err(|e| Failure::usage(format!("--set {text}: {e}")))?;
        }
        let with_set = if overrides.is_empty() { "" } else { " with --set" };
        let refused = |message: String| Failure::usage(format!("{origin}{with_set}: {message}"));
        let config: Self = serde_path_to_error::deserialize(Value::Table(table.clone()))
            .map_err(|e| refused(format!("{}: {}", e.path(), e.inner().message())))?;
        validate::validate(&config, &table).map_err(refused)?;
        Ok(config)
    }

    /// Reads a run's own `config.toml`, which is complete.
    ///
    /// # Errors
    /// As [`Config::load`].
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
            Precision::AmpBf16 => "amp-bf16",
        };
        let ema = if self.ema.enabled { "-ema" } else { "" };
        let gc = if self.recompute == Recompute::Off { "" } else { "-gc" };
        format!("{precision}{ema}{gc}")
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
            (Some(Value::Table(_)), _) => return Err(is_section(&path)),
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
        return Err(is_section(path));
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
        (slot, value) => Err(format!(
            "`{path}` takes a value of type {}, and {value} is of type {}",
            slot.type_str(),
            value.type_str()
        )),
    }
}

fn is_section(path: &str) -> String {
    format!("`{path}` is a section: set a key in it")
}

fn unknown(path: &str) -> String {
    format!("unknown key `{path}`; configs/base.toml lists every key")
}

/// A TOML error of `text` on one line: ` line 3: what is wrong`, without the excerpt.
fn with_line(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!(" line {}", before.matches('\n').count() + 1));
    format!("{}: {}", line.unwrap_or_default(), error.message())
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
    fn every_recipe_is_valid_and_says_where_it_comes_from() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let recipes: Vec<PathBuf> = entries.filter(|path| !path.ends_with("base.toml")).collect();
        assert!(recipes.len() >= 7, "{recipes:?}");
        for path in recipes {
            let shown = path.display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            Config::parse(&text, &[], &shown).unwrap();
            for line in ["source ", "command ", "hardware ", "time ", "val R@1 "] {
                assert!(text.contains(&format!("\n#   {line}")), "{shown} does not state: {line}");
            }
        }
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
            ("optim.lr = -1", "", "test.toml: optim.lr = -1.0 must be positive"),
            ("", "lr", "--set lr: expected KEY=VALUE"),
            ("", "optim.rate=1", "--set optim.rate=1: unknown key `optim.rate`"),
            ("", "optim.lr=fast", "`optim.lr` takes a value of type float, and \"fast\" is"),
            ("", "optim=1", "`optim` is a section"),
            ("", "seed=-1", "test.toml with --set: seed: invalid value: integer `-1`"),
            ("", "train.stop_at_target=true", "train.stop_at_target = true must be false without"),
            ("", "precision=fp8", "precision: unknown variant `fp8`"),
            ("", "eval.targets=['a']", "eval.targets[0]: invalid type: string"),
            ("", "eval.targets=[nan]", "eval.targets = [nan] must be percentages"),
            ("", "eval.split=test", "eval.split = \"test\" must be val, or test with"),
            ("", "objective.losses=[]", "objective.losses = [] must be one or more of itc, sdm"),
            ("", "optim.clip_norm=1e300", "optim.clip_norm = 1e300 must be 0 or positive"),
            ("", "model.text.vocab_size=513", "model.text.vocab_size = 513 must be from 514"),
            ("", "model.vision.width=100", "model.vision.width = 100 must be a multiple of"),
            ("", "data.dataset=market", "data.dataset: unknown variant `market`, expected one of"),
            ("", "data.sampler=pk", "data.sampler: unknown variant `pk`, expected `shuffle` or"),
            (
                "",
                "data.holdout_seed=1",
                "data.holdout_seed = 1 must be 0 with data.holdout_ids = 0",
            ),
            (
                "eval = { split = 'test', allow_test_selection = true }",
                "data.holdout_ids=1",
                "data.holdout_ids = 1 must be 0 with eval.split = \"test\", which selects on no val",
            ),
        ] {
            let sets: Vec<&str> = [set].into_iter().filter(|set| !set.is_empty()).collect();
            let error = resolve(preset, &sets).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn syntax_errors_are_placed() {
        let error = Config::parse("seed = 1\n[optim]\nlr = = 2\n", &[], "a.toml").unwrap_err();
        assert!(error.to_string().starts_with("a.toml line 3: "), "{error}");
    }
}
