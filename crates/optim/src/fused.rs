//! The update and the sum of squares as single passes over memory, for the Flex (CPU) backend.
//!
//! An update composed of tensor operations walks over memory some twenty times; on a CPU that, not
//! the arithmetic, is its cost. Tensors are taken apart by burn's `try_into_primitive`, which asks
//! nothing of other backends: what isn't on Flex goes through the composed path.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use rayon::prelude::*;

use crate::adamw::{ParamState, Scalars};

/// Elements per task: five f32 blocks of this length fit in a core's L2 cache.
const BLOCK: usize = 16 * 1024;

/// Partial sums of [`sum_squares`] kept side by side, so that the compiler can use vectors.
const LANES: usize = 16;

const ASKED: &str = "`is_flex` was asked first, and one parameter's tensors share a device";
const MADE_CONTIGUOUS: &str = "`primitive` made it contiguous";

/// Whether `tensor` lives on the Flex backend, without autodiff.
pub(crate) fn is_flex(tensor: &Tensor<1>) -> bool {
    tensor.clone().try_into_primitive::<Flex>().is_ok()
}

/// [`update`](crate::adamw::update) in one pass. Buffers that nobody else holds are overwritten;
/// shared ones are copied first. Panics when the tensors aren't on Flex.
pub(crate) fn update(state: ParamState, grad: Tensor<1>, scalars: &Scalars) -> ParamState {
    let grad = primitive(grad);
    let mut param = primitive(state.param);
    let mut exp_avg = primitive(state.exp_avg);
    let mut exp_avg_sq = primitive(state.exp_avg_sq);
    let mut ema = state.ema.map(primitive);
    blocks(&mut param, &grad, &mut exp_avg, &mut exp_avg_sq, ema.as_mut())
        .into_par_iter()
        .for_each(|block| block.update(scalars));
    let wrap = |primitive: FlexTensor| Tensor::<1>::from_primitive::<Flex>(primitive);
    ParamState {
        param: wrap(param),
        exp_avg: wrap(exp_avg),
        exp_avg_sq: wrap(exp_avg_sq),
        ema: ema.map(wrap),
    }
}

/// Sum of `(factor * x)^2` over the tensor. Panics when it isn't on Flex.
///
/// Blocks are added up in order, so the result doesn't depend on the number of threads.
pub(crate) fn sum_squares(tensor: Tensor<1>, factor: f32) -> f64 {
    let primitive = primitive(tensor);
    let blocks: Vec<f64> =
        view(&primitive).par_chunks(BLOCK).map(|block| block_sum_squares(block, factor)).collect();
    blocks.iter().sum()
}

fn block_sum_squares(block: &[f32], factor: f32) -> f64 {
    let mut sums = [0.0_f32; LANES];
    let (whole, rest) = block.as_chunks::<LANES>();
    for lanes in whole {
        for (sum, &x) in sums.iter_mut().zip(lanes) {
            *sum += (factor * x) * (factor * x);
        }
    }
    for (sum, &x) in sums.iter_mut().zip(rest) {
        *sum += (factor * x) * (factor * x);
    }
    sums.into_iter().map(f64::from).sum()
}

fn primitive(tensor: Tensor<1>) -> FlexTensor {
    let primitive = tensor.try_into_primitive::<Flex>().expect(ASKED);
    if primitive.layout().contiguous_offsets().is_some() {
        primitive
    } else {
        primitive.to_contiguous()
    }
}

fn view(primitive: &FlexTensor) -> &[f32] {
    primitive.as_slice::<f32>().expect(MADE_CONTIGUOUS)
}

fn view_mut(primitive: &mut FlexTensor) -> &mut [f32] {
    let (start, end) = primitive.layout().contiguous_offsets().expect(MADE_CONTIGUOUS);
    &mut primitive.storage_mut::<f32>()[start..end]
}

/// The same range of every tensor of one parameter.
struct Block<'a> {
    param: &'a mut [f32],
    grad: &'a [f32],
    exp_avg: &'a mut [f32],
    exp_avg_sq: &'a mut [f32],
    ema: Option<&'a mut [f32]>,
}

fn blocks<'a>(
    param: &'a mut FlexTensor,
    grad: &'a FlexTensor,
    exp_avg: &'a mut FlexTensor,
    exp_avg_sq: &'a mut FlexTensor,
    ema: Option<&'a mut FlexTensor>,
) -> Vec<Block<'a>> {
    let mut exp_avg = view_mut(exp_avg).chunks_mut(BLOCK);
    let mut exp_avg_sq = view_mut(exp_avg_sq).chunks_mut(BLOCK);
    let mut ema = ema.map(|ema| view_mut(ema).chunks_mut(BLOCK));
    let long = "moments and average are as long as the parameter";
    view_mut(param)
        .chunks_mut(BLOCK)
        .zip(view(grad).chunks(BLOCK))
        .map(|(param, grad)| Block {
            param,
            grad,
            exp_avg: exp_avg.next().expect(long),
            exp_avg_sq: exp_avg_sq.next().expect(long),
            ema: ema.as_mut().map(|chunks| chunks.next().expect(long)),
        })
        .collect()
}

impl Block<'_> {
    /// The arithmetic of `update_by_ops`, operation for operation.
    fn update(self, s: &Scalars) {
        let max = s.clamp_max.unwrap_or(f32::INFINITY);
        let moments = self.exp_avg.iter_mut().zip(self.exp_avg_sq.iter_mut());
        for ((param, &grad), (mean, square)) in self.param.iter_mut().zip(self.grad).zip(moments) {
            let grad = grad * s.grad_factor;
            *mean += (grad - *mean) * s.mean_weight;
            *square = *square * s.beta2 + (grad * s.square_weight) * grad;
            let root = square.sqrt() / s.square_root_bias + s.eps;
            let next = *param * s.decay + (*mean * -s.step_size) / root;
            // Not `f32::min`, which would turn a NaN into the bound.
            *param = if next > max { max } else { next };
        }
        if let Some(ema) = self.ema {
            lerp(ema, self.param, s.ema_weight);
        }
    }
}

/// Moves `from` toward `to` by `weight`, from the nearer end.
fn lerp(from: &mut [f32], to: &[f32], weight: f32) {
    if weight < 0.5 {
        for (from, &to) in from.iter_mut().zip(to) {
            *from += (to - *from) * weight;
        }
    } else {
        for (from, &to) in from.iter_mut().zip(to) {
            *from = to - (to - *from) * (1.0 - weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn sums_squares_of_any_length_and_of_views() {
        let device = Device::flex();
        for len in [1, LANES - 1, LANES, BLOCK + 3, 3 * BLOCK] {
            let ones = Tensor::<1>::ones([len], &device);
            assert_eq!(sum_squares(ones, 0.5), 0.25 * len as f64, "{len} ones");
        }
        let tail = Tensor::<1>::from_floats([100.0, 3.0, 4.0], &device).narrow(0, 1, 2);
        assert_eq!(sum_squares(tail, 1.0), 25.0);
    }

    #[test]
    fn infinities_and_nans_reach_the_sum() {
        for bad in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let tensor = Tensor::<1>::from_floats([1.0, bad], &Device::flex());
            assert!(!sum_squares(tensor, 0.5).is_finite(), "{bad} got lost");
        }
    }

    #[test]
    fn only_plain_flex_tensors_are_flex() {
        let device = Device::flex();
        assert!(is_flex(&Tensor::ones([2], &device)));
        assert!(!is_flex(&Tensor::ones([2], &device.autodiff())));
    }
}
