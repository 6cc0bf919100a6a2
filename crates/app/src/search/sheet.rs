//! Contact sheets: pictures under headings, in one file without scripts or links.

use crate::report::escape;
use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;
use std::path::PathBuf;
use tbps_data::image::{decode, thumbnail};

const STYLE: &str = include_str!("sheet.css");
/// Longest side of a picture in the page, in pixels: sharp at the size that it is shown in.
const MAX_SIDE: usize = 256;

/// Pictures that belong together.
pub(crate) struct Section {
    pub(crate) title: String,
    /// A line below the title; may be empty.
    pub(crate) note: String,
    pub(crate) pictures: Vec<Picture>,
}

/// An image file and what stands below it.
pub(crate) struct Picture {
    pub(crate) file: PathBuf,
    pub(crate) label: String,
    pub(crate) detail: String,
    /// Whether it shows whom it should, where that is known.
    pub(crate) right: Option<bool>,
}

/// The page.
///
/// # Errors
/// When an image can no longer be read.
pub(crate) fn render(title: &str, intro: &str, sections: &[Section]) -> Result<String> {
    let mut body = String::new();
    for section in sections {
        let _ = write!(body, "<section>\n<h2>{}</h2>\n", escape(&section.title));
        if !section.note.is_empty() {
            let _ = writeln!(body, "<p>{}</p>", escape(&section.note));
        }
        body.push_str("<div class=\"grid\">\n");
        for picture in &section.pictures {
            body.push_str(&figure(picture)?);
        }
        body.push_str("</div>\n</section>\n");
    }
    let title = escape(title);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p>{}</p>\n{body}</main>\n</body>\n</html>\n",
        escape(intro)
    ))
}

fn figure(picture: &Picture) -> Result<String> {
    let jpeg = STANDARD.encode(thumbnail(&decode(&picture.file)?, MAX_SIDE));
    let (label, detail) = (escape(&picture.label), escape(&picture.detail));
    let (class, mark) = match picture.right {
        Some(true) => (" class=\"right\"", "right person, "),
        Some(false) => (" class=\"wrong\"", "another person, "),
        None => ("", ""),
    };
    Ok(format!(
        "<figure{class}><img src=\"data:image/jpeg;base64,{jpeg}\" alt=\"{detail}\">\
         <figcaption><b>{mark}{label}</b><span>{detail}</span></figcaption></figure>\n"
    ))
}
