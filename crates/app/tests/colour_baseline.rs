//! How far colours alone go on the demo: ridge regression from colour histograms to bags of words.
//!
//! The demo is worth training on only if a model must read and look. Its FP32 cell has to reach at
//! least twice what this baseline does; where it stands is in the report of a demo matrix.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeMap;
use tbps_data::image::{decode, resize};
use tbps_data::synth::{self, Preset};
use tbps_data::{Dataset, ImageSize, Split};
use tbps_metrics::retrieval;

/// What the baseline must stay below, in percent: half of a demo model that is worth training.
const MOST: f64 = 12.5;
/// Horizontal stripes of an image, each with a histogram of its own.
const STRIPES: usize = 6;
/// Steps of each of red, green and blue.
const LEVELS: usize = 4;
const BINS: usize = STRIPES * LEVELS * LEVELS * LEVELS;
/// Most frequent words of the training captions.
const WORDS: usize = 200;

#[test]
fn colours_alone_do_not_find_people() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("demo");
    synth::generate(Preset::Demo, 0, &root, &|_, _| ()).unwrap();
    let dataset = Dataset::open(&root).unwrap();
    let vocabulary = vocabulary(&dataset.train);
    let train = histograms(&dataset, &dataset.train);
    let bags = image_bags(&dataset.train, &vocabulary);
    let gallery = histograms(&dataset, &dataset.val);
    let queries: Vec<f32> =
        dataset.val.captions.iter().flat_map(|c| bag(&c.text, &vocabulary)).collect();
    let gallery_pids: Vec<i64> = dataset.val.images.iter().map(|image| image.pid).collect();
    let query_pids: Vec<i64> = dataset.val.captions.iter().map(|caption| caption.pid).collect();

    // The best penalty by its score on validation itself: the baseline is given every advantage.
    let r1 = [0.1, 1.0, 10.0, 100.0].map(|penalty| {
        let weights = ridge(&train, &bags, penalty);
        let predicted: Vec<f32> = gallery.iter().flat_map(|x| predict(x, &weights)).collect();
        let found =
            retrieval::evaluate(&queries, &query_pids, &predicted, &gallery_pids, vocabulary.len());
        found.unwrap().scores.r1
    });
    let best = r1.into_iter().fold(0.0, f64::max);
    assert!(best > 1.0, "{best} %: the baseline is broken, it is not above chance");
    println!("colours alone reach {best} % R@1");
    assert!(best < MOST, "colours alone reach {best} % R@1");
}

/// Words and their indices, with the mean of each over training captions.
struct Word {
    index: usize,
    mean: f32,
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase)
}

fn vocabulary(split: &Split) -> BTreeMap<String, Word> {
    let mut counts = BTreeMap::<String, usize>::new();
    for word in split.captions.iter().flat_map(|caption| words(&caption.text)) {
        *counts.entry(word).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(word, count)| (std::cmp::Reverse(*count), word.clone()));
    let total = split.captions.len() as f32;
    let word = |(index, (word, count)): (usize, (String, usize))| {
        (word, Word { index, mean: count as f32 / total })
    };
    counts.into_iter().take(WORDS).enumerate().map(word).collect()
}

/// Centred word counts, `[WORDS]`.
fn bag(text: &str, vocabulary: &BTreeMap<String, Word>) -> Vec<f32> {
    let mut bag = vec![0.0; vocabulary.len()];
    for word in vocabulary.values() {
        bag[word.index] = -word.mean;
    }
    for word in words(text).filter_map(|word| vocabulary.get(&word)) {
        bag[word.index] += 1.0;
    }
    bag
}

/// The mean bag of each image's captions.
fn image_bags(split: &Split, vocabulary: &BTreeMap<String, Word>) -> Vec<Vec<f32>> {
    let mut bags = vec![vec![0.0; vocabulary.len()]; split.images.len()];
    for caption in &split.captions {
        let share = split.captions.iter().filter(|c| c.image == caption.image).count() as f32;
        for (sum, x) in bags[caption.image].iter_mut().zip(bag(&caption.text, vocabulary)) {
            *sum += x / share;
        }
    }
    bags
}

/// Square roots of the colours' shares in each stripe, and a constant, `[BINS + 1]`.
fn histograms(dataset: &Dataset, split: &Split) -> Vec<Vec<f32>> {
    let size = ImageSize { height: 96, width: 32 };
    let histogram = |image| {
        let pixels = resize(&decode(&dataset.image_path(image)).unwrap(), size);
        let mut counts = vec![0.0_f32; BINS];
        for (_, y, pixel) in pixels.enumerate_pixels() {
            let stripe = y as usize * STRIPES / size.height;
            let level = |channel: u8| usize::from(channel) * LEVELS / 256;
            let [r, g, b] = pixel.0.map(level);
            counts[((stripe * LEVELS + r) * LEVELS + g) * LEVELS + b] += 1.0;
        }
        let total = (size.height * size.width / STRIPES) as f32;
        counts.into_iter().map(|n| (n / total).sqrt()).chain([1.0]).collect()
    };
    split.images.iter().map(histogram).collect()
}

/// `(X'X + penalty I)^-1 X'Y` by Cholesky's method: `[BINS + 1][WORDS]`.
fn ridge(x: &[Vec<f32>], y: &[Vec<f32>], penalty: f64) -> Vec<Vec<f64>> {
    let (n, m) = (x[0].len(), y[0].len());
    let (mut gram, mut weights) = (vec![vec![0.0_f64; n]; n], vec![vec![0.0_f64; m]; n]);
    for (x, y) in x.iter().zip(y) {
        for i in (0..n).filter(|&i| x[i] != 0.0) {
            let xi = f64::from(x[i]);
            gram[i].iter_mut().zip(x).take(i + 1).for_each(|(g, x)| *g += xi * f64::from(*x));
            weights[i].iter_mut().zip(y).for_each(|(w, y)| *w += xi * f64::from(*y));
        }
    }
    for i in 0..n {
        gram[i][i] += penalty;
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| gram[i][k] * gram[j][k]).sum();
            let rest = gram[i][j] - dot;
            gram[i][j] = if i == j { rest.sqrt() } else { rest / gram[j][j] };
        }
    }
    let mut solve = |i: usize, word: usize, done: std::ops::Range<usize>| {
        let factor = |k: usize| if k < i { gram[i][k] } else { gram[k][i] };
        let dot: f64 = done.map(|k| factor(k) * weights[k][word]).sum();
        weights[i][word] = (weights[i][word] - dot) / gram[i][i];
    };
    for word in 0..m {
        (0..n).for_each(|i| solve(i, word, 0..i));
        (0..n).rev().for_each(|i| solve(i, word, i + 1..n));
    }
    weights
}

fn predict(x: &[f32], weights: &[Vec<f64>]) -> Vec<f32> {
    let mut bag = vec![0.0_f64; weights[0].len()];
    for (x, row) in x.iter().zip(weights).filter(|(x, _)| **x != 0.0) {
        bag.iter_mut().zip(row).for_each(|(sum, w)| *sum += f64::from(*x) * w);
    }
    bag.into_iter().map(|x| x as f32).collect()
}
