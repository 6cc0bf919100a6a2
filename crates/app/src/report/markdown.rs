//! report.md: the answer, the tables and the limits as GitHub-flavoured Markdown.

use std::fmt::Write as _;

use super::lang::Words;
use super::model::Report;
use super::provenance::leaf;
use super::table::{self, Entry, Grid, Kind};
use super::text::Text;

/// The report as Markdown; `json_sha256` is report.json's, which it was written with.
pub(crate) fn render(report: &Report, json_sha256: &str) -> String {
    let words = report.lang.words();
    let mut blocks =
        vec![format!("# {}", words.title), format!("{}: `{}`", words.matrix, report.matrix)];
    blocks.extend(report.notices.iter().map(|notice| format!("> {}", escape(&notice.plain()))));
    blocks.extend([
        format!("**{}**", escape(&report.answer.sentence.plain())),
        grid(&table::overview(report, words)),
        grid(&table::paper(report, words)),
        words.plots_elsewhere.to_owned(),
        grid(&table::effects(report, words)),
    ]);
    blocks.extend(table::details(report, words).iter().map(grid));
    blocks.push(format!("## {}", words.limits_heading));
    blocks.push(list(report.limits.sentences.iter().map(|sentence| escape(&sentence.plain()))));
    blocks.push(format!("## {}", words.formulas_heading));
    blocks.push(list(words.formulas.iter().map(|(name, text)| format!("`{name}`: {text}"))));
    blocks.push(provenance(report, words));
    blocks.push(format!("<!-- report.json: sha256 {json_sha256} -->"));
    blocks.join("\n\n") + "\n"
}

fn grid(grid: &Grid) -> String {
    let mut lines = vec![row(grid.header.iter().map(|head| escape(&head.text.plain())))];
    let rule = |i: usize| if i == 0 { ":---" } else { "---:" };
    lines.push(row((0..grid.header.len()).map(|i| rule(i).to_owned())));
    lines.extend(grid.rows.iter().map(|r| row(r.entries.iter().map(entry))));
    let mut text = format!("## {}\n\n{}\n\n{}", grid.heading, grid.note, lines.join("\n"));
    if let Some(footnote) = &grid.footnote {
        text += &format!("\n\n{footnote}");
    }
    text
}

fn entry(entry: &Entry) -> String {
    let text = escape(&entry.text.plain());
    let text = match (entry.kind, entry.tag) {
        (Kind::Name, _) => format!("**{text}**"),
        (_, Some(tag)) => format!("{text} {tag}"),
        _ => text,
    };
    match entry.detail.as_ref().map(Text::plain) {
        Some(interval) if interval.starts_with('[') => format!("{text} {interval}"),
        Some(detail) => format!("{text} ({})", escape(&detail)),
        None => text,
    }
}

fn provenance(report: &Report, words: &Words) -> String {
    let mut text = format!(
        "<details>\n<summary>{}</summary>\n\n{}\n\n",
        words.provenance_heading, words.provenance_note
    );
    let mut rows =
        vec![[words.provenance_key.to_owned(), String::new(), words.provenance_value.to_owned()]];
    rows.push(["---"; 3].map(str::to_owned));
    for (key, value) in &report.provenance.shared {
        rows.push([escape(key), words.all_runs.to_owned(), escape(&leaf(value))]);
    }
    for (key, values) in &report.provenance.differing {
        for (run, value) in values {
            rows.push([escape(key), escape(run), escape(&leaf(value))]);
        }
    }
    for run in &report.provenance.without_record {
        rows.push([words.without_record.to_owned(), escape(run), String::new()]);
    }
    for fields in rows {
        let _ = writeln!(text, "{}", row(fields)); // writing to a String cannot fail
    }
    text + "\n</details>"
}

fn row(fields: impl IntoIterator<Item = String>) -> String {
    format!("| {} |", fields.into_iter().collect::<Vec<_>>().join(" | "))
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
}

/// Keeps text from being read as table or HTML syntax.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ")
}
