//! The gradients of one step, gathered from the tapes of its parts.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};

/// Parameter gradients that are found tape by tape; a parameter of several tapes gets their sum.
pub struct Gathered<'a> {
    params: GradientsParams,
    bytes: u64,
    watch: &'a dyn Fn(u64),
}

impl<'a> Gathered<'a> {
    /// Nothing yet. After each tape `watch` hears the bytes of all gradients so far.
    pub fn new(watch: &'a dyn Fn(u64)) -> Self {
        Self { params: GradientsParams::new(), bytes: 0, watch }
    }

    /// Moves the gradients of `module`'s trainable parameters out of a finished tape. Returns how
    /// many it found.
    pub fn collect<M: Module>(&mut self, module: &M, tape: &mut Gradients) -> usize {
        let mut collector = Collector { tape, to: self, found: 0 };
        module.visit(&mut collector);
        let found = collector.found;
        (self.watch)(self.bytes);
        found
    }

    /// All that was found.
    pub fn into_params(self) -> GradientsParams {
        self.params
    }
}

struct Collector<'a, 'b> {
    tape: &'a mut Gradients,
    to: &'a mut Gathered<'b>,
    found: usize,
}

impl ModuleVisitor for Collector<'_, '_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(grad) = param.val().grad_remove(self.tape) else { return };
        self.found += 1;
        // `register` replaces, but a parameter that is used twice needs the sum.
        let sum = match self.to.params.remove::<D>(param.id) {
            Some(earlier) => earlier + grad,
            None => {
                self.to.bytes += (grad.shape().num_elements() * grad.dtype().size()) as u64;
                grad
            }
        };
        self.to.params.register(param.id, sum);
    }
}
