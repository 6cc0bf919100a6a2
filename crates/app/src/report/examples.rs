//! Queries with the images that were found for them, right and wrong ones: drawn by a fixed seed,
//! not chosen. The pictures are made from the data set, where it is on this machine.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use serde::Serialize;
use tbps_data::annotation::{ImageRecord, Split};
use tbps_data::image::{decode, resize};
use tbps_data::{Dataset, ImageSize};
use tbps_metrics::bootstrap::draws;

use super::cell::CellId;
use super::figure::{Figure, Known, Source, Unit};
use super::load::{CONFIG, Matrix, RANKS, Run, Status};
use super::notation::Notation;
use crate::checkpoint::sha256;
use crate::config::{Config, SplitName};
use crate::dataset;
use crate::ranks::Ranks;

/// Seed of the stream that the queries are drawn from.
const SEED: u64 = 0;
/// Height of a picture in pixels: twice what the page shows, for screens with small pixels.
const HEIGHT_PX: usize = 192;
/// Pictures of people are two to three times as high as wide; none is wider than high.
const WIDTHS_PX: std::ops::RangeInclusive<usize> = 48..=192;
/// JPEG quality in percent.
const QUALITY: u8 = 80;

/// The example queries of one run, or why there are none.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Examples {
    /// Whose results they are.
    pub(crate) run: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) seed: u64,
    pub(crate) queries: Vec<Example>,
    /// Why the pictures are missing, where they are.
    pub(crate) missing: Option<String>,
}

/// One query and what was found for it.
#[derive(Debug, Serialize)]
pub(crate) struct Example {
    /// Its index among the split's captions.
    pub(crate) query: usize,
    pub(crate) caption: String,
    /// Whether the first image is of the right person.
    pub(crate) right: bool,
    /// 1-based rank of the first image of the right person.
    pub(crate) rank: Figure,
    /// The image that the caption was written for.
    pub(crate) described: Picture,
    /// The images that rank highest.
    pub(crate) found: Vec<Picture>,
}

/// An image of the data set.
#[derive(Debug, Serialize)]
pub(crate) struct Picture {
    /// Below `imgs/`.
    pub(crate) path: String,
    pub(crate) pid: i64,
    /// Whether it shows the person that was looked for.
    pub(crate) right: bool,
    /// Stands in report.html.
    #[serde(skip)]
    pub(crate) jpeg: Vec<u8>,
}

/// `num` queries of the first finished run of `cell` that has recorded them, half of them wrong
/// where there are enough of both kinds.
pub(crate) fn of(matrix: &Matrix, cell: CellId, num: usize, notation: Notation) -> Examples {
    let done = matrix.of(cell).into_iter().filter(|run| run.status == Status::Done);
    let recorded = done.filter_map(|run| Some((run, run.ranks.as_ref()?)));
    let found = recorded.into_iter().find(|(_, ranks)| !ranks.t2i_top.is_empty());
    let Some((run, ranks)) = found.filter(|_| num > 0) else { return Examples::default() };
    let mut examples = Examples {
        run: Some(run.id.clone()),
        label: Some(cell.label()),
        seed: SEED,
        ..Examples::default()
    };
    match draw(run, ranks, num, notation) {
        Ok(queries) => examples.queries = queries,
        Err(error) => examples.missing = Some(format!("{error:#}")),
    }
    examples
}

fn draw(run: &Run, ranks: &Ranks, num: usize, notation: Notation) -> Result<Vec<Example>> {
    let config = Config::of_run(&run.dir.join(CONFIG))?;
    let dataset = dataset::open(&config.data)?;
    let annotation = sha256(&fs::read(&dataset.annotation).context("cannot read the annotation")?);
    if run.provenance["dataset"]["annotation_sha256"] != annotation {
        bail!("{} is not the data of the run", dataset.annotation.display());
    }
    let split = match ranks.split {
        SplitName::Val => &dataset.val,
        SplitName::Test => &dataset.test,
    };
    ensure!(
        ranks.t2i.len() <= split.captions.len() && ranks.t2i_top.len() == ranks.t2i.len(),
        "the ranks are of other captions than the data set has"
    );
    let (mut right, mut wrong): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    for query in random_order(ranks.t2i.len()) {
        match ranks.t2i[query] {
            Some(0) => right.push(query),
            Some(_) => wrong.push(query),
            None => {}
        }
    }
    let half = num / 2;
    let num_right = (num - half).max(num.saturating_sub(wrong.len())).min(right.len());
    right.truncate(num_right);
    wrong.truncate(num - num_right);
    let queries = right.into_iter().chain(wrong);
    queries.map(|query| example(run, ranks, &dataset, split, query, notation)).collect()
}

/// Every query once, in the order of the draws of [`SEED`]; a few may never be drawn.
fn random_order(num_queries: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(num_queries);
    let mut taken = vec![false; num_queries];
    for resample in 0..8 {
        for query in draws(resample, num_queries, SEED) {
            if !std::mem::replace(&mut taken[query as usize], true) {
                order.push(query as usize);
            }
        }
    }
    order
}

fn example(
    run: &Run,
    ranks: &Ranks,
    dataset: &Dataset,
    split: &Split,
    query: usize,
    notation: Notation,
) -> Result<Example> {
    let caption = &split.captions[query];
    let picture = |image: usize| -> Result<Picture> {
        let record = split.images.get(image).context("the data set has fewer images")?;
        Ok(Picture {
            path: record.path.display().to_string(),
            pid: record.pid,
            right: record.pid == caption.pid,
            jpeg: jpeg(dataset, record)?,
        })
    };
    let rank = ranks.t2i[query].context("the query has no positive")?;
    let source = Source::formula("one_based", [format!("{}/{RANKS}:t2i[{query}]", run.id)]);
    let id = format!("example:{query}:rank");
    let known = Known::new(notation, id, f64::from(rank) + 1.0, Unit::Count, source);
    Ok(Example {
        query,
        caption: caption.text.clone(),
        right: rank == 0,
        rank: known.into(),
        described: picture(caption.image)?,
        found: ranks.t2i_top[query]
            .iter()
            .map(|&image| picture(image as usize))
            .collect::<Result<_>>()?,
    })
}

/// The image as a small JPEG in its own proportions.
fn jpeg(dataset: &Dataset, image: &ImageRecord) -> Result<Vec<u8>> {
    let full = decode(&dataset.image_path(image))?;
    let width = (HEIGHT_PX * full.width() as usize / full.height().max(1) as usize)
        .clamp(*WIDTHS_PX.start(), *WIDTHS_PX.end());
    let small = resize(&full, ImageSize { height: HEIGHT_PX, width });
    let mut file = Vec::new();
    JpegEncoder::new_with_quality(&mut file, QUALITY).encode(
        small.as_raw(),
        small.width(),
        small.height(),
        ExtendedColorType::Rgb8,
    )?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_fixed_and_has_no_query_twice() {
        let order = random_order(50);
        assert_eq!(order, random_order(50));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), order.len());
        assert!(order.len() >= 48, "{}", order.len());
        assert_ne!(order, sorted, "it is no order of the file");
    }
}
