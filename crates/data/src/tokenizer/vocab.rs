//! The merge table, and the spelling of bytes as letters.
//!
//! Merges are over letters, but texts are bytes. So every byte is written as one printable
//! character: itself where Latin-1 has one, and a character from U+0100 on where it has not.

use std::io::Read;

use flate2::read::GzDecoder;

/// Values of a byte.
pub(super) const BYTES: usize = 256;
/// Lines of the merge table that CLIP uses.
pub(super) const MERGES: usize = 48_894;
/// Marks the last piece of a word.
pub(super) const WORD_END: &str = "</w>";

/// One merge a line, two pieces with a space between, most frequent first; see `assets/README.md`.
const TABLE: &[u8] = include_bytes!("../../assets/clip_merges.txt.gz");

/// The first `count` merges.
pub(super) fn merges(count: usize) -> Vec<(String, String)> {
    let mut table = String::new();
    GzDecoder::new(TABLE)
        .read_to_string(&mut table)
        .expect("the table is part of the program, and the tests unpack it");
    table
        .lines()
        .take(count)
        .filter_map(|line| line.split_once(' '))
        .map(|(left, right)| (left.to_owned(), right.to_owned()))
        .collect()
}

/// The spelling of every id, in order: bytes, bytes that end a word, merges.
pub(super) fn pieces(merges: &[(String, String)]) -> Vec<String> {
    // Printable bytes come first, as in the published table.
    let order =
        (0..=255).filter(|&b| is_printable(b)).chain((0..=255).filter(|&b| !is_printable(b)));
    let letters: Vec<String> = order.map(|byte| letter(byte).to_string()).collect();
    let ends = letters.iter().map(|letter| format!("{letter}{WORD_END}"));
    let merged = merges.iter().map(|(left, right)| format!("{left}{right}"));
    letters.iter().cloned().chain(ends).chain(merged).collect()
}

/// A text with each of its UTF-8 bytes written as one letter.
pub(super) fn byte_level(text: &str) -> String {
    text.bytes().map(letter).collect()
}

/// The text behind joined pieces; a space for each end of word, U+FFFD for broken UTF-8.
pub(super) fn spell_out(pieces: &str) -> String {
    let words = pieces.replace(WORD_END, " ");
    let bytes: Vec<u8> = words.chars().filter_map(byte_of).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether Latin-1 has a visible character for the byte; U+00AD, the soft hyphen, is not one.
fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

fn letter(byte: u8) -> char {
    if is_printable(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|&other| !is_printable(other)).count() as u32;
    char::from_u32(0x100 + rank).expect("U+0100 and the 67 code points after it are characters")
}

fn byte_of(letter: char) -> Option<u8> {
    if letter == ' ' {
        return Some(b' ');
    }
    (0..=255).find(|&byte| self::letter(byte) == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete() {
        let merges = merges(usize::MAX);
        assert_eq!(merges.len(), MERGES);
        assert_eq!(merges[0], ("i".to_owned(), "n".to_owned()));
        assert_eq!(pieces(&merges).len(), 2 * BYTES + MERGES);
    }

    #[test]
    fn every_byte_has_a_letter_of_its_own() {
        let letters: std::collections::BTreeSet<char> = (0..=255).map(letter).collect();
        assert_eq!(letters.len(), BYTES);
        assert!((0..=255).all(|byte| byte_of(letter(byte)) == Some(byte)));
        assert_eq!([letter(b'a'), letter(0), letter(b' '), letter(0xAD)], ['a', 'Ā', 'Ġ', 'Ń']);
    }
}
