//! A table in a box of its own that scrolls where the page is narrower.

use super::text::{escape, inline};
use crate::report::load::Status;
use crate::report::table::{Entry, Grid, Kind, Row};

/// The table with its heading and notes.
pub(super) fn render(grid: &Grid) -> String {
    let head: String = (0..grid.header.len()).map(|i| head(grid, i)).collect();
    let rows: Vec<String> = grid.rows.iter().map(|r| row(grid, r)).collect();
    let footnote = grid.footnote.as_ref();
    let footnote =
        footnote.map_or_else(String::new, |f| format!("<p class=\"note\">{}</p>", escape(f)));
    format!(
        "<section>\n<h2>{heading}</h2>\n<p class=\"note\">{note}</p>\n\
         <div class=\"scroll\" role=\"region\" aria-label=\"{heading}\" tabindex=\"0\">\
         <table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{}\n</tbody></table></div>\n\
         {footnote}</section>",
        rows.join("\n"),
        heading = escape(grid.heading),
        note = escape(&grid.note),
    )
}

/// A column's heading, on the side where its fields stand.
fn head(grid: &Grid, column: usize) -> String {
    let kind = grid.rows.first().map(|row| row.entries[column].kind);
    let side = match kind {
        Some(Kind::Name | Kind::Status(_)) => " class=\"left\"",
        _ if grid.header[column].of_paper => " class=\"paper\"",
        _ => "",
    };
    format!("<th scope=\"col\"{side}>{}</th>", inline(&grid.header[column].text))
}

fn row(grid: &Grid, row: &Row) -> String {
    let class = if row.starts_group { " class=\"group\"" } else { "" };
    let fields: String =
        row.entries.iter().zip(&grid.header).map(|(e, head)| entry(e, head.of_paper)).collect();
    format!("<tr{class}>{fields}</tr>")
}

fn entry(entry: &Entry, of_paper: bool) -> String {
    let text = inline(&entry.text);
    let detail = entry.detail.as_ref();
    let detail = detail.map_or_else(String::new, |d| format!("<small>{}</small>", inline(d)));
    let tag =
        entry.tag.map_or_else(String::new, |tag| format!(" <span class=\"tag\">{tag}</span>"));
    let paper = if of_paper { " paper" } else { "" };
    match entry.kind {
        Kind::Name => format!("<th scope=\"row\">{text}{detail}</th>"),
        Kind::Number => format!("<td class=\"number{paper}\">{text}{tag}{detail}</td>"),
        Kind::Absent => format!("<td class=\"absent{paper}\">{text}</td>"),
        Kind::Status(status) => {
            let class = match status {
                Status::Done => "done",
                Status::Unfinished | Status::Missing => "open",
                _ => "not-done",
            };
            format!("<td class=\"status\"><span class=\"{class}\">{text}</span>{detail}</td>")
        }
    }
}
