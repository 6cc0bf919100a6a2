//! report.html: one file without scripts, fonts, images or links to anything outside of itself.

use std::fmt::Write as _;

use anyhow::Result;

use super::answer::Highlight;
use super::lang::Words;
use super::load::Status;
use super::model::Report;
use super::plot::{self, LegendEntry, Mark, Plot};
use super::provenance::leaf;
use super::quantity::unit_of;
use super::table::{self, Entry, Grid, Kind, Row};

const STYLE: &str = include_str!("style.css");

/// The report as a self-contained page.
///
/// # Errors
/// When a plot cannot be drawn.
pub(crate) fn render(report: &Report) -> Result<String> {
    let words = report.lang.words();
    let mut main = vec![
        header(report, words),
        grid(&table::cells(report, words)),
        format!("<section><h2>{}</h2>", words.plots_heading),
    ];
    main.extend(plot::all(report, words)?.iter().map(|plot| figure(plot, words)));
    main.push("</section>".to_owned());
    main.push(grid(&table::effects(report, words)));
    main.extend(table::details(report, words).iter().map(grid));
    main.push(limits(report, words));
    main.push(formulas(words));
    main.push(provenance(report, words));
    let (lang, title, body) = (report.lang.tag(), words.title, main.join("\n"));
    Ok(format!(
        "<!doctype html>\n<html lang=\"{lang}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} · {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         {body}\n</main>\n</body>\n</html>\n",
        escape(&report.matrix)
    ))
}

fn header(report: &Report, words: &Words) -> String {
    let mut highlights: String =
        report.answer.highlights.iter().map(|h| highlight(h, report, words)).collect();
    if !highlights.is_empty() {
        highlights = format!("\n<dl class=\"highlights\">{highlights}</dl>");
    }
    format!(
        "<header>\n<p class=\"matrix\">{} <b>{}</b></p>\n<h1>{}</h1>\n\
         <p class=\"answer\">{}</p>{highlights}\n</header>",
        words.matrix,
        escape(&report.matrix),
        words.title,
        escape(&report.answer.sentence)
    )
}

fn highlight(highlight: &Highlight, report: &Report, words: &Words) -> String {
    let title = match highlight.key {
        "val_r1" => words.most_accurate,
        "train_s_to_best" => words.fastest,
        _ => words.smallest,
    };
    let Some(number) = highlight.figure.known().map(|known| &known.shown) else {
        return String::new();
    };
    let unit = table::unit_symbol(words, report.notation, unit_of(highlight.key));
    let label = &highlight.label;
    format!("<div><dt>{title}</dt><dd><b>{number} {unit}</b> {label}</dd></div>")
}

/// A table in a box of its own that scrolls where the page is narrower.
fn grid(grid: &Grid) -> String {
    let head: String = (0..grid.header.len()).map(|i| head(grid, i)).collect();
    let rows: Vec<String> = grid.rows.iter().map(row).collect();
    let footnote = grid.footnote.as_ref();
    let footnote = footnote.map_or_else(String::new, |f| format!("<p class=\"note\">{f}</p>"));
    format!(
        "<section>\n<h2>{heading}</h2>\n<p class=\"note\">{note}</p>\n\
         <div class=\"scroll\" role=\"region\" aria-label=\"{heading}\" tabindex=\"0\">\
         <table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{}\n</tbody></table></div>\n\
         {footnote}</section>",
        rows.join("\n"),
        heading = grid.heading,
        note = grid.note,
    )
}

/// A column's heading, on the side where its fields stand.
fn head(grid: &Grid, column: usize) -> String {
    let kind = grid.rows.first().map(|row| row.entries[column].kind);
    let side = match kind {
        Some(Kind::Name | Kind::Status(_)) => " class=\"left\"",
        _ => "",
    };
    format!("<th scope=\"col\"{side}>{}</th>", grid.header[column])
}

fn row(row: &Row) -> String {
    let class = if row.starts_group { " class=\"group\"" } else { "" };
    let fields: String = row.entries.iter().map(entry).collect();
    format!("<tr{class}>{fields}</tr>")
}

