//! `run.json`: what a run was made of.

use crate::checkpoint::sha256;
use crate::config::{Config, SplitName};
use crate::device::DeviceName;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};
use tbps_data::Fingerprint;
use tbps_metrics::memory::nvml;

/// The burn release that the workspace pins.
const BURN: &str = "0.22.1";
const LOCK: &str = include_str!("../../../Cargo.lock");

#[derive(Debug, Serialize)]
pub(crate) struct Provenance {
    pub(crate) tbps_version: &'static str,
    pub(crate) git_commit: Option<&'static str>,
    pub(crate) git_dirty: Option<bool>,
    pub(crate) cargo_lock_sha256: String,
    pub(crate) burn_version: &'static str,
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
    /// Null when the model starts from random parameters.
    pub(crate) weights_sha256: Option<String>,
    pub(crate) selection_split: SplitName,
    pub(crate) total_steps: u64,
    /// Seconds since 1970-01-01 UTC.
    pub(crate) start_time_s: u64,
}

impl Provenance {
    pub(crate) fn new(
        config: &Config,
        device: DeviceName,
        driver: Option<nvml::DeviceInfo>,
        dataset: Fingerprint,
    ) -> Self {
        let known = |text: &'static str| (!text.is_empty()).then_some(text);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let (device_name, driver) = driver.map(|d| (d.name, d.driver_version)).unzip();
        Self {
            tbps_version: env!("CARGO_PKG_VERSION"),
            git_commit: known(env!("TBPS_GIT_COMMIT")),
            git_dirty: known(env!("TBPS_GIT_DIRTY")).map(|text| text == "true"),
            cargo_lock_sha256: sha256(LOCK.as_bytes()),
            burn_version: BURN,
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
            },
            compute_dtype: Vec::new(),
            seed: config.seed,
            cell: config.cell(),
            num_parameters: 0,
            dataset_name: config.data.root.file_name().map(|n| n.to_string_lossy().into_owned()),
            dataset,
            weights_sha256: None,
            selection_split: config.eval.split,
            total_steps: 0,
            start_time_s: since_1970.map_or(0, |d| d.as_secs()),
        }
    }
}

/// The processor's name, where Linux tells.
fn cpu_name() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
