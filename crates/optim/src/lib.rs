//! One training step for any burn [`Module`](burn::module::Module): loss scaling, clipping, AdamW
//! with parameter groups, weight averaging; and recomputation of blocks. It knows no model.
//!
//! ```
//! use burn::{nn::LinearConfig, optim::GradientsParams, tensor::{Device, Tensor}};
//! use tbps_optim::{Optimizer, OptimizerConfig, WarmupCosine};
//!
//! let model = LinearConfig::new(4, 1).init(&Device::flex().autodiff());
//! let schedule = WarmupCosine { base_lr: 0.1, min_lr: 0.0, warmup_steps: 1, total_steps: 10 };
//! let mut optimizer = Optimizer::new(&model, OptimizerConfig::new(schedule))?;
//!
//! let loss = model.forward(Tensor::<2>::ones([8, 4], &Device::flex())).square().mean();
//! let mut tape = loss.mul_scalar(optimizer.loss_scale()).backward();
//! let grads = GradientsParams::from_module(&mut tape, &model);
//! let (model, outcome) = optimizer.step(model, grads)?;
//! assert!(outcome.applied && model.weight.is_require_grad());
//! # Ok::<(), tbps_optim::OptimError>(())
//! ```

pub mod adamw;
pub mod ema;
mod error;
mod fused;
mod gathered;
pub mod grad_norm;
pub mod grad_scaler;
pub mod param_groups;
pub mod recompute;
mod rehearsal;
mod root;
pub mod schedule;

mod state;
mod step;

pub use adamw::AdamWConfig;
pub use ema::{Ema, EmaConfig};
pub use error::OptimError;
pub use gathered::Gathered;
pub use grad_scaler::{GradScaler, GradScalerConfig, GradScalerState};
pub use param_groups::{ParamEntry, ParamGroup, Rule};
pub use root::root;
pub use schedule::WarmupCosine;
pub use state::{OptimizerState, See};
pub use step::{Optimizer, OptimizerConfig, StepOutcome};
