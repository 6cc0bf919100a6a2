//! Random initial parameters, drawn on the host so that a seed means the same on every device.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Draws parameters in the order in which they are asked for.
pub(crate) struct Init {
    rng: Xoshiro256PlusPlus,
    device: Device,
}

impl Init {
    pub(crate) fn new(seed: u64, device: &Device) -> Self {
        Self { rng: Xoshiro256PlusPlus::seed_from_u64(seed), device: device.clone() }
    }

    /// As [`Init::new`], with draws that no model of the seed gets to.
    pub(crate) fn apart(seed: u64, device: &Device) -> Self {
        let mut init = Self::new(seed, device);
        init.rng.jump();
        init
    }

    /// Normal with mean 0 and the given standard deviation.
    pub(crate) fn normal<const D: usize>(
        &mut self,
        shape: [usize; D],
        std: f64,
    ) -> Param<Tensor<D>> {
        let draw = |_| {
            let z: f64 = StandardNormal.sample(&mut self.rng);
            (z * std) as f32
        };
        let values: Vec<f32> = (0..shape.iter().product()).map(draw).collect();
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &self.device))
    }

    pub(crate) fn constant<const D: usize>(
        &self,
        shape: [usize; D],
        value: f32,
    ) -> Param<Tensor<D>> {
        let values = vec![value; shape.iter().product()];
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &self.device))
    }
}
