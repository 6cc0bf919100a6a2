//! Whether a JPEG file is whole.
//!
//! The decoder fills what is missing of a file cut short with grey and reports no error. Training
//! on grey people would go unnoticed, so the end is looked for here.

const START_OF_IMAGE: [u8; 2] = [0xFF, 0xD8];
const END_OF_IMAGE: [u8; 2] = [0xFF, 0xD9];
const START_OF_SCAN: u8 = 0xDA;

/// Whether the bytes begin like a JPEG but have no end of image after the first scan begins.
///
/// A thumbnail in the header has an end of its own, so the header is skipped segment by segment
/// (ITU-T T.81, B.1.1.4). In the scan itself, `FF D9` cannot occur as data.
pub(super) fn is_truncated(bytes: &[u8]) -> bool {
    bytes.starts_with(&START_OF_IMAGE)
        && !scan_data(bytes).is_some_and(|data| data.windows(2).rev().any(|w| w == END_OF_IMAGE))
}

/// What follows the header of the first scan, or nothing when the file ends before.
fn scan_data(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = &bytes[START_OF_IMAGE.len()..];
    loop {
        // Fill bytes may stand before a marker, and broken writers leave garbage there.
        let marker_at = rest.windows(2).position(|w| w[0] == 0xFF && w[1] != 0xFF && w[1] != 0)?;
        let marker = rest[marker_at + 1];
        rest = &rest[marker_at + 2..];
        let length = usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?]));
        rest = rest.get(length..)?;
        if marker == START_OF_SCAN {
            return Some(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Start, a header segment holding a thumbnail with its own end, a scan, two data bytes.
    const OPEN: [u8; 16] =
        [0xFF, 0xD8, 0xFF, 0xE1, 0, 4, 0xFF, 0xD9, 0xFF, 0xDA, 0, 2, 1, 2, 0xFF, 0x00];

    #[test]
    fn the_end_counts_only_after_the_scan_begins() {
        assert!(is_truncated(&OPEN));
        assert!(!is_truncated(&[&OPEN[..], &END_OF_IMAGE].concat()));
        assert!(!is_truncated(&[&OPEN[..], &END_OF_IMAGE, b"trailing"].concat()));
    }

    #[test]
    fn every_cut_is_found() {
        let whole = [&OPEN[..], &END_OF_IMAGE].concat();
        for len in 2..whole.len() {
            assert!(is_truncated(&whole[..len]), "cut to {len} bytes");
        }
    }

    #[test]
    fn other_formats_are_left_alone() {
        assert!(!is_truncated(b"BM"));
        assert!(!is_truncated(b""));
    }
}
