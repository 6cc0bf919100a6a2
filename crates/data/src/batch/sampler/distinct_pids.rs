//! Batches of different people.
//!
//! The pairs are dealt like cards, person by person: a round gives every batch one pair, in an order
//! drawn for that round, and a person's pairs that fall into two rounds pass over the batches that
//! have one already. So all batches grow alike, and a person with no more pairs than there are
//! batches is nowhere twice. The batches a person lands in are random, as in a shuffle.

use std::collections::BTreeMap;

use super::shuffle::{shuffled, stream};
use crate::rng::Stream;

pub(super) fn order(pids: &[i64], batch_size: usize, seed: u64, epoch: u64) -> Vec<u32> {
    let mut stream = stream(seed, epoch);
    let mut order = shuffled(pids.len(), &mut stream);
    let num_batches = pids.len() / batch_size;
    // The pairs that fill no batch are those that a shuffle alone would drop.
    let tail = order.split_off(num_batches * batch_size);

    let mut batches = vec![Vec::with_capacity(batch_size); num_batches];
    let mut round = Vec::new();
    for person in by_person(&order, pids) {
        let mut taken = Vec::with_capacity(person.len());
        for pair in person {
            let batch = deal(&mut round, &taken, num_batches, &mut stream);
            batches[batch].push(pair);
            taken.push(batch);
        }
    }
    batches.into_iter().flatten().chain(tail).collect()
}

/// The pairs of each person; people in the order of their first pair.
fn by_person(order: &[u32], pids: &[i64]) -> Vec<Vec<u32>> {
    let mut place = BTreeMap::new();
    let mut people: Vec<Vec<u32>> = Vec::new();
    for &pair in order {
        let at = *place.entry(pids[pair as usize]).or_insert(people.len());
        if at == people.len() {
            people.push(Vec::new());
        }
        people[at].push(pair);
    }
    people
}

/// Takes the next batch out of the round that is not in `taken`, or, if all are, the next.
fn deal(round: &mut Vec<usize>, taken: &[usize], num_batches: usize, stream: &mut Stream) -> usize {
    if round.is_empty() {
        round.extend(0..num_batches);
        stream.shuffle(round);
    }
    let free = round.iter().rposition(|batch| !taken.contains(batch));
    round.remove(free.unwrap_or(round.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::super::{Sampler, same_pid_pairs};
    use super::*;

    /// False negatives in an epoch of people who have so many pairs each.
    fn left(pairs_of_person: &[usize], batch_size: usize, seed: u64) -> u64 {
        let people = pairs_of_person.iter().enumerate();
        let pids: Vec<i64> = people.flat_map(|(pid, &pairs)| vec![pid as i64; pairs]).collect();
        same_pid_pairs(&order(&pids, batch_size, seed, 1), &pids, batch_size)
    }

    #[test]
    fn nobody_is_twice_in_a_batch_where_that_can_be() {
        for seed in 0..20 {
            assert_eq!(left(&[6; 100], 16, seed), 0, "six pairs each");
            assert_eq!(left(&[5, 5, 5, 5], 4, seed), 0, "everybody in every batch");
            assert_eq!(left(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 5, seed), 0, "the tenth in 10 of 11");
        }
        let pids: Vec<i64> = (0..600).map(|pair| pair / 6).collect();
        let shuffle = Sampler::Shuffle.order(&pids, 16, 0, 1);
        assert!(same_pid_pairs(&shuffle, &pids, 16) > 0, "or the test shows nothing");
    }

    #[test]
    fn too_many_pairs_of_one_person_are_spread_evenly() {
        for seed in 0..20 {
            // 12 pairs in four batches of six: three in each, which is three times two.
            assert_eq!(left(&[12, 4, 4, 4], 6, seed), 12);
        }
    }

    #[test]
    fn a_person_is_met_all_over_the_epoch() {
        let pids: Vec<i64> = (0..6_000).map(|pair| pair / 6).collect();
        let order = order(&pids, 60, 0, 1);
        let batch_of = |pid: i64| {
            let places = order.iter().enumerate();
            places.filter(move |(_, pair)| pids[**pair as usize] == pid).map(|(at, _)| at / 60)
        };
        let batches: Vec<usize> = batch_of(500).collect();
        assert_eq!(batches.len(), 6);
        assert!(batches[5] - batches[0] > 20, "bunched in time: {batches:?}");
    }

    #[test]
    fn the_shuffle_decides_what_is_dropped() {
        let pids: Vec<i64> = (0..23).collect();
        let tail = |sampler: Sampler| sampler.order(&pids, 5, 1, 1).split_off(20);
        assert_eq!(tail(Sampler::DistinctPids), tail(Sampler::Shuffle));
    }
}
