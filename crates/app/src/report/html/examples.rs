//! Queries with the pictures that were found for them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::text::{escape, inline};
use crate::report::examples::{Example, Examples, Picture};
use crate::report::lang::Words;
use crate::report::model::Report;
use crate::report::text::{Text, fill};

/// The section; nothing where no run recorded what it found, or nobody asked for examples.
pub(super) fn section(report: &Report, words: &Words) -> String {
    let Examples { run: Some(run), label: Some(label), queries, missing, .. } = &report.examples
    else {
        return String::new();
    };
    let whose = [("cell", label.as_str().into()), ("run", run.as_str().into())];
    let note = escape(&fill(words.examples_note, &whose).plain());
    let body = match missing {
        Some(reason) => {
            let reason = fill(words.examples_missing, &[("reason", reason.as_str().into())]);
            format!("<p class=\"notice\">{}</p>", inline(&reason))
        }
        None => {
            let queries: String = queries.iter().map(|query| example(query, words)).collect();
            let licence = words.examples_licence;
            format!("<div class=\"examples\">{queries}</div>\n<p class=\"note\">{licence}</p>")
        }
    };
    format!(
        "<section>\n<h2>{}</h2>\n<p class=\"note\">{note}</p>\n{body}\n</section>",
        words.examples_heading
    )
}

fn example(example: &Example, words: &Words) -> String {
    let (class, verdict) = match example.right {
        true => ("right", Text::from(words.example_right)),
        false => {
            let rank = Text::number(&example.rank).unwrap_or_default();
            ("wrong", fill(words.example_wrong, &[("rank", rank)]))
        }
    };
    let described = picture(&example.described, "described", words.described_word);
    let found: String = example
        .found
        .iter()
        .map(|image| match image.right {
            true => picture(image, "right", words.found_right),
            false => picture(image, "wrong", words.found_wrong),
        })
        .collect();
    format!(
        "<article class=\"{class}\">\n<p class=\"verdict\">{}</p>\n<blockquote>{}</blockquote>\n\
         <div class=\"strip\">{described}<span class=\"arrow\" aria-hidden=\"true\">→</span>\
         {found}</div>\n</article>\n",
        inline(&verdict),
        escape(&example.caption)
    )
}

/// A picture with a sign of its own, so that colour is not all that tells right from wrong.
fn picture(picture: &Picture, class: &str, meaning: &str) -> String {
    let sign = match class {
        "right" => "<b>✓</b>",
        "wrong" => "<b>✗</b>",
        _ => "",
    };
    let (data, meaning) = (STANDARD.encode(&picture.jpeg), escape(meaning));
    format!(
        "<span class=\"{class}\"><img alt=\"{meaning}\" title=\"{meaning}\" \
         src=\"data:image/jpeg;base64,{data}\">{sign}</span>"
    )
}
