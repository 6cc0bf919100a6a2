//! `tbps report`: reads the runs of a matrix and writes report.json, report.md, report.html and
//! report.csv beside them.
//!
//! [`load`] reads the files, [`model`] computes every number once with its source, and the four
//! writers render that one [`Report`]: they compute nothing.

mod answer;
mod cell;
mod compare;
mod csv;
mod figure;
mod html;
mod json;
mod lang;
mod limits;
mod load;
mod markdown;
mod model;
mod plot;
mod provenance;
mod quantity;
mod table;
mod target;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

pub(crate) use html::escape;
pub(crate) use lang::Lang;
pub(crate) use model::Report;

/// Reports on the matrix in `runs_dir`, which holds `<cell>.s<seed>` directories, and writes the
/// four files into it.
///
/// # Errors
/// When `runs_dir` holds no run, or a file cannot be written. A run that failed, is unfinished or
/// unreadable is no error: the report shows it as what it is.
pub(crate) fn write(runs_dir: &Path, lang: Lang) -> Result<Report> {
    let matrix = load::read_matrix(runs_dir)?;
    let report = Report::build(&matrix, lang);
    let files = [
        ("report.json", json::render(&report)?),
        ("report.md", markdown::render(&report)),
        ("report.csv", csv::render(&report)),
        ("report.html", html::render(&report)?),
    ];
    for (name, text) in files {
        let path = runs_dir.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(report)
}
