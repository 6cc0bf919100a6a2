//! Cleaning of captions before they are cut into words, as CLIP was trained with.

use plsfix::TextFixerConfig;

use super::html::unescape;

/// Mends broken encodings, resolves HTML entities twice, makes all white space single spaces, and
/// turns letters to lower case.
#[must_use]
pub fn clean(text: &str) -> String {
    let mended = mend(text);
    let once = unescape(&mended);
    let text = unescape(&once);
    let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    words.join(" ").to_lowercase()
}

/// White space in Python's sense, which has four control characters more than Unicode's.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// What ftfy does: undoes wrongly decoded UTF-8, curly quotes, ligatures, full-width letters.
///
/// ftfy also resolves HTML entities, but not from the first line on that has a `<`: that is HTML,
/// not text. `plsfix` has no such exception, so there `&` is hidden from it as a form feed, which
/// it lets pass; form feeds of the text itself are white space like any other.
fn mend(text: &str) -> String {
    let Some(tag) = text.find('<') else { return fix(text) };
    let html_start = text[..tag].rfind('\n').map_or(0, |line_end| line_end + 1);
    let (plain, html) = text.split_at(html_start);
    let hidden = html.replace('\x0C', " ").replace('&', "\x0C");
    fix(plain) + &fix(&hidden).replace('\x0C', "&")
}

fn fix(text: &str) -> String {
    // The segment length is a byte count that may fall inside a character, so there is no limit.
    let config = TextFixerConfig { max_decode_length: i32::MAX, ..TextFixerConfig::default() };
    plsfix::fix_text(text, Some(&config))
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
