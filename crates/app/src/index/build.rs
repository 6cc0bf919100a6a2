//! Brings an index up to date with its gallery: embeds what is new or changed, keeps the rest.

use super::file::{self, Index, require_replaceable};
use super::journal::{self, Journal, Outcome};
use super::layout::{Header, Unreadable, encode};
use super::{Gallery, Identity, Source};
use crate::failure::Failure;
use anyhow::{Context, Result, bail, ensure};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// Images that are embedded between two notes in the journal.
pub(crate) const BATCH: usize = 32;

/// Makes features of files.
pub(crate) trait Maker {
    /// A unit-length feature of each file, or why it has none, in their order; at most [`BATCH`]
    /// files. A feature must not depend on the other files.
    fn features(&mut self, files: &[PathBuf]) -> Result<Vec<Result<Vec<f32>, String>>>;

    /// Hears how many images of how many are done.
    fn progress(&mut self, done: usize, total: usize);

    /// A line for the person who waits.
    fn say(&mut self, line: &str);
}

/// An index that is up to date, and what that took.
pub(crate) struct Made {
    pub(crate) index: Index,
    /// Images embedded now.
    pub(crate) embedded: usize,
    /// Images that a build before had embedded without coming to its end.
    pub(crate) resumed: usize,
    /// Images that were in the index already and had not changed.
    pub(crate) kept: usize,
    pub(crate) unreadable: Vec<Unreadable>,
}

/// Opens the index in `path`, up to date with the gallery; `anew` ignores what is there.
///
/// # Errors
/// A usage failure when the index is of other weights or another gallery, or the file is none; a
/// damaged index; a gallery of which nothing can be read.
pub(crate) fn open_or_update(
    path: &Path,
    gallery: &Gallery,
    identity: &Identity,
    anew: bool,
    maker: &mut dyn Maker,
) -> Result<Made> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let _lock = lock(path, maker)?;
    let root = gallery.root.to_string_lossy().into_owned();
    let old = match anew {
        true => {
            require_replaceable(path)?;
            journal::remove(path)?;
            None
        }
        false => Index::open(path)?,
    };
    let old = old.map(|old| require_same(old, identity, &root)).transpose()?;
    let header = Header::new(identity.clone(), root);
    let known = match &old {
        Some(index) => known(index)?,
        None => BTreeMap::new(),
    };
    let todo: Vec<&Source> = gallery
        .sources
        .iter()
        .filter(|source| known.get(&source.path).is_none_or(|(known, _)| known != *source))
        .collect();
    let (mut made, mut embedded, mut resumed) = (BTreeMap::new(), 0, 0);
    if !todo.is_empty() {
        let mut journal = Journal::open(path, &header)?;
        let is_done = |journal: &Journal, source: &Source| {
            journal.done.get(&source.path).is_some_and(|(known, _)| known == source)
        };
        let (done, todo): (Vec<_>, Vec<_>) =
            todo.into_iter().partition(|source| is_done(&journal, source));
        let is_feature =
            |path: &String| matches!(journal.done.get(path), Some((_, Outcome::Feature(_))));
        resumed = done.iter().filter(|source| is_feature(&source.path)).count();
        embedded = embed(&todo, gallery, identity, &mut journal, maker)?;
        made = journal.done;
    }
    let plan = Plan::new(gallery, known, made, old.as_ref());
    let kept = plan.kept;
    let up_to_date = old.as_ref().is_some_and(|old| plan.is(old));
    if !up_to_date {
        if plan.images.is_empty() {
            let first = plan.unreadable.first();
            let first = first.map(|file| format!("{}: {}", file.source.path, file.reason));
            bail!(
                "none of the {} images below {} can be read; {}",
                plan.unreadable.len(),
                gallery.root.display(),
                first.unwrap_or_default()
            );
        }
        if let Some(old) = old.as_ref().filter(|_| kept > 0) {
            old.verify()?; // what is copied must be whole
        }
        file::write(path, header, &plan.images, &plan.unreadable)?;
    }
    let unreadable = plan.unreadable;
    journal::remove(path)?;
    let index = Index::open(path)?.context("the index was just written")?;
    Ok(Made { index, embedded, resumed, kept, unreadable })
}

fn require_same(old: Index, identity: &Identity, root: &str) -> Result<Index> {
    let shown = old.path().display();
    if let Some(difference) = old.identity().difference(identity) {
        return Err(Failure::usage(format!(
            "the index {shown} was made otherwise ({difference}): make it anew with --reindex, or \
             name another with --index"
        )));
    }
    if old.root() != root {
        return Err(Failure::usage(format!(
            "the index {shown} is of the gallery {}, not of {root}: make it anew with --reindex, \
             or name another with --index",
            old.root()
        )));
    }
    Ok(old)
}

