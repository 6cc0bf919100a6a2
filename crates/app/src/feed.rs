//! The training loader as burn-train knows loaders. The position is set before each epoch, so that a
//! resumed run reads exactly the batches that are left.

use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::Device;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tbps_data::batch::Batches;
use tbps_data::{Batch, TrainLoader};

use crate::config::TrainConfig;
use crate::evaluate::EvalSet;
use crate::hold::{self, Place};

/// The batches of one epoch, from a position on.
pub(crate) struct Feed {
    loader: TrainLoader,
    batch_size: usize,
    batches_per_epoch: usize,
    epoch: AtomicUsize,
    first_batch: AtomicUsize,
}

impl Feed {
    pub(crate) fn new(loader: TrainLoader, train: &TrainConfig) -> Self {
        let batches_per_epoch = train.batches(loader.batches_per_epoch());
        Self {
            loader,
            batch_size: train.batch_size,
            batches_per_epoch,
            epoch: AtomicUsize::new(1),
            first_batch: AtomicUsize::new(0),
        }
    }

    pub(crate) fn batches_per_epoch(&self) -> usize {
        self.batches_per_epoch
    }

    /// How many times two pairs of one person share a batch of an epoch.
    pub(crate) fn same_pid_pairs(&self, epoch: usize) -> u64 {
        self.loader.same_pid_pairs(epoch as u64)
    }

    /// Where the next iterator begins.
    pub(crate) fn seek(&self, epoch: usize, first_batch: usize) {
        self.epoch.store(epoch, Relaxed);
        self.first_batch.store(first_batch, Relaxed);
    }
}

/// Lets a loader be shared with burn-train, which wants to own it.
pub(crate) struct Shared<T>(pub(crate) Arc<T>);

impl DataLoader<Batch> for Shared<Feed> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<Batch> + 'a> {
        let (epoch, first) = (self.0.epoch.load(Relaxed), self.0.first_batch.load(Relaxed));
        let batches = self.0.loader.epoch(epoch as u64, first);
        Box::new(FeedIterator { feed: &self.0, batches, done: first })
    }

    fn num_items(&self) -> usize {
        self.0.batches_per_epoch() * self.0.batch_size
    }

    /// Batches are host arrays; the learner puts them on its device.
    fn to_device(&self, _: &Device) -> Arc<dyn DataLoader<Batch>> {
        Arc::new(Self(Arc::clone(&self.0)))
    }

    fn slice(&self, _: usize, _: usize) -> Arc<dyn DataLoader<Batch>> {
        unreachable!("only burn-train's multi-device strategies slice, and ours is not one")
    }
}

struct FeedIterator<'a> {
    feed: &'a Feed,
    batches: Batches,
    done: usize,
}

impl Iterator for FeedIterator<'_> {
    type Item = Result<Batch, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done == self.feed.batches_per_epoch {
            return None;
        }
        hold::at(Place::Loader);
        let batch = self.batches.next()?;
        self.done += 1;
        Some(batch.map_err(DatasetError::new))
    }
}

impl DataLoaderIterator<Batch> for FeedIterator<'_> {
    fn progress(&self) -> Progress {
        let size = self.feed.batch_size;
        let total = self.feed.batches_per_epoch() * size;
        Progress::new(self.done * size, total, Some("pairs".to_owned()))
    }
}

/// A split is one item: it is evaluated as a whole.
impl DataLoader<Arc<EvalSet>> for Shared<EvalSet> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<Arc<EvalSet>> + 'a> {
        Box::new(Once(Some(Arc::clone(&self.0))))
    }

    fn num_items(&self) -> usize {
        1
    }

    fn to_device(&self, _: &Device) -> Arc<dyn DataLoader<Arc<EvalSet>>> {
        Arc::new(Self(Arc::clone(&self.0)))
    }

    fn slice(&self, _: usize, _: usize) -> Arc<dyn DataLoader<Arc<EvalSet>>> {
        unreachable!("only burn-train's multi-device strategies slice, and ours is not one")
    }
}

struct Once(Option<Arc<EvalSet>>);

impl Iterator for Once {
    type Item = Result<Arc<EvalSet>, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl DataLoaderIterator<Arc<EvalSet>> for Once {
    fn progress(&self) -> Progress {
        Progress::new(usize::from(self.0.is_none()), 1, Some("splits".to_owned()))
    }
}
