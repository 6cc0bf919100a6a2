//! A plot with its heading and legend.

use super::text::escape;
use crate::report::lang::Words;
use crate::report::plot::{LegendEntry, Mark, Plot};

/// The plot in both of its widths: the style sheet shows the one that fits.
pub(super) fn figure(plot: &Plot, words: &Words) -> String {
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
        plot.title,
        escape(&plot.note)
    )
}

fn legend_entry(entry: &LegendEntry) -> String {
    let color = entry.color;
    let mark = match entry.mark {
        Mark::Box => format!("<rect width=\"12\" height=\"12\" rx=\"2\" fill=\"{color}\"/>"),
        line => {
            let dashes = if line == Mark::DashedLine { " stroke-dasharray=\"7 4\"" } else { "" };
            format!("<path d=\"M0 6H28\" stroke=\"{color}\" stroke-width=\"2.5\"{dashes}/>")
        }
    };
    let width = if entry.mark == Mark::Box { 12 } else { 28 };
    let size = format!("viewBox=\"0 0 {width} 12\" style=\"width:{width}px\"");
    let svg = format!("<svg {size} aria-hidden=\"true\">{mark}</svg>");
    format!("<li>{svg}{}</li>", escape(&entry.label))
}