/// What an index knows: the state of each file, and its row or why it has none.
type Known = BTreeMap<String, (Source, Result<usize, String>)>;

fn known(index: &Index) -> Result<Known> {
    let mut known = Known::new();
    for image in 0..index.len() {
        let source = index.source(image)?;
        known.insert(source.path.clone(), (source, Ok(image)));
    }
    for Unreadable { source, reason } in index.unreadable()? {
        known.insert(source.path.clone(), (source, Err(reason)));
    }
    Ok(known)
}

/// Returns how many of the files gave a feature.
fn embed(
    todo: &[&Source],
    gallery: &Gallery,
    identity: &Identity,
    journal: &mut Journal,
    maker: &mut dyn Maker,
) -> Result<usize> {
    let mut embedded = 0;
    maker.progress(0, todo.len());
    for (batch, sources) in todo.chunks(BATCH).enumerate() {
        let files: Vec<PathBuf> = sources.iter().map(|s| gallery.root.join(&s.path)).collect();
        let mut records = Vec::new();
        for (source, feature) in sources.iter().zip(maker.features(&files)?) {
            let outcome = match feature {
                Ok(feature) => {
                    ensure!(
                        feature.len() == identity.embed_dim
                            && feature.iter().all(|x| x.is_finite()),
                        "the feature of {} is not finite: the model has diverged",
                        source.path
                    );
                    embedded += 1;
                    Outcome::Feature(encode(&feature, identity.precision))
                }
                Err(reason) => Outcome::Unreadable(reason),
            };
            records.push(((*source).clone(), outcome));
        }
        journal.append(records)?;
        maker.progress(batch * BATCH + sources.len(), todo.len());
    }
    Ok(embedded)
}

/// What the index will hold, in its order.
struct Plan<'a> {
    images: Vec<(Source, Cow<'a, [u8]>)>,
    unreadable: Vec<Unreadable>,
    kept: usize,
}

impl<'a> Plan<'a> {
    fn new(
        gallery: &Gallery,
        mut known: Known,
        mut made: BTreeMap<String, (Source, Outcome)>,
        old: Option<&'a Index>,
    ) -> Self {
        let (mut images, mut unreadable, mut kept) = (Vec::new(), Vec::new(), 0);
        for source in &gallery.sources {
            let unchanged = known.remove(&source.path).filter(|(state, _)| state == source);
            match (unchanged, old, made.remove(&source.path)) {
                (Some((_, Ok(row))), Some(old), _) => {
                    kept += 1;
                    images.push((source.clone(), Cow::Borrowed(old.row_bytes(row))));
                }
                (Some((_, Err(reason))), _, _) | (_, _, Some((_, Outcome::Unreadable(reason)))) => {
                    unreadable.push(Unreadable { source: source.clone(), reason });
                }
                (_, _, Some((_, Outcome::Feature(row)))) => {
                    images.push((source.clone(), Cow::Owned(row)));
                }
                _ => unreachable!("whatever is not known unchanged was made"),
            }
        }
        unreadable.extend(gallery.unreadable.iter().map(|(path, reason)| Unreadable {
            source: Source { path: path.clone(), modified_ns: 0, num_bytes: 0 },
            reason: reason.clone(),
        }));
        unreadable.sort_by(|a, b| a.source.path.cmp(&b.source.path));
        Self { images, unreadable, kept }
    }

    /// Whether an index holds just this.
    fn is(&self, index: &Index) -> bool {
        let same = |(n, (source, _)): (usize, &(Source, Cow<'_, [u8]>))| {
            index.source(n).is_ok_and(|known| known == *source)
        };
        self.kept == index.len()
            && self.images.len() == index.len()
            && self.images.iter().enumerate().all(same)
            && index.unreadable().is_ok_and(|known| known == self.unreadable)
    }
}

/// Holds the lock of an index until it is dropped, or nothing where the file system has no locks.
fn lock(index: &Path, maker: &mut dyn Maker) -> Result<Option<File>> {
    let path = index.with_added_extension("lock");
    let shown = path.display();
    let file = File::create(&path).with_context(|| format!("cannot write {shown}"))?;
    let locked = match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            maker.say(&format!("another process holds {shown}; waiting for it"));
            file.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Ok(()),
    };
    match locked {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot lock {shown}")),
    }
}

#[cfg(test)]
mod tests;
