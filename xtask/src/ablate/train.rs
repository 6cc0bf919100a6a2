//! Training the cells, one child process after another.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::plan::{Job, Plan};
use super::progress::{Board, Tail};
use super::run_dir::{self, Action};
use super::stop::Stop;
use super::{child, command, oom};
use crate::halt::Halt;

/// The exit status of a training that wrote its checkpoint and can be resumed.
const INTERRUPTED: i32 = 130;

/// Trains every job that isn't done and returns the names of those that have no result; a failed
/// one doesn't stop the others.
///
/// # Errors
/// [`Halt::Interrupted`] when stopped, and when a directory or process cannot be handled at all.
pub(crate) fn train_all(
    tbps: &Path,
    plan: &Plan,
    jobs: &[Job],
    stop: &Stop,
) -> Result<Vec<String>> {
    fs::create_dir_all(plan.logs())
        .with_context(|| format!("{} cannot be created", plan.logs().display()))?;
    let mut board = Board::new(jobs.iter().map(|job| job.name.clone()).collect());
    let mut failed = Vec::new();
    for (row, job) in jobs.iter().enumerate() {
        if let Some(reason) = stop.reason() {
            return Err(Halt::Interrupted(reason.into()).into());
        }
        if let Some(reason) = train_one(tbps, plan, job, row, &mut board, stop)? {
            board.note(&format!("{}: {reason}", job.name));
            failed.push(job.name.clone());
        }
    }
    Ok(failed)
}

/// Trains one job; returns why it has no result, or `None` when it has.
fn train_one(
    tbps: &Path,
    plan: &Plan,
    job: &Job,
    row: usize,
    board: &mut Board,
    stop: &Stop,
) -> Result<Option<String>> {
    // Opening the log waits for the child of a killed matrix, which changes what there is to do:
    // look after it.
    let log = if run_dir::is_done(&job.dir) { None } else { Some(Log::open(&job.log, stop)?) };
    let (Some(mut log), false) = (log, run_dir::is_done(&job.dir)) else {
        board.skip(row, run_dir::total_steps(&job.dir));
        return Ok(None);
    };
    let (resume, what) = begin(job, run_dir::action(&job.dir)?)?;
    let mut tail = Tail::new(job.dir.join("metrics.jsonl"));
    board.start(row, &what, tail.step().unwrap_or(0));
    let line = command::train(tbps, plan, job, resume)?;
    let process = log.receive(line.process(&plan.root))?;
    let mut total_steps = None;
    let memory = oom::Watch::start();
    let status = child::run(process, stop, || {
        total_steps = total_steps.or_else(|| run_dir::total_steps(&job.dir));
        board.update(row, tail.step(), total_steps);
    })?;
    if run_dir::is_done(&job.dir) && status.success() {
        board.end(row, "done");
        return Ok(None);
    }
    if let Some(reason) = interruption(status, stop) {
        board.end(row, "interrupted");
        return Err(Halt::Interrupted(reason.into()).into());
    }
    if run_dir::status(&job.dir).is_none() && memory.is_oom(status, &log.attempt()) {
        let line = command::record_oom(tbps, plan, job);
        child::run_whole(log.receive(line.process(&plan.root))?, stop)?;
    }
    let result = run_dir::status(&job.dir).unwrap_or_else(|| "failed".into());
    board.end(row, &result);
    let why = log.last_error().unwrap_or_else(|| child::describe(status));
    Ok(Some(format!("{result}: {why} (log: {})", job.log.display())))
}

/// Makes the directory ready for its action; returns whether to resume, and what is done in words.
fn begin(job: &Job, action: Action) -> Result<(bool, String)> {
    Ok(match action {
        Action::Start | Action::Skip => (false, "started".into()),
        Action::Resume => (true, "resumed".into()),
        Action::Retry(status) => {
            let aside = run_dir::set_aside(&job.dir)?;
            let aside = aside.file_name().unwrap_or_default().display().to_string();
            (false, format!("started again; the earlier run ({status}) is kept as {aside}"))
        }
    })
}

/// Why a training that isn't done was interrupted, as opposed to having failed.
fn interruption(status: ExitStatus, stop: &Stop) -> Option<&'static str> {
    let by_itself = (status.code() == Some(INTERRUPTED)).then_some("the training was interrupted");
    stop.reason().or(by_itself)
}

/// The file that holds a training's output, over all its attempts.
///
/// On Unix it is locked, and the child inherits the lock with the file: after this process was
/// killed, the lock lasts until the child has ended as well, and nobody writes into its run
/// directory before.
struct Log {
    file: File,
    start: u64,
}

impl Log {
    fn open(path: &Path, stop: &Stop) -> Result<Self> {
        let unwritable = || format!("{} cannot be written", path.display());
        let file = File::options()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .with_context(unwritable)?;
        while cfg!(unix) {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(error).with_context(unwritable),
                // The child of a killed matrix finishes its step.
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(100)),
            }
            if let Some(reason) = stop.reason() {
                return Err(Halt::Interrupted(reason.into()).into());
            }
        }
        let start = file.metadata().with_context(unwritable)?.len();
        Ok(Self { file, start })
    }

    /// Sends a process's output here.
    fn receive(&self, mut command: Command) -> Result<Command> {
        let copy = || self.file.try_clone().context("a file handle cannot be copied");
        command.stdout(copy()?).stderr(copy()?);
        Ok(command)
    }

    /// What this attempt has said.
    fn attempt(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = self.file.seek(SeekFrom::Start(self.start));
        // A log that cannot be read says nothing; the exit status still tells.
        let _ = read.and_then(|_| self.file.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The last line of this attempt that begins with "error:".
    fn last_error(&mut self) -> Option<String> {
        let text = self.attempt();
        text.lines().rev().find(|line| line.starts_with("error:")).map(str::to_string)
    }
}
