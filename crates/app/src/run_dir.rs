//! A run's directory: where its files are, and how they are written so that a crash leaves no half
//! of one.

use crate::config::Config;
use crate::failure::Failure;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// `runs/<matrix>/<cell>.s<seed>/`.
#[derive(Debug, Clone)]
pub(crate) struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// An existing run's directory, to read from.
    pub(crate) fn existing(root: &Path) -> Result<Self> {
        let run = Self { root: root.to_path_buf() };
        if !run.config().is_file() {
            let shown = root.display();
            return Err(Failure::usage(format!("{shown} holds no run (no config.toml in it)")));
        }
        Ok(run)
    }

    /// The directory of a new run, or with `resume` of the same run again. Writes nothing: a run
    /// that fails its checks leaves no trace.
    ///
    /// # Errors
    /// A usage failure when the directory already holds a run and `resume` is not given, or when
    /// the run there has another configuration.
    pub(crate) fn plan(root: &Path, config: &Config, resume: bool) -> Result<Self> {
        let run = Self { root: root.to_path_buf() };
        let shown = root.display();
        let has_run = run.config().is_file();
        if !has_run && fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Failure::usage(format!(
                "{shown} is not empty and holds no run: choose another --out"
            )));
        }
        if has_run && !resume {
            return Err(Failure::usage(format!(
                "{shown} already holds a run: add --resume to go on with it, or choose another --out"
            )));
        }
        if has_run
            && fs::read_to_string(run.config()).context("config.toml")? != config.to_toml()?
        {
            return Err(Failure::usage(format!(
                "{shown} holds a run with another configuration (compare its config.toml): \
                 repeat its settings to resume it, or choose another --out"
            )));
        }
        Ok(run)
    }

    /// Creates what [`RunDir::plan`] planned.
    ///
    /// # Errors
    /// A usage failure when the directory cannot be written.
    pub(crate) fn create(&self, config: &Config) -> Result<()> {
        let shown = self.root.display();
        let refused = |e: String| {
            Failure::usage(format!("cannot write into {shown}: {e}; choose another --out"))
        };
        fs::create_dir_all(self.checkpoints()).map_err(|e| refused(e.to_string()))?;
        write_atomically(&self.config(), config.to_toml()?.as_bytes())
            .map_err(|e| refused(e.root_cause().to_string()))
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    pub(crate) fn run_json(&self) -> PathBuf {
        self.root.join("run.json")
    }

    pub(crate) fn metrics(&self) -> PathBuf {
        self.root.join("metrics.jsonl")
    }

    /// Written last: its presence means that the run is over.
    pub(crate) fn summary(&self) -> PathBuf {
        self.root.join("summary.json")
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// The folder of the matrix, which runs share.
    pub(crate) fn matrix(&self) -> &Path {
        self.root.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// One byte per executed step of all attempts: an append that no crash can tear, unlike a
    /// counter.
    pub(crate) fn executed(&self) -> PathBuf {
        self.root.join("executed_steps")
    }
}

/// Writes `value` as pretty JSON, whole or not at all.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut json = serde_json::to_vec_pretty(value)?;
    json.push(b'\n');
    write_atomically(path, &json)
}

/// Writes a file under a temporary name, syncs it and renames it.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension("tmp");
    let shown = path.display();
    write_synced(&temporary, bytes)?;
    fs::rename(&temporary, path).with_context(|| format!("cannot rename to {shown}"))
}

/// Writes a file and waits until the disk has it.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Opens a file to append to.
pub(crate) fn append(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}
