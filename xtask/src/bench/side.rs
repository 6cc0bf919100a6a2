//! One side of a case: a process that measures a piece of its work for each line that it is given.
//!
//! It says that it is ready, answers each line with the seconds, and says what it held once its input
//! ends. Lines are JSON objects. A side that is dropped before its end is killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A running side.
pub(super) struct Side {
    name: &'static str,
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    /// When it is given up.
    deadline: Option<Instant>,
    ready: Value,
    /// The seconds of its pieces of work.
    pub(super) pieces: Vec<f64>,
}

/// What a side said at its beginning and its end, and what its pieces took.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) ready: Value,
    pub(super) done: Value,
    pub(super) pieces: Vec<f64>,
}

#[derive(Deserialize)]
struct Piece {
    seconds: f64,
}

impl Side {
    /// Starts the process and waits until it is ready.
    ///
    /// # Errors
    /// When it cannot be started, dies, or is not ready at the deadline.
    pub(super) fn start(
        name: &'static str,
        mut command: Command,
        deadline: Option<Instant>,
    ) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", command.get_program().display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("a process without standard output")?;
        let stderr = child.stderr.take().context("a process without standard error")?;
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(std::result::Result::ok);
            // Ends with the process, or when nobody listens any more.
            lines
                .map(|line| sender.send(line))
                .take_while(std::result::Result::is_ok)
                .for_each(drop)
        });
        let stderr = Some(std::thread::spawn(move || last_line(stderr)));
        let (ready, pieces) = (Value::Null, Vec::new());
        let mut side = Self { name, child, stdin, answers, stderr, deadline, ready, pieces };
        side.ready = side.answer("its start")?;
        Ok(side)
    }

    /// The number of threads that it computes with, if it said so.
    pub(super) fn threads(&self) -> Option<usize> {
        self.ready["threads"].as_u64().and_then(|threads| threads.try_into().ok())
    }

    /// Has it do one piece of work.
    ///
    /// # Errors
    /// When it dies, answers nonsense, or is not done at the deadline.
    pub(super) fn work(&mut self) -> Result<()> {
        // A dead process is noticed, with its message, by the missing answer.
        _ = self.stdin.as_mut().map(|stdin| stdin.write_all(b"\n").and_then(|()| stdin.flush()));
        let Piece { seconds } = self.answer("its work")?;
        if !(seconds.is_finite() && seconds > 0.0) {
            bail!("{} measured {seconds} seconds", self.name);
        }
        self.pieces.push(seconds);
        Ok(())
    }

    /// Ends its input and waits for its end.
    ///
    /// # Errors
    /// As [`Self::work`], and when it fails afterwards.
    pub(super) fn finish(mut self) -> Result<Told> {
        drop(self.stdin.take());
        let done = self.answer("its end")?;
        // Out of the queue once the process has closed its output.
        while self.receive()?.is_some() {}
        let status = self.child.wait().context("a process cannot be waited for")?;
        if !status.success() {
            return Err(self.died("after its last answer"));
        }
        let (ready, pieces) = (self.ready.take(), std::mem::take(&mut self.pieces));
        Ok(Told { ready, done, pieces })
    }

    fn answer<T: DeserializeOwned>(&mut self, what: &str) -> Result<T> {
        match self.receive().with_context(|| format!("{} at {what}", self.name))? {
            None => Err(self.died(&format!("at {what}"))),
            Some(line) => serde_json::from_str(&line)
                .with_context(|| format!("{} answered at {what}: {line}", self.name)),
        }
    }

    /// The next line, or `None` when its output has ended.
    fn receive(&self) -> Result<Option<String>> {
        let Some(deadline) = self.deadline else {
            return Ok(self.answers.recv().ok());
        };
        let left = deadline.saturating_duration_since(Instant::now());
        match self.answers.recv_timeout(left.max(Duration::from_millis(1))) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("ran out of its time"),
        }
    }

    /// Why it ended, in one line: the last that it wrote to standard error.
    fn died(&mut self, when: &str) -> anyhow::Error {
        _ = self.child.kill(); // has closed its output: nothing more can come
        let status = self.child.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
        let said = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        match said.as_str() {
            "" => anyhow!("{} died {when} without a message ({status})", self.name),
            said => anyhow!("{} died {when}: {said}", self.name),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The last line with something in it, read to the end so that the process never blocks.
fn last_line(stderr: impl Read) -> String {
    let mut last = String::new();
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if !text.is_empty() {
            last = text;
        }
        line.clear();
    }
    last
}
