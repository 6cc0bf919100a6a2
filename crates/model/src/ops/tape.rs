//! The operations of a block on the autodiff tape: one node each, which keeps the operation's
//! inputs and nothing of what it computed on the way.

use super::backend::BlockOps;
use crate::config::Activation;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, TensorMetadata};
use burn::tensor::FloatDType;

type Tracked<B, C> = FloatTensor<Autodiff<B, C>>;

impl<B: BlockOps, C: CheckpointStrategy> BlockOps for Autodiff<B, C> {
    fn norm(x: Tracked<B, C>, gamma: Tracked<B, C>, beta: Tracked<B, C>) -> Tracked<B, C> {
        let ((x, x_node), (gamma, gamma_node)) = (x.into_parts(), gamma.into_parts());
        let (beta, beta_node) = beta.into_parts();
        let y = B::norm(x.clone(), gamma.clone(), beta);
        put::<B, C, _, 3>(Norm, [x_node, gamma_node, beta_node], (x, gamma), y)
    }

    fn take_rows(table: Tracked<B, C>, index: IntTensor<B>) -> Tracked<B, C> {
        let (table, node) = table.into_parts();
        let rows = table.shape()[0];
        let y = B::take_rows(table, index.clone());
        put::<B, C, _, 1>(TakeRows, [node], (rows, index), y)
    }

    fn cross_entropy(logits: Tracked<B, C>, labels: IntTensor<B>) -> Tracked<B, C> {
        let (logits, node) = logits.into_parts();
        let y = B::cross_entropy(logits.clone(), labels.clone());
        put::<B, C, _, 1>(CrossEntropy, [node], (logits, labels), y)
    }

    fn embed(x: Tracked<B, C>, weight: Tracked<B, C>) -> Tracked<B, C> {
        let ((x, _constant), (weight, node)) = (x.into_parts(), weight.into_parts());
        let y = B::embed(x.clone(), weight);
        put::<B, C, _, 1>(Embed, [node], x, y)
    }

    fn norm_linear(
        x: Tracked<B, C>,
        gamma: Tracked<B, C>,
        beta: Tracked<B, C>,
        weight: Tracked<B, C>,
        bias: Tracked<B, C>,
        compute: FloatDType,
    ) -> Tracked<B, C> {
        let ((x, x_node), (gamma, gamma_node)) = (x.into_parts(), gamma.into_parts());
        let ((beta, beta_node), (weight, weight_node)) = (beta.into_parts(), weight.into_parts());
        let (bias, bias_node) = bias.into_parts();
        let y =
            B::norm_linear(x.clone(), gamma.clone(), beta.clone(), weight.clone(), bias, compute);
        let nodes = [x_node, gamma_node, beta_node, weight_node, bias_node];
        put::<B, C, _, 5>(NormLinear, nodes, (x, gamma, beta, weight), y)
    }

    fn linear_onto(
        residual: Tracked<B, C>,
        x: Tracked<B, C>,
        activation: Option<Activation>,
        weight: Tracked<B, C>,
        bias: Tracked<B, C>,
    ) -> Tracked<B, C> {
        let ((residual, residual_node), (x, x_node)) = (residual.into_parts(), x.into_parts());
        let ((weight, weight_node), (bias, bias_node)) = (weight.into_parts(), bias.into_parts());
        let y = B::linear_onto(residual, x.clone(), activation, weight.clone(), bias);
        let nodes = [residual_node, x_node, weight_node, bias_node];
        put::<B, C, _, 4>(LinearOnto, nodes, (x, activation, weight), y)
    }

    fn linear_onto_root(
        residual: Tracked<B, C>,
        x: Tracked<B, C>,
        activation: Option<Activation>,
        weight: Tracked<B, C>,
        bias: Tracked<B, C>,
        gradient: Tracked<B, C>,
    ) -> Tracked<B, C> {
        let ((residual, residual_node), (x, x_node)) = (residual.into_parts(), x.into_parts());
        let ((weight, weight_node), (bias, bias_node)) = (weight.into_parts(), bias.into_parts());
        let (gradient, _constant) = gradient.into_parts();
        let root = B::linear_onto_root(
            residual,
            x.clone(),
            activation,
            weight.clone(),
            bias,
            gradient.clone(),
        );
        let nodes = [residual_node, x_node, weight_node, bias_node];
        put::<B, C, _, 4>(LinearOntoRoot, nodes, (x, activation, weight, gradient), root)
    }

    fn self_attention(qkv: Tracked<B, C>, heads: usize, causal: bool) -> Tracked<B, C> {
        let (qkv, node) = qkv.into_parts();
        let y = B::self_attention(qkv.clone(), heads, causal);
        put::<B, C, _, 1>(Attention, [node], (qkv, heads, causal), y)
    }

