//! The global L2 norm of all gradients, and what clipping makes of it.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Tensor};

use crate::error::OptimError;
use crate::fused;
use crate::param_groups::ParamEntry;

/// Global L2 norm of `factor * grads`, with one read from the device.
///
/// It is infinite or NaN exactly when an element is, or when the squares exceed f32: both mean that
/// the step must be skipped. `trainable` lists the model's trainable parameters in visit order.
///
/// # Errors
///
/// A trainable parameter without a gradient, a gradient that isn't f32, a gradient of no trainable
/// parameter, or a model whose trainable parameters aren't `trainable`.
pub fn global_norm<M: Module>(
    model: &M,
    grads: &GradientsParams,
    trainable: &[ParamEntry],
    factor: f32,
) -> Result<f32, OptimError> {
    let mut visitor =
        SquareSums { grads, factor, expected: trainable.iter(), sums: Vec::new(), error: None };
    model.visit(&mut visitor);
    if let Some(missing) = visitor.expected.next() {
        let path = missing.path.clone();
        visitor.error.get_or_insert(OptimError::ModelChanged { path });
    }
    let SquareSums { sums, error, .. } = visitor;
    if let Some(error) = error {
        return Err(error);
    }
    if grads.len() != sums.len() {
        return Err(OptimError::UnusedGradients { count: grads.len() - sums.len() });
    }
    Ok(Tensor::cat(sums, 0).sum().sqrt().into_scalar::<f32>())
}

/// The factor, at most 1, that brings a norm down to `max_norm`, as `clip_grad_norm_` has it.
pub fn clip_factor(norm: f32, max_norm: f32) -> f32 {
    (max_norm / (norm + 1e-6)).min(1.0)
}

/// Collects the sum of squares of each gradient as a `[1]` tensor, and the first fault.
struct SquareSums<'a> {
    grads: &'a GradientsParams,
    factor: f32,
    expected: std::slice::Iter<'a, ParamEntry>,
    sums: Vec<Tensor<1>>,
    error: Option<OptimError>,
}

impl SquareSums<'_> {
    fn sum<const D: usize>(&mut self, param: &Param<Tensor<D>>) -> Result<Tensor<1>, OptimError> {
        let entry = match self.expected.next() {
            Some(entry) if entry.id == param.id => entry,
            Some(other) => return Err(OptimError::ModelChanged { path: other.path.clone() }),
            None => {
                return Err(OptimError::ModelChanged { path: format!("parameter {}", param.id) });
            }
        };
        let path = || entry.path.clone();
        let grad = self.grads.get::<D>(param.id);
        let grad = grad.ok_or_else(|| OptimError::MissingGradient { path: path() })?;
        let dtype = grad.dtype();
        if dtype != DType::F32 {
            return Err(OptimError::NotF32 { what: "the gradient", path: path(), dtype });
        }
        Ok(sum_squares(grad.inner().reshape([entry.num_elements]), self.factor))
    }
}

impl ModuleVisitor for SquareSums<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.error.is_some() || !param.is_require_grad() {
            return;
        }
        match self.sum(param) {
            Ok(sum) => self.sums.push(sum),
            Err(error) => self.error = Some(error),
        }
    }
}

/// Sum of `(factor * grad)^2` as a `[1]` tensor on `grad`'s device; `grad` is `[n]`.
fn sum_squares(grad: Tensor<1>, factor: f32) -> Tensor<1> {
    if fused::is_flex(&grad) {
        let device = grad.device();
        Tensor::from_floats([fused::sum_squares(grad, factor) as f32], &device)
    } else {
        sum_squares_by_ops(grad, factor)
    }
}

/// [`sum_squares`] as a composition of tensor operations, which any backend has.
fn sum_squares_by_ops(grad: Tensor<1>, factor: f32) -> Tensor<1> {
    grad.mul_scalar(factor).square().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param_groups::{ParamGroup, assign};
    use burn::nn::{Linear, LinearConfig};
    use burn::tensor::Device;

    fn linear() -> (Linear, Vec<ParamEntry>) {
        let model = LinearConfig::new(2, 1).init(&Device::flex().autodiff());
        let entries = assign(&model, &ParamGroup::without_decay_for(&[], 0.0)).unwrap();
        (model, entries)
    }

    fn grads(model: &Linear, weight: [[f32; 1]; 2], bias: f32) -> GradientsParams {
        let mut grads = GradientsParams::new();
        let device = Device::flex();
        grads.register(model.weight.id, Tensor::<2>::from_floats(weight, &device));
        let bias_id = model.bias.as_ref().unwrap().id;
        grads.register(bias_id, Tensor::<1>::from_floats([bias], &device));
        grads
    }

    #[test]
    fn spans_all_gradients_and_applies_the_factor() {
        let (model, entries) = linear();
        let grads = grads(&model, [[2.0], [4.0]], 4.0);
        assert_eq!(global_norm(&model, &grads, &entries, 0.5), Ok(3.0));
    }

    #[test]
    fn one_bad_element_shows() {
        let (model, entries) = linear();
        for bad in [f32::INFINITY, f32::NAN] {
            let grads = grads(&model, [[0.0], [bad]], 1.0);
            let norm = global_norm(&model, &grads, &entries, 1e-3).unwrap();
            assert!(!norm.is_finite(), "{bad} gave {norm}");
        }
    }

    #[test]
    fn missing_and_foreign_gradients_are_errors() {
        let (model, entries) = linear();
        let mut missing = grads(&model, [[0.0], [0.0]], 0.0);
        missing.remove::<2>(model.weight.id);
        let error = OptimError::MissingGradient { path: "weight".into() };
        assert_eq!(global_norm(&model, &missing, &entries, 1.0), Err(error));

        let mut foreign = grads(&model, [[0.0], [0.0]], 0.0);
        foreign.register(linear().0.weight.id, Tensor::<2>::ones([2, 1], &Device::flex()));
        let error = OptimError::UnusedGradients { count: 1 };
        assert_eq!(global_norm(&model, &foreign, &entries, 1.0), Err(error));

        let (other, _) = linear();
        let error = OptimError::ModelChanged { path: "weight".into() };
        let grads = grads(&other, [[0.0], [0.0]], 0.0);
        assert_eq!(global_norm(&other, &grads, &entries, 1.0), Err(error));
    }

    #[test]
    fn the_composed_sum_equals_the_fused_one() {
        let wave: Vec<f32> = (0..50_000).map(|i| (i as f32).sin()).collect();
        let wave = Tensor::<1>::from_floats(wave.as_slice(), &Device::flex());
        let fused = sum_squares(wave.clone(), 0.3).into_scalar::<f32>();
        let composed = sum_squares_by_ops(wave, 0.3).into_scalar::<f32>();
        assert!((fused / composed - 1.0).abs() < 1e-5, "{fused} is not {composed}");
        let inf = Tensor::<1>::from_floats([1.0, f32::INFINITY], &Device::flex());
        assert!(!sum_squares_by_ops(inf, 0.3).into_scalar::<f32>().is_finite());
    }

    #[test]
    fn clipping_only_shrinks() {
        assert_eq!(clip_factor(0.5, 1.0), 1.0);
        assert!((clip_factor(4.0, 1.0) - 0.25).abs() < 1e-6);
    }
}
