//! Exponential moving average of the weights, in f32.
//!
//! The decay follows `ModelEmaV3` of timm: the first update copies the weights, then the decay
//! rises as `1 - (1 + n / gamma)^-power` up to `decay`, so that the average forgets the weights of
//! the start early. [`Optimizer::step`](crate::Optimizer::step) does the averaging in the pass that
//! updates the weights; here are the decay, the averages and the way to evaluate them.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::error::{OptimError, require};

/// Settings of the average. The defaults are timm's, with its warm-up on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmaConfig {
    /// Highest decay; the weight of a new value is `1 - decay`.
    pub decay: f64,
    /// Lowest decay during the warm-up, once averaging has begun.
    pub min_decay: f64,
    /// Updates during which the average is a copy of the weights.
    pub update_after: u64,
    /// Whether the decay rises gradually to `decay`.
    pub warmup: bool,
    /// Stretches the warm-up: the number of updates in its unit of time.
    pub gamma: f64,
    /// Steepness of the warm-up.
    pub power: f64,
}

impl Default for EmaConfig {
    fn default() -> Self {
        Self {
            decay: 0.9999,
            min_decay: 0.0,
            update_after: 0,
            warmup: true,
            gamma: 1.0,
            power: 2.0 / 3.0,
        }
    }
}

impl EmaConfig {
    /// Decay of update number `update`, counted from 1.
    pub fn decay(&self, update: u64) -> f64 {
        let since = update.saturating_sub(self.update_after + 1);
        match (since, self.warmup) {
            (0, _) => 0.0,
            (_, false) => self.decay,
            (since, true) => {
                let decay = 1.0 - (1.0 + since as f64 / self.gamma).powf(-self.power);
                decay.min(self.decay).max(self.min_decay)
            }
        }
    }

    /// Errs when a field is out of range.
    pub fn validate(&self) -> Result<(), OptimError> {
        let Self { decay, min_decay, gamma, power, .. } = *self;
        require((0.0..1.0).contains(&decay), "ema.decay", decay, "at least 0 and below 1")?;
        let min_ok = (0.0..=decay).contains(&min_decay);
        require(min_ok, "ema.min_decay", min_decay, "between 0 and ema.decay")?;
        require(gamma > 0.0 && gamma.is_finite(), "ema.gamma", gamma, "positive and finite")?;
        require(power > 0.0 && power.is_finite(), "ema.power", power, "positive and finite")
    }
}

/// The averages of a model's trainable parameters, as flat f32 tensors `[n]` in visit order.
#[derive(Clone, Debug)]
pub struct Ema {
    config: EmaConfig,
    ids: Vec<ParamId>,
    pub(crate) shadow: Vec<Tensor<1>>,
    pub(crate) updates: u64,
}

impl Ema {
    /// An average that starts as a copy, in memory of its own, of `model`'s trainable parameters.
    pub fn new<M: Module>(model: &M, config: EmaConfig) -> Result<Self, OptimError> {
        config.validate()?;
        let mut copier = Copier { ids: Vec::new(), shadow: Vec::new() };
        model.visit(&mut copier);
        let Copier { ids, shadow } = copier;
        Ok(Self { config, ids, shadow, updates: 0 })
    }

    /// Number of updates so far: real optimizer steps, not skipped ones.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Weight of the parameters in the next update, `1 - decay`, rounded once from f64.
    pub fn next_weight(&self) -> f32 {
        (1.0 - self.config.decay(self.updates + 1)) as f32
    }

    /// `model` with the averages in place of its trainable parameters: without autodiff, with its
    /// training flags off, nothing trainable and parameter ids of its own.
    ///
    /// Nothing is copied. Drop the result before the next optimizer step, which otherwise can't
    /// overwrite the averages and copies them. `model` must be the one that is averaged.
    pub fn module<M: Module>(&self, model: &M) -> M {
        let mut mapper = Replace { averages: self.ids.iter().zip(&self.shadow).peekable() };
        let module = model.valid().map(&mut mapper);
        let left = mapper.averages.count();
        assert_eq!(left, 0, "{left} of {} averages belong to another model", self.ids.len());
        module
    }
}

/// Copies each trainable parameter into a flat tensor.
struct Copier {
    ids: Vec<ParamId>,
    shadow: Vec<Tensor<1>>,
}

impl ModuleVisitor for Copier {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if param.is_require_grad() {
            let num_elements = param.shape().num_elements();
            self.ids.push(param.id);
            // Multiplying makes new memory, where a clone would be a second handle to the old.
            self.shadow.push(param.val().inner().reshape([num_elements]).mul_scalar(1.0));
        }
    }
}

