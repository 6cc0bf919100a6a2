//! Cleaning of captions before they are cut into words, as CLIP was trained with.

use super::html::unescape;
use super::repair::repair;

/// Mends broken encodings, resolves HTML entities twice, makes all white space single spaces, and
/// turns letters to lower case.
#[must_use]
pub fn clean(text: &str) -> String {
    let repaired = repair(text);
    let once = unescape(&repaired);
    let text = unescape(&once);
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    match out.is_ascii() {
        true => out.make_ascii_lowercase(),
        false => out = out.to_lowercase(),
    }
    out
}

/// White space in Python's sense, which has four control characters more than Unicode's.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleans_as_clip_does() {
        let check = |text: &str, expected| assert_eq!(clean(text), expected, "{text:?}");
        check("  A  MAN \n\t in\u{a0}black ", "a man in black");
        check("a &amp;amp; b", "a & b");
        check("It\u{2019}s \u{201c}RED\u{201d}", "it's \"red\"");
        check("caf\u{c3}\u{a9}", "café");
        check("it&rsquo;s", "it's");
        check("<i>it&rsquo;s</i>", "<i>it\u{2019}s</i>");
        check("it&rsquo;s\n<i>it&rsquo;s</i>", "it's <i>it\u{2019}s</i>");
        check("<\x0C&", "< &");
        check("", "");
        check(" \n ", "");
    }
}
