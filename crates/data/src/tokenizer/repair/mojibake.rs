//! UTF-8 that was decoded as something else, and back.
//!
//! Text such as `cafÃ©` holds sequences that nobody writes on purpose. Where a text has one, it is
//! encoded again in each encoding it can have come from, until its bytes are UTF-8. The sequences
//! and the order of the attempts are those of ftfy 6.3.1 (see `assets/README.md`), since a model
//! has seen what they give.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Regex, bytes};

use super::MAX_PASSES;
use super::charmap::{CHARMAPS, MAC_ROMAN_INDEX, WINDOWS_1252_INDEX};

// Kinds of characters that UTF-8 decoded wrongly is made of, to be put into `[]`.
const COMMON: &str = "\u{a0}\u{ad}·´–—―…’";
const C1: &str = r"\x{80}-\x{9f}";
const BAD: &str = "¦¤¨¬¯¸ƒˆˇ˘˛˜†‡‰⌐◊\u{fffd}ªº";
const LAW: &str = "¶§";
const CURRENCY: &str = "¢£¥₧€";
const START: &str = "¡«¿©΄΅‘‚“„•‹\u{f8ff}";
const END: &str = "®»˝”›™";
const NUMERIC: &str = "²³¹±¼½¾×µ÷⁄∂∆∏∑√∞∩∫≈≠≡≤≥№";
const KAOMOJI: &str = "Ò-ÖÙ-Üò-öø-üŐŌŪŲ°";
const UPPER_ACCENTED: &str = "À-ÑØÜÝĂĀĄĆČĎĐĘĚĒĖĞĢİĪĶĹĽŁĻŃŇŅŒŘŚŞŠŢŤŮŰŸŹŻŽҐ";
const LOWER_ACCENTED: &str = "ßà-ñăąāćčďđęěēėğģįīķĺľłļœŕśşšťüźżžґﬁﬂ";
const UPPER_COMMON: &str = "ÞΑ-ΩΆΈΉΊΌΎΏΪΫЁ-Я";
const LOWER_COMMON: &str = "α-ωάέήίΰа-џ";
const BOX: &str = "│┌┐┘├┤┬┼═-╬▀▄█▌▐░▒▓";

