//! report.json: the report itself. Every number of the other files stands here with its source;
//! docs/REPORT.md has the layout.

use anyhow::Result;
use serde::Serialize;

use super::model::Report;
use super::plot::{Axes, Plot};

/// The report, and the scales of the plots that are drawn from it.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a Report,
    plots: Vec<PlotRecord<'a>>,
}

#[derive(Serialize)]
struct PlotRecord<'a> {
    title: &'a str,
    #[serde(flatten)]
    axes: Axes,
}

/// The report as indented JSON.
pub(crate) fn render(report: &Report, plots: &[Plot]) -> Result<String> {
    let record = |plot: &'_ Plot| PlotRecord { title: plot.title, axes: plot.axes() };
    let document = Document { report, plots: plots.iter().map(record).collect() };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
