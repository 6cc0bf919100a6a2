//! A training step, taken operation by operation as the learner and the towers take it, with nothing
//! computed but the bytes.

use super::kernels::Kernels;
use super::ledger::Ledger;
use crate::config::Recompute;

const F32: u64 = 4;

/// Sizes of a tower.
#[derive(Debug, Clone, Copy)]
pub(super) struct TowerSize {
    /// Positions of a sample.
    pub(super) positions: u64,
    pub(super) width: u64,
    pub(super) layers: u64,
    pub(super) heads: u64,
    pub(super) embed_dim: u64,
    /// Parameters before the first block.
    pub(super) stem_parameters: u64,
    /// Values of a patch; 0 where there are none.
    pub(super) patch: u64,
}

impl TowerSize {
    /// Parameters of a block.
    pub(super) fn block_parameters(&self) -> u64 {
        let w = self.width;
        12 * w * w + 13 * w
    }

    /// Parameters of the norm and the projection after the last block.
    fn head_parameters(&self) -> u64 {
        2 * self.width + self.width * self.embed_dim
    }

    pub(super) fn parameters(&self) -> u64 {
        self.stem_parameters + self.layers * self.block_parameters() + self.head_parameters()
    }

    /// Multiplications and additions of a forward of one sample, in `w^2` of a position: whole
    /// blocks, and the part of them that the recomputation runs again.
    pub(super) fn work(&self, recompute: Recompute) -> (f64, f64) {
        let (n, w) = (self.positions as f64, self.width as f64);
        let body = (self.layers - 1) as f64;
        let scores = 2.0 * n / w;
        let again = match recompute {
            Recompute::Off => 0.0,
            Recompute::Attention => 3.0 + scores,
            Recompute::Block => 8.0 + scores,
            Recompute::Every(k) => 12.0 + scores - 4.0 / k as f64,
        };
        let unit = n * w * w;
        (unit * body * (12.0 + scores), unit * body * again)
    }
}

/// A tower at work on a batch.
pub(super) struct Tower {
    pub(super) size: TowerSize,
    pub(super) batch: u64,
    /// Bytes of the compute dtype.
    pub(super) compute: u64,
    pub(super) recompute: Recompute,
    pub(super) kernels: Kernels,
    /// Whether no gradients of earlier samples are there.
    pub(super) first_part: bool,
}

impl Tower {
    fn rows(&self) -> u64 {
        self.batch * self.size.positions
    }

    /// Bytes of the residual stream.
    fn stream(&self) -> u64 {
        F32 * self.rows() * self.size.width
    }

    /// Bytes of so many widths of activations inside a block.
    fn inner(&self, widths: u64) -> u64 {
        self.compute * self.rows() * self.size.width * widths
    }

    fn stem_kept(&self) -> u64 {
        match self.size.patch {
            0 => 0,
            patch => self.rows() * patch * self.compute + self.stream(),
        }
    }

    /// Inputs of groups of blocks before the last.
    fn groups(&self) -> (u64, u64) {
        let body = self.size.layers - 1;
        match self.recompute {
            Recompute::Every(k) => (body.div_ceil(k as u64), body.min(k as u64)),
            _ => (body, 1),
        }
    }

    /// What a block leaves on its tape beside its input.
    fn block_tape(&self) -> u64 {
        self.inner(3) + self.inner(1) + self.stream() + self.inner(4)
    }

    /// What the forward keeps between the stem and the loss.
    fn kept(&self) -> u64 {
        let body = self.size.layers - 1;
        let last = self.stream(); // the last block's input
        match self.recompute {
            Recompute::Off => {
                self.stem_kept() + body * (self.stream() + self.block_tape()) + last + self.inner(2)
            }
            Recompute::Attention => body * (2 * self.stream() + self.inner(4)) + last,
            Recompute::Block | Recompute::Every(_) => self.groups().0 * self.stream() + last,
        }
    }

    /// The forward sweep, and what it keeps.
    pub(super) fn forward(&self, ledger: &mut Ledger) {
        ledger.hold(self.kept());
        // A block without a tape, while it runs.
        let runs = match self.recompute {
            Recompute::Off => 0,
            _ => self.inner(4) + 2 * self.stream(),
        };
        ledger.workspace(runs + self.forward_workspace());
    }

    /// Takes and frees all that a forward without a backward needs.
    pub(super) fn forward_alone(&self, ledger: &mut Ledger) {
        let stem = self.stem_kept() + self.stream();
        let block = 3 * self.stream() + self.inner(4);
        ledger.workspace(stem.max(block + self.forward_workspace()));
    }

    fn forward_workspace(&self) -> u64 {
        let (kernels, c, size) = (self.kernels, self.compute, &self.size);
        let (r, w) = (self.rows(), size.width);
        let attention = [self.batch, size.positions, w, size.heads];
        [
            kernels.norm_linear([r, w, 3 * w], c),
            kernels.attention(attention, c),
            kernels.norm_linear([r, w, 4 * w], c),
            kernels.linear_onto([r, 4 * w, w], c),
        ]
        .into_iter()
        .max()
        .unwrap_or(0)
    }

