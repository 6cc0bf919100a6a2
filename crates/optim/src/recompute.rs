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

use crate::gathered::Gathered;
use crate::root;
use burn::module::Module;
use burn::tensor::Tensor;

/// A part of every block's forward, `[batch, seq, width] -> [batch, seq, width]`.
pub struct Stage<'a, M> {
    /// The part, of a block with or without autodiff.
    pub forward: &'a dyn Fn(&M, Tensor<3>) -> Tensor<3>,
    /// What is kept of it between forward and backward.
    pub keep: Keep<'a, M>,
}

/// What is kept of a stage between forward and backward.
pub enum Keep<'a, M> {
    /// Its input: it runs again in the backward, as the function says.
    Input(&'a Again<'a, M>),
    /// Its tape, with all that its operations saved.
    Tape,
}

// Derived, these would ask the same of `M`.
impl<M> Copy for Keep<'_, M> {}
impl<M> Clone for Keep<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

/// A stage once more, for its backward: from the block, the stage's input on a tape and the gradient
/// at its output, both `[batch, seq, width]`, to the root `[1]` of that tape.
///
/// [`root`] of the output does it; a stage that knows its last operation need not compute that
/// operation's result, which nobody reads.
pub type Again<'a, M> = dyn Fn(&M, Tensor<3>, Tensor<3>) -> Tensor<1> + 'a;

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
        for Stage { forward, keep } in stages {
            let (stage, next) = match keep {
                Keep::Input(_) => {
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
    grads: &mut Gathered<'_>,
) -> Tensor<3> {
    let mut kept = swept.kept;
    assert_eq!(kept.len(), blocks.len() * stages.len(), "what was kept is of other stages");
    let mut upstream = upstream.inner();
    let runs = blocks.iter().flat_map(|block| stages.iter().map(move |stage| (block, stage)));
    for (block, stage) in runs.collect::<Vec<_>>().into_iter().rev() {
        let index = kept.len() - 1;
        let Kept { input, output } = kept.pop().expect("as many as stages");
        let (leaf, root) = match (output, stage.keep) {
            (Some(output), Keep::Tape) => (input, root(output, upstream)),
            (None, Keep::Input(again)) => {
                let leaf = Tensor::from_inner(input).require_grad();
                (leaf.clone(), again(block, leaf, upstream))
            }
            _ => panic!("what was kept of stage {index} is not what the stage says"),
        };
        let mut tape = root.backward();
        let found = grads.collect(block, &mut tape);
        assert!(found > 0, "stage {index} has no trainable parameter: is the model on autodiff?");
        upstream = leaf.grad_remove(&mut tape).expect("every output depends on its input");
    }
    upstream
}
