//! Checkpoints: one directory each, written whole, checked when read.
//!
//! A checkpoint is written under a temporary name, synced, and renamed; `manifest.json` has the
//! SHA-256 of every file in it. The one it replaces is kept as `<name>.previous` until the next, so
//! that at any moment of a crash one of the two is whole.

use crate::run_dir::write_synced;
use anyhow::{Context, Result, anyhow, ensure};
use burn::tensor::{DType, TensorData};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest.json";

/// Files of a checkpoint by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Replaces the checkpoint `name` in `folder`.
pub(crate) fn write(folder: &Path, name: &str, files: &Files) -> Result<()> {
    let [current, previous, temporary] = places(folder, name);
    remove(&temporary)?;
    let shown = temporary.display();
    fs::create_dir_all(&temporary).with_context(|| format!("cannot create {shown}"))?;
    let mut manifest = BTreeMap::new();
    for (file, bytes) in files {
        write_synced(&temporary.join(file), bytes)?;
        manifest.insert(file, sha256(bytes));
    }
    write_synced(&temporary.join(MANIFEST), &serde_json::to_vec_pretty(&manifest)?)?;
    sync_folder(&temporary)?;
    if current.exists() {
        remove(&previous)?;
        rename(&current, &previous)?;
    }
    rename(&temporary, &current)?;
    sync_folder(folder)
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

/// Makes renames in a folder durable. Only Unix can open a folder; elsewhere the rename has to do.
fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) {
        let sync = File::open(folder).and_then(|folder| folder.sync_all());
        sync.with_context(|| format!("cannot sync {}", folder.display()))?;
    }
    Ok(())
}

/// Lower-case hexadecimal SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// f32 tensors as a safetensors file.
pub(crate) fn to_safetensors(tensors: &[(String, TensorData)]) -> Result<Vec<u8>> {
    let views: Vec<(&str, TensorView<'_>)> = tensors
        .iter()
        .map(|(name, data)| {
            ensure!(data.dtype() == DType::F32, "{name} is {:?}, not f32", data.dtype());
            let view = TensorView::new(Dtype::F32, data.shape().to_vec(), data.as_bytes())?;
            Ok((name.as_str(), view))
        })
        .collect::<Result<_>>()?;
    Ok(safetensors::serialize(views, None)?)
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

    #[test]
    fn a_torn_checkpoint_gives_way_to_its_predecessor() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(read(folder, "last").unwrap().is_none());
        write(folder, "last", &files("one")).unwrap();
        write(folder, "last", &files("two")).unwrap();
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
        write(folder, "last", &files("one")).unwrap();
        fs::rename(folder.join("last"), folder.join("last.previous")).unwrap();
        fs::create_dir(folder.join("last.tmp")).unwrap();
        assert_eq!(read(folder, "last").unwrap().unwrap(), (files("one"), None));
        write(folder, "last", &files("two")).unwrap();
        assert_eq!(read(folder, "last").unwrap().unwrap(), (files("two"), None));
    }

    #[test]
    fn tensors_round_trip() {
        let tensors = vec![("w".to_owned(), TensorData::from([[1.5f32, -2.0], [0.0, 3.0]]))];
        let read = from_safetensors(&to_safetensors(&tensors).unwrap()).unwrap();
        assert_eq!(read.into_iter().collect::<Vec<_>>(), tensors);
    }
}
