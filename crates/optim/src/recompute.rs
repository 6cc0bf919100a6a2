//! Activation recomputation for a stack of blocks: how much of each is kept for its backward.
//!
//! A block is a sequence of stages. Of a stage either the input is kept, and the stage runs again
//! when its gradients are due, or its tape, and it does not. The forward sweep runs stage by stage;
//! the backward sweep goes through them in reverse, seeds each tape with the gradient from above,
//! and takes the gradients of the stage's input and parameters. One recomputed tape is alive at a
//! time. The price of keeping inputs only is about one more forward pass.
//!
//! A stage must give the same output both times: no dropout (which `valid()` switches off in the
//! forward sweep alone) and no other randomness. Letters: `batch`, `seq`, `width` as in
//! `[batch, seq, width]`.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Gradients, Tensor};

/// What is kept of a stage between forward and backward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Its input: it runs again in the backward.
    Input,
    /// Its tape, with all that its operations saved.
    Tape,
}

/// A part of every block's forward, `[batch, seq, width] -> [batch, seq, width]`.
pub struct Stage<'a, M> {
    /// What is kept of it.
    pub keep: Keep,
    /// The part, of a block with or without autodiff.
    pub forward: &'a dyn Fn(&M, Tensor<3>) -> Tensor<3>,
}

/// What the forward sweep leaves for the backward sweep.
#[derive(Debug)]
pub struct Swept {
    /// Of each stage of each block, in the order in which they ran.
    kept: Vec<Kept>,
    /// Output of the last block `[batch, seq, width]`, without autodiff.
    pub output: Tensor<3>,
}

#[derive(Debug)]
struct Kept {
    /// Without autodiff where the stage runs again, else a leaf.
    input: Tensor<3>,
    /// What was made of the leaf, on its tape.
    output: Option<Tensor<3>>,
}

/// Runs `x` `[batch, seq, width]` through the blocks, each of them through its stages.
///
/// For the loss, make a leaf of the output: `Tensor::from_inner(swept.output).require_grad()`.
pub fn forward<M: Module>(blocks: &[M], x: Tensor<3>, stages: &[Stage<'_, M>]) -> Swept {
    let mut kept = Vec::with_capacity(blocks.len() * stages.len());
    let mut output = x.inner();
    for block in blocks {
        for Stage { keep, forward } in stages {
            let (stage, next) = match keep {
                Keep::Input => {
                    let next = forward(&block.valid(), output.clone());
                    (Kept { input: output, output: None }, next)
                }
                Keep::Tape => {
                    let leaf = Tensor::from_inner(output).require_grad();
                    let output = forward(block, leaf.clone());
                    let next = output.clone().inner();
                    (Kept { input: leaf, output: Some(output) }, next)
                }
            };
            assert!(!next.is_autodiff(), "stage {} put its output on a tape", kept.len());
            kept.push(stage);
            output = next;
        }
    }
    Swept { kept, output }
}

/// Sweeps back from `upstream`, the gradient `[batch, seq, width]` of the loss with respect to the
/// last block's output, and returns the gradient with respect to the first block's input.
///
/// The parameters' gradients are added to `grads`. `swept` is what [`forward`] kept with the same
/// blocks and stages; each part of it is freed when its stage is done.
///
/// # Panics
///
/// When a stage has no trainable parameter that its output depends on: that is a model that was
/// never put on an autodiff device, and would otherwise train nothing without a word. When `swept`
/// is of other blocks or stages.
pub fn backward<M: Module>(
    blocks: &[M],
    swept: Swept,
    upstream: Tensor<3>,
    stages: &[Stage<'_, M>],
    grads: &mut GradientsParams,
) -> Tensor<3> {
    let mut kept = swept.kept;
    assert_eq!(kept.len(), blocks.len() * stages.len(), "what was kept is of other stages");
    let mut upstream = upstream.inner();
    let runs = blocks.iter().flat_map(|block| stages.iter().map(move |stage| (block, stage)));
    for (block, stage) in runs.collect::<Vec<_>>().into_iter().rev() {
        let index = kept.len() - 1;
        let Kept { input, output } = kept.pop().expect("as many as stages");
        let (leaf, output) = match output {
            Some(output) => (input, output),
            None => {
                let leaf = Tensor::from_inner(input).require_grad();
                (leaf.clone(), (stage.forward)(block, leaf))
            }
        };
        assert_eq!(output.dtype(), upstream.dtype(), "types at the output of stage {index}");
        // `backward` seeds with ones, so the product's tape starts from `upstream`.
        let mut tape = (output * upstream).backward();
        let found = collect(block, &mut tape, grads);
        assert!(found > 0, "stage {index} has no trainable parameter: is the model on autodiff?");
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