    fn attention_at(
        q: Tracked<B, C>,
        kv: Tracked<B, C>,
        last: IntTensor<B>,
        heads: usize,
    ) -> Tracked<B, C> {
        let ((q, q_node), (kv, kv_node)) = (q.into_parts(), kv.into_parts());
        let y = B::attention_at(q.clone(), kv.clone(), last.clone(), heads);
        put::<B, C, _, 2>(AttentionAt, [q_node, kv_node], (q, kv, last, heads), y)
    }
}

#[derive(Debug)]
struct Norm;

impl<B: BlockOps> Backward<B, 3> for Norm {
    type State = (FloatTensor<B>, FloatTensor<B>);

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let (x, gamma) = ops.state;
        let (dx, d_gamma, d_beta) = B::norm_backward(x, gamma, grad);
        give::<B, 3>(grads, parents, [dx, d_gamma, d_beta]);
    }
}

#[derive(Debug)]
struct TakeRows;

impl<B: BlockOps> Backward<B, 1> for TakeRows {
    type State = (usize, IntTensor<B>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let (rows, index) = ops.state;
        give::<B, 1>(grads, parents, [B::take_rows_backward(rows, index, grad)]);
    }
}

#[derive(Debug)]
struct CrossEntropy;

impl<B: BlockOps> Backward<B, 1> for CrossEntropy {
    type State = (FloatTensor<B>, IntTensor<B>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let (logits, labels) = ops.state;
        give::<B, 1>(grads, parents, [B::cross_entropy_backward(logits, labels, grad)]);
    }
}

#[derive(Debug)]
struct Embed;

impl<B: BlockOps> Backward<B, 1> for Embed {
    type State = FloatTensor<B>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        give::<B, 1>(grads, parents, [B::embed_backward(ops.state, grad)]);
    }
}

#[derive(Debug)]
struct NormLinear;

impl<B: BlockOps> Backward<B, 5> for NormLinear {
    type State = (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, FloatTensor<B>);

    fn backward(self, ops: Ops<Self::State, 5>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let (x, gamma, beta, weight) = ops.state;
        let (dx, d_gamma, d_beta, d_weight, d_bias) =
            B::norm_linear_backward(x, gamma, beta, weight, grad);
        give::<B, 5>(grads, parents, [dx, d_gamma, d_beta, d_weight, d_bias]);
    }
}

#[derive(Debug)]
struct LinearOnto;

impl<B: BlockOps> Backward<B, 4> for LinearOnto {
    type State = (FloatTensor<B>, Option<Activation>, FloatTensor<B>);

    fn backward(self, ops: Ops<Self::State, 4>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let (x, activation, weight) = ops.state;
        let (dx, d_weight, d_bias) = B::linear_onto_backward(x, activation, weight, grad.clone());
        give::<B, 4>(grads, parents, [grad, dx, d_weight, d_bias]);
    }
}

#[derive(Debug)]
struct LinearOntoRoot;

impl<B: BlockOps> Backward<B, 4> for LinearOntoRoot {
    type State = (FloatTensor<B>, Option<Activation>, FloatTensor<B>, FloatTensor<B>);

    fn backward(self, ops: Ops<Self::State, 4>, grads: &mut Gradients, _: &mut Checkpointer) {
        grads.consume::<B>(&ops.node); // the ones that burn starts with
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let (x, activation, weight, grad) = ops.state;
        let (dx, d_weight, d_bias) = B::linear_onto_backward(x, activation, weight, grad.clone());
        give::<B, 4>(grads, parents, [grad, dx, d_weight, d_bias]);
    }
}

#[derive(Debug)]
struct Attention;

impl<B: BlockOps> Backward<B, 1> for Attention {
    type State = (FloatTensor<B>, usize, bool);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let (qkv, heads, causal) = ops.state;
        give::<B, 1>(grads, parents, [B::self_attention_backward(qkv, heads, causal, grad)]);
    }
}

#[derive(Debug)]
struct AttentionAt;

impl<B: BlockOps> Backward<B, 2> for AttentionAt {
    type State = (FloatTensor<B>, FloatTensor<B>, IntTensor<B>, usize);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let parents = ops.parents.map(|parent| parent.map(|node| node.id));
        let (q, kv, last, heads) = ops.state;
        let (dq, dkv) = B::attention_at_backward(q, kv, last, heads, grad);
        give::<B, 2>(grads, parents, [dq, dkv]);
    }
}

/// Puts an operation's output on the tape, with what its backward needs.
fn put<B, C, O, const N: usize>(
    op: O,
    parents: [NodeGuard; N],
    state: O::State,
    output: FloatTensor<B>,
) -> Tracked<B, C>
where
    B: Backend,
    C: CheckpointStrategy,
    O: Backward<B, N>,
{
    match op.prepare::<C>(parents).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(state, output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

/// Hands each parent that wants it its gradient.
fn give<B: Backend, const N: usize>(
    grads: &mut Gradients,
    parents: [Option<NodeId>; N],
    values: [FloatTensor<B>; N],
) {
    for (parent, value) in parents.into_iter().zip(values) {
        if let Some(parent) = parent {
            grads.register::<B>(parent, value);
        }
    }
}
