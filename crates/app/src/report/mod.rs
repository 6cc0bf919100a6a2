//! `tbps report`: reads the runs of a matrix and writes report.json, report.md, report.html and
//! report.csv.
//!
//! [`load`] reads the files, [`agree`] refuses runs that must not be compared, [`model`] computes
//! every number once with its source, and the four writers render that one [`Report`]: they compute
//! nothing.

mod agree;
mod answer;
mod cell;
mod compare;
mod csv;
mod examples;
mod figure;
mod html;
mod json;
mod lang;
mod limits;
mod load;
mod markdown;
mod model;
mod notation;
mod paper;
mod plot;
mod provenance;
mod quantity;
mod run_figures;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod text;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::checkpoint::sha256;

pub(crate) use html::escape;
pub(crate) use lang::Lang;
pub(crate) use model::Report;

/// Reports on the matrix whose `<cell>.s<seed>` directories are in `runs_dirs` (several when its
/// shards were trained apart), and writes the four files into `out`, by default the first of them.
///
/// # Errors
/// When a directory holds no run, runs differ in what they must have in common, or a file cannot be
/// written. A run that failed, is unfinished or unreadable is no error: the report shows it as what
/// it is.
pub(crate) fn write(
    runs_dirs: &[PathBuf],
    out: Option<&Path>,
    lang: Lang,
    num_examples: usize,
) -> Result<Report> {
    let matrix = load::read_matrix(runs_dirs)?;
    agree::require(&matrix)?;
    let report = Report::build(&matrix, lang, num_examples);
    let plots = plot::all(&report, lang.words())?;
    let json = json::render(&report, &plots)?;
    // The page and the text name the report.json that they belong to.
    let json_sha256 = sha256(json.as_bytes());
    let files = [
        ("report.html", html::render(&report, &plots, &json_sha256)),
        ("report.md", markdown::render(&report, &json_sha256)),
        ("report.csv", csv::render(&report)),
        ("report.json", json),
    ];
    let out = out.unwrap_or(&runs_dirs[0]);
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    replace_all(out, &files)?;
    Ok(report)
}

/// Replaces all files or, when one cannot be written, none: each is on the disk under another name
/// before the first takes its place.
fn replace_all(folder: &Path, files: &[(&str, String)]) -> Result<()> {
    let staged = |name: &str| folder.join(format!(".{name}.tmp"));
    let stage = |name: &str, text: &str| {
        let write = |mut file: File| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        let path = staged(name);
        let written = File::create(&path).and_then(write);
        written.with_context(|| format!("cannot write {}", path.display()))
    };
    let rename = |name: &str| {
        let path = folder.join(name);
        fs::rename(staged(name), &path).with_context(|| format!("cannot write {}", path.display()))
    };
    let staged_all = files.iter().try_for_each(|(name, text)| stage(name, text));
    let written = staged_all.and_then(|()| files.iter().try_for_each(|(name, _)| rename(name)));
    if written.is_err() {
        // The error that stopped the work is the one to report.
        files.iter().for_each(|(name, _)| drop(fs::remove_file(staged(name))));
    }
    written
}
