//! One tower's forward and backward, with as much kept between them as the policy says.

use crate::config::Recompute;
use burn::module::Module;
use burn::tensor::{FloatDType, Int, Tensor};
use tbps_model::Clip;
use tbps_model::block::Block;
use tbps_optim::recompute::{self, Keep, Stage, Swept};
use tbps_optim::{Gathered, backward_from};

/// A tower over one input.
pub(crate) struct Tower<'a> {
    clip: &'a Clip,
    input: Input<'a>,
    compute: FloatDType,
    recompute: Recompute,
}

/// What a tower embeds, without autodiff.
pub(crate) enum Input<'a> {
    /// `[b, 3, height, width]`
    Pixels(&'a Tensor<4>),
    /// `[b, n]`
    TokenIds(&'a Tensor<2, Int>),
}

/// A forward, kept for its backward.
pub(crate) struct Pass {
    /// The first block's input on its tape, unless that is recomputed.
    stem: Option<Tensor<3>>,
    swept: Swept,
    /// The head's input, a leaf.
    head_input: Tensor<3>,
    /// The head's output on its tape.
    features: Tensor<2>,
}

impl Pass {
    /// `[b, embed_dim]` without autodiff, not of unit length.
    pub(crate) fn features(&self) -> Tensor<2> {
        self.features.clone().inner()
    }
}

impl<'a> Tower<'a> {
    pub(crate) fn new(
        clip: &'a Clip,
        input: Input<'a>,
        compute: FloatDType,
        recompute: Recompute,
    ) -> Self {
        Self { clip, input, compute, recompute }
    }

    pub(crate) fn forward(&self) -> Pass {
        let stem = (self.recompute == Recompute::Off).then(|| self.stem());
        let x = stem.clone().map_or_else(|| self.stem_without_tape(), Tensor::inner);
        let swept = self.sweep(|groups, stages| recompute::forward(groups, x, stages));
        let head_input = Tensor::from_inner(swept.output.clone()).require_grad();
        let features = self.head(head_input.clone());
        Pass { stem, swept, head_input, features }
    }

    /// Adds the parameters' gradients to `grads`; `upstream` `[b, embed_dim]` is the features'.
    pub(crate) fn backward(&self, pass: Pass, upstream: Tensor<2>, grads: &mut Gathered<'_>) {
        let mut tape = backward_from(pass.features, upstream);
        grads.collect(self.clip, &mut tape);
        let found = "the features depend on the head's input";
        let upstream = pass.head_input.grad_remove(&mut tape).expect(found);
        let upstream = self.sweep(|groups, stages| {
            recompute::backward(groups, pass.swept, upstream, stages, grads)
        });
        let stem = pass.stem.unwrap_or_else(|| self.stem());
        grads.collect(self.clip, &mut backward_from(stem, upstream));
    }

    /// The first block's input.
    fn stem(&self) -> Tensor<3> {
        match self.input {
            Input::Pixels(pixels) => {
                let pixels = Tensor::from_inner(pixels.clone());
                self.clip.visual.stem.forward(pixels, self.compute)
            }
            Input::TokenIds(ids) => self.clip.text.stem.forward(ids.clone()),
        }
    }

    fn stem_without_tape(&self) -> Tensor<3> {
        match self.input {
            Input::Pixels(pixels) => {
                self.clip.visual.stem.valid().forward(pixels.clone(), self.compute)
            }
            Input::TokenIds(ids) => self.clip.text.stem.valid().forward(ids.clone()),
        }
    }

    fn head(&self, x: Tensor<3>) -> Tensor<2> {
        match self.input {
            Input::Pixels(_) => self.clip.visual.head.forward(x),
            Input::TokenIds(ids) => self.clip.text.head.forward(x, ids.clone()),
        }
    }

    /// Calls `f` with the blocks in the groups that share a tape, and with the stages of a group.
    fn sweep<R>(&self, f: impl FnOnce(&[Vec<Block>], &[Stage<'_, Vec<Block>>]) -> R) -> R {
        let blocks = match self.input {
            Input::Pixels(_) => &self.clip.visual.blocks,
            Input::TokenIds(_) => &self.clip.text.blocks,
        };
        let compute = self.compute;
        let whole = |group: &Vec<Block>, x| group.iter().fold(x, |x, b| b.forward(x, compute));
        let attention = |group: &Vec<Block>, x| group[0].forward_attention(x, compute);
        let mlp = |group: &Vec<Block>, x| group[0].forward_mlp(x, compute);
        let (size, stages) = match self.recompute {
            Recompute::Off => (1, vec![Stage { keep: Keep::Tape, forward: &whole as _ }]),
            Recompute::Block => (1, vec![Stage { keep: Keep::Input, forward: &whole as _ }]),
            Recompute::Every(k) => (k, vec![Stage { keep: Keep::Input, forward: &whole as _ }]),
            Recompute::Attention => {
                let recomputed = Stage { keep: Keep::Input, forward: &attention as _ };
                (1, vec![recomputed, Stage { keep: Keep::Tape, forward: &mlp as _ }])
            }
        };
        let groups: Vec<Vec<Block>> = blocks.chunks(size).map(<[Block]>::to_vec).collect();
        f(&groups, &stages)
    }
}
