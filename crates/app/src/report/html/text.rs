//! Text as HTML.

use crate::report::text::{Part, Shown, Text};

/// Text with its numbers bound to their figures.
pub(super) fn inline(text: &Text) -> String {
    text.0.iter().map(part).collect()
}

fn part(part: &Part) -> String {
    match part {
        Part::Plain(text) => escape(text),
        Part::Number(shown) => number(shown, ""),
        Part::Range(shown) => number(shown, " data-part=\"range\""),
    }
}

/// A number: its figure's id, its unrounded value, and its source when it is pointed at.
fn number(shown: &Shown, attribute: &str) -> String {
    let (id, source, text) = (escape(&shown.id), escape(&shown.source), escape(&shown.text));
    let value = shown.value;
    format!(
        "<data value=\"{value}\" data-figure=\"{id}\"{attribute} title=\"{source}\">{text}</data>"
    )
}

/// Text as HTML: what a run's files say is never markup.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
