//! `tbps data stats`: what a data set consists of, beside what was published.

use crate::cli::DataDir;
use crate::print;
use crate::run_dir::{require_creatable, write_json};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use tbps_data::stats::{SplitStats, Stats, stats};
use tbps_data::{Counts, Tokenizer};

pub(crate) fn run(data: &DataDir, context_length: usize, json: Option<&Path>) -> Result<()> {
    json.map_or(Ok(()), require_creatable)?;
    let dataset = data.open()?;
    let stats = stats(&dataset, &Tokenizer::new(Tokenizer::CLIP_VOCAB_SIZE)?, context_length);
    if let Some(path) = json {
        write_json(path, &stats)?;
    }
    print(&shown(&stats, context_length))
}

/// A block of lines for each split.
fn shown(stats: &Stats, context_length: usize) -> String {
    let mut text = format!("{}\n", stats.dataset);
    for split in &stats.splits {
        // Writing to a string cannot fail.
        let _ = split_lines(&mut text, split, context_length);
    }
    if stats.num_shared_ids > 0 {
        let num = stats.num_shared_ids;
        text += &format!("{num} people are in more than one split: scores on them mean little\n");
    }
    text
}

fn split_lines(text: &mut String, split: &SplitStats, context_length: usize) -> std::fmt::Result {
    let (name, Counts { num_ids, num_images, num_captions }) = (split.split, split.counts);
    writeln!(
        text,
        "{name:5}  {num_ids} people, {num_images} images, {num_captions} captions: {}",
        comparison(split)
    )?;
    if let Some((lowest, highest)) = split.pids {
        writeln!(text, "       ids {lowest} to {highest}")?;
    }
    writeln!(text, "       people by images: {}", histogram(&split.images_per_id))?;
    writeln!(text, "       images by captions: {}", histogram(&split.captions_per_image))?;
    if let Some(t) = &split.tokens {
        writeln!(
            text,
            "       token ids a caption: mean {:.1}, median {}, p95 {}, p99 {}, max {}; {} cut to \
             {context_length}",
            t.mean, t.median, t.p95, t.p99, t.max, t.num_truncated
        )?;
    }
    Ok(())
}

/// `as published`, or the published counts that differ.
fn comparison(split: &SplitStats) -> String {
    let (here, official) = (split.counts, split.official);
    let differing: Vec<String> = [
        (here.num_ids, official.num_ids, "people"),
        (here.num_images, official.num_images, "images"),
        (here.num_captions, official.num_captions, "captions"),
    ]
    .into_iter()
    .filter(|(here, official, _)| here != official)
    .map(|(_, official, of)| format!("{official} {of}"))
    .collect();
    match differing.is_empty() {
        true => "as published".to_owned(),
        false => format!("DIFFERS, published are {}", differing.join(", ")),
    }
}

/// Such as `1 with 3, 12 with 4`.
fn histogram(counts: &BTreeMap<usize, usize>) -> String {
    let entries = counts.iter().map(|(value, num)| format!("{num} with {value}"));
    entries.collect::<Vec<_>>().join(", ")
}
