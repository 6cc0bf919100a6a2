//! HTML references to characters, with the leniency of Python's `html.unescape`.
//!
//! HTML 5 lets 106 old names do without their semicolon, even in front of more letters, and gives
//! some numbers a meaning of their own; CLIP's tokenizer relies on that. The names with a semicolon
//! come from the `html-escape` crate.

use std::borrow::Cow;
use std::sync::LazyLock;

use html_escape::NAMED_ENTITIES;
use regex::{Captures, Regex};

/// Names that need no semicolon (HTML 5, "Named character references").
const LEGACY: &str = "\
    AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc Egrave Euml GT \
    Iacute Icirc Igrave Iuml LT Ntilde Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN \
    Uacute Ucirc Ugrave Uuml Yacute aacute acirc acute aelig agrave amp aring atilde auml brvbar \
    ccedil cedil cent copy curren deg divide eacute ecirc egrave eth euml frac12 frac14 frac34 \
    gt iacute icirc iexcl igrave iquest iuml laquo lt macr micro middot nbsp not ntilde oacute \
    ocirc ograve ordf ordm oslash otilde ouml para plusmn pound quot raquo reg sect shy sup1 \
    sup2 sup3 szlig thorn times uacute ucirc ugrave uml uuml yacute yen yuml";

/// Longest name that is looked at, in characters, its semicolon not counted.
const MAX_NAME: usize = 32;

/// What the bytes 0x80 to 0x9F mean in Windows-1252; 0 where it has no character.
const WINDOWS_1252: [u32; 32] = [
    0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
    0x0152, 0, 0x017D, 0, 0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC,
    0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
];

/// Replaces every reference once: `&amp;lt;` becomes `&lt;`.
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match numeric(part).or_else(|| named(part)) {
            Some((value, rest)) => {
                out.push_str(&value);
                out.push_str(rest);
            }
            None => {
                out.push('&');
                out.push_str(part);
            }
        }
    }
    Cow::Owned(out)
}

/// Replaces references as ftfy does: only whole ones, with their semicolon, and also names in
/// capitals that mean nothing else, such as `&EACUTE;`.
pub(super) fn unescape_strict(text: &str) -> Cow<'_, str> {
    static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("&#?[0-9A-Za-z]{1,24};").expect("the pattern is a constant that tests compile")
    });
    REFERENCE.replace_all(text, |found: &Captures<'_>| {
        let whole = &found[0];
        let name = &whole[1..whole.len() - 1];
        if let Some(value) = lookup(name) {
            return value.to_owned();
        }
        let value = unescape(whole);
        match name.starts_with('#') {
            // A semicolon that is left was not part of the number.
            true if !value.contains(';') => value.into_owned(),
            false if value == whole => in_capitals(name).unwrap_or_else(|| whole.to_owned()),
            _ => whole.to_owned(),
        }
    })
}

/// The value of a name in small letters, for the same name in capitals, in capitals.
fn in_capitals(name: &str) -> Option<String> {
    let is_capital = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    Some(lookup(&name.to_ascii_lowercase()).filter(|_| is_capital)?.to_uppercase())
}

/// `#38;` or `#x26;` at the start of the text behind `&`: its value and what follows.
fn numeric(text: &str) -> Option<(Cow<'static, str>, &str)> {
    let text = text.strip_prefix('#')?;
    let (digits, radix) = match text.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    if digits.is_empty() {
        return None;
    }
    // A number that is too large is as good as any other beyond Unicode.
    let number = u32::from_str_radix(digits, radix).unwrap_or(u32::MAX);
    let value = code_point(number).map(String::from).unwrap_or_default();
    Some((Cow::Owned(value), rest.strip_prefix(';').unwrap_or(rest)))
}

