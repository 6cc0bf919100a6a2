//! A run's directory: where its files are, and how they are written so that a crash leaves no half
//! of one.

use crate::config::Config;
use crate::failure::Failure;
use crate::records::Status;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use tbps_data::Fingerprint;

/// Locked by the process that trains here.
const LOCK: &str = ".lock";

/// What a run that was killed before its configuration was written may leave behind.
const BEFORE_CONFIG: [&str; 3] = [LOCK, "checkpoints", "config.toml.tmp"];

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
        if !has_run && fs::read_dir(root).is_ok_and(|entries| entries.flatten().any(is_foreign)) {
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

    /// Creates what [`RunDir::plan`] planned, and takes it for this process; the lock ends with the
    /// returned file.
    ///
    /// # Errors
    /// A usage failure when the directory cannot be written, and an error when another process has
    /// it.
    pub(crate) fn create(&self, config: &Config) -> Result<File> {
        let shown = self.root.display();
        let refused = |e: String| {
            Failure::usage(format!("cannot write into {shown}: {e}; choose another --out"))
        };
        fs::create_dir_all(self.checkpoints()).map_err(|e| refused(e.to_string()))?;
        let lock = File::create(self.root.join(LOCK)).map_err(|e| refused(e.to_string()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                bail!("another tbps is training into {shown}: wait for it, or choose another --out")
            }
            // A file system without locks: nothing can be promised there.
            Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => bail!("cannot lock {shown}: {e}"),
        }
        write_atomically(&self.config(), config.to_toml()?.as_bytes())
            .map_err(|e| refused(e.root_cause().to_string()))?;
        Ok(lock)
    }

    /// Whether the run is over, and well.
    ///
    /// # Errors
    /// How it ended when it did not end well, or that its summary is damaged.
    pub(crate) fn is_done(&self) -> Result<bool> {
        #[derive(Deserialize)]
        struct Ending {
            status: Status,
            message: Option<String>,
        }
        let Some(json) = read_if_there(&self.summary())? else { return Ok(false) };
        let ending: Ending = serde_json::from_slice(&json).with_context(|| {
            format!(
                "{} is damaged: remove it to go on from the last checkpoint",
                self.summary().display()
            )
        })?;
        if ending.status == Status::Done {
            return Ok(true);
        }
        let (shown, status) = (self.root.display(), format!("{:?}", ending.status).to_lowercase());
        let message = ending.message.unwrap_or_default();
        bail!("the run in {shown} is over, {status}: {message}; train again into another --out")
    }

    /// Whether there is a checkpoint to go on from, and a record of what it began with.
    pub(crate) fn has_begun(&self) -> bool {
        self.checkpoints().join("last").is_dir() && self.run_json().is_file()
    }

    /// Refuses to go on with a run on other data than it began with.
    ///
    /// # Errors
    /// When `run.json` is damaged or has another fingerprint.
    pub(crate) fn require_same_data(&self, data: &Fingerprint) -> Result<()> {
        let path = self.run_json();
        let shown = path.display();
        let Some(json) = read_if_there(&path)? else { return Ok(()) };
        let record: serde_json::Value = serde_json::from_slice(&json)
            .with_context(|| format!("{shown} is damaged: remove it to have it written again"))?;
        if record["dataset"] != serde_json::to_value(data)? {
            bail!(
                "the data has changed since the run in {} began ({shown} has its fingerprint): \
                 restore it, or train into another --out",
                self.root.display()
            );
        }
        Ok(())
    }

    /// Refuses to go on when `metrics.jsonl` has fewer than the `len` bytes of the checkpoint.
    ///
    /// # Errors
    /// Both lengths.
    pub(crate) fn require_log(&self, len: u64) -> Result<()> {
        let path = self.metrics();
        let found = fs::metadata(&path).map_or(0, |of| of.len());
        if found < len {
            bail!(
                "{} has {found} bytes where the checkpoint counts {len}, so a part of it is lost: \
                 restore it, or train into another --out",
                path.display()
            );
        }
        Ok(())
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
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

    /// Event files, one per attempt.
    pub(crate) fn tensorboard(&self) -> PathBuf {
        self.root.join("tensorboard")
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

fn is_foreign(entry: fs::DirEntry) -> bool {
    !BEFORE_CONFIG.iter().any(|name| entry.file_name() == *name)
}

/// The file's bytes, if there is such a file.
fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Refuses an output file that could not be written once the work for it is done.
///
/// # Errors
/// A usage failure when `path` is a folder, or its own folder is none.
pub(crate) fn require_creatable(path: &Path) -> Result<()> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::usage(format!("cannot write {shown}: it is a folder; name a file")));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|folder| !folder.is_dir()) {
        None => Ok(()),
        Some(folder) => Err(Failure::usage(format!(
            "cannot write {shown}: {} is no folder; create it first",
            folder.display()
        ))),
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
    // A rename would put a file in the place of a link, or of a device such as /dev/null.
    let target = match fs::symlink_metadata(path) {
        Err(_) => Some(path.to_path_buf()),
        Ok(_) => fs::canonicalize(path).ok().filter(|target| target.is_file() || target.is_dir()),
    };
    let written = target.map_or_else(|| fs::write(path, bytes), |target| replace(&target, bytes));
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = synced(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, path))
        .and_then(|()| sync_folder(folder.unwrap_or(Path::new("."))));
    if written.is_err() {
        // The error that stopped the work is the one to report.
        drop(fs::remove_file(&temporary));
    }
    written
}

/// Writes a file and waits until the disk has it.
fn synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes renames in a folder durable. Only Unix can open a folder; elsewhere the rename has to do.
pub(crate) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

/// Opens a file to append to.
pub(crate) fn append(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn writing_replaces_one_file_and_leaves_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("a.tmp"), "somebody's").unwrap();
        write_atomically(&folder.join("a.json"), b"1").unwrap();
        write_atomically(&folder.join("a.json"), b"2").unwrap();
        fs::create_dir(folder.join("taken")).unwrap();
        let error = write_atomically(&folder.join("taken"), b"3").unwrap_err();
        assert!(error.to_string().ends_with("taken"), "{error}");
        assert_eq!(names(folder), ["a.json", "a.tmp", "taken"]);
        assert_eq!(fs::read(folder.join("a.json")).unwrap(), b"2");
        assert_eq!(fs::read(folder.join("a.tmp")).unwrap(), b"somebody's");
    }

    #[test]
    #[cfg(unix)]
    fn links_and_devices_stay_what_they_are() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(file).unwrap(), b"new");
        write_atomically(Path::new("/dev/null"), b"x").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}