/// Neighbours that give wrongly decoded UTF-8 away.
static BADNESS: LazyLock<Regex> = LazyLock::new(|| {
    let accented = format!("{LOWER_ACCENTED}{UPPER_ACCENTED}");
    let symbols = format!("{BOX}{START}{END}{CURRENCY}{NUMERIC}{LAW}");
    // Arabic in Windows-1252 holds many common characters, so two pairs are asked for.
    let arabic = format!("[ØÙ][{COMMON}{CURRENCY}{BAD}{NUMERIC}{START}ŸŠ®°µ»]");
    let patterns = [
        format!("[{C1}]"),
        format!("[{BAD}{accented}{symbols}][{BAD}]"),
        format!("[a-zA-Z][{LOWER_COMMON}{UPPER_COMMON}][{BAD}]"),
        format!("[{BAD}][{accented}{symbols}]"),
        format!("[{LOWER_ACCENTED}{LOWER_COMMON}{BOX}{END}{CURRENCY}{NUMERIC}][{UPPER_ACCENTED}]"),
        format!("[{BOX}{END}{CURRENCY}{NUMERIC}][{LOWER_ACCENTED}]"),
        format!("[{LOWER_ACCENTED}{BOX}{END}][{CURRENCY}]"),
        // White space and word characters as Python has them.
        format!(r"[\s\x1c-\x1f][{UPPER_ACCENTED}][{CURRENCY}]"),
        format!("[{UPPER_ACCENTED}{BOX}][{NUMERIC}{LAW}]"),
        format!("[{accented}{BOX}{CURRENCY}{END}][{START}][{NUMERIC}]"),
        format!("[{accented}{CURRENCY}{NUMERIC}{BOX}{LAW}][{END}][{START}]"),
        format!("[{CURRENCY}{NUMERIC}{BOX}][{START}]"),
        format!("[a-z][{UPPER_ACCENTED}][{START}{CURRENCY}]"),
        format!("[{BOX}][{KAOMOJI}]"),
        format!("[{accented}{CURRENCY}{NUMERIC}{START}{END}{LAW}][{BOX}]"),
        format!("[{BOX}][{END}]"),
        format!(r"[{accented}][{START}{END}][\p{{L}}\p{{N}}_]"),
        "[Œœ][^A-Za-z]".to_owned(),
        format!("[{UPPER_ACCENTED}]°"),
        format!("[ÂÃÎÐ][€œŠš¢£Ÿž\u{a0}\u{ad}®©°·»{START}{END}–—´]"),
        "×[²³]".to_owned(),
        format!("{arabic}{arabic}"),
        "à[²µ¹¼½¾]".to_owned(),
        // Mac OS Roman.
        "√[±∂†≠®™´≤≥¥µø]|≈[°¢]|‚Ä[ìîïòôúùû†°¢π]|‚[âó][àä°ê]".to_owned(),
        // Cyrillic, in Windows-1251.
        "вЂ".to_owned(),
        format!("[ВГРС][{C1}{BAD}{START}{END}{CURRENCY}°µ][ВГРС]"),
        "ГўВЂВ.[A-Za-z ]".to_owned(),
        // No-break space, à and á in Windows-1252.
        format!(r"Ã[\u{{a0}}¡]|[a-z][\s\x1c-\x1f]?[ÃÂ][ ]|^[ÃÂ][ ]|[a-z.,?!{END}]Â[ {START}{END}]"),
        // Greek, in Windows-1253.
        "β€[™\u{a0}Ά\u{ad}®°]".to_owned(),
        format!("[ΒΓΞΟ][{C1}{BAD}{START}{END}{CURRENCY}°][ΒΓΞΟ]"),
        "ā€".to_owned(), // Windows-1257
    ];
    Regex::new(&patterns.join("|")).expect("the pattern is a constant that the tests compile")
});

/// Whether some of the text looks like wrongly decoded UTF-8.
fn is_bad(text: &str) -> bool {
    BADNESS.is_match(text)
}

/// Undoes wrong decoding, layer by layer.
pub(super) fn decode_again(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..MAX_PASSES {
        match decode_once(&text) {
            Some(better) if better != *text => text = Cow::Owned(better),
            _ => break,
        }
    }
    text
}

/// One layer less, or nothing when there is none.
fn decode_once(text: &str) -> Option<String> {
    if text.is_ascii() || !is_bad(text) {
        return None;
    }
    for (index, charmap) in CHARMAPS.iter().enumerate() {
        let Some(mut bytes) = charmap.encode(text) else { continue };
        // In Mac OS Roman that would hit a dash in front of a space.
        if index != MAC_ROMAN_INDEX && SPACED.is_match(&bytes) {
            bytes = restore_no_break_spaces(&bytes);
        }
        if charmap.lossy {
            bytes = LOSSY.replace_all(&bytes, "\u{fffd}".as_bytes()).into_owned();
        }
        if let Some(decoded) = decode_utf8(bytes) {
            return Some(decoded);
        }
    }
    let parts = decode_parts(text);
    if parts != text {
        return Some(parts);
    }
    Some(c1_to_windows(text)).filter(|fixed| fixed != text)
}

/// UTF-8 where a no-break space, byte 0xA0, became a space.
static SPACED: LazyLock<bytes::Regex> = LazyLock::new(|| {
    byte_pattern(&[
        r"[\xc2\xc3\xc5\xce\xd0\xd9] ",
        r"[\xe2\xe3] [\x80-\x84\x86-\x9f\xa1-\xbf]",
        r"[\xe0-\xe3][\x80-\x84\x86-\x9f\xa1-\xbf] ",
        r"\xf0 [\x80-\xbf][\x80-\xbf]",
        r"\xf0[\x80-\xbf] [\x80-\xbf]",
        r"\xf0[\x80-\xbf][\x80-\xbf] ",
    ])
});

