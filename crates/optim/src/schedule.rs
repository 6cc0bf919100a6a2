//! Learning rate as a function of the number of real optimizer steps.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::error::{OptimError, require};

/// Linear warm-up per step, then a cosine down to `min_lr`.
///
/// With `min_lr = 0` these are the values of `cosine_lr` in open_clip.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarmupCosine {
    /// Highest learning rate, reached at the last warm-up step.
    pub base_lr: f64,
    /// Learning rate at `total_steps` and after.
    pub min_lr: f64,
    /// Number of warm-up steps; 0 starts at `base_lr`.
    pub warmup_steps: u64,
    /// Number of steps over which the whole schedule runs.
    pub total_steps: u64,
}

impl WarmupCosine {
    /// Learning rate of the update that follows `step` completed updates (so the first is 0).
    pub fn lr(&self, step: u64) -> f64 {
        if step < self.warmup_steps {
            return self.base_lr * (step + 1) as f64 / self.warmup_steps as f64;
        }
        if step >= self.total_steps {
            return self.min_lr;
        }
        let progress =
            (step - self.warmup_steps) as f64 / (self.total_steps - self.warmup_steps) as f64;
        self.min_lr + 0.5 * (self.base_lr - self.min_lr) * (1.0 + (PI * progress).cos())
    }

    /// Errs when a field is out of range.
    pub fn validate(&self) -> Result<(), OptimError> {
        let Self { base_lr, min_lr, warmup_steps, total_steps } = *self;
        let base_ok = base_lr > 0.0 && base_lr.is_finite();
        require(base_ok, "schedule.base_lr", base_lr, "positive and finite")?;
        let min_ok = (0.0..=base_lr).contains(&min_lr);
        require(min_ok, "schedule.min_lr", min_lr, "between 0 and base_lr")?;
        require(total_steps > 0, "schedule.total_steps", total_steps as f64, "at least 1")?;
        require(
            warmup_steps <= total_steps,
            "schedule.warmup_steps",
            warmup_steps as f64,
            "at most total_steps",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schedule: WarmupCosine, expected: &[(u64, f64)]) {
        schedule.validate().unwrap();
        for &(step, lr) in expected {
            let found = schedule.lr(step);
            assert!((found - lr).abs() < 1e-15, "step {step}: {found} is not {lr}");
        }
    }

    #[test]
    fn warms_up_linearly_then_follows_the_cosine_and_stays_at_the_end() {
        let schedule =
            WarmupCosine { base_lr: 1e-3, min_lr: 1e-4, warmup_steps: 4, total_steps: 12 };
        check(
            schedule,
            &[
                (0, 2.5e-4),
                (1, 5.0e-4),
                (3, 1.0e-3),
                (4, 1.0e-3),
                (6, 1e-4 + 4.5e-4 * (1.0 + 0.5_f64.sqrt())),
                (8, 5.5e-4),
                (12, 1e-4),
                (999, 1e-4),
            ],
        );
    }

    #[test]
    fn warm_up_may_take_none_or_all_of_the_steps() {
        let none = WarmupCosine { base_lr: 1.0, min_lr: 0.0, warmup_steps: 0, total_steps: 2 };
        check(none, &[(0, 1.0), (1, 0.5), (2, 0.0)]);
        let all = WarmupCosine { warmup_steps: 2, ..none };
        check(all, &[(0, 0.5), (1, 1.0), (2, 0.0)]);
    }

    #[test]
    fn refuses_settings_without_a_meaning() {
        let good = WarmupCosine { base_lr: 1.0, min_lr: 0.0, warmup_steps: 1, total_steps: 2 };
        for bad in [
            WarmupCosine { base_lr: 0.0, ..good },
            WarmupCosine { base_lr: f64::NAN, ..good },
            WarmupCosine { min_lr: 1.1, ..good },
            WarmupCosine { warmup_steps: 3, ..good },
            WarmupCosine { warmup_steps: 0, total_steps: 0, ..good },
        ] {
            assert!(bad.validate().is_err(), "{bad:?} was accepted");
        }
    }
}
