//! A uniform shuffle.

use crate::rng::{Purpose, Stream};

/// The order of the caption-image pairs in an epoch: a shuffle of `0..num_pairs` that depends on
/// seed and epoch alone.
///
/// # Panics
///
/// When there are more than 2^32 pairs.
#[must_use]
pub fn epoch_order(num_pairs: usize, seed: u64, epoch: u64) -> Vec<u32> {
    shuffled(num_pairs, &mut stream(seed, epoch))
}

/// The stream of an epoch's order.
pub(super) fn stream(seed: u64, epoch: u64) -> Stream {
    Stream::new(seed, Purpose::Order, &[epoch])
}

pub(super) fn shuffled(num_pairs: usize, stream: &mut Stream) -> Vec<u32> {
    let end = u32::try_from(num_pairs).expect("an annotation has fewer than 2^32 captions");
    let mut order: Vec<u32> = (0..end).collect();
    stream.shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_visits_every_pair_once() {
        let mut order = epoch_order(1_000, 1, 2);
        assert_ne!(order, (0..1_000).collect::<Vec<u32>>());
        order.sort_unstable();
        assert_eq!(order, (0..1_000).collect::<Vec<u32>>());
        assert_eq!(epoch_order(0, 1, 2), [0; 0]);
    }
}