/// UTF-8 and CESU-8 where bytes were lost; 0x1A, and sometimes `?`, stands for each.
static LOSSY: LazyLock<bytes::Regex> = LazyLock::new(|| {
    byte_pattern(&[
        r"[\xc2-\xdf]\x1a",
        r"[\xc2-\xc3]\?",
        r"\xed[\xa0-\xaf][\x1a?]\xed[\xb0-\xbf][\x1a?\x80-\xbf]",
        r"\xed[\xa0-\xaf][\x1a?\x80-\xbf]\xed[\xb0-\xbf][\x1a?]",
        r"[\xe0-\xef][\x1a?][\x1a\x80-\xbf]",
        r"[\xe0-\xef][\x1a\x80-\xbf][\x1a?]",
        r"[\xf0-\xf4][\x1a?][\x1a\x80-\xbf][\x1a\x80-\xbf]",
        r"[\xf0-\xf4][\x1a\x80-\xbf][\x1a?][\x1a\x80-\xbf]",
        r"[\xf0-\xf4][\x1a\x80-\xbf][\x1a\x80-\xbf][\x1a?]",
        r"\x1a",
    ])
});

fn byte_pattern(alternatives: &[&str]) -> bytes::Regex {
    bytes::Regex::new(&format!("(?-u){}", alternatives.join("|")))
        .expect("the pattern is a constant that the tests compile")
}

/// Turns spaces back into 0xA0 where that makes UTF-8.
fn restore_no_break_spaces(bytes: &[u8]) -> Vec<u8> {
    // `Ã ` is most often the word `à`, whose own space was lost with the other. Not so in Portuguese
    // words that begin with `à`.
    const WORD_STARTS: [&[u8]; 5] = [b" ", b"quele", b"quela", b"quilo", b"s "];
    let mut out = Vec::with_capacity(bytes.len() + 1);
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        out.push(byte);
        rest = tail;
        if byte == 0xC3 && tail.first() == Some(&b' ') {
            rest = &tail[1..];
            if !WORD_STARTS.iter().any(|start| rest.starts_with(start)) {
                out.push(0xA0);
            }
            out.push(b' ');
        }
    }
    let restore = |found: &bytes::Captures<'_>| -> Vec<u8> {
        found[0].iter().map(|&byte| if byte == b' ' { 0xA0 } else { byte }).collect()
    };
    SPACED.replace_all(&out, restore).into_owned()
}

