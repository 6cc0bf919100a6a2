//! The matrix's data: generated once, checked once, before any cell is started.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::stop::Stop;
use super::{child, command};

/// The annotation file of generated data. Generation renames the finished folder into place, so
/// where this file is, everything is.
const ANNOTATION: &str = "reid_raw.json";

/// How deep [`num_files`] looks. Data sets nest their pictures two or three deep; the bound keeps a
/// link that points upwards from being followed for ever.
const MAX_DEPTH: usize = 8;

/// What is known of a data set that passed its check, cheap enough to compare on every call: the
/// check itself decodes every picture.
#[derive(Serialize, Deserialize, PartialEq, Eq, Debug)]
struct Checked {
    data: String,
    annotations: Vec<Annotation>,
    num_files: u64,
}

/// One JSON file at the top of the data set.
#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Annotation {
    name: String,
    num_bytes: u64,
    modified_ms: u128,
}

/// Whether the data set is still to be generated.
pub(crate) fn is_missing(plan: &Plan) -> bool {
    plan.generate_data && !plan.data.join(ANNOTATION).is_file()
}

/// Generates the data set if it is ours to generate, and checks it unless it passed before and
/// looks the same.
///
/// # Errors
/// When generation or check fail, and with `Halt::Interrupted` when they are stopped.
pub(crate) fn prepare(plan: &Plan, tbps: &Path, stop: &Stop) -> Result<()> {
    if is_missing(plan) {
        eprintln!("generating {}", plan.data.display());
        let status = child::run_whole(command::synth(tbps, plan).process(&plan.root), stop)?;
        if !status.success() {
            bail!("the {} data cannot be generated: {}", plan.preset, child::describe(status));
        }
    }
    let facts = facts(&plan.data)?;
    if is_checked(plan, &facts) {
        return Ok(());
    }
    eprintln!("checking {}: {} files", plan.data.display(), facts.num_files);
    let status = child::run_whole(command::check(tbps, plan).process(&plan.root), stop)?;
    if !status.success() {
        bail!("{} did not pass its check; the faults are listed above", plan.data.display());
    }
    let path = cache(plan);
    fs::write(&path, serde_json::to_string_pretty(&facts)? + "\n")
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Whether the check of the same files is on record in the matrix directory.
pub(crate) fn needs_check(plan: &Plan) -> bool {
    facts(&plan.data).map_or(true, |facts| !is_checked(plan, &facts))
}

fn is_checked(plan: &Plan, facts: &Checked) -> bool {
    let text = fs::read_to_string(cache(plan)).unwrap_or_default();
    serde_json::from_str(&text).is_ok_and(|known: Checked| known == *facts)
}

fn cache(plan: &Plan) -> PathBuf {
    plan.out.join("data-checked.json")
}

fn facts(data: &Path) -> Result<Checked> {
    let unreadable = || format!("{} cannot be read", data.display());
    let mut annotations = Vec::new();
    for entry in fs::read_dir(data).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            annotations.push(annotation(&path).with_context(unreadable)?);
        }
    }
    annotations.sort();
    let num_files = num_files(data, MAX_DEPTH).with_context(unreadable)?;
    Ok(Checked { data: data.to_string_lossy().into_owned(), annotations, num_files })
}

fn annotation(path: &Path) -> std::io::Result<Annotation> {
    let metadata = fs::metadata(path)?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Annotation { name, num_bytes: metadata.len(), modified_ms: modified.as_millis() })
}

/// Files below a folder; links to folders are followed, since `imgs` often is one.
fn num_files(dir: &Path, depth: usize) -> std::io::Result<u64> {
    let mut num = 0;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        num += match path.is_dir() {
            true if depth > 0 => num_files(&path, depth - 1)?,
            true => 0,
            false => 1,
        };
    }
    Ok(num)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_change_with_the_annotation_and_with_the_pictures() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir_all(data.path().join("imgs/a")).unwrap();
        fs::write(data.path().join(ANNOTATION), "[]").unwrap();
        fs::write(data.path().join("imgs/a/1.png"), "").unwrap();
        let before = facts(data.path()).unwrap();
        assert_eq!(before.num_files, 2);
        assert_eq!(before.annotations[0].name, ANNOTATION);
        assert_eq!(before, facts(data.path()).unwrap());

        fs::write(data.path().join("imgs/a/2.png"), "").unwrap();
        assert_ne!(before, facts(data.path()).unwrap());
        fs::remove_file(data.path().join("imgs/a/2.png")).unwrap();
        fs::write(data.path().join(ANNOTATION), "[{}]").unwrap();
        assert_ne!(before, facts(data.path()).unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_points_upwards_is_not_followed_for_ever() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join("1.png"), "").unwrap();
        std::os::unix::fs::symlink(data.path(), data.path().join("loop")).unwrap();
        assert_eq!(num_files(data.path(), MAX_DEPTH).unwrap(), MAX_DEPTH as u64 + 1);
    }
}
