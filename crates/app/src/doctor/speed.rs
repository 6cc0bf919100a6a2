//! How fast the device is, so that people can compare machines.

use super::reference::values;
use crate::device::DeviceName;
use anyhow::{Result, anyhow};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use std::time::Instant;

/// Runs of which the fastest counts; the first compiles and tunes.
const RUNS: usize = 5;
/// Megabytes that are copied.
const COPIED: usize = 64 << 20;

/// Lines with the throughput of matrix products and copies.
pub(super) fn run(device: &Device, name: DeviceName) -> Result<String> {
    let side = match name {
        DeviceName::Flex => 1_024,
        DeviceName::Cuda(_) => 8_192,
        DeviceName::CubeCpu => 256,
    };
    let mut text = String::new();
    for (dtype, shown) in [(FloatDType::F32, "f32"), (FloatDType::F16, "f16")] {
        if !device.supports_dtype(dtype) {
            continue;
        }
        let matrix = |seed| {
            let data = TensorData::new(values(side * side, seed), [side, side]);
            Tensor::<2>::from_data(data, device).cast(dtype)
        };
        let (a, b) = (matrix(1), matrix(2));
        let seconds = fastest(device, || drop(a.clone().matmul(b.clone())))?;
        let gflops = 2.0 * (side as f64).powi(3) / seconds / 1e9;
        text += &format!("matmul {side} x {side} x {side} {shown}: {gflops:.0} GFLOP/s\n");
    }
    let data = TensorData::new(values(COPIED / 4, 3), [COPIED / 4]);
    let seconds = fastest(device, || {
        drop(Tensor::<1>::from_data(data.clone(), device).into_data());
    })?;
    let rate = 2.0 * COPIED as f64 / seconds / f64::from(1 << 30);
    text += &format!("copy to the device and back: {rate:.1} GiB/s\n");
    Ok(text)
}

/// Seconds of the fastest of some runs, the device idle before and after.
fn fastest(device: &Device, mut work: impl FnMut()) -> Result<f64> {
    let wait = || device.sync().map_err(|error| anyhow!("the device failed: {error}"));
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        wait()?;
        let began = Instant::now();
        work();
        wait()?;
        best = best.min(began.elapsed().as_secs_f64());
    }
    Ok(best)
}
