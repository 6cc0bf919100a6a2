//! Encodings of one byte a character, as tables: what wrongly decoded UTF-8 was decoded with.
//!
//! Bytes below 0x80 are ASCII everywhere. Bytes without a character stand for the Latin-1 character
//! of the same number, as programs decode them in practice.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A one-byte encoding.
pub(super) struct Charmap {
    /// The characters of the bytes from 0x80 on.
    high: [char; 128],
    /// The same the other way round.
    bytes: BTreeMap<char, u8>,
    /// Whether U+FFFD can be encoded, as byte 0x1A, which then cannot stand for itself. It is what a
    /// decoder leaves of a byte that it does not know.
    pub(super) lossy: bool,
}

/// Byte for U+FFFD in encodings that are [`lossy`](Charmap::lossy).
const SUBSTITUTE: u8 = 0x1A;

impl Charmap {
    /// From the characters of the bytes from 0x80 on, `.` where they are those of Latin-1.
    fn new(high: &str, lossy: bool) -> Self {
        let mut table = std::array::from_fn(|index| char::from(0x80 + index as u8));
        for (slot, c) in table.iter_mut().zip(high.chars()).filter(|(_, c)| *c != '.') {
            *slot = c;
        }
        // A character of two bytes is encoded as the higher one.
        let bytes = table.into_iter().zip(0x80..=0xFF).collect();
        Self { high: table, bytes, lossy }
    }

    /// The bytes that decode to `text`, or nothing when it has another character.
    pub(super) fn encode(&self, text: &str) -> Option<Vec<u8>> {
        let byte = |c: char| match c {
            '\u{1a}' if self.lossy => None,
            '\u{fffd}' if self.lossy => Some(SUBSTITUTE),
            '\0'..='\x7F' => Some(c as u8),
            _ => self.bytes.get(&c).copied(),
        };
        text.chars().map(byte).collect()
    }

    /// The character of a byte from 0x80 on.
    pub(super) fn high(&self, byte: u8) -> char {
        self.high[usize::from(byte) - 0x80]
    }
}

/// The encodings that are tried, the most usual one first (ftfy's `CHARMAP_ENCODINGS`).
pub(super) static CHARMAPS: LazyLock<[Charmap; 10]> = LazyLock::new(|| {
    [
        Charmap::new("", false), // Latin-1
        Charmap::new(WINDOWS_1252, true),
        Charmap::new(WINDOWS_1251, true),
        Charmap::new(WINDOWS_1250, true),
        Charmap::new(WINDOWS_1253, true),
        Charmap::new(WINDOWS_1254, true),
        Charmap::new(WINDOWS_1257, true),
        Charmap::new(ISO_8859_2, false),
        Charmap::new(MAC_ROMAN, false),
        Charmap::new(CP437, false),
    ]
});

/// Where in [`CHARMAPS`] Windows-1252 is.
pub(super) const WINDOWS_1252_INDEX: usize = 1;
/// Where in [`CHARMAPS`] Mac OS Roman is.
pub(super) const MAC_ROMAN_INDEX: usize = 8;

const WINDOWS_1252: &str = "\
    €.‚ƒ„…†‡ˆ‰Š‹Œ.Ž..‘’“”•–—˜™š›œ.žŸ\
    ................................\
    ................................\
    ................................";
const WINDOWS_1251: &str = "\
    ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—.™љ›њќћџ\
    .ЎўЈ.Ґ..Ё.Є....Ї..Ііґ...ё№є.јЅѕї\
    АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ\
    абвгдежзийклмнопрстуфхцчшщъыьэюя";
const WINDOWS_1250: &str = "\
    €.‚.„…†‡.‰Š‹ŚŤŽŹ.‘’“”•–—.™š›śťžź\
    .ˇ˘Ł.Ą....Ş....Ż..˛ł.....ąş.Ľ˝ľż\
    Ŕ..Ă.ĹĆ.Č.Ę.Ě..ĎĐŃŇ..Ő..ŘŮ.Ű..Ţ.\
    ŕ..ă.ĺć.č.ę.ě..ďđńň..ő..řů.ű..ţ˙";
const WINDOWS_1253: &str = "\
    €.‚ƒ„…†‡.‰.‹.....‘’“”•–—.™.›....\
    .΅Ά............―....΄...ΈΉΊ.Ό.ΎΏ\
    ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ.ΣΤΥΦΧΨΩΪΫάέήί\
    ΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ.";
const WINDOWS_1254: &str = "\
    €.‚ƒ„…†‡ˆ‰Š‹Œ....‘’“”•–—˜™š›œ..Ÿ\
    ................................\
    ................Ğ............İŞ.\
    ................ğ............ış.";
const WINDOWS_1257: &str = "\
    €.‚.„…†‡.‰.‹.¨ˇ¸.‘’“”•–—.™.›.¯˛.\
    ........Ø.Ŗ....Æ........ø.ŗ....æ\
    ĄĮĀĆ..ĘĒČ.ŹĖĢĶĪĻŠŃŅ.Ō...ŲŁŚŪ.ŻŽ.\
    ąįāć..ęēč.źėģķīļšńņ.ō...ųłśū.żž˙";
const ISO_8859_2: &str = "\
    ................................\
    .Ą˘Ł.ĽŚ..ŠŞŤŹ.ŽŻ.ą˛ł.ľśˇ.šşťź˝žż\
    Ŕ..Ă.ĹĆ.Č.Ę.Ě..ĎĐŃŇ..Ő..ŘŮ.Ű..Ţ.\
    ŕ..ă.ĺć.č.ę.ě..ďđńň..ő..řů.ű..ţ˙";
const MAC_ROMAN: &str = "\
    ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü\
    †°..§•¶ß®.™´¨≠ÆØ∞.≤≥¥.∂∑∏π∫ªºΩæø\
    ¿¡¬√ƒ≈∆«»…\u{a0}ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ\
    ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{f8ff}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ";
const CP437: &str = "\
    ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ\
    áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐\
    └┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_whole() {
        for table in [WINDOWS_1252, WINDOWS_1251, WINDOWS_1250, WINDOWS_1253, WINDOWS_1254] {
            assert_eq!(table.chars().count(), 128);
        }
        for table in [WINDOWS_1257, ISO_8859_2, MAC_ROMAN, CP437] {
            assert_eq!(table.chars().count(), 128);
        }
    }

    #[test]
    fn bytes_are_found_by_their_character() {
        let check = |index: usize, text: &str, expected: Option<&[u8]>| {
            assert_eq!(CHARMAPS[index].encode(text).as_deref(), expected, "{text:?}");
        };
        check(0, "aé\u{81}\u{1a}", Some(&[b'a', 0xE9, 0x81, 0x1A]));
        check(0, "€", None);
        check(WINDOWS_1252_INDEX, "€\u{81}\u{fffd}", Some(&[0x80, 0x81, 0x1A]));
        check(WINDOWS_1252_INDEX, "\u{80}", None);
        check(WINDOWS_1252_INDEX, "\u{1a}", None);
        check(MAC_ROMAN_INDEX, "Äˇ", Some(&[0x80, 0xFF]));
        check(MAC_ROMAN_INDEX, "\u{fffd}", None);
    }
}
