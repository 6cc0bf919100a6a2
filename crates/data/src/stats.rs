//! What a data set consists of: people, images, captions and their lengths.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use crate::annotation::{Counts, Dataset, DatasetName, Split, SplitName};
use crate::tokenizer::Tokenizer;

/// Token ids of the longest text that is still measured.
const LONGEST: usize = 4096;

/// What [`stats`] counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    /// Which data set.
    pub dataset: DatasetName,
    /// The splits that have records here or as published.
    pub splits: Vec<SplitStats>,
    /// People that are in more than one split.
    pub num_shared_ids: usize,
}

/// One split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SplitStats {
    /// Its name.
    pub split: SplitName,
    /// People, images and captions in this copy.
    pub counts: Counts,
    /// People, images and captions as published.
    pub official: Counts,
    /// The lowest and the highest person id; `None` when there is no record.
    pub pids: Option<(i64, i64)>,
    /// How many people have so many images.
    pub images_per_id: BTreeMap<usize, usize>,
    /// How many images have so many captions.
    pub captions_per_image: BTreeMap<usize, usize>,
    /// Lengths of the captions; `None` when there is none.
    pub tokens: Option<TokenStats>,
}

/// Caption lengths in token ids, start and end of text included.
///
/// A percentile is the shortest length that at least so many captions do not exceed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenStats {
    /// Mean.
    pub mean: f64,
    /// 50th percentile.
    pub median: usize,
    /// 95th percentile.
    pub p95: usize,
    /// 99th percentile.
    pub p99: usize,
    /// The longest caption.
    pub max: usize,
    /// Captions that are longer than the model's context, and lose their last words.
    pub num_truncated: usize,
}

/// Counts what a data set consists of; `context_length` is the model's, in token ids.
#[must_use]
pub fn stats(dataset: &Dataset, tokenizer: &Tokenizer, context_length: usize) -> Stats {
    let of_split = |split| of_split(dataset, split, tokenizer, context_length);
    let exists = |split: &SplitStats| [split.counts, split.official] != [Counts::default(); 2];
    let mut splits_of: BTreeMap<i64, u8> = BTreeMap::new();
    for (bit, name) in SplitName::ALL.into_iter().enumerate() {
        for image in &dataset.records(name).images {
            *splits_of.entry(image.pid).or_default() |= 1 << bit;
        }
    }
    Stats {
        dataset: dataset.name,
        splits: SplitName::ALL.into_iter().map(of_split).filter(exists).collect(),
        num_shared_ids: splits_of.values().filter(|bits| bits.count_ones() > 1).count(),
    }
}

fn of_split(
    dataset: &Dataset,
    name: SplitName,
    tokenizer: &Tokenizer,
    context_length: usize,
) -> SplitStats {
    let split = dataset.records(name);
    let images_of_id = count(split.images.iter().map(|image| image.pid));
    let captions_of_image = count(split.captions.iter().map(|caption| caption.image));
    SplitStats {
        split: name,
        counts: Counts {
            num_ids: images_of_id.len(),
            num_images: split.images.len(),
            num_captions: split.captions.len(),
        },
        official: dataset.name.official(name),
        pids: images_of_id.keys().next().copied().zip(images_of_id.keys().last().copied()),
        images_per_id: count(images_of_id.into_values()),
        captions_per_image: count(captions_of_image.into_values()),
        tokens: token_stats(lengths(split, tokenizer), context_length),
    }
}

/// How often each value comes.
fn count<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

/// Token ids of each caption, start and end included.
fn lengths(split: &Split, tokenizer: &Tokenizer) -> Vec<usize> {
    let length = |text: &str| {
        let ids = tokenizer.encode(text, LONGEST);
        ids.iter().rposition(|&id| id == tokenizer.end_id()).map_or(ids.len(), |end| end + 1)
    };
    split.captions.par_iter().map(|caption| length(&caption.text)).collect()
}

fn token_stats(mut lengths: Vec<usize>, context_length: usize) -> Option<TokenStats> {
    lengths.sort_unstable();
    let max = *lengths.last()?;
    let num = lengths.len();
    let percentile = |percent: usize| lengths[(num * percent).div_ceil(100) - 1];
    Some(TokenStats {
        mean: lengths.iter().sum::<usize>() as f64 / num as f64,
        median: percentile(50),
        p95: percentile(95),
        p99: percentile(99),
        max,
        num_truncated: lengths.iter().filter(|&&length| length > context_length).count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_summed_up() {
        let stats = token_stats((1..=200).rev().collect(), 77).unwrap();
        assert_eq!(stats.mean, 100.5);
        assert_eq!((stats.median, stats.p95, stats.p99, stats.max), (100, 190, 198, 200));
        assert_eq!(stats.num_truncated, 123);
        let one = token_stats(vec![77], 77).unwrap();
        assert_eq!((one.median, one.p99, one.num_truncated), (77, 77, 0));
        assert_eq!(token_stats(Vec::new(), 77), None);
    }
}
