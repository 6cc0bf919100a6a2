//! What a run directory says about itself, and what a new `ablate` therefore does with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

/// What to do with one cell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing is there: train.
    Start,
    /// A run is there without a summary: it was interrupted or killed, go on from its last
    /// checkpoint.
    Resume,
    /// It is done: leave it alone.
    Skip,
    /// It ended badly, with this status, or is no run: keep it aside as evidence and train afresh.
    Retry(String),
}

/// The one status that means a cell has its result.
const DONE: &str = "done";

/// The part of `summary.json` that the matrix looks at.
#[derive(Deserialize)]
struct Summary {
    status: String,
}

/// The part of `run.json` that the matrix looks at.
#[derive(Deserialize)]
struct Run {
    total_steps: u64,
}

/// Decides what to do with a run directory.
///
/// # Errors
/// When the directory cannot be listed.
pub(crate) fn action(dir: &Path) -> Result<Action> {
    match status(dir) {
        Some(status) if status == DONE => return Ok(Action::Skip),
        Some(status) => return Ok(Action::Retry(status)),
        None => {}
    }
    if dir.join("config.toml").is_file() {
        return Ok(Action::Resume);
    }
    match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(Action::Start),
        // Killed before the configuration was written: nothing to go on with, tbps would refuse.
        Ok(false) => Ok(Action::Retry("barely begun".into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Action::Start),
        Err(error) => Err(error).with_context(|| format!("{} cannot be listed", dir.display())),
    }
}

/// The status in `summary.json`, or `None` while there is none. A summary is written in one go, so
/// one that cannot be read was damaged afterwards; its status is "unreadable".
pub(crate) fn status(dir: &Path) -> Option<String> {
    let text = fs::read_to_string(dir.join("summary.json")).ok()?;
    let status = serde_json::from_str(&text).map(|summary: Summary| summary.status);
    Some(status.unwrap_or_else(|_| "unreadable".into()))
}

/// Whether the run has its result.
pub(crate) fn is_done(dir: &Path) -> bool {
    status(dir).as_deref() == Some(DONE)
}

/// The number of steps of the whole training, once `run.json` is there.
pub(crate) fn total_steps(dir: &Path) -> Option<u64> {
    let text = fs::read_to_string(dir.join("run.json")).ok()?;
    serde_json::from_str(&text).map(|run: Run| run.total_steps).ok()
}

/// The first free name `<dir>.failed-<n>`.
pub(crate) fn failed_name(dir: &Path) -> PathBuf {
    let name = |n: u32| {
        let mut name = dir.as_os_str().to_os_string();
        name.push(format!(".failed-{n}"));
        PathBuf::from(name)
    };
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}

/// Moves a failed run out of the way and returns its new name.
///
/// # Errors
/// When the directory cannot be renamed.
pub(crate) fn set_aside(dir: &Path) -> Result<PathBuf> {
    let aside = failed_name(dir);
    fs::rename(dir, &aside)
        .with_context(|| format!("{} cannot be renamed to {}", dir.display(), aside.display()))?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run directory with these files.
    fn run(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn action_follows_what_is_in_the_directory() {
        let check = |files: &[(&str, &str)], expected: Action| {
            assert_eq!(action(run(files).path()).unwrap(), expected, "{files:?}");
        };
        check(&[], Action::Start);
        check(&[("config.toml", "seed = 0")], Action::Resume);
        check(&[("config.toml", "seed = 0"), ("metrics.jsonl", "")], Action::Resume);
        check(&[("config.tmp", "seed")], Action::Retry("barely begun".into()));
        check(
            &[("run.json", "{}"), ("summary.json", r#"{"status": "done", "seed": 0}"#)],
            Action::Skip,
        );
        check(&[("summary.json", r#"{"status": "oom"}"#)], Action::Retry("oom".into()));
        check(&[("summary.json", r#"{"status": "#)], Action::Retry("unreadable".into()));
        assert_eq!(action(Path::new("/no/such/run")).unwrap(), Action::Start);
    }

    #[test]
    fn failed_runs_are_kept_under_new_names() {
        let out = tempfile::tempdir().unwrap();
        let dir = out.path().join("amp.s0");
        for n in 1..=2 {
            fs::create_dir(&dir).unwrap();
            assert_eq!(set_aside(&dir).unwrap(), out.path().join(format!("amp.s0.failed-{n}")));
            assert!(!dir.exists());
        }
    }

    #[test]
    fn total_steps_need_a_whole_run_json() {
        assert_eq!(total_steps(run(&[("run.json", r#"{"total_steps": 400}"#)]).path()), Some(400));
        assert_eq!(total_steps(run(&[("run.json", r#"{"total_st"#)]).path()), None);
        assert_eq!(total_steps(run(&[]).path()), None);
    }
}
