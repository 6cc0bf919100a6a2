//! AdamW on one flat tensor at a time, with the rounding order of `torch.optim.AdamW`.
//!
//! Letters: `n` is the number of elements of one parameter. Everything here is elementwise, so
//! parameters of any rank come as `[n]`.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::error::{OptimError, require};
use crate::fused;

/// Settings of AdamW (Loshchilov and Hutter, 2019). The defaults are PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdamWConfig {
    /// Decay of the gradient's running mean.
    pub beta1: f64,
    /// Decay of the squared gradient's running mean.
    pub beta2: f64,
    /// Added to the denominator, outside the root and after the bias correction.
    pub eps: f64,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-8 }
    }
}

impl AdamWConfig {
    /// Errs when a field is out of range.
    pub fn validate(&self) -> Result<(), OptimError> {
        let Self { beta1, beta2, eps } = *self;
        require((0.0..1.0).contains(&beta1), "adamw.beta1", beta1, "at least 0 and below 1")?;
        require((0.0..1.0).contains(&beta2), "adamw.beta2", beta2, "at least 0 and below 1")?;
        require(eps > 0.0 && eps.is_finite(), "adamw.eps", eps, "positive and finite")
    }

    /// The scalars of update number `update` (the first is 1), computed in f64, rounded once.
    pub fn scalars(&self, update: u64, lr: f64, weight_decay: f64) -> Scalars {
        let update = update as f64;
        Scalars {
            grad_factor: 1.0,
            decay: (1.0 - lr * weight_decay) as f32,
            mean_weight: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            square_weight: (1.0 - self.beta2) as f32,
            step_size: (lr / (1.0 - self.beta1.powf(update))) as f32,
            square_root_bias: (1.0 - self.beta2.powf(update)).sqrt() as f32,
            eps: self.eps as f32,
            clamp_max: None,
            ema_weight: 0.0,
        }
    }
}

/// Everything that an update needs beside the tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalars {
    /// Undoes the loss scale and clips: the gradient is multiplied by it first.
    pub grad_factor: f32,
    /// `1 - lr * weight_decay`.
    pub decay: f32,
    /// `1 - beta1`.
    pub mean_weight: f32,
    /// `beta2`.
    pub beta2: f32,
    /// `1 - beta2`.
    pub square_weight: f32,
    /// `lr / (1 - beta1^update)`.
    pub step_size: f32,
    /// `sqrt(1 - beta2^update)`.
    pub square_root_bias: f32,
    /// Added to the denominator.
    pub eps: f32,
    /// Upper bound of the parameter's elements.
    pub clamp_max: Option<f32>,
    /// Weight of the new parameter in its running average, `1 - decay`.
    pub ema_weight: f32,
}

/// One parameter with all that is kept of it, each `[n]`, f32, without autodiff.
#[derive(Clone, Debug)]
pub struct ParamState {
    /// The parameter.
    pub param: Tensor<1>,
    /// Running mean of the gradient.
    pub exp_avg: Tensor<1>,
    /// Running mean of the squared gradient.
    pub exp_avg_sq: Tensor<1>,
    /// Running average of the parameter, when weights are averaged.
    pub ema: Option<Tensor<1>>,
}

/// Updates `state` by the gradient `grad` `[n]`: in one pass and in place on the Flex backend, as a
/// composition of tensor operations on any other. Both round alike, to the bit.
pub fn update(state: ParamState, grad: Tensor<1>, scalars: &Scalars) -> ParamState {
    if fused::is_flex(&state.param) {
        fused::update(state, grad, scalars)
    } else {
        update_by_ops(state, grad, scalars)
    }
}

/// [`update`] as a composition of tensor operations, which any backend has.
///
/// Each line is one of `torch.optim.AdamW`'s, with the products in the same order.
pub fn update_by_ops(state: ParamState, grad: Tensor<1>, s: &Scalars) -> ParamState {
    let grad = if s.grad_factor == 1.0 { grad } else { grad.mul_scalar(s.grad_factor) };
    let param = state.param.mul_scalar(s.decay);
    let toward_grad = (grad.clone() - state.exp_avg.clone()).mul_scalar(s.mean_weight);
    let exp_avg = state.exp_avg + toward_grad;
    let square = grad.clone().mul_scalar(s.square_weight) * grad;
    let exp_avg_sq = state.exp_avg_sq.mul_scalar(s.beta2) + square;
    let root = exp_avg_sq.clone().sqrt().div_scalar(s.square_root_bias);
    let change = exp_avg.clone().mul_scalar(-s.step_size) / root.add_scalar(s.eps);
    let param = param + change;
    let param = match s.clamp_max {
        Some(max) => param.clamp_max(max),
        None => param,
    };
    let ema = state.ema.map(|ema| lerp(ema, param.clone(), s.ema_weight));
    ParamState { param, exp_avg, exp_avg_sq, ema }
}

