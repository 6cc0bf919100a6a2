//! Dynamic loss scaling, so that small f16 gradients don't vanish.
//!
//! The rule is the one of `torch.amp.GradScaler`: halve on overflow, double after
//! `growth_interval` good steps in a row. A floor and a cap are added, since without them a scale
//! can fall to 0 or grow to infinity, and both train nothing from then on.

use serde::{Deserialize, Serialize};

use crate::error::{OptimError, require};

/// Settings of a [`GradScaler`]. The defaults are PyTorch's, plus a floor of 1 and a cap of 2^24.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradScalerConfig {
    /// Scale of the first step.
    pub init_scale: f32,
    /// Factor after `growth_interval` good steps in a row.
    pub growth_factor: f32,
    /// Factor after an overflow.
    pub backoff_factor: f32,
    /// Good steps in a row before the scale grows.
    pub growth_interval: u32,
    /// The scale never falls below this.
    pub min_scale: f32,
    /// The scale never grows above this.
    pub max_scale: f32,
}

impl Default for GradScalerConfig {
    fn default() -> Self {
        Self {
            init_scale: 65536.0,
            growth_factor: 2.0,
            backoff_factor: 0.5,
            growth_interval: 2000,
            min_scale: 1.0,
            max_scale: 16_777_216.0,
        }
    }
}

impl GradScalerConfig {
    /// Errs when a field is out of range.
    pub fn validate(&self) -> Result<(), OptimError> {
        let Self { init_scale, growth_factor, backoff_factor, growth_interval, .. } = *self;
        let Self { min_scale, max_scale, .. } = *self;
        let floor_ok = min_scale > 0.0 && min_scale.is_finite();
        require(floor_ok, "scaler.min_scale", min_scale.into(), "positive and finite")?;
        let cap_ok = max_scale >= min_scale && max_scale.is_finite();
        require(cap_ok, "scaler.max_scale", max_scale.into(), "finite and at least min_scale")?;
        let init_ok = (min_scale..=max_scale).contains(&init_scale);
        let between = "between min_scale and max_scale";
        require(init_ok, "scaler.init_scale", init_scale.into(), between)?;
        let growth_ok = growth_factor > 1.0 && growth_factor.is_finite();
        require(growth_ok, "scaler.growth_factor", growth_factor.into(), "finite and above 1")?;
        let backoff_ok = backoff_factor > 0.0 && backoff_factor < 1.0;
        require(backoff_ok, "scaler.backoff_factor", backoff_factor.into(), "between 0 and 1")?;
        let interval = f64::from(growth_interval);
        require(growth_interval > 0, "scaler.growth_interval", interval, "at least 1")
    }
}

/// What a checkpoint keeps of a [`GradScaler`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GradScalerState {
    /// Scale of the next step.
    pub scale: f32,
    /// Good steps in a row since the scale last changed.
    pub growth_tracker: u32,
}

/// The loss scale and the rule by which it moves. It lives on the host: one `f32`.
#[derive(Clone, Debug)]
pub struct GradScaler {
    config: GradScalerConfig,
    state: GradScalerState,
}

impl GradScaler {
    /// A scaler at its initial scale.
    pub fn new(config: GradScalerConfig) -> Result<Self, OptimError> {
        config.validate()?;
        let state = GradScalerState { scale: config.init_scale, growth_tracker: 0 };
        Ok(Self { config, state })
    }

    /// Factor for the loss of the next step.
    pub fn scale(&self) -> f32 {
        self.state.scale
    }

    /// Factor that undoes [`scale`](Self::scale), rounded once from f64.
    pub fn inv_scale(&self) -> f32 {
        (1.0 / f64::from(self.state.scale)) as f32
    }

    /// Moves the scale after a step whose gradients were finite, or were not (`overflow`).
    pub fn update(&mut self, overflow: bool) {
        let GradScalerConfig { growth_factor, backoff_factor, growth_interval, .. } = self.config;
        if overflow {
            self.state.scale = (self.state.scale * backoff_factor).max(self.config.min_scale);
            self.state.growth_tracker = 0;
            return;
        }
        self.state.growth_tracker += 1;
        if self.state.growth_tracker >= growth_interval {
            self.state.scale = (self.state.scale * growth_factor).min(self.config.max_scale);
            self.state.growth_tracker = 0;
        }
    }

    /// What a checkpoint must keep.
    pub fn state(&self) -> GradScalerState {
        self.state
    }

    /// Goes on from a checkpoint; errs when its scale lies outside the floor and the cap.
    pub fn load(&mut self, state: GradScalerState) -> Result<(), OptimError> {
        let range = self.config.min_scale..=self.config.max_scale;
        let between = "between min_scale and max_scale";
        require(range.contains(&state.scale), "scaler state's scale", state.scale.into(), between)?;
        self.state = state;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaler(config: GradScalerConfig) -> GradScaler {
        GradScaler::new(config).unwrap()
    }

    #[test]
    fn grows_after_the_interval_and_halves_on_overflow() {
        let config =
            GradScalerConfig { init_scale: 8.0, growth_interval: 3, ..GradScalerConfig::default() };
        let mut scaler = scaler(config);
        // (overflow, scale after, tracker after)
        let table = [
            (false, 8.0, 1),
            (false, 8.0, 2),
            (true, 4.0, 0), // the good steps before an overflow don't count
            (false, 4.0, 1),
            (false, 4.0, 2),
            (false, 8.0, 0),
            (true, 4.0, 0),
            (true, 2.0, 0),
        ];
        for (i, (overflow, scale, growth_tracker)) in table.into_iter().enumerate() {
            scaler.update(overflow);
            assert_eq!(scaler.state(), GradScalerState { scale, growth_tracker }, "row {i}");
            assert_eq!(scaler.inv_scale(), 1.0 / scale, "row {i}");
        }
    }

    #[test]
    fn neither_reaches_zero_nor_infinity() {
        let config = GradScalerConfig { growth_interval: 1, ..GradScalerConfig::default() };
        let mut scaler = scaler(config);
        (0..200).for_each(|_| scaler.update(true));
        assert_eq!(scaler.scale(), config.min_scale);
        (0..200).for_each(|_| scaler.update(false));
        assert_eq!(scaler.scale(), config.max_scale);
    }

    #[test]
    fn refuses_bad_settings_and_bad_states() {
        let good = GradScalerConfig::default();
        for bad in [
            GradScalerConfig { init_scale: 0.5, ..good },
            GradScalerConfig { growth_factor: 1.0, ..good },
            GradScalerConfig { backoff_factor: 1.0, ..good },
            GradScalerConfig { growth_interval: 0, ..good },
            GradScalerConfig { min_scale: 0.0, ..good },
            GradScalerConfig { max_scale: f32::INFINITY, ..good },
        ] {
            assert!(GradScaler::new(bad).is_err(), "{bad:?} was accepted");
        }
        let zero = GradScalerState { scale: 0.0, growth_tracker: 0 };
        assert!(scaler(good).load(zero).is_err());
    }
}