fn entry(entry: &Entry) -> String {
    let text = escape(&entry.text);
    let detail = entry.detail.as_ref();
    let detail = detail.map_or_else(String::new, |d| format!("<small>{}</small>", escape(d)));
    match entry.kind {
        Kind::Name => format!("<th scope=\"row\">{text}{detail}</th>"),
        Kind::Number => format!("<td class=\"number\">{text}{detail}</td>"),
        Kind::Absent => format!("<td class=\"absent\">{text}</td>"),
        Kind::Status(status) => {
            let class = if status == Status::Done { "done" } else { "not-done" };
            format!("<td class=\"status\"><span class=\"{class}\">{text}</span>{detail}</td>")
        }
    }
}

fn figure(plot: &Plot, words: &Words) -> String {
    let legend: String = plot.legend.iter().map(legend_entry).collect();
    let drawing = match &plot.drawings {
        None => format!("<p class=\"note\">{}</p>", words.no_plot),
        Some(drawings) => format!(
            "<div class=\"card\">{}<div class=\"wide\">{}</div><div class=\"narrow\">{}</div></div>",
            if legend.is_empty() { legend } else { format!("<ul class=\"legend\">{legend}</ul>") },
            drawings.wide,
            drawings.narrow
        ),
    };
    format!(
        "<figure>\n<h3>{}</h3>\n<figcaption class=\"note\">{}</figcaption>\n{drawing}\n</figure>",
        plot.title, plot.note
    )
}

fn legend_entry(entry: &LegendEntry) -> String {
    let color = format!("#{:02x}{:02x}{:02x}", entry.color.0, entry.color.1, entry.color.2);
    let mark = match entry.mark {
        Mark::Box => format!("<rect width=\"12\" height=\"12\" fill=\"{color}\"/>"),
        line => {
            let dashes = if line == Mark::DashedLine { " stroke-dasharray=\"7 4\"" } else { "" };
            format!("<path d=\"M0 6H28\" stroke=\"{color}\" stroke-width=\"2.5\"{dashes}/>")
        }
    };
    let width = if entry.mark == Mark::Box { 12 } else { 28 };
    let size = format!("viewBox=\"0 0 {width} 12\" style=\"width:{width}px\"");
    let svg = format!("<svg {size} aria-hidden=\"true\">{mark}</svg>");
    format!("<li>{svg}{}</li>", entry.label)
}

fn limits(report: &Report, words: &Words) -> String {
    let items: String =
        report.limits.sentences.iter().map(|s| format!("<li>{}</li>\n", escape(s))).collect();
    format!(
        "<section>\n<h2>{}</h2>\n<ul class=\"limits\">\n{items}</ul>\n</section>",
        words.limits_heading
    )
}

fn formulas(words: &Words) -> String {
    let items: String = words
        .formulas
        .iter()
        .map(|(name, text)| format!("<dt><code>{name}</code></dt><dd>{}</dd>\n", escape(text)))
        .collect();
    format!(
        "<section>\n<h2>{}</h2>\n<dl class=\"formulas\">\n{items}</dl>\n</section>",
        words.formulas_heading
    )
}

fn provenance(report: &Report, words: &Words) -> String {
    let mut rows = String::new();
    let mut row = |key: &str, run: &str, value: &str| {
        let (key, run, value) = (escape(key), escape(run), escape(value));
        // Writing to a String cannot fail.
        let _ =
            writeln!(rows, "<tr><th scope=\"row\">{key}</th><td>{run}</td><td>{value}</td></tr>");
    };
    for (key, value) in &report.provenance.shared {
        row(key, words.all_runs, &leaf(value));
    }
    for (key, values) in &report.provenance.differing {
        for (run, value) in values {
            row(key, run, &leaf(value));
        }
    }
    for run in &report.provenance.without_record {
        row(words.without_record, run, "");
    }
    format!(
        "<section>\n<details>\n<summary>{}</summary>\n<p class=\"note\">{}</p>\n\
         <div class=\"scroll\" tabindex=\"0\"><table class=\"provenance\">\n\
         <tbody>\n{rows}</tbody></table></div>\n</details>\n</section>",
        words.provenance_heading, words.provenance_note
    )
}

/// Text as HTML: what a run's files say is never markup.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
