//! The captions whose person was found last, with what was found instead, as a contact sheet.

use crate::evaluate::Features;
use crate::search::sheet::{self, Picture, Section};
use anyhow::Result;
use std::cmp::Reverse;
use tbps_data::{Dataset, SplitName};
use tbps_metrics::retrieval::{Hit, Retrieval, Rows, normalise_rows, top_k};

/// Images that ranked highest, beside the right one.
const SHOWN: usize = 7;

/// The page of the `most` hardest captions of a split that was evaluated.
///
/// # Errors
/// When an image can no longer be read.
pub(crate) fn page(
    dataset: &Dataset,
    split: SplitName,
    features: Features,
    t2i: &Retrieval,
    most: usize,
) -> Result<String> {
    let records = dataset.split(split)?;
    let Features { mut images, mut captions } = features;
    let queries = hardest(t2i, most);
    let num_images = t2i_gallery(&images, &captions, t2i.first_rank.len());
    let dim = images.len() / num_images;
    normalise_rows(&mut images, dim);
    normalise_rows(&mut captions, dim);
    let mut sections = Vec::new();
    for query in queries {
        let caption = &records.captions[query];
        let feature = &captions[query * dim..(query + 1) * dim];
        let ranking = top_k(feature, Rows::F32(&images), dim, num_images)?.remove(0);
        let picture = |(rank, hit): (usize, &Hit)| {
            let image = &records.images[hit.index];
            Picture {
                file: dataset.image_path(image),
                label: format!("{}. {:.4}", rank + 1, hit.similarity),
                detail: image.path.to_string_lossy().into_owned(),
                right: Some(image.pid == caption.pid),
            }
        };
        let is_right = |hit: &Hit| records.images[hit.index].pid == caption.pid;
        let first_right = ranking.iter().position(is_right).unwrap_or_default();
        let mut pictures: Vec<Picture> =
            ranking.iter().enumerate().take(SHOWN).map(picture).collect();
        if first_right >= SHOWN {
            pictures.push(picture((first_right, &ranking[first_right])));
        }
        let note =
            format!("person {}, found at rank {} of {num_images}", caption.pid, first_right + 1);
        sections.push(Section { title: caption.text.clone(), note, pictures });
    }
    let intro = format!(
        "The {} captions of {split} in {} whose person ranked lowest, of {} captions.",
        sections.len(),
        dataset.name,
        t2i.scores.queries
    );
    sheet::render("Hardest captions", &intro, &sections)
}

/// Number of gallery images, from the lengths: both sides have one width.
fn t2i_gallery(images: &[f32], captions: &[f32], num_captions: usize) -> usize {
    images.len() / (captions.len() / num_captions)
}

/// The captions whose first match ranks lowest, the worst first; of equals the one with the lower
/// average precision. Captions without a match are no queries.
fn hardest(t2i: &Retrieval, most: usize) -> Vec<usize> {
    let mut queries: Vec<(u32, Option<f64>, usize)> = (t2i.first_rank.iter().enumerate())
        .filter_map(|(query, rank)| Some(((*rank)?, t2i.average_precision[query], query)))
        .collect();
    queries.sort_by(|a, b| {
        let by_rank = Reverse(a.0).cmp(&Reverse(b.0));
        by_rank.then(a.1.partial_cmp(&b.1).unwrap_or(std::cmp::Ordering::Equal)).then(a.2.cmp(&b.2))
    });
    queries.into_iter().take(most).map(|(.., query)| query).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tbps_metrics::retrieval::evaluate_similarity;

    #[test]
    fn the_worst_ranks_come_first_and_queries_without_a_match_never() {
        // Ranks of the first match: 0, 2, none, 2; the last query has the lower precision.
        let similarity =
            [0.9, 0.5, 0.1, 0.0, 0.1, 0.5, 0.9, 0.0, 0.9, 0.5, 0.1, 0.0, 0.1, 0.5, 0.9, 0.6];
        let found = evaluate_similarity(&similarity, &[1, 1, 9, 1], &[1, 2, 3, 4]).unwrap();
        assert_eq!(found.first_rank, [Some(0), Some(2), None, Some(3)]);
        assert_eq!(hardest(&found, 2), [3, 1]);
        assert_eq!(hardest(&found, 9), [3, 1, 0]);
    }
}
