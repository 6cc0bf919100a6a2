//! report.json: the report itself. Every number of the other files stands here with its source.

use anyhow::Result;

use super::model::Report;

/// The report as indented JSON.
pub(crate) fn render(report: &Report) -> Result<String> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}
