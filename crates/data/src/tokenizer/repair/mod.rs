//! Repair of broken text, equal to what `ftfy.fix_text` of ftfy 6.3.1 does by default.
//!
//! CLIP was trained on repaired captions: wrongly decoded UTF-8 is decoded again ([`mojibake`]),
//! quotes become straight, ligatures and full-width letters plain, control characters go, and
//! accents join their letters (NFC).

mod charmap;
mod mojibake;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use super::html::unescape_strict;

/// A text that changes longer than this was made to; ftfy would go on.
const MAX_PASSES: usize = 1_000;

/// Repairs a text, line by line.
pub(super) fn repair(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_sound) {
        return Cow::Borrowed(text);
    }
    // From the first line with a `<` on, `&amp;` is what it says: that is HTML, not text.
    let mut is_html = false;
    let lines = text.split_inclusive('\n').map(|line| {
        is_html |= line.contains('<');
        repair_line(line, !is_html)
    });
    Cow::Owned(lines.collect())
}

/// Bytes that a text without damage may have, and no other.
fn is_sound(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\x0C') && byte != b'&'
}

/// Repairs until nothing changes: one repair may uncover the next.
fn repair_line(line: &str, unescape: bool) -> String {
    let mut line = line.to_owned();
    for _ in 0..MAX_PASSES {
        let text = if unescape { unescape_strict(&line) } else { Cow::Borrowed(&*line) };
        let text = repair_characters(&mojibake::decode_again(&text));
        let text = ANSI_ESCAPE.replace_all(&text, "");
        let text: String = text.chars().filter(|&c| !is_control(c)).nfc().collect();
        if text == line {
            break;
        }
        line = text;
    }
    line
}

/// What a terminal takes for a colour or a movement.
static ANSI_ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\x1b\[[\d;]*[a-zA-Z]").expect("the pattern is a constant that the tests compile")
});

/// The repairs of single characters, one kind after the other.
fn repair_characters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in mojibake::c1_to_windows(text).chars() {
        match split_ligature(c) {
            Some(letters) => letters.chars().for_each(|c| push_plain(&mut out, c)),
            None => push_plain(&mut out, c),
        }
    }
    let line_break = |c| matches!(c, '\r' | '\u{2028}' | '\u{2029}' | '\u{85}');
    out.replace("\r\n", "\n").replace(line_break, "\n")
}

/// Appends a character in its usual width and with straight quotes.
fn push_plain(out: &mut String, c: char) {
    let straight = |c| match c {
        '\u{2bc}' | '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        _ => c,
    };
    match c {
        '\u{3000}' => out.push(' '),
        '\u{ff01}'..='\u{ffef}' => out.extend(std::iter::once(c).nfkc().map(straight)),
        _ => out.push(straight(c)),
    }
}

/// The letters of a ligature, or of a character that is two letters for the sake of old encodings.
fn split_ligature(c: char) -> Option<&'static str> {
    Some(match c {
        'Ĳ' => "IJ",
        'ĳ' => "ij",
        'ŉ' => "ʼn",
        'Ǆ' => "DŽ",
        'ǅ' => "Dž",
        'ǆ' => "dž",
        'Ǉ' => "LJ",
        'ǈ' => "Lj",
        'ǉ' => "lj",
        'Ǌ' => "NJ",
        'ǋ' => "Nj",
        'ǌ' => "nj",
        'Ǳ' => "DZ",
        'ǲ' => "Dz",
        'ǳ' => "dz",
        'ﬀ' => "ff",
        'ﬁ' => "fi",
        'ﬂ' => "fl",
        'ﬃ' => "ffi",
        'ﬄ' => "ffl",
        'ﬅ' => "ſt",
        'ﬆ' => "st",
        _ => return None,
    })
}

/// Characters that show nothing and should not be in a text. Those that shape it (joiners,
/// direction marks, tags) stay.
fn is_control(c: char) -> bool {
    matches!(c,
        '\0'..='\x08' | '\x0B' | '\x0E'..='\x1F' | '\x7F'
        | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffc}')
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values were made with ftfy 6.3.1's fix_text.
    #[test]
    fn every_kind_of_damage_is_mended() {
        let check = |text: &str, expected| assert_eq!(repair(text), expected, "{text:?}");
        check("a man & a dog", "a man & a dog");
        check("cafÃ©", "café");
        check("\x1b[36;44mred\x1b[0m", "red");
        check("ﬂuﬃeﬆ ǲ ŉ", "fluffiest Dz 'n");
        check("ＲＥＤ　ﾊﾞ￣", "RED バ \u{304}");
        check("it‘s “red”", "it's \"red\"");
        check("a\r\nb\rc\u{2028}d", "a\nb\nc\nd");
        check("r\0e\x07d\u{feff}", "red");
        check("cafe\u{301}", "café");
    }
}
