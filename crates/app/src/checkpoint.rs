//! Checkpoints: one directory each, written whole, checked when read.
//!
//! A checkpoint is written under a temporary name, synced, and renamed; `manifest.json` has the
//! SHA-256 of every file in it. The one it replaces is kept as `<name>.previous` until the next, so
//! that at any moment of a crash one of the two is whole.

use crate::hold::{self, Place};
use crate::run_dir::sync_folder;
use anyhow::{Context, Result, anyhow, ensure};
use burn::tensor::TensorData;
use safetensors::tensor::{Dtype, SafeTensors};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tbps_model::weights::{self, Recipe, See};

const MANIFEST: &str = "manifest.json";

/// Files of a checkpoint by name, as they are read.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Files of a checkpoint by name, as they are written.
pub(crate) type Contents<'a> = BTreeMap<&'static str, Content<'a>>;

/// What writes a file.
pub(crate) type Content<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + 'a>;

/// A file of these bytes.
pub(crate) fn bytes(bytes: Vec<u8>) -> Content<'static> {
    Box::new(move |out| out.write_all(&bytes))
}

/// A safetensors file of the tensors that `visit` shows, copied to the host one by one.
pub(crate) fn tensors<'a>(
    recipe: Option<Recipe>,
    visit: impl Fn(&mut See<'_>) + 'a,
) -> Content<'a> {
    Box::new(move |out| weights::write(out, recipe.as_ref(), &visit))
}

/// Replaces the checkpoint `name` in `folder`; on an error the one that is there stays.
pub(crate) fn write(folder: &Path, name: &str, contents: &Contents<'_>) -> Result<()> {
    hold::at(Place::Checkpoint);
    let [current, previous, temporary] = places(folder, name);
    remove(&temporary)?;
    let written = fill(&temporary, contents);
    if written.is_err() {
        // Half a checkpoint is of no use, and its room may be what is missing. The error that
        // stopped the work is the one to report.
        drop(fs::remove_dir_all(&temporary));
        return written;
    }
    if current.exists() {
        remove(&previous)?;
        rename(&current, &previous)?;
    }
    rename(&temporary, &current)?;
    sync(folder)
}

/// Writes every file of a checkpoint and its manifest into a new folder.
fn fill(place: &Path, contents: &Contents<'_>) -> Result<()> {
    fs::create_dir_all(place).with_context(|| format!("cannot create {}", place.display()))?;
    let mut manifest = BTreeMap::new();
    for (file, content) in contents {
        manifest.insert(file, write_hashed(&place.join(file), content)?);
    }
    write_hashed(&place.join(MANIFEST), &bytes(serde_json::to_vec_pretty(&manifest)?))?;
    sync(place)
}

fn sync(folder: &Path) -> Result<()> {
    sync_folder(folder).with_context(|| format!("cannot sync {}", folder.display()))
}