    /// The backward sweep: frees what the forward kept and leaves the parameters' gradients.
    pub(super) fn backward(&self, ledger: &mut Ledger) {
        let off = self.recompute == Recompute::Off;
        // The last block and the head; keys and values anew where they were not kept.
        ledger.hold(if off { 0 } else { self.inner(2) });
        let grads = F32 * (self.size.block_parameters() + self.size.head_parameters());
        ledger.hold(grads);
        let slices = 3 * F32 * 3 * self.size.width * self.size.width;
        ledger.workspace(self.inner(6) + slices);
        ledger.hold(self.stream()); // the gradient at its input, from here to the stem
        ledger.workspace(self.stream());
        self.settle(ledger, grads);
        ledger.free(self.inner(2) + self.stream());
        // The others, from the last.
        for group in 0..self.groups().0 {
            self.group_backward(ledger, group);
        }
        // The stem, its tape anew where it was not kept.
        let grads = F32 * self.size.stem_parameters;
        ledger.hold(grads + if off { 0 } else { self.stem_kept() });
        ledger.workspace(2 * self.stream());
        self.settle(ledger, grads);
        ledger.free(self.stem_kept() + self.stream());
    }

    /// Gradients of a part of the network that is done: kept, or added to those of earlier samples.
    fn settle(&self, ledger: &mut Ledger, grads: u64) {
        match self.first_part {
            true => ledger.gather(grads),
            false => ledger.free(grads),
        }
    }

    /// The backward of one group of blocks, counted from the last.
    fn group_backward(&self, ledger: &mut Ledger, group: u64) {
        let (groups, longest) = self.groups();
        let body = self.size.layers - 1;
        let blocks = if group == 0 { body - (groups - 1) * longest } else { longest };
        let anew = match self.recompute {
            Recompute::Off => 0,
            Recompute::Attention => self.inner(4),
            Recompute::Block | Recompute::Every(_) => {
                blocks * self.block_tape() + (blocks - 1) * self.stream()
            }
        };
        if anew > 0 {
            ledger.hold(anew);
            ledger.workspace(self.forward_workspace());
        }
        (0..blocks).for_each(|_| self.block_backward(ledger));
        self.settle(ledger, blocks * F32 * self.size.block_parameters());
        ledger.free(blocks * self.stream()); // the blocks' inputs
    }

    /// The backward of a block whose tape is there; frees that tape but not the block's input.
    fn block_backward(&self, ledger: &mut Ledger) {
        let (kernels, c, size) = (self.kernels, self.compute, &self.size);
        let (r, w) = (self.rows(), size.width);
        let weight = |m: u64| F32 * w * m;
        // Activation and second map of the MLP.
        ledger.hold(self.inner(4) + weight(4 * w));
        ledger.workspace(kernels.linear_onto_backward([r, 4 * w, w], c));
        ledger.free(self.inner(4)); // the hidden activations
        // Norm and first map.
        ledger.hold(self.stream() + weight(4 * w));
        ledger.workspace(kernels.norm_linear_backward([r, w, 4 * w], c));
        ledger.free(self.inner(4) + self.stream()); // the gradient there, and the norm's input
        self.join(ledger);
        // Output map of attention.
        ledger.hold(self.inner(1) + weight(w));
        ledger.workspace(kernels.linear_onto_backward([r, w, w], c));
        ledger.free(self.inner(1));
        // Attention.
        ledger.hold(self.inner(3));
        let attention = [self.batch, size.positions, w, size.heads];
        ledger.workspace(kernels.attention_backward(attention, c));
        ledger.free(self.inner(1) + self.inner(3));
        // Norm and projections.
        ledger.hold(self.stream() + weight(3 * w));
        ledger.workspace(kernels.norm_linear_backward([r, w, 3 * w], c));
        ledger.free(self.inner(3));
        self.join(ledger);
        ledger.hold(F32 * 13 * w); // norms and biases
    }

    /// The sum of a branch's gradient and the residual stream's, in place of both.
    fn join(&self, ledger: &mut Ledger) {
        ledger.workspace(self.stream());
        ledger.free(self.stream());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_leaves_its_gradients_and_nothing_else() {
        let size = TowerSize {
            positions: 17,
            width: 8,
            layers: 6,
            heads: 2,
            embed_dim: 4,
            stem_parameters: 100,
            patch: 12,
        };
        let all = [Recompute::Off, Recompute::Attention, Recompute::Block, Recompute::Every(2)];
        for (recompute, kernels) in
            all.into_iter().flat_map(|r| [Kernels::Fused, Kernels::Composed].map(|k| (r, k)))
        {
            let mut ledger = Ledger::default();
            for first_part in [true, false] {
                let tower = Tower { size, batch: 3, compute: 2, recompute, kernels, first_part };
                tower.forward(&mut ledger);
                tower.backward(&mut ledger);
                assert_eq!(ledger.held(), F32 * size.parameters(), "{recompute:?}");
            }
            assert_eq!(ledger.gathered(), F32 * size.parameters(), "{recompute:?}");
        }
    }
}
