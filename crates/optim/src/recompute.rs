//! Activation recomputation for a stack of blocks: keep each block's input, run the block again
//! when its gradients are due.
//!
//! The forward sweep runs without autodiff and keeps one tensor per block. The backward sweep goes
//! through the blocks in reverse: it runs a block again on a leaf, seeds the tape with the gradient
//! from above, and takes the gradients of the block's input and parameters. One block's tape is
//! alive at a time. The price is about one more forward pass.
//!
//! A block must give the same output both times: no dropout (which `valid()` switches off in the
//! forward sweep alone) and no other randomness. Letters: `batch`, `seq`, `width` as in
//! `[batch, seq, width]`.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};

/// What the forward sweep leaves for the backward sweep.
#[derive(Clone, Debug)]
pub struct Swept {
    /// Input of each block `[batch, seq, width]`, without autodiff.
    pub inputs: Vec<Tensor<3>>,
    /// Output of the last block `[batch, seq, width]`, without autodiff.
    pub output: Tensor<3>,
}

/// Runs `x` `[batch, seq, width]` through the blocks without autodiff; `f` is a block's forward.
///
/// For the loss, make a leaf of the output: `Tensor::from_inner(swept.output).require_grad()`.
pub fn forward<M: Module>(
    blocks: &[M],
    x: Tensor<3>,
    f: &dyn Fn(&M, Tensor<3>) -> Tensor<3>,
) -> Swept {
    let mut inputs = Vec::with_capacity(blocks.len());
    let mut output = x.inner();
    for block in blocks {
        inputs.push(output.clone());
        output = f(&block.valid(), output);
        assert!(!output.is_autodiff(), "block {} put its output on a tape", inputs.len() - 1);
    }
    Swept { inputs, output }
}

/// Sweeps back from `upstream`, the gradient `[batch, seq, width]` of the loss with respect to the
/// last block's output, and returns the gradient with respect to the first block's input.
///
/// The parameters' gradients are added to `grads`. `inputs` are those that [`forward`] kept; each
/// is freed when its block is done.
///
/// # Panics
///
/// When a block has no trainable parameter that its output depends on: that is a model that was
/// never put on an autodiff device, and would otherwise train nothing without a word. When there
/// aren't as many inputs as blocks.
pub fn backward<M: Module>(
    blocks: &[M],
    mut inputs: Vec<Tensor<3>>,
    upstream: Tensor<3>,
    f: &dyn Fn(&M, Tensor<3>) -> Tensor<3>,
    grads: &mut GradientsParams,
) -> Tensor<3> {
    assert_eq!(inputs.len(), blocks.len(), "one kept input per block");
    let mut upstream = upstream.inner();
    for (index, block) in blocks.iter().enumerate().rev() {
        let input = inputs.pop().expect("as many inputs as blocks");
        let leaf = Tensor::from_inner(input).require_grad();
        let output = f(block, leaf.clone());
        assert_eq!(output.dtype(), upstream.dtype(), "types at the output of block {index}");
        // `backward` seeds with ones, so the product's tape starts from `upstream`.
        let mut tape = (output * upstream).backward();
        let found = collect(block, &mut tape, grads);
        assert!(found > 0, "block {index} has no trainable parameter: is the model on autodiff?");
        upstream = leaf.grad_remove(&mut tape).expect("every output depends on its input");
    }
    upstream
}

/// Moves the gradients of `module`'s trainable parameters out of a finished tape, adding to those
/// that `grads` already has. Returns how many it found.
pub fn collect<M: Module>(module: &M, tape: &mut Gradients, grads: &mut GradientsParams) -> usize {
    let mut collector = Collector { tape, grads, found: 0 };
    module.visit(&mut collector);
    collector.found
}

struct Collector<'a> {
    tape: &'a mut Gradients,
    grads: &'a mut GradientsParams,
    found: usize,
}

impl ModuleVisitor for Collector<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(grad) = param.val().grad_remove(self.tape) else { return };
        self.found += 1;
        // `register` replaces, but a parameter that is used twice needs the sum.
        let sum = match self.grads.remove::<D>(param.id) {
            Some(earlier) => earlier + grad,
            None => grad,
        };
        self.grads.register(param.id, sum);
    }
}
