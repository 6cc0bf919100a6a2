//! Training batches, made ahead of use on worker threads.
//!
//! One producer thread walks the epoch and spreads each batch over a thread pool, so that at most
//! a handful of batches is in memory, whatever the number of threads. A batch is a function of
//! settings, epoch and position alone.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rayon::ThreadPool;

use super::load::thread_pool;
use super::sample::Source;
use super::{Batch, LoaderConfig, same_pid_pairs};
use crate::annotation::{Dataset, SplitName};
use crate::cache::PixelCache;
use crate::error::DataError;
use crate::tokenizer::Tokenizer;

/// Finished batches that wait for the consumer; one more is in the making.
const QUEUE: usize = 2;

/// Makes the batches of the train split, epoch by epoch.
pub struct TrainLoader {
    source: Arc<Source>,
    pool: Arc<ThreadPool>,
}

impl TrainLoader {
    /// A loader over the train split.
    ///
    /// # Errors
    ///
    /// When a setting is out of range, the train split is empty, a batch is larger than the split,
    /// or threads cannot be started.
    pub fn new(
        dataset: Arc<Dataset>,
        tokenizer: Arc<Tokenizer>,
        config: LoaderConfig,
    ) -> Result<Self, DataError> {
        config.validate()?;
        let num_pairs = dataset.split(SplitName::Train)?.captions.len();
        if config.batch_size > num_pairs {
            return Err(DataError::BatchTooLarge { batch_size: config.batch_size, num_pairs });
        }
        let label = |pid| dataset.train_label(pid).expect("train_pids has every train person");
        let labels =
            dataset.train.captions.iter().map(|caption| label(caption.pid) as i64).collect();
        let pool = Arc::new(thread_pool(config.threads)?);
        Ok(Self {
            source: Arc::new(Source { dataset, tokenizer, config, labels, cache: None }),
            pool,
        })
    }

    /// Reads images from a cache of the same data set instead of decoding them; the batches are the
    /// same.
    #[must_use]
    pub fn with_cache(self, cache: Arc<PixelCache>) -> Self {
        let source = Source { cache: Some(cache), ..Source::clone(&self.source) };
        Self { source: Arc::new(source), ..self }
    }

    /// Full batches in an epoch.
    #[must_use]
    pub fn batches_per_epoch(&self) -> usize {
        self.source.labels.len() / self.source.config.batch_size
    }

    /// How many times two pairs of one person share a batch of an epoch: false negatives of ITC.
    #[must_use]
    pub fn same_pid_pairs(&self, epoch: u64) -> u64 {
        let source = &self.source;
        same_pid_pairs(&source.order(epoch), &source.labels, source.config.batch_size)
    }

    /// The batches of an epoch from `first_batch` on, which is 0 but for a resumed run; none when
    /// `first_batch` is past the end.
    ///
    /// Work starts at once and stops when the iterator is dropped. An error ends the iterator.
    #[must_use]
    pub fn epoch(&self, epoch: u64, first_batch: usize) -> Batches {
        let remaining = self.batches_per_epoch().saturating_sub(first_batch);
        let (sender, receiver) = sync_channel(QUEUE);
        let (source, pool) = (Arc::clone(&self.source), Arc::clone(&self.pool));
        let report = sender.clone();
        let work = move || produce(&source, &pool, epoch, first_batch, &sender);
        let producer = match thread::Builder::new().name("batches".to_owned()).spawn(work) {
            Ok(producer) => Some(producer),
            Err(error) => {
                let error = DataError::Threads { threads: 1, reason: error.to_string() };
                // The queue is empty and its reader is in scope: there is room.
                let _ = report.send(Err(error));
                None
            }
        };
        Batches { receiver: Some(receiver), producer, remaining }
    }
}

/// Sends the batches of an epoch until the reader is gone or one fails.
fn produce(
    source: &Source,
    pool: &ThreadPool,
    epoch: u64,
    first_batch: usize,
    sender: &SyncSender<Result<Batch, DataError>>,
) {
    for index in source.order(epoch).chunks_exact(source.config.batch_size).skip(first_batch) {
        let batch = pool.install(|| source.batch(epoch, index));
        let failed = batch.is_err();
        if sender.send(batch).is_err() || failed {
            return;
        }
    }
}

/// The batches of one epoch, in order; made by [`TrainLoader::epoch`].
pub struct Batches {
    /// Gone once the producer has to stop.
    receiver: Option<Receiver<Result<Batch, DataError>>>,
    producer: Option<JoinHandle<()>>,
    remaining: usize,
}

impl Iterator for Batches {
    type Item = Result<Batch, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return None;
        }
        self.remaining -= 1;
        let receiver = self.receiver.as_ref()?;
        // A producer that hangs up before the last batch has panicked.
        let batch = receiver.recv().unwrap_or(Err(DataError::WorkerDied));
        if batch.is_err() {
            self.remaining = 0;
        }
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // An error may end it sooner.
        (self.remaining.min(1), Some(self.remaining))
    }
}

impl Drop for Batches {
    /// Waits for the batch in the making, so that no work outlives the iterator.
    fn drop(&mut self) {
        drop(self.receiver.take());
        if let Some(producer) = self.producer.take() {
            // A panic has been reported by `next`, or nobody asks for its batch any more.
            let _ = producer.join();
        }
    }
}
