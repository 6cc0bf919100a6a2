//! Room on the disk: a run that cannot keep its checkpoints is refused before it starts.
//!
//! A checkpoint is written beside the one that it replaces, which in turn stays beside its own
//! predecessor (see [`crate::checkpoint`]). So at most three copies of the larger kind are on disk
//! at once, and two of the other.

use crate::config::{Config, Loss};
use crate::failure::Failure;
use crate::run_dir::RunDir;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use tbps_model::config::{ClipConfig, TextConfig, VisionConfig};

/// Room for everything but tensors: headers, ranks, logs.
const OTHER_BYTES: u64 = 16 << 20;
/// Adam's two moments, which `last` keeps beside the weights.
const MOMENTS: u64 = 2;

/// Refuses a run whose directory cannot be written or whose checkpoints would not fit.
///
/// # Errors
/// A usage failure when the directory cannot be written; how much is needed and where, when that is
/// more than what is free.
pub(crate) fn require_room(run: &RunDir, config: &Config, num_ids: usize) -> Result<()> {
    let place = existing_ancestor(run.root());
    let shown = place.display();
    probe(place).map_err(|e| {
        Failure::usage(format!("cannot write into {shown}: {e}; choose another --out"))
    })?;
    // A resumed run has a part of what it needs already.
    let classifier = match config.objective.has(Loss::Id) {
        true => (config.model.embed_dim + 1) * num_ids,
        false => 0,
    };
    let needed = needed_bytes(&config.model, classifier as u64, config.ema.enabled);
    let missing = needed.saturating_sub(held_bytes(&run.checkpoints()));
    let free = fs4::available_space(place)
        .with_context(|| format!("cannot tell the free space of {shown}"))?;
    require(run.root(), missing, free)
}

/// The part of `path` that is there, nearest to it first.
fn existing_ancestor(path: &Path) -> &Path {
    let place = path.ancestors().find(|place| place.exists());
    place.unwrap_or(Path::new(".")) // the last ancestor of a relative path is empty
}

/// Whether files can be created in `folder`: permissions alone do not tell.
fn probe(folder: &Path) -> std::io::Result<()> {
    let file = folder.join(format!(".tbps-probe-{}", std::process::id()));
    fs::write(&file, [])?;
    fs::remove_file(&file)
}

/// The rule of [`require_room`]: `missing` bytes are needed under `root`, `free` are there.
fn require(root: &Path, missing: u64, free: u64) -> Result<()> {
    if missing > free {
        bail!(
            "the checkpoints in {} need {} of disk space, but only {} are free there: free some, \
             or choose an --out on another disk",
            root.display(),
            in_units(missing),
            in_units(free)
        );
    }
    Ok(())
}

/// Bytes of a run's files at the moment when they are the most; `classifier` numbers are trained
/// beside the model, and are in `last` only.
fn needed_bytes(model: &ClipConfig, classifier: u64, ema: bool) -> u64 {
    let bytes = |numbers| numbers * size_of::<f32>() as u64;
    let copy = bytes(num_parameters(model));
    let average = u64::from(ema);
    let last = (1 + MOMENTS + average) * (copy + bytes(classifier));
    let best = (1 + average) * copy;
    3 * last + 2 * best + OTHER_BYTES
}

/// Numbers in the model, from its sizes alone; [`Config`] bounds them, so that nothing overflows.
fn num_parameters(model: &ClipConfig) -> u64 {
    let VisionConfig { patch_size, width, layers, .. } = model.vision;
    let patch = 3 * patch_size * patch_size * width;
    let positions = (1 + model.vision.num_positions()) * width; // and the class token
    let norm_before = 2 * width;
    let vision = patch + positions + norm_before + tower(width, layers, model.embed_dim);
    let TextConfig { vocab_size, context_length, width, layers, .. } = model.text;
    let text = (vocab_size + context_length) * width + tower(width, layers, model.embed_dim);
    let logit_scale = 1;
    (vision + text + logit_scale) as u64
}

/// Blocks, the norm after them, and the projection.
fn tower(width: usize, layers: usize, embed_dim: usize) -> usize {
    // Two norms; queries, keys, values and their way back; the MLP's two maps. Each with a bias.
    let block = 4 * width + (4 * width * width + 4 * width) + (8 * width * width + 5 * width);
    layers * block + 2 * width + width * embed_dim
}

/// Bytes of all files below `folder`; what cannot be read counts as nothing.
fn held_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(of) if of.is_dir() => held_bytes(&entry.path()),
        Ok(of) => of.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

/// `1.5 GiB`, or in MiB below one GiB.
fn in_units(bytes: u64) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 1024.0 { format!("{mib:.1} MiB") } else { format!("{:.1} GiB", mib / 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::module::Module;
    use burn::tensor::Device;

    #[test]
    fn parameters_are_counted_as_the_model_has_them() {
        let mut config = ClipConfig::tiny();
        config.vision.layers = 3;
        config.text.width = 24;
        let model = config.init(0, &Device::flex()).unwrap();
        assert_eq!(num_parameters(&config), model.num_params() as u64);
    }

    #[test]
    fn the_most_files_are_three_last_and_two_best() {
        let config = ClipConfig::tiny();
        let copy = 4 * num_parameters(&config);
        let needed = |classifier, ema| needed_bytes(&config, classifier, ema) - OTHER_BYTES;
        assert_eq!(needed(0, false), (3 * 3 + 2) * copy);
        assert_eq!(needed(0, true), (3 * 4 + 2 * 2) * copy);
        assert_eq!(needed(100, true) - needed(0, true), 3 * 4 * 400);
    }

    #[test]
    fn one_byte_too_few_is_refused_with_both_figures() {
        let run = Path::new("runs/fp32.s0");
        assert!(require(run, 3 << 20, 3 << 20).is_ok());
        assert_eq!(
            require(run, 3 << 30, (3 << 20) - 1).unwrap_err().to_string(),
            "the checkpoints in runs/fp32.s0 need 3.0 GiB of disk space, but only 3.0 MiB are free \
             there: free some, or choose an --out on another disk"
        );
    }

    #[test]
    fn the_nearest_place_that_exists_is_found() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for (path, expected) in [("", ""), ("a/b", ""), ("file/a", "file")] {
            let (path, expected) = (folder.path().join(path), folder.path().join(expected));
            assert_eq!(existing_ancestor(&path).join(""), expected.join(""));
        }
        assert_eq!(existing_ancestor(Path::new("no such folder/a")), Path::new("."));
    }

    #[test]
    fn what_a_run_holds_already_is_counted_in_depth() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("last")).unwrap();
        fs::write(folder.path().join("last/a"), [0; 5]).unwrap();
        fs::write(folder.path().join("b"), [0; 7]).unwrap();
        assert_eq!(held_bytes(folder.path()), 12);
        assert_eq!(held_bytes(&folder.path().join("absent")), 0);
    }
}
