//! A val split for a data set that was published without one: people taken out of train.

use std::collections::BTreeSet;

use super::{CaptionRecord, Dataset, Split};
use crate::error::DataError;
use crate::rng::{Purpose, Stream};

pub(super) fn hold_out(
    mut dataset: Dataset,
    num_ids: usize,
    seed: u64,
) -> Result<Dataset, DataError> {
    if !dataset.val.images.is_empty() {
        return Err(DataError::HoldOutWithoutEffect { path: dataset.annotation, num_ids });
    }
    if num_ids == 0 || num_ids >= dataset.train_pids.len() {
        return Err(DataError::HoldOutTooLarge {
            path: dataset.annotation,
            num_ids,
            num_train_ids: dataset.train_pids.len(),
        });
    }
    let mut pids = dataset.train_pids;
    Stream::new(seed, Purpose::HoldOut, &[]).shuffle(&mut pids);
    let held_out: BTreeSet<i64> = pids.into_iter().take(num_ids).collect();
    dataset.val = of_people(&dataset.train, |pid| held_out.contains(&pid));
    dataset.train = of_people(&dataset.train, |pid| !held_out.contains(&pid));
    dataset.train_pids = dataset.train.pids();
    Ok(dataset)
}

/// The images and captions of some of the people, in the order they had.
fn of_people(split: &Split, chosen: impl Fn(i64) -> bool) -> Split {
    let mut part = Split::default();
    let mut places = vec![None; split.images.len()];
    for (place, image) in places.iter_mut().zip(&split.images) {
        if chosen(image.pid) {
            *place = Some(part.images.len());
            part.images.push(image.clone());
        }
    }
    let captions = split.captions.iter();
    part.captions.extend(captions.filter_map(|caption| {
        places[caption.image].map(|image| CaptionRecord { image, ..caption.clone() })
    }));
    part
}
