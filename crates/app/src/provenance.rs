//! `run.json`: what a run was made of.

use crate::checkpoint::sha256;
use crate::config::{Config, DataConfig, SplitName};
use crate::device::DeviceName;
use crate::model_file::WeightsRecord;
use crate::run_dir::write_json;
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use tbps_data::{Dataset, DatasetName, Fingerprint};
use tbps_metrics::memory::nvml;

/// Counts changes to what is measured and how (docs/PROTOCOL.md): runs of different numbers are not
/// compared.
const PROTOCOL: u32 = 1;

const LOCK: &str = include_str!("../../../Cargo.lock");

#[derive(Debug, Serialize)]
pub(crate) struct Provenance {
    pub(crate) protocol: u32,
    pub(crate) tbps_version: &'static str,
    pub(crate) git_commit: Option<&'static str>,
    pub(crate) git_dirty: Option<bool>,
    pub(crate) cargo_lock_sha256: String,
    pub(crate) burn_version: Option<&'static str>,
    pub(crate) rustc: Option<&'static str>,
    pub(crate) os: String,
    pub(crate) cpu: Option<String>,
    pub(crate) num_cpus: usize,
    pub(crate) device: String,
    pub(crate) device_name: Option<String>,
    pub(crate) driver: Option<String>,
    pub(crate) backend: &'static str,
    /// Dtypes that entered the blocks' matrix products of a warm-up step, as recorded there.
    pub(crate) compute_dtype: Vec<&'static str>,
    pub(crate) seed: u64,
    pub(crate) cell: String,
    pub(crate) num_parameters: usize,
    /// The data set's folder: its files do not name it.
    pub(crate) dataset_name: Option<String>,
    pub(crate) dataset: Fingerprint,
    /// Which data set it was read as.
    pub(crate) dataset_layout: DatasetName,
    /// The people of train that were held out as the val split; empty where there is one.
    pub(crate) holdout_pids: Vec<i64>,
    /// Null when the model starts from random parameters.
    pub(crate) weights_sha256: Option<String>,
    pub(crate) weights: Option<WeightsRecord>,
    pub(crate) selection_split: SplitName,
    /// What the configuration leaves out of the dataset, in words; null: nothing.
    pub(crate) limited: Option<String>,
    pub(crate) total_steps: u64,
    /// Seconds since 1970-01-01 UTC.
    pub(crate) start_time_s: u64,
    /// Every process that trained this run; the keys above are of the first.
    pub(crate) attempts: Vec<Attempt>,
}

/// One process of a run that may have been interrupted and resumed, perhaps by another version or
/// on another device.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Attempt {
    pub(crate) start_time_s: u64,
    /// Steps that were done before it.
    pub(crate) from_step: u64,
    pub(crate) tbps_version: &'static str,
    pub(crate) git_commit: Option<&'static str>,
    pub(crate) git_dirty: Option<bool>,
    pub(crate) cpu: Option<String>,
    pub(crate) num_cpus: usize,
    pub(crate) device: String,
    pub(crate) device_name: Option<String>,
    pub(crate) driver: Option<String>,
    pub(crate) backend: &'static str,
}

impl Provenance {
    pub(crate) fn new(
        config: &Config,
        device: DeviceName,
        driver: Option<nvml::DeviceInfo>,
        dataset: &Dataset,
        fingerprint: Fingerprint,
        weights: Option<WeightsRecord>,
    ) -> Self {
        let known = |text: &'static str| (!text.is_empty()).then_some(text);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let (device_name, driver) = driver.map(|d| (d.name, d.driver_version)).unzip();
        Self {
            protocol: PROTOCOL,
            tbps_version: env!("CARGO_PKG_VERSION"),
            git_commit: known(env!("TBPS_GIT_COMMIT")),
            git_dirty: known(env!("TBPS_GIT_DIRTY")).map(|text| text == "true"),
            cargo_lock_sha256: sha256(LOCK.as_bytes()),
            burn_version: locked_version("burn"),
            rustc: known(env!("TBPS_RUSTC")),
            os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            cpu: cpu_name(),
            num_cpus: std::thread::available_parallelism().map_or(0, usize::from),
            device: device.to_string(),
            device_name,
            driver,
            backend: match device {
                DeviceName::Flex => "flex",
                DeviceName::Cuda(_) => "cuda",
                DeviceName::CubeCpu => "cube-cpu",
            },
            compute_dtype: Vec::new(),
            seed: config.seed,
            cell: config.cell(),
            num_parameters: 0,
            dataset_name: config.data.root.file_name().map(|n| n.to_string_lossy().into_owned()),
            dataset: fingerprint,
            dataset_layout: dataset.name,
            holdout_pids: holdout_pids(&config.data, dataset),
            weights_sha256: weights.as_ref().map(|record| record.sha256.clone()),
            weights,
            selection_split: config.eval.split,
            limited: limits(config),
            total_steps: 0,
            start_time_s: since_1970.map_or(0, |d| d.as_secs()),
            attempts: Vec::new(),
        }
    }

    /// Writes `run.json`, or adds this process to the one that is there.
    ///
    /// # Errors
    /// When the one that is there is damaged, or the file cannot be written.
    pub(crate) fn record(mut self, path: &Path, from_step: u64) -> Result<()> {
        let attempt = self.attempt(from_step);
        if !path.is_file() {
            self.attempts.push(attempt);
            return write_json(path, &self);
        }
        let shown = path.display();
        let damaged = || format!("{shown} is damaged: remove it to have it written again");
        let json = fs::read(path).with_context(|| format!("cannot read {shown}"))?;
        let mut record: Value = serde_json::from_slice(&json).with_context(damaged)?;
        let attempts = record.get_mut("attempts").and_then(Value::as_array_mut);
        attempts.with_context(damaged)?.push(serde_json::to_value(attempt)?);
        write_json(path, &record)
    }

    fn attempt(&self, from_step: u64) -> Attempt {
        Attempt {
            start_time_s: self.start_time_s,
            from_step,
            tbps_version: self.tbps_version,
            git_commit: self.git_commit,
            git_dirty: self.git_dirty,
            cpu: self.cpu.clone(),
            num_cpus: self.num_cpus,
            device: self.device.clone(),
            device_name: self.device_name.clone(),
            driver: self.driver.clone(),
            backend: self.backend,
        }
    }
}

fn holdout_pids(config: &DataConfig, dataset: &Dataset) -> Vec<i64> {
    match config.holdout_ids {
        0 => Vec::new(),
        _ => dataset.val.pids(),
    }
}

fn limits(config: &Config) -> Option<String> {
    let (train, eval) = (&config.train, &config.eval);
    let limits = [
        (train.max_batches, "batches of an epoch"),
        (eval.max_queries, "queries"),
        (eval.max_images, "images of the gallery"),
    ];
    let set = limits.iter().filter(|(most, _)| *most > 0);
    let words: Vec<String> = set.map(|(most, what)| format!("{most} {what}")).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The version of a package in the lock file that this binary was built from.
fn locked_version(package: &str) -> Option<&'static str> {
    let entry = format!("name = \"{package}\"\nversion = \"");
    LOCK.split_once(&entry)?.1.split('"').next()
}

/// The processor's name, where Linux tells.
pub(crate) fn cpu_name() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_has_burns_version() {
        let pinned = include_str!("../../../Cargo.toml");
        let version = locked_version("burn").unwrap();
        assert!(pinned.contains(&format!("burn = {{ version = \"={version}\"")), "{version}");
        assert_eq!(locked_version("no such package"), None);
    }
}
