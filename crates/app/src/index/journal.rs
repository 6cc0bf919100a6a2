//! What an unfinished build has done so far: one append per batch, each record with its checksum.
//!
//! A killed process leaves at most one torn record, at the end, which is cut off when the build goes
//! on.

use super::Source;
use super::layout::{Header, Unreadable, row_bytes};
use crate::run_dir::append;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What was made of a file: its stored feature, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    Feature(Vec<u8>),
    Unreadable(String),
}

/// An open journal.
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// What is done, by path.
    pub(super) done: BTreeMap<String, (Source, Outcome)>,
}

impl Journal {
    /// Opens the journal of the index `path`, with what it has; one of another gallery or model is
    /// begun anew.
    pub(super) fn open(index: &Path, header: &Header) -> Result<Self> {
        let path = place(index);
        let first_line = serde_json::to_vec(header)?;
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let records = bytes.strip_prefix(first_line.as_slice()).and_then(|r| r.strip_prefix(b"\n"));
        let mut done = BTreeMap::new();
        let Some(records) = records else {
            let mut file =
                File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            file.write_all(&first_line)?;
            file.write_all(b"\n")?;
            return Ok(Self { path, file, done });
        };
        let mut rest = records;
        while let Some((record, behind)) = take_record(rest, row_bytes(&header.identity)) {
            done.insert(record.0.path.clone(), record);
            rest = behind;
        }
        let whole = (bytes.len() - rest.len()) as u64;
        OpenOptions::new().write(true).open(&path)?.set_len(whole)?;
        let file = append(&path)?;
        Ok(Self { path, file, done })
    }

    /// Appends a batch in one write.
    pub(super) fn append(&mut self, batch: Vec<(Source, Outcome)>) -> Result<()> {
        let mut bytes = Vec::new();
        for (source, outcome) in &batch {
            put_record(&mut bytes, source, outcome)?;
        }
        let written = self.file.write_all(&bytes);
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.done.extend(batch.into_iter().map(|record| (record.0.path.clone(), record)));
        Ok(())
    }
}

/// Removes the journal of an index, if there is one.
pub(super) fn remove(index: &Path) -> Result<()> {
    let path = place(index);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn place(index: &Path) -> PathBuf {
    index.with_added_extension("journal")
}

/// Length and CRC-32 of a payload of: time, size, path length, path, a kind, and the rest.
fn put_record(out: &mut Vec<u8>, source: &Source, outcome: &Outcome) -> Result<()> {
    let (kind, rest) = match outcome {
        Outcome::Feature(bytes) => (0, bytes.as_slice()),
        Outcome::Unreadable(reason) => (1, reason.as_bytes()),
    };
    let mut payload = Vec::new();
    payload.extend(source.modified_ns.to_le_bytes());
    payload.extend(source.num_bytes.to_le_bytes());
    payload.extend(u32::try_from(source.path.len())?.to_le_bytes());
    payload.extend(source.path.as_bytes());
    payload.push(kind);
    payload.extend(rest);
    out.extend(u32::try_from(payload.len())?.to_le_bytes());
    out.extend(crc32fast::hash(&payload).to_le_bytes());
    out.extend(payload);
    Ok(())
}

/// The first record and what is behind it; nothing when it is torn or damaged.
fn take_record(bytes: &[u8], row_bytes: usize) -> Option<((Source, Outcome), &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (crc, rest) = rest.split_first_chunk::<4>()?;
    let (payload, behind) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    if crc32fast::hash(payload) != u32::from_le_bytes(*crc) {
        return None;
    }
    let (modified, rest) = payload.split_first_chunk::<8>()?;
    let (size, rest) = rest.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (path, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (kind, rest) = rest.split_first()?;
    let outcome = match kind {
        0 if rest.len() == row_bytes => Outcome::Feature(rest.to_vec()),
        1 => Outcome::Unreadable(String::from_utf8(rest.to_vec()).ok()?),
        _ => return None,
    };
    let source = Source {
        path: String::from_utf8(path.to_vec()).ok()?,
        modified_ns: i64::from_le_bytes(*modified),
        num_bytes: u64::from_le_bytes(*size),
    };
    Some(((source, outcome), behind))
}

impl From<(Source, String)> for Unreadable {
    fn from((source, reason): (Source, String)) -> Self {
        Self { source, reason }
    }
}