/// `from + weight * (to - from)`, computed from the nearer end as `torch.lerp` does, so that a
/// weight of 1 gives `to` exactly.
fn lerp(from: Tensor<1>, to: Tensor<1>, weight: f32) -> Tensor<1> {
    let way = to.clone() - from.clone();
    if weight < 0.5 { from + way.mul_scalar(weight) } else { to - way.mul_scalar(1.0 - weight) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    /// 20,011 elements: over one block of the fused pass and no multiple of its width.
    const LEN: usize = 20_011;

    fn wave(seed: f32, amplitude: f32) -> Tensor<1> {
        let values: Vec<f32> =
            (0..LEN).map(|i| amplitude * (i as f32 * 0.7 + seed).sin()).collect();
        Tensor::from_floats(values.as_slice(), &Device::flex())
    }

    fn state(with_ema: bool) -> ParamState {
        ParamState {
            param: wave(0.0, 1.0),
            exp_avg: wave(1.0, 0.1),
            exp_avg_sq: wave(2.0, 0.1).square(),
            ema: with_ema.then(|| wave(3.0, 1.0)),
        }
    }

    fn values(tensor: Tensor<1>) -> Vec<f32> {
        tensor.try_into_vec_as::<f32>().unwrap()
    }

    fn check(with_ema: bool, change: impl Fn(&mut Scalars)) {
        let mut scalars = AdamWConfig::default().scalars(3, 1e-2, 0.1);
        change(&mut scalars);
        let fused = update(state(with_ema), wave(4.0, 0.5), &scalars);
        let composed = update_by_ops(state(with_ema), wave(4.0, 0.5), &scalars);
        assert_eq!(values(fused.param), values(composed.param));
        assert_eq!(values(fused.exp_avg), values(composed.exp_avg));
        assert_eq!(values(fused.exp_avg_sq), values(composed.exp_avg_sq));
        assert_eq!(fused.ema.map(values), composed.ema.map(values));
    }

    #[test]
    fn the_fused_update_equals_the_composed_one_to_the_bit() {
        check(false, |_| ());
        check(true, |s| s.ema_weight = 0.003);
        check(true, |s| s.ema_weight = 0.7);
        check(true, |s| {
            s.ema_weight = 1.0;
            s.grad_factor = 0.37;
            s.clamp_max = Some(0.25);
        });
    }

    #[test]
    fn one_step_by_hand() {
        let device = Device::flex();
        let one = |value: f32| Tensor::<1>::from_floats([value], &device);
        let start = ParamState {
            param: one(1.0),
            exp_avg: one(0.0),
            exp_avg_sq: one(0.0),
            ema: Some(one(5.0)),
        };
        let mut scalars = AdamWConfig::default().scalars(1, 0.1, 0.5);
        scalars.ema_weight = 1.0;
        let next = update(start, one(2.0), &scalars);
        // On the first step the bias-corrected moments are g and g^2: the change is lr * sign(g).
        let param = values(next.param)[0];
        assert!((param - (1.0 - 0.1 * 0.5 - 0.1)).abs() < 1e-6, "{param}");
        assert!((values(next.exp_avg)[0] - 0.2).abs() < 1e-7);
        assert!((values(next.exp_avg_sq)[0] - 0.004).abs() < 1e-8);
        assert_eq!(values(next.ema.unwrap()), [param]);
    }

    #[test]
    fn handles_to_the_old_values_keep_them() {
        let before = state(true);
        let kept = before.clone();
        let _ = update(before, wave(4.0, 0.5), &AdamWConfig::default().scalars(1, 0.1, 0.0));
        assert_eq!(values(kept.param), values(wave(0.0, 1.0)));
        assert_eq!(values(kept.exp_avg), values(wave(1.0, 0.1)));
    }

    #[test]
    fn refuses_settings_without_a_meaning() {
        let good = AdamWConfig::default();
        for bad in [
            AdamWConfig { beta1: 1.0, ..good },
            AdamWConfig { beta2: -0.1, ..good },
            AdamWConfig { eps: 0.0, ..good },
        ] {
            assert!(bad.validate().is_err(), "{bad:?} was accepted");
        }
    }
}
