//! `tbps doctor`: whether a device computes what it should, before anything is trained on it.
//!
//! `ops` compares single operations with sums in f64 on the host (`reference`), `steps` a small
//! CLIP's forward, backward, AMP step, recomputation and average with the CPU's, and `speed`
//! measures, so that people can compare machines. Every comparison is a [`Check`] with an error and
//! what it may be at most.

mod ops;
mod reference;
mod speed;
mod steps;

use crate::device::DeviceName;
use crate::print;
use anyhow::{Result, anyhow};
use burn::tensor::{Device, FloatDType};
use clap::Args;
use std::path::PathBuf;
use tbps_metrics::memory::{alloc, gib, nvml};

/// Bytes that growth of memory is measured against at least.
const MIN_HELD: u64 = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// `flex` (CPU) or `cuda[:index]`.
    #[arg(long, default_value = "flex")]
    pub(crate) device: DeviceName,
    /// Leaves the measurements of speed out.
    #[arg(long)]
    pub(crate) short: bool,
    /// Writes the checks.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Check {
    /// The operation, by which a failure is named.
    op: &'static str,
    /// Shapes and dtype.
    of: String,
    /// Largest difference, relative to the largest expected value.
    error: f64,
    at_most: f64,
}

impl Check {
    /// NaN is no pass.
    fn passes(&self) -> bool {
        self.error <= self.at_most
    }

    fn line(&self) -> String {
        let verdict = if self.passes() { "ok  " } else { "FAIL" };
        let Self { op, of, error, at_most, .. } = self;
        format!("{verdict}  {op:<18} {of:<44} error {error:.1e}, at most {at_most:.1e}\n")
    }
}

/// A device under test, and what has been found so far.
pub(crate) struct Doctor {
    name: DeviceName,
    device: Device,
    checks: Vec<Check>,
    /// An operation that is made wrong on purpose, to see whether it is found.
    #[cfg(test)]
    sabotaged: Option<&'static str>,
}

impl Doctor {
    fn new(name: DeviceName) -> Result<Self> {
        Ok(Self {
            name,
            device: name.open()?,
            checks: Vec::new(),
            #[cfg(test)]
            sabotaged: None,
        })
    }

    /// What f32 products may be off by: a GPU may run them in TF32, with ten bits behind the point.
    fn f32_product(&self) -> f64 {
        if self.name.may_run_in_tf32() { 2e-3 } else { 2e-6 }
    }

    /// Compares what the device found with what it should have.
    fn check(
        &mut self,
        op: &'static str,
        of: String,
        found: &[f32],
        expected: &[f64],
        at_most: f64,
    ) {
        #[cfg(test)]
        let wrong: Vec<f32> = found
            .iter()
            .map(|x| if self.sabotaged == Some(op) { x * 1.1 + 0.1 } else { *x })
            .collect();
        #[cfg(test)]
        let found = wrong.as_slice();
        let error = largest_error(found, expected);
        self.checks.push(Check { op, of, error, at_most });
    }

    fn note(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Nothing, or which operations failed.
    fn verdict(&self) -> Result<()> {
        let failed: Vec<String> = self
            .checks
            .iter()
            .filter(|check| !check.passes())
            .map(|check| format!("{} ({})", check.op, check.of))
            .collect();
        match failed.as_slice() {
            [] => Ok(()),
            failed => Err(anyhow!(
                "{} of {} checks failed on {}: {}; do not train on this device",
                failed.len(),
                self.checks.len(),
                self.name,
                failed.join(", ")
            )),
        }
    }
}

/// The largest difference over the largest expected magnitude; infinite when lengths differ.
fn largest_error(found: &[f32], expected: &[f64]) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    let scale = expected.iter().fold(1e-30_f64, |most, x| most.max(x.abs()));
    let mut worst = 0.0_f64;
    for (&found, expected) in found.iter().zip(expected) {
        let error = (f64::from(found) - expected).abs() / scale;
        if error.is_nan() {
            return f64::NAN;
        }
        worst = worst.max(error);
    }
    worst
}

