//! Which caption-image pairs share a batch.
//!
//! Under ITC two pairs of one person in a batch are false negatives: each caption also describes the
//! other's image, and is pushed away from it.

mod distinct_pids;
mod shuffle;

use std::collections::BTreeMap;

pub use shuffle::epoch_order;

/// How the pairs of an epoch are spread over its batches.
///
/// With either, an epoch has every pair once, but for those that fill no batch at its end: they are
/// dropped, and the shuffle decides which. The order depends on the arguments alone, so that an
/// epoch can be entered at any batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampler {
    /// A plain shuffle, as published recipes do.
    #[default]
    Shuffle,
    /// No two pairs of one person in a batch, as long as nobody has more pairs than there are
    /// batches; else as few as can be.
    DistinctPids,
}

impl Sampler {
    /// The order of the pairs in an epoch: each run of `batch_size` is a batch, and what is left
    /// over is dropped. `pids[i]` is the person of pair `i`.
    ///
    /// # Panics
    ///
    /// When there are more than 2^32 pairs, or `batch_size` is 0.
    #[must_use]
    pub fn order(self, pids: &[i64], batch_size: usize, seed: u64, epoch: u64) -> Vec<u32> {
        match self {
            Self::Shuffle => epoch_order(pids.len(), seed, epoch),
            Self::DistinctPids => distinct_pids::order(pids, batch_size, seed, epoch),
        }
    }
}

/// How many times two pairs of one person share a full batch of an epoch's `order`.
///
/// Three pairs of one person in a batch are three such times.
#[must_use]
pub fn same_pid_pairs(order: &[u32], pids: &[i64], batch_size: usize) -> u64 {
    let in_batch = |batch: &[u32]| {
        let mut seen: BTreeMap<i64, u64> = BTreeMap::new();
        let before = batch.iter().map(|&pair| {
            let count = seen.entry(pids[pair as usize]).or_default();
            *count += 1;
            *count - 1
        });
        before.sum::<u64>()
    };
    order.chunks_exact(batch_size).map(in_batch).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_one_person_are_counted_in_full_batches() {
        let pids = [7, 7, 7, 8, 8, 9, 9];
        // 7 7 7: three; 8 8 9: one; the 9 that is left over: none.
        assert_eq!(same_pid_pairs(&[0, 1, 2, 3, 4, 5, 6], &pids, 3), 4);
        assert_eq!(same_pid_pairs(&[0, 3, 5, 1, 4, 6, 2], &pids, 3), 0);
    }

    #[test]
    fn every_order_has_every_pair_once() {
        let pids: Vec<i64> = (0..103).map(|pair| pair / 4).collect();
        for sampler in [Sampler::Shuffle, Sampler::DistinctPids] {
            let mut order = sampler.order(&pids, 10, 3, 5);
            order.sort_unstable();
            assert_eq!(order, (0..103).collect::<Vec<u32>>(), "{sampler:?}");
        }
    }

    #[test]
    fn orders_depend_on_seed_and_epoch_alone() {
        let pids: Vec<i64> = (0..100).map(|pair| pair / 4).collect();
        for sampler in [Sampler::Shuffle, Sampler::DistinctPids] {
            let order = |seed, epoch| sampler.order(&pids, 8, seed, epoch);
            assert_eq!(order(1, 2), order(1, 2));
            assert_ne!(order(1, 2), order(1, 3));
            assert_ne!(order(1, 2), order(2, 2));
        }
    }
}
