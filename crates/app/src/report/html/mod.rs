//! report.html: one file without scripts, fonts or links to anything outside of itself; its pictures
//! are part of it. Every number is a `data` element with the id of its figure in report.json, and
//! says where it comes from when it is pointed at.

mod examples;
mod grid;
mod plots;
mod text;

use std::fmt::Write as _;

use super::answer::Highlight;
use super::lang::Words;
use super::model::Report;
use super::plot::Plot;
use super::provenance::leaf;
use super::quantity::unit_of;
use super::table;
use super::text::Text;
pub(crate) use text::escape;
use text::inline;

const STYLE: &str = include_str!("style.css");

/// The report as a self-contained page; `json_sha256` is report.json's, which it was written with.
pub(crate) fn render(report: &Report, plots: &[Plot], json_sha256: &str) -> String {
    let words = report.lang.words();
    let mut main = vec![
        header(report, words),
        grid::render(&table::overview(report, words)),
        grid::render(&table::paper(report, words)),
        format!("<section><h2>{}</h2>", words.plots_heading),
    ];
    main.extend(plots.iter().map(|plot| plots::figure(plot, words)));
    main.push("</section>".to_owned());
    main.push(grid::render(&table::effects(report, words)));
    main.extend(table::details(report, words).iter().map(grid::render));
    main.push(examples::section(report, words));
    main.push(limits(report, words));
    main.push(formulas(words));
    main.push(provenance(report, words));
    let (lang, title, body) = (report.lang.tag(), words.title, main.join("\n"));
    format!(
        "<!doctype html>\n<html lang=\"{lang}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"report-json-sha256\" content=\"{json_sha256}\">\n\
         <title>{title} · {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         {body}\n</main>\n</body>\n</html>\n",
        escape(&report.matrix)
    )
}

fn header(report: &Report, words: &Words) -> String {
    let mut highlights: String =
        report.answer.highlights.iter().map(|h| highlight(h, report, words)).collect();
    if !highlights.is_empty() {
        highlights = format!("\n<dl class=\"highlights\">{highlights}</dl>");
    }
    let notices: String = report
        .notices
        .iter()
        .map(|notice| format!("<p class=\"notice\" role=\"note\">{}</p>\n", inline(notice)))
        .collect();
    format!(
        "<header>\n<p class=\"matrix\">{} <b>{}</b></p>\n<h1>{}</h1>\n{notices}\
         <p class=\"answer\">{}</p>{highlights}\n</header>",
        words.matrix,
        escape(&report.matrix),
        words.title,
        inline(&report.answer.sentence)
    )
}

fn highlight(highlight: &Highlight, report: &Report, words: &Words) -> String {
    let title = match highlight.key {
        "val_r1" => words.most_accurate,
        "train_s_to_best" => words.fastest,
        _ => words.smallest,
    };
    let Some(number) = Text::number(&highlight.figure) else {
        return String::new();
    };
    let unit = table::unit_symbol(words, report.notation, unit_of(highlight.key));
    let (number, label) = (inline(&number), &highlight.label);
    format!("<div><dt>{title}</dt><dd><b>{number} {unit}</b> {label}</dd></div>")
}

fn limits(report: &Report, words: &Words) -> String {
    let sentences = report.limits.sentences.iter();
    let items: String = sentences.map(|s| format!("<li>{}</li>\n", inline(s))).collect();
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
        "<section>\n<details>\n<summary>{}</summary>\n<dl class=\"formulas\">\n{items}</dl>\n\
         </details>\n</section>",
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
