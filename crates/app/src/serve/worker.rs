//! One thread owns the work of the model: queries that wait are embedded and searched together.

use crate::search::{Engine, Found};
use anyhow::Result;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Queries that may wait; more are turned away.
const QUEUE: usize = 128;
/// Queries that are answered together.
const BATCH: usize = 32;

/// What is looked for.
pub(super) enum Query {
    Text(String),
    /// Normalised, `[3, height, width]`.
    Pixels(Vec<f32>),
    /// An image of the index, which must be in it.
    Like(usize),
}

/// Images found, and what that took.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) found: Vec<Found>,
    /// In the queue.
    pub(super) wait: Duration,
    /// In the model, together with the queries beside it.
    pub(super) embed: Duration,
    /// In the index, likewise.
    pub(super) search: Duration,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Too many wait already.
    Busy,
    /// The reason is in the log.
    Failed,
}

struct Job {
    query: Query,
    k: usize,
    asked: Instant,
    reply: oneshot::Sender<Result<Answer, Refusal>>,
}

/// The way to the thread.
#[derive(Clone)]
pub(super) struct Worker {
    jobs: SyncSender<Job>,
}

impl Worker {
    /// Starts the thread, which ends when the last handle is dropped.
    pub(super) fn start(engine: Arc<Engine>) -> Result<Self> {
        let (jobs, queue) = sync_channel(QUEUE);
        std::thread::Builder::new()
            .name("search".to_owned())
            .spawn(move || work(&engine, &queue))?;
        Ok(Self { jobs })
    }

    /// The `k` images most like the query.
    pub(super) async fn ask(&self, query: Query, k: usize) -> Result<Answer, Refusal> {
        let (reply, answer) = oneshot::channel();
        let job = Job { query, k, asked: Instant::now(), reply };
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Refusal::Busy,
            TrySendError::Disconnected(_) => Refusal::Failed,
        })?;
        answer.await.unwrap_or(Err(Refusal::Failed))
    }
}

fn work(engine: &Engine, queue: &Receiver<Job>) {
    while let Ok(first) = queue.recv() {
        let mut jobs = vec![first];
        jobs.extend(queue.try_iter().take(BATCH - 1));
        // Nobody waits any more for a request that was given up.
        jobs.retain(|job| !job.reply.is_closed());
        if jobs.is_empty() {
            continue;
        }
        let began = Instant::now();
        match answer(engine, &mut jobs) {
            Ok((found, embed, search)) => {
                for (job, mut found) in jobs.into_iter().zip(found) {
                    found.truncate(job.k);
                    let wait = began.duration_since(job.asked);
                    drop(job.reply.send(Ok(Answer { found, wait, embed, search })));
                }
            }
            Err(error) => {
                crate::say(&format!("a search failed: {}", crate::failure::line(&error)));
                for job in jobs {
                    drop(job.reply.send(Err(Refusal::Failed)));
                }
            }
        }
    }
}

/// What each job found, and the times of both halves.
fn answer(engine: &Engine, jobs: &mut [Job]) -> Result<(Vec<Vec<Found>>, Duration, Duration)> {
    let began = Instant::now();
    let dim = engine.index.dim();
    let texts: Vec<&str> = jobs
        .iter()
        .filter_map(|job| match &job.query {
            Query::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let of_texts = match texts.is_empty() {
        true => Vec::new(),
        false => engine.texts(&texts)?,
    };
    let mut of_texts = of_texts.chunks_exact(dim);
    let mut features = Vec::with_capacity(jobs.len() * dim);
    for job in jobs.iter_mut() {
        match &mut job.query {
            Query::Text(_) => features.extend(of_texts.next().unwrap_or_default()),
            Query::Pixels(pixels) => features.extend(engine.pixels(std::mem::take(pixels))?),
            Query::Like(image) => features.extend(engine.index.row(*image).unwrap_or_default()),
        }
    }
    let embed = began.elapsed();
    let k = jobs.iter().map(|job| job.k).max().unwrap_or(1);
    let found = engine.search(&features, k)?;
    Ok((found, embed, began.elapsed() - embed))
}
