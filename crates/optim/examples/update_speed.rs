//! Times one AdamW update with weight averaging, fused and composed, on the CPU.
//!
//! ```text
//! cargo run --release -p tbps-optim --example update_speed -- 4700000
//! ```
#![expect(clippy::print_stdout, reason = "this program's output is its result")]

use std::time::Instant;

use burn::tensor::{Device, Distribution, Tensor};
use tbps_optim::adamw::{self, AdamWConfig, ParamState, Scalars};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let num_elements: usize = std::env::args().nth(1).map_or(Ok(4_700_000), |n| n.parse())?;
    let mut scalars = AdamWConfig::default().scalars(10, 1e-3, 0.1);
    scalars.ema_weight = 1e-3;
    for (name, update) in
        [("fused", adamw::update as Update), ("composed", adamw::update_by_ops as Update)]
    {
        let ms = median_ms(num_elements, |state, grad| update(state, grad, &scalars));
        // Five tensors are read and four written.
        let gb_per_s = 36.0 * num_elements as f64 / ms / 1e6;
        println!("{name:>8}: {ms:8.2} ms for {num_elements} elements, {gb_per_s:5.1} GB/s");
    }
    Ok(())
}

type Update = fn(ParamState, Tensor<1>, &Scalars) -> ParamState;

/// Median of nine updates of the same tensors, after one that warms up.
fn median_ms(n: usize, update: impl Fn(ParamState, Tensor<1>) -> ParamState) -> f64 {
    let random = || Tensor::<1>::random([n], Distribution::Default, &Device::flex());
    let grad = random();
    let mut state = ParamState {
        param: random(),
        exp_avg: random(),
        exp_avg_sq: random(),
        ema: Some(random()),
    };
    let mut times = Vec::new();
    for _ in 0..10 {
        let start = Instant::now();
        state = update(state, grad.clone());
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times[1..].sort_by(f64::total_cmp);
    times[5]
}
