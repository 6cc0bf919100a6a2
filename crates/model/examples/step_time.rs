//! Times a training step of the demo's two towers on the CPU backend: forward, contrastive loss,
//! backward, in f32 and in f16. Prints milliseconds and CPU milliseconds a step.
//!
//! `cargo run --release -p tbps-model --example step_time -- [STEPS]`
#![expect(clippy::print_stdout, reason = "an example reports on the terminal")]

use burn::tensor::{Device, FloatDType, Int, Tensor, TensorData};
use std::time::Instant;
use tbps_model::config::{Activation, ClipConfig, LogitScaleConfig, TextConfig, VisionConfig};
use tbps_model::{Clip, ModelError, objective};

const BATCH: usize = 64;
const TEXT_LENGTH: usize = 56;
const VOCAB: usize = 4096;

fn main() -> Result<(), ModelError> {
    let steps = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20);
    let model = demo().init(0, &Device::flex().autodiff())?;
    for compute in [FloatDType::F32, FloatDType::F16] {
        step(&model, compute);
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        let loss = (0..steps).map(|_| step(&model, compute)).fold(f32::NAN, |_, loss| loss);
        let per_step = |seconds: f64| 1e3 * seconds / steps as f64;
        let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let (wall, cpu) = (per_step(wall), per_step(cpu));
        println!("{compute:?}: {wall:.1} ms, {cpu:.1} CPU ms a step, loss {loss:.6}");
    }
    Ok(())
}

/// One forward and backward. Returns the loss.
fn step(model: &Clip, compute: FloatDType) -> f32 {
    let device = model.log_logit_scale.val().device();
    let pixel = |i: usize| ((i * 7919 % 255) as f32 / 127.0) - 1.0;
    let pixels: Vec<f32> = (0..BATCH * 3 * 96 * 32).map(pixel).collect();
    let pixels = Tensor::<4>::from_data(TensorData::new(pixels, [BATCH, 3, 96, 32]), &device);
    let id = |i: usize| match i % TEXT_LENGTH {
        last if last == TEXT_LENGTH - 1 => VOCAB as i32 - 1,
        _ => (i * 31 % (VOCAB - 2)) as i32,
    };
    let ids: Vec<i32> = (0..BATCH * TEXT_LENGTH).map(id).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [BATCH, TEXT_LENGTH]), &device);
    let image = model.encode_image(pixels, compute);
    let text = model.encode_text(ids, compute);
    let loss = objective::itc(image, text, model.logit_scale());
    drop(loss.clone().backward());
    loss.into_scalar()
}

/// User and system time of the process, from `/proc/self/stat`; NaN where there is none.
fn cpu_seconds() -> f64 {
    const TICKS_PER_S: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = |i: usize| after_name.split(' ').nth(i).and_then(|t| t.parse::<f64>().ok());
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => (user + system) / TICKS_PER_S,
        _ => f64::NAN,
    }
}

/// The model of the demo preset.
fn demo() -> ClipConfig {
    ClipConfig {
        embed_dim: 96,
        activation: Activation::QuickGelu,
        logit_scale: LogitScaleConfig { init: 1.0 / 0.07, learnable: true, max: 100.0 },
        vision: VisionConfig {
            image_height: 96,
            image_width: 32,
            patch_size: 8,
            width: 96,
            layers: 3,
            heads: 4,
        },
        text: TextConfig { vocab_size: VOCAB, context_length: 64, width: 96, layers: 3, heads: 4 },
    }
}