pub(crate) fn run(args: &DoctorArgs) -> Result<()> {
    args.json.as_deref().map(crate::run_dir::require_creatable).transpose()?;
    let mut doctor = Doctor::new(args.device)?;
    print(&describe(&doctor))?;
    let mut told = 0;
    let mut tell = |doctor: &Doctor| {
        let lines: String = doctor.checks[told..].iter().map(Check::line).collect();
        told = doctor.checks.len();
        print(&lines)
    };
    ops::run(&mut doctor)?;
    tell(&doctor)?;
    steps::run(&mut doctor)?;
    memory(&mut doctor)?;
    tell(&doctor)?;
    if !args.short {
        print(&speed::run(&doctor.device, doctor.name)?)?;
    }
    if let Some(path) = &args.json {
        crate::run_dir::write_json(path, &doctor.checks)?;
    }
    doctor.verdict()?;
    print(&format!("all {} checks passed on {}\n", doctor.checks.len(), doctor.name))
}

/// Name, driver, memory and dtypes.
fn describe(doctor: &Doctor) -> String {
    let driver = doctor.name.driver().as_ref().and_then(nvml::describe);
    let shown = match (&driver, doctor.name) {
        (Some(driver), _) => format!(
            "{}, driver {}, {:.1} GiB",
            driver.name,
            driver.driver_version,
            gib(driver.total_bytes)
        ),
        (None, DeviceName::Flex | DeviceName::CubeCpu) => {
            let cores = std::thread::available_parallelism().map_or(0, usize::from);
            let cpu = crate::provenance::cpu_name().unwrap_or_else(|| "CPU".to_owned());
            format!("{cpu}, {cores} threads")
        }
        (None, DeviceName::Cuda(_)) => "no driver to ask for its name".to_owned(),
    };
    let dtypes: Vec<&str> =
        [(FloatDType::F32, "f32"), (FloatDType::F16, "f16"), (FloatDType::BF16, "bf16")]
            .into_iter()
            .filter(|(dtype, _)| doctor.device.supports_dtype(*dtype))
            .map(|(_, name)| name)
            .collect();
    format!("{}: {shown}; computes in {}\n", doctor.name, dtypes.join(", "))
}

/// Whether memory returns to where it was: the steps run twice more, and the second time must leave
/// nothing behind. The first may: kernels keep scratch memory.
fn memory(doctor: &mut Doctor) -> Result<()> {
    let held = |device: &Device| -> Result<u64> {
        device.sync().map_err(|error| anyhow!("the device failed: {error}"))?;
        device.memory_cleanup();
        Ok(match device.memory_pool_usage() {
            Some(pool) => pool.bytes_in_use,
            None => alloc::current_bytes(),
        })
    };
    let again = |name| -> Result<()> {
        let mut other = Doctor::new(name)?;
        steps::run(&mut other)
    };
    again(doctor.name)?;
    let before = held(&doctor.device)?;
    again(doctor.name)?;
    let after = held(&doctor.device)?;
    // A thread's buffers may grow by a little whenever it first meets a piece of work; a device may
    // hold nothing at all.
    let error = after.saturating_sub(before) as f64 / before.max(MIN_HELD) as f64;
    let of = format!("{before} bytes, then {after}");
    doctor.note(Check { op: "memory", of, error, at_most: 0.01 });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_operation_is_found_and_named() {
        let mut sound = Doctor::new(DeviceName::Flex).unwrap();
        ops::run(&mut sound).unwrap();
        steps::run(&mut sound).unwrap();
        sound.verdict().unwrap();
        let mut names: Vec<&str> = sound.checks.iter().map(|check| check.op).collect();
        names.dedup();
        assert!(names.len() > 10, "{names:?}");
        for op in ["matmul", "softmax", "attention", "embedding", "cast"] {
            let mut doctor = Doctor::new(DeviceName::Flex).unwrap();
            doctor.sabotaged = Some(op);
            ops::run(&mut doctor).unwrap();
            let error = doctor.verdict().unwrap_err().to_string();
            let failed = doctor.checks.iter().filter(|check| !check.passes());
            assert!(failed.clone().count() > 0 && failed.clone().all(|check| check.op == op));
            assert!(error.contains(&format!("{op} (")), "{error}");
        }
    }

    #[test]
    fn nan_and_missing_values_are_no_pass() {
        let check = |found: &[f32], expected: &[f64]| Check {
            op: "x",
            of: String::new(),
            error: largest_error(found, expected),
            at_most: 0.5,
        };
        assert!(check(&[1.0, 2.0], &[1.0, 2.5]).passes());
        assert!(!check(&[f32::NAN, 2.0], &[1.0, 2.0]).passes());
        assert!(!check(&[1.0], &[1.0, 2.0]).passes());
        assert!(!check(&[1.0, 4.0], &[1.0, 2.0]).passes());
    }
}
