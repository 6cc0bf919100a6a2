//! The end of a matrix: `tbps report`, and its table on the screen.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::plan::Plan;
use super::stop::Stop;
use super::{child, command};

/// Has `tbps` write the report, then prints where it is and its first table as it stands in
/// `report.md`.
///
/// # Errors
/// When the report cannot be written; `tbps` has then said why.
pub(crate) fn write(tbps: &Path, plan: &Plan, stop: &Stop) -> Result<()> {
    let line = command::report(tbps, plan);
    let mut process = line.process(&plan.root);
    process.stdout(Stdio::null()); // the path, which we print below the table
    let status = child::run_whole(process, stop)?;
    if !status.success() {
        bail!("the report cannot be written: {}; try again with: {line}", child::describe(status));
    }
    let path = plan.out.join("report.md");
    let text =
        fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    println!("\n{}\n\nreport: {}", first_table(&text), plan.out.join("report.html").display());
    Ok(())
}

/// The first run of lines that begin with a bar, untouched.
fn first_table(markdown: &str) -> String {
    let is_row = |line: &&str| line.starts_with('|');
    let table = markdown.lines().skip_while(|line| !is_row(line)).take_while(is_row);
    table.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_table_is_kept_as_it_is() {
        let markdown =
            "# Title\n\ntext\n\n| a | b |\n| - | - |\n| 1 | not reached |\n\n| other |\n";
        assert_eq!(first_table(markdown), "| a | b |\n| - | - |\n| 1 | not reached |");
        assert_eq!(first_table("no table"), "");
    }
}