/// Puts handles to the averages where their parameters are, and renames everything else.
struct Replace<'a> {
    averages: std::iter::Peekable<std::iter::Zip<Ids<'a>, Averages<'a>>>,
}

type Ids<'a> = std::slice::Iter<'a, ParamId>;
type Averages<'a> = std::slice::Iter<'a, Tensor<1>>;

impl ModuleMapper for Replace<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let average = self.averages.next_if(|(id, _)| **id == param.id);
        let (_, value, mapper) = param.consume();
        let value = match average {
            Some((_, average)) => average.clone().reshape(value.shape()),
            None => value,
        };
        Param::from_mapped_value(ParamId::new(), value, mapper).set_require_grad(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig};
    use burn::tensor::Device;

    #[test]
    fn decay_warms_up_as_published() {
        let config = EmaConfig::default();
        // Values of timm 1.0.31 for gamma 1 and power 2/3.
        for (update, decay) in [
            (0, 0.0),
            (1, 0.0),
            (2, 0.370_039),
            (10, 0.784_557),
            (100, 0.953_584),
            (1_000, 0.990_000),
            (10_000, 0.997_846),
            (16_000, 0.998_425),
            (64_000, 0.999_375),
        ] {
            let found = config.decay(update);
            assert!((found - decay).abs() < 6e-7, "update {update}: {found} is not {decay}");
        }
    }

    #[test]
    fn decay_keeps_to_its_bounds() {
        let late = EmaConfig { update_after: 5, ..EmaConfig::default() };
        assert_eq!(late.decay(6), 0.0);
        assert_eq!(late.decay(7), EmaConfig::default().decay(2));
        let low = EmaConfig { min_decay: 0.5, ..EmaConfig::default() };
        assert_eq!((low.decay(1), low.decay(2)), (0.0, 0.5));
        let high = EmaConfig { decay: 0.9, ..EmaConfig::default() };
        assert_eq!(high.decay(1_000), 0.9);
        let flat = EmaConfig { warmup: false, ..EmaConfig::default() };
        assert_eq!((flat.decay(1), flat.decay(2)), (0.0, 0.9999));
    }

    #[derive(Module, Debug)]
    struct Net {
        frozen: Param<Tensor<1>>,
        linear: Linear,
        dropout: Dropout,
    }

    fn net() -> Net {
        let device = Device::flex().autodiff();
        Net {
            frozen: Param::from_tensor(Tensor::ones([3], &device)).set_require_grad(false),
            linear: LinearConfig::new(2, 2).init(&device),
            dropout: DropoutConfig::new(0.5).init(),
        }
    }

    #[test]
    fn the_module_holds_the_averages_and_cannot_train() {
        let net = net();
        let mut ema = Ema::new(&net, EmaConfig::default()).unwrap();
        assert_eq!(ema.shadow.len(), 2, "frozen parameters are not averaged");
        let values = [1.0, 2.0, 3.0, 4.0];
        ema.shadow[0] = Tensor::from_floats(values, &Device::flex());

        let averaged = ema.module(&net);
        let weight = averaged.linear.weight.val();
        assert_eq!(weight.dims(), [2, 2]);
        assert!(!weight.is_autodiff() && !averaged.linear.weight.is_require_grad());
        assert_eq!(weight.into_data().as_slice::<f32>().unwrap(), values);
        assert_ne!(averaged.linear.weight.id, net.linear.weight.id);
        assert_ne!(averaged.frozen.id, net.frozen.id);
        averaged.frozen.val().into_data().assert_eq(&net.frozen.val().into_data(), true);
        let x = Tensor::<1>::ones([64], &Device::flex());
        averaged.dropout.forward(x.clone()).into_data().assert_eq(&x.into_data(), true);
        assert!(!averaged.train().linear.weight.is_require_grad());
    }

    #[test]
    #[should_panic(expected = "belong to another model")]
    fn the_module_of_another_model_is_refused() {
        let ema = Ema::new(&net(), EmaConfig::default()).unwrap();
        let _ = ema.module(&net());
    }

    #[test]
    fn refuses_settings_without_a_meaning() {
        let good = EmaConfig::default();
        for bad in [
            EmaConfig { decay: 1.0, ..good },
            EmaConfig { min_decay: 0.99995, ..good },
            EmaConfig { gamma: 0.0, ..good },
            EmaConfig { power: f64::NAN, ..good },
        ] {
            assert!(bad.validate().is_err(), "{bad:?} was accepted");
        }
    }
}
