//! A step on copies, tensor by tensor, so that a device compiles and tunes its kernels before time
//! and memory are measured.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use crate::adamw::{self, ParamState, Scalars};
use crate::error::OptimError;
use crate::grad_norm::global_norm;
use crate::param_groups::ParamEntry;
use crate::step::{Moments, Optimizer};

/// Elements of the largest tensor that is copied: an update runs the same kernels at any size.
const LARGEST: usize = 4 << 20;

impl Optimizer {
    /// Computes what [`step`](Self::step) does, on copies of one tensor at a time that are dropped
    /// at once. Nothing changes, and no more memory is held than a step holds.
    ///
    /// # Errors
    ///
    /// See [`global_norm`].
    pub fn rehearse<M: Module>(&self, model: &M, grads: GradientsParams) -> Result<(), OptimError> {
        global_norm(model, &grads, &self.entries, 1.0)?;
        model.visit(&mut Rehearsal {
            scalars: self.scalars(0.0, 1.0),
            state: self.entries.iter().zip(&self.moments),
            ema: self.ema.as_ref().map(|ema| ema.shadow.iter()),
            grads,
        });
        Ok(())
    }
}

struct Rehearsal<'a> {
    scalars: Vec<Scalars>,
    state: std::iter::Zip<std::slice::Iter<'a, ParamEntry>, std::slice::Iter<'a, Moments>>,
    ema: Option<std::slice::Iter<'a, Tensor<1>>>,
    grads: GradientsParams,
}

impl ModuleVisitor for Rehearsal<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        const CHECKED: &str = "`global_norm` found the same parameters and all their gradients";
        if !param.is_require_grad() {
            return;
        }
        let (entry, moments) = self.state.next().expect(CHECKED);
        let grad = self.grads.remove::<D>(param.id).expect(CHECKED);
        let ema = self.ema.as_mut().map(|ema| ema.next().expect(CHECKED).clone());
        if entry.num_elements > LARGEST {
            return;
        }
        let Moments { exp_avg, exp_avg_sq } = moments.clone();
        let param = param.val().inner().reshape([entry.num_elements]);
        let state = ParamState { param, exp_avg, exp_avg_sq, ema };
        let grad = grad.inner().reshape([entry.num_elements]);
        adamw::update(state, grad, &self.scalars[entry.group]);
    }
}