/// Writes a file, waits until the disk has it, and returns the SHA-256 of its bytes.
fn write_hashed(path: &Path, content: &Content<'_>) -> Result<String> {
    let write = || {
        let mut out = Hashing { file: BufWriter::new(File::create(path)?), hash: Sha256::new() };
        content(&mut out)?;
        out.file.into_inner()?.sync_all()?;
        io::Result::Ok(hex(&out.hash.finalize()))
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// A file whose bytes are hashed on their way.
struct Hashing {
    file: BufWriter<File>,
    hash: Sha256,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Reads the checkpoint `name`, or its predecessor when that one is damaged: then what is damaged
/// comes with the files. `None` when there never was one.
///
/// # Errors
/// When there is one, but none that is whole.
pub(crate) fn read(folder: &Path, name: &str) -> Result<Option<(Files, Option<String>)>> {
    let [current, previous, _] = places(folder, name);
    let mut damage = Vec::new();
    for place in [current, previous] {
        if !place.exists() {
            continue;
        }
        match verified(&place) {
            Ok(files) => return Ok(Some((files, damage.pop()))),
            Err(e) => damage.push(format!("{} is damaged ({e:#})", place.display())),
        }
    }
    if damage.is_empty() {
        return Ok(None);
    }
    Err(anyhow!("{}; no whole checkpoint is left: train into another --out", damage.join(", ")))
}

/// Every file of a checkpoint, each with the SHA-256 that its manifest states.
fn verified(place: &Path) -> Result<Files> {
    let manifest = fs::read(place.join(MANIFEST)).context(MANIFEST)?;
    let manifest: BTreeMap<String, String> = serde_json::from_slice(&manifest).context(MANIFEST)?;
    ensure!(!manifest.is_empty(), "{MANIFEST} names no file");
    let mut files = Files::new();
    for (name, expected) in manifest {
        // A manifest names files beside it, never a path.
        ensure!(Path::new(&name).file_name() == Some(name.as_ref()), "{MANIFEST} names `{name}`");
        let bytes = fs::read(place.join(&name)).with_context(|| name.clone())?;
        ensure!(sha256(&bytes) == expected, "{name} does not have the SHA-256 of {MANIFEST}");
        files.insert(name, bytes);
    }
    Ok(files)
}

fn places(folder: &Path, name: &str) -> [PathBuf; 3] {
    ["", ".previous", ".tmp"].map(|suffix| folder.join(format!("{name}{suffix}")))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to)
        .with_context(|| format!("cannot rename {} to {}", from.display(), to.display()))
}

/// Lower-case hexadecimal SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The f32 tensors of a safetensors file.
pub(crate) fn from_safetensors(bytes: &[u8]) -> Result<BTreeMap<String, TensorData>> {
    let file = SafeTensors::deserialize(bytes)?;
    let tensors = file.tensors().into_iter().map(|(name, view)| {
        ensure!(view.dtype() == Dtype::F32, "{name} is {:?}, not f32", view.dtype());
        let floats = view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        Ok((name, TensorData::new::<f32, _>(floats, view.shape().to_vec())))
    });
    tensors.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(content: &str) -> Files {
        [("a.txt".to_owned(), content.as_bytes().to_vec())].into()
    }

    fn write(folder: &Path, name: &str, content: &'static str) -> Result<()> {
        super::write(folder, name, &[("a.txt", bytes(content.into()))].into())
    }

    #[test]
    fn a_torn_checkpoint_gives_way_to_its_predecessor() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(read(folder, "last").unwrap().is_none());
        write(folder, "last", "one").unwrap();
        write(folder, "last", "two").unwrap();
        assert_eq!(read(folder, "last").unwrap().unwrap(), (files("two"), None));
        fs::write(folder.join("last/a.txt"), "tw").unwrap();
        let (found, warning) = read(folder, "last").unwrap().unwrap();
        assert_eq!(found, files("one"));
        assert!(warning.unwrap().contains("a.txt does not have the SHA-256"));
        fs::remove_file(folder.join("last.previous/manifest.json")).unwrap();
        assert!(read(folder, "last").unwrap_err().to_string().contains("no whole checkpoint"));
    }

    #[test]
    fn a_crash_between_the_renames_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(folder, "last", "one").unwrap();
        fs::rename(folder.join("last"), folder.join("last.previous")).unwrap();
        fs::create_dir(folder.join("last.tmp")).unwrap();
        assert_eq!(read(folder, "last").unwrap().unwrap(), (files("one"), None));
        write(folder, "last", "two").unwrap();
        assert_eq!(read(folder, "last").unwrap().unwrap(), (files("two"), None));
    }

    #[test]
    fn a_write_that_fails_leaves_what_is_there_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(folder, "last", "one").unwrap();
        let full = |out: &mut dyn Write| {
            out.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        };
        let contents = Contents::from([("a.txt", Box::new(full) as Content<'_>)]);
        let error = super::write(folder, "last", &contents).unwrap_err();
        assert!(format!("{error:#}").ends_with("last.tmp/a.txt: no storage space"), "{error:#}");
        assert_eq!(read(folder, "last").unwrap().unwrap(), (files("one"), None));
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }

    #[test]
    fn tensors_round_trip() {
        let tensor = TensorData::from([[1.5f32, -2.0], [0.0, 3.0]]);
        let mut file = Vec::new();
        let shown = tensor.clone();
        tensors(None, move |see| see("w", &[2, 2], &|| shown.clone()))(&mut file).unwrap();
        let read = from_safetensors(&file).unwrap();
        assert_eq!(read.into_iter().collect::<Vec<_>>(), [("w".to_owned(), tensor)]);
    }
}