/// Text from UTF-8, or from its variants CESU-8 (high characters as two surrogates) and Java's
/// (U+0000 as two bytes).
fn decode_utf8(bytes: Vec<u8>) -> Option<String> {
    if !bytes.contains(&0xED) && !bytes.contains(&0xC0) {
        return String::from_utf8(bytes).ok();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    loop {
        let skip = match *rest {
            [] => break,
            // At the very end ftfy takes a line feed for the second byte.
            [0xC0, 0x80, ..] | [0xC0, b'\n'] => {
                out.push(0);
                2
            }
            [
                0xED,
                a @ 0xA0..=0xAF,
                b @ 0x80..=0xBF,
                0xED,
                c @ 0xB0..=0xBF,
                d @ 0x80..=0xBF,
                ..,
            ] => {
                let [a, b, c, d] = [a & 0x0F, b & 0x3F, c & 0x0F, d & 0x3F].map(u32::from);
                let code = 0x1_0000 + (a << 16) + (b << 10) + (c << 6) + d;
                out.extend(char::from_u32(code)?.to_string().as_bytes());
                6
            }
            [byte, ..] => {
                out.push(byte);
                1
            }
        };
        rest = &rest[skip..];
    }
    String::from_utf8(out).ok()
}

/// Which bytes of UTF-8 a character may have come from.
struct Clues {
    /// Bytes that begin a sequence of two, three and four.
    leads: [Vec<char>; 3],
    /// Bytes that go on with one, among them a space for 0xA0.
    continuation: Vec<char>,
    /// Those of them that seldom stand for themselves.
    strict: Vec<char>,
}

static CLUES: LazyLock<Clues> = LazyLock::new(|| {
    const PUNCTUATION: &str = "–—―‘’‚“”„•…";
    let of = |bytes: &[u8]| {
        // Latin-1 and the Windows encodings.
        let chars = CHARMAPS[..7].iter().flat_map(|map| bytes.iter().map(|&byte| map.high(byte)));
        let mut chars: Vec<char> = chars.collect();
        chars.sort_unstable();
        chars.dedup();
        chars
    };
    let range = |range: std::ops::RangeInclusive<u8>| of(&range.collect::<Vec<u8>>());
    let bytes = range(0x80..=0xBF);
    let strict = bytes.iter().copied().filter(|c| !PUNCTUATION.contains(*c)).collect();
    let continuation = [vec![' '], bytes].concat(); // still sorted
    // Of the bytes that begin four, only these two lead to characters in use.
    let leads = [range(0xC2..=0xDF), range(0xE0..=0xEF), of(&[0xF0, 0xF3])];
    Clues { leads, continuation, strict }
});

impl Clues {
    /// Bytes of text at its start that look like one sequence or more.
    fn sequences(&self, text: &str) -> usize {
        let mut chars = text.chars();
        loop {
            let rest = chars.as_str();
            let Some(lead) = chars.next() else { return text.len() };
            let found = self.leads.iter().position(|leads| leads.binary_search(&lead).is_ok());
            let goes_on = |c: char| self.continuation.binary_search(&c).is_ok();
            let whole = found.is_some_and(|at| (0..=at).all(|_| chars.next().is_some_and(goes_on)));
            if !whole {
                return text.len() - rest.len();
            }
        }
    }
}

/// Decodes the parts that look like UTF-8 each on its own: texts are put together from pieces.
fn decode_parts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, None);
    while let Some(c) = rest.chars().next() {
        let follows_garble = before.is_some_and(|c| CLUES.strict.binary_search(&c).is_ok());
        let len = if follows_garble { 0 } else { CLUES.sequences(rest) };
        let (part, tail) = rest.split_at(len.max(c.len_utf8()));
        // A part that is all of the text has been tried.
        match len > 0 && part.len() < text.len() && is_bad(part) {
            true => out.push_str(&decode_again(part)),
            false => out.push_str(part),
        }
        before = part.chars().next_back();
        rest = tail;
    }
    out
}

/// Control characters that nobody types, as the Windows-1252 characters that they were meant for.
pub(super) fn c1_to_windows(text: &str) -> String {
    let fix = |c| match c {
        '\u{80}'..='\u{9f}' => CHARMAPS[WINDOWS_1252_INDEX].high(c as u8),
        _ => c,
    };
    text.chars().map(fix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values were made with ftfy 6.3.1's fix_encoding.
    fn check(text: &str, expected: &str) {
        assert_eq!(decode_again(text), expected, "{text:?}");
    }

    #[test]
    fn utf8_is_decoded_again() {
        check("cafÃ©", "café");
        check("ÃƒÂ©", "é");
        check("√©t√©", "été");
        check("СЂСѓСЃСЃРєРёР№", "СЂСѓСЃСЃРєРёР№");
        check("í\u{a0}½í¸\u{80}", "😀");
        check("aÀ\u{80}b cafÃ©", "a\0b café");
        check("\u{93}quoted\u{94} \u{81}", "“quoted” \u{81}");
    }

    #[test]
    fn lost_bytes_are_put_back_or_marked() {
        check("Ã la mode", "à la mode");
        check("Ã quele", "àquele");
        check("â€œ like this â€\u{fffd}", "“ like this \u{fffd}");
    }

    #[test]
    fn parts_are_decoded_on_their_own() {
        check("l’humanitÃ©", "l’humanité");
        check("cafÃ© 赤 â€™ it", "café 赤 ’ it");
    }

    #[test]
    fn good_text_is_left_alone() {
        for text in ["", "a man", "voilà café", "naïve Ångström", "Ã", "Äeština", "여자 😀"]
        {
            check(text, text);
        }
    }
}