/// The character of a number; none for control characters and other non-characters.
fn code_point(number: u32) -> Option<char> {
    match number {
        0x80..=0x9F => match WINDOWS_1252[number as usize - 0x80] {
            0 => char::from_u32(number),
            meant => char::from_u32(meant),
        },
        0x01..=0x08 | 0x0B | 0x0E..=0x1F | 0x7F | 0xFDD0..=0xFDEF => None,
        0x0001..=0x10_FFFF if number & 0xFFFE == 0xFFFE => None,
        0 => Some(char::REPLACEMENT_CHARACTER),
        // Surrogates, and what is beyond Unicode.
        _ => Some(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)),
    }
}

/// `amp;`, or `amp` at the start of a longer word: its value and what follows.
fn named(text: &str) -> Option<(Cow<'static, str>, &str)> {
    let is_end = |c: char| matches!(c, '\t' | '\n' | '\x0C' | ' ' | '<' | '&' | '#' | ';');
    let longest = text.char_indices().nth(MAX_NAME).map_or(text.len(), |(at, _)| at);
    let name_end = text[..longest].find(is_end).unwrap_or(longest);
    let (name, rest) = text.split_at(name_end);
    if let (Some(rest), Some(value)) = (rest.strip_prefix(';'), lookup(name)) {
        return Some((value.into(), rest));
    }
    let prefix = (2..=name.len())
        .rev()
        .filter_map(|len| name.get(..len))
        .find(|prefix| LEGACY.split(' ').any(|legacy| legacy == *prefix))?;
    Some((lookup(prefix)?.into(), &text[prefix.len()..]))
}

/// The characters of a name without its semicolon.
fn lookup(name: &str) -> Option<&'static str> {
    let index = NAMED_ENTITIES.binary_search_by(|(other, _)| (*other).cmp(name.as_bytes())).ok()?;
    Some(NAMED_ENTITIES[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values were made with Python 3.11's html.unescape.
    fn check(text: &str, expected: &str) {
        assert_eq!(unescape(text), expected, "{text}");
    }

    #[test]
    fn names() {
        check("a &amp; b &lt;c&gt;", "a & b <c>");
        check("&amp;lt;", "&lt;");
        check("caf&eacute;", "café");
        check("&NotEqualTilde;", "≂̸");
        check("&CounterClockwiseContourIntegral;", "∳");
        check("&nosuchname; &; & &", "&nosuchname; &; & &");
    }

    #[test]
    fn old_names_need_no_semicolon() {
        check("AT&ampT", "AT&T");
        check("&notit; &notin; &notin", "¬it; ∉ ¬in");
        check("&copy2024", "©2024");
        check("&eacutes &eacute", "és é");
        check("&alpha", "&alpha");
        check("&g", "&g");
    }

    #[test]
    fn numbers() {
        check("&#38;&#x26;&#X26;&#38", "&&&&");
        check("&#39s", "'s");
        check("&#;&#x;&#xg;", "&#;&#x;&#xg;");
        check("&#146;&#x80;&#129;", "’€\u{81}");
        check(
            "[&#0;&#xD800;&#x110000;&#99999999999999999999;]",
            "[\u{FFFD}\u{FFFD}\u{FFFD}\u{FFFD}]",
        );
        check("[&#1;&#11;&#127;&#xFDD0;&#xFFFE;&#x1FFFF;]", "[]");
        check("&#9;&#10;&#13;", "\t\n\r");
    }

    // Expected values were made with ftfy 6.3.1's unescape_html.
    #[test]
    fn only_whole_references_are_strict() {
        let check = |text: &str, expected| assert_eq!(unescape_strict(text), expected, "{text}");
        check("a &amp; b &copy; &copy 2", "a & b © &copy 2");
        check("P&EACUTE;REZ &SZLIG; &nTILDE;", "PÉREZ SS &nTILDE;");
        check("&#8217;&#x3b;&#xZZ; &notit;", "’&#x3b;&#xZZ; &notit;");
        check("&amp;amp;", "&amp;");
    }

    #[test]
    fn the_tables_are_complete() {
        assert_eq!(NAMED_ENTITIES.len(), 2125);
        assert_eq!(LEGACY.split(' ').count(), 106);
        assert!(LEGACY.split(' ').all(|name| lookup(name).is_some()));
    }
}
