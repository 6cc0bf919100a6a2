//! Locks on files: who may write what, among processes and, where the file system shares its locks,
//! among machines. They end with the returned file, however its holder ends.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::shard::Shard;
use super::stop::Stop;
use crate::halt::Halt;

/// How often a lock that is held by another is asked for again.
const POLL: Duration = Duration::from_millis(100);

/// Takes a matrix directory, which is created: all of it, or as one of the shards that share it.
///
/// # Errors
/// When another matrix is being written there, or the same shard; when the directory cannot be made.
pub(crate) fn matrix(out: &Path, shard: Option<Shard>) -> Result<Vec<File>> {
    fs::create_dir_all(out).with_context(|| format!("{} cannot be created", out.display()))?;
    let whole = open(&out.join(".lock"))?;
    let Some(shard) = shard else {
        return match attempt(out, whole.try_lock())? {
            true => Ok(vec![whole]),
            false => bail!(
                "another `cargo xtask ablate` is writing into {}; wait for it or give another --out",
                out.display()
            ),
        };
    };
    let own = open(&out.join(format!(".lock-{}", shard.slug())))?;
    let free = attempt(out, whole.try_lock_shared())? && attempt(out, own.try_lock())?;
    if !free {
        bail!(
            "another `cargo xtask ablate` is writing shard {shard} or the whole matrix into {}; \
             wait for it or give another --out",
            out.display()
        );
    }
    Ok(vec![whole, own])
}

/// Waits for a lock that others hold for a short time only.
///
/// # Errors
/// [`Halt::Interrupted`] when stopped meanwhile, and when the file cannot be locked.
pub(crate) fn wait(path: &Path, stop: &Stop) -> Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
    }
    let file = open(path)?;
    while !attempt(path, file.try_lock())? {
        thread::sleep(POLL);
        if let Some(reason) = stop.reason() {
            return Err(Halt::Interrupted(reason.into()).into());
        }
    }
    Ok(file)
}

/// To read and write: network file systems want either, by the kind of lock.
fn open(path: &Path) -> Result<File> {
    let file = File::options().create(true).truncate(false).read(true).write(true).open(path);
    file.with_context(|| format!("{} cannot be written", path.display()))
}

/// Whether a lock was got, or is another's.
fn attempt(path: &Path, locked: Result<(), TryLockError>) -> Result<bool> {
    match locked {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("{} cannot be locked", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_matrix_or_the_shards_of_one() {
        let out = tempfile::tempdir().unwrap();
        let shard = |text: &str| Some(text.parse().unwrap());
        let take = |shard| matrix(out.path(), shard);
        let refused = |shard| {
            let error = take(shard).unwrap_err().to_string();
            assert!(error.contains("another `cargo xtask ablate`"), "{error}");
        };
        let held = take(None).unwrap();
        refused(None);
        refused(shard("1/2"));
        drop(held);

        let (first, second) = (take(shard("1/2")).unwrap(), take(shard("2/2")).unwrap());
        refused(shard("2/2"));
        refused(None);
        drop(second);
        refused(None);
        drop(first);
        take(None).unwrap();
    }
}
