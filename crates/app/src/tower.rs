//! One tower's forward and backward, with as much kept between them as the policy says.

use crate::config::Recompute;
use burn::module::Module;
use burn::tensor::{FloatDType, Int, Tensor};
use tbps_model::Clip;
use tbps_model::block::Block;
use tbps_optim::recompute::{self, Keep, Stage, Swept};
use tbps_optim::{Gathered, root};

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
    /// The last block's input, a leaf, unless that block is recomputed.
    leaf: Option<Tensor<3>>,
    /// On the leaf's tape, if there is one.
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
        let x = swept.output.clone();
        let leaf = stem.is_some().then(|| Tensor::from_inner(x.clone()).require_grad());
        let features = match &leaf {
            Some(leaf) => self.finish(leaf.clone()),
            None => self.finish_without_tape(x),
        };
        Pass { stem, swept, leaf, features }
    }

    /// Adds the parameters' gradients to `grads`; `upstream` `[b, embed_dim]` is the features'.
    pub(crate) fn backward(&self, pass: Pass, upstream: Tensor<2>, grads: &mut Gathered<'_>) {
        let Pass { stem, swept, leaf, features } = pass;
        let (leaf, features) = match leaf {
            Some(leaf) => (leaf, features),
            None => {
                let leaf = Tensor::from_inner(swept.output.clone()).require_grad();
                (leaf.clone(), self.finish(leaf))
            }
        };
        let mut tape = root(features, upstream).backward();
        grads.collect(self.clip, &mut tape);
        let upstream = leaf.grad_remove(&mut tape).expect("features depend on the last block");
        drop(leaf);
        let upstream = self
            .sweep(|groups, stages| recompute::backward(groups, swept, upstream, stages, grads));
        let stem = stem.unwrap_or_else(|| self.stem());
        grads.collect(self.clip, &mut root(stem, upstream).backward());
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

    /// The last block and the head, of `[b, n, w]`.
    fn finish(&self, x: Tensor<3>) -> Tensor<2> {
        match self.input {
            Input::Pixels(_) => self.clip.visual.finish(x, self.compute),
            Input::TokenIds(ids) => self.clip.text.finish(x, ids.clone(), self.compute),
        }
    }

    fn finish_without_tape(&self, x: Tensor<3>) -> Tensor<2> {
        match self.input {
            Input::Pixels(_) => self.clip.visual.valid().finish(x, self.compute),
            Input::TokenIds(ids) => self.clip.text.valid().finish(x, ids.clone(), self.compute),
        }
    }

    /// Calls `f` with the blocks before the last, in the groups that are recomputed as one, and with
    /// the stages of a group.
    fn sweep<R>(&self, f: impl FnOnce(&[Vec<Block>], &[Stage<'_, Vec<Block>>]) -> R) -> R {
        let blocks = match self.input {
            Input::Pixels(_) => self.clip.visual.body(),
            Input::TokenIds(_) => self.clip.text.body(),
        };
        let compute = self.compute;
        let whole = |group: &Vec<Block>, x| group.iter().fold(x, |x, b| b.forward(x, compute));
        let whole_again = |group: &Vec<Block>, x, gradient| {
            let (last, before) = group.split_last().expect("no group is empty");
            let x = before.iter().fold(x, |x, b| b.forward(x, compute));
            last.root(x, gradient, compute)
        };
        let attention = |group: &Vec<Block>, x| group[0].forward_attention(x, compute);
        let attention_again =
            |group: &Vec<Block>, x, gradient| group[0].root_attention(x, gradient, compute);
        let mlp = |group: &Vec<Block>, x| group[0].forward_mlp(x, compute);
        let recomputed = Stage { forward: &whole, keep: Keep::Input(&whole_again) };
        let (size, stages) = match self.recompute {
            Recompute::Off => (1, vec![Stage { forward: &whole as _, keep: Keep::Tape }]),
            Recompute::Block => (1, vec![recomputed]),
            Recompute::Every(k) => (k, vec![recomputed]),
            Recompute::Attention => {
                let attention = Stage { forward: &attention, keep: Keep::Input(&attention_again) };
                (1, vec![attention, Stage { forward: &mlp, keep: Keep::Tape }])
            }
        };
        let groups: Vec<Vec<Block>> = blocks.chunks(size).map(<[Block]>::to_vec).collect();
        f(&groups, &stages)
    }
}
