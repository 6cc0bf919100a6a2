//! The start of a backward pass from a gradient that is known already.
//!
//! burn starts a tape with ones at its root. [`root`] puts a scalar on top of an output whose own
//! gradient is the one that is given, so that nothing of the output's size is computed for it.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{FloatDType, Shape, Tensor};

/// The root of a tape on which the gradient at `output` is `gradient`, of its shape and dtype.
///
/// # Panics
///
/// When shapes or dtypes differ: a broken invariant of the caller.
pub fn root<const D: usize>(output: Tensor<D>, gradient: Tensor<D>) -> Tensor<1> {
    assert_eq!(output.dims(), gradient.dims(), "shapes of an output and its gradient");
    assert_eq!(output.dtype(), gradient.dtype(), "dtypes of an output and its gradient");
    let root = Dispatch::root(output.into_dispatch(), gradient.inner().into_dispatch());
    Tensor::from_dispatch(root)
}

#[backend_extension(Flex, Cube: cfg(feature = "cuda"), Autodiff)]
trait RootOps: Backend {
    /// A scalar whose gradient with respect to `output` is `gradient`.
    fn root(output: FloatTensor<Self>, gradient: FloatTensor<Self>) -> FloatTensor<Self> {
        drop(gradient);
        Self::float_zeros(Shape::new([1]), &output.device(), FloatDType::F32)
    }
}

impl RootOps for Flex {}

#[cfg(feature = "cuda")]
impl RootOps for burn::backend::Cube {}

impl<B: RootOps, C: CheckpointStrategy> RootOps for Autodiff<B, C> {
    fn root(output: FloatTensor<Self>, gradient: FloatTensor<Self>) -> FloatTensor<Self> {
        let (output, node) = output.into_parts();
        let (gradient, _constant) = gradient.into_parts();
        let root = B::root(output, gradient.clone());
        match Root.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(gradient, root),
            OpsKind::UnTracked(prep) => prep.finish(root),
        }
    }
}

#[derive(Debug)]
struct Root;

impl<B: RootOps> Backward<B, 1> for Root {
    type State = FloatTensor<B>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        grads.consume::<B>(&ops.node); // the ones that burn starts with
        if let [Some(parent)] = ops.parents {
            grads.register::<B>(parent.id, ops.state);
        }
    }
}
