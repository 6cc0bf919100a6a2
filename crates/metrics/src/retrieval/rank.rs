//! Ranks within one row of similarities, and what one query scores by them.

use std::cmp::Ordering;

/// What one query contributes to the scores, as fractions in `0..=1`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowScore {
    /// 0-based rank of the first match.
    pub first_rank: u32,
    /// Mean, over the matches, of the precision at each match's rank.
    pub average_precision: f64,
    /// Number of matches over the 1-based rank of the last match.
    pub inverse_negative_penalty: f64,
}

impl RowScore {
    /// Scores the ascending 0-based ranks of a query's matches; `None` when there is no match.
    pub fn of(ranks: &[u32]) -> Option<Self> {
        let (&first_rank, &last_rank) = (ranks.first()?, ranks.last()?);
        let num_matches = ranks.len() as f64;
        let precision_sum: f64 =
            ranks.iter().zip(1_u32..).map(|(&rank, seen)| f64::from(seen) / one_based(rank)).sum();
        Some(Self {
            first_rank,
            average_precision: precision_sum / num_matches,
            inverse_negative_penalty: num_matches / one_based(last_rank),
        })
    }
}

fn one_based(rank: u32) -> f64 {
    f64::from(rank) + 1.0
}

/// The 0-based ranks, ascending, of all gallery items that have the query's person id.
///
/// `similarity` and `gallery_pids` are `[G]`. An item ranks behind every item of higher similarity
/// and behind those of equal similarity and lower index.
///
/// Only the matches are sorted; every other item is counted into the gap between two of them, so
/// that a row costs G log(matches) instead of a full sort.
///
/// # Panics
///
/// When the two slices differ in length. A NaN similarity has no place in a ranking; it counts as
/// equal to everything, so callers rule it out beforehand.
pub fn rank_row(similarity: &[f32], query_pid: i64, gallery_pids: &[i64]) -> Vec<u32> {
    assert_eq!(similarity.len(), gallery_pids.len(), "one similarity per gallery item");
    let mut matches: Vec<Item> = (similarity.iter().zip(gallery_pids).enumerate())
        .filter(|&(_, (_, &pid))| pid == query_pid)
        .map(|(index, (&similarity, _))| Item { similarity, index })
        .collect();
    matches.sort_unstable_by(Item::ranking);

    // gaps[i] items rank before match i and not before match i - 1; the last gap is behind all.
    let mut gaps = vec![0_u32; matches.len() + 1];
    for (index, &similarity) in similarity.iter().enumerate() {
        let item = Item { similarity, index };
        // A match is not before itself: it falls into the gap that follows.
        gaps[matches.partition_point(|m| m.ranking(&item) != Ordering::Greater)] += 1;
    }
    let mut before = 0;
    gaps[..matches.len()]
        .iter()
        .map(|gap| {
            before += gap;
            before
        })
        .collect()
}

/// The `most` items that rank highest, first to last; all of them when the gallery is smaller.
///
/// A row costs G comparisons with the last of them, and a few more for each item that enters.
pub fn top_of_row(similarity: &[f32], most: usize) -> Vec<u32> {
    let mut top: Vec<Item> = Vec::with_capacity(most + 1);
    for (index, &similarity) in similarity.iter().enumerate() {
        let item = Item { similarity, index };
        if top.len() == most && top.last().is_none_or(|last| last.ranking(&item).is_lt()) {
            continue;
        }
        let place = top.partition_point(|other| other.ranking(&item).is_lt());
        top.insert(place, item);
        top.truncate(most);
    }
    top.iter().map(|item| item.index as u32).collect()
}

/// One gallery item as the ranking sees it.
#[derive(Debug, Clone, Copy)]
struct Item {
    similarity: f32,
    index: usize,
}

impl Item {
    /// Similarity descending, then index ascending; -0 and 0 are equal.
    fn ranking(&self, other: &Self) -> Ordering {
        let by_similarity = other.similarity.partial_cmp(&self.similarity);
        by_similarity.unwrap_or(Ordering::Equal).then(self.index.cmp(&other.index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(similarity: &[f32], gallery_pids: &[i64], ranks_of_pid_1: &[u32]) {
        assert_eq!(rank_row(similarity, 1, gallery_pids), ranks_of_pid_1, "{similarity:?}");
    }

    #[test]
    fn ranks_follow_score_then_index() {
        check(&[0.1, 0.9, 0.2, 0.8, 0.3], &[1, 2, 1, 2, 3], &[3, 4]);
        check(&[0.5, 0.5], &[2, 1], &[1]);
        check(&[0.5, 0.5], &[1, 2], &[0]);
        check(&[0.5, 0.5, 0.5, 0.5], &[2, 1, 2, 1], &[1, 3]);
        check(&[0.0, -0.0], &[2, 1], &[1]);
        check(&[-0.0, 0.0], &[1, 2], &[0]);
        check(&[f32::NEG_INFINITY, -1.0], &[1, 2], &[1]);
        check(&[0.3, 0.4], &[2, 3], &[]);
        check(&[0.3, 0.4, 0.1], &[1, 1, 1], &[0, 1, 2]);
    }

    #[test]
    fn the_top_of_a_row_is_the_head_of_its_ranking() {
        let row = [0.1, 0.9, 0.2, 0.9, -0.0, 0.0, 0.3];
        let all = [1, 3, 6, 2, 0, 4, 5]; // by score, then by index
        for most in 0..=8 {
            assert_eq!(top_of_row(&row, most), all[..most.min(7)], "{most}");
        }
    }

    #[test]
    fn row_score_of_known_ranks() {
        // Matches at 1-based ranks 1, 3 and 6: AP = (1/1 + 2/3 + 3/6) / 3, INP = 3/6.
        let score = RowScore::of(&[0, 2, 5]).unwrap();
        assert_eq!(score.first_rank, 0);
        assert!((score.average_precision - 13.0 / 18.0).abs() < 1e-15);
        assert_eq!(score.inverse_negative_penalty, 0.5);
        assert_eq!(RowScore::of(&[]), None);
    }
}
