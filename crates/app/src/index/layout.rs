//! Where things are in an index file.
//!
//! A page-aligned JSON header; the features `[images, dim]`, little-endian; a fixed-size record per
//! image and then per unreadable file; the text that the records point into. Nothing needs to be
//! parsed but the header, so that a large index is open at once.

use super::{Identity, Precision};
use crate::index::Source;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What the file begins with, whatever its version.
pub(super) const MAGIC: &[u8] = b"{\"format\":\"tbps image index\",";
pub(super) const VERSION: u32 = 1;
/// Bytes of the header, padded with spaces: room for a long path.
pub(super) const HEADER_BYTES: usize = 16_384;
/// Bytes of a [`Record`].
pub(super) const RECORD_BYTES: usize = 32;

/// The header; its first field must stay the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) identity: Identity,
    /// The gallery's folder.
    pub(super) root: String,
    pub(super) num_images: usize,
    pub(super) num_unreadable: usize,
    pub(super) text_bytes: usize,
    /// Of everything behind the header.
    pub(super) crc32: u32,
}

impl Header {
    pub(super) fn new(identity: Identity, root: String) -> Self {
        let (format, version) = ("tbps image index".to_owned(), VERSION);
        let (num_images, num_unreadable, text_bytes, crc32) = (0, 0, 0, 0);
        Self { format, version, identity, root, num_images, num_unreadable, text_bytes, crc32 }
    }

    /// Bytes of a feature.
    pub(super) fn row_bytes(&self) -> usize {
        row_bytes(&self.identity)
    }

    /// Where the features are; nothing when the numbers are absurd.
    pub(super) fn features(&self) -> Option<Range<usize>> {
        let bytes = self.num_images.checked_mul(self.row_bytes())?;
        Some(HEADER_BYTES..HEADER_BYTES.checked_add(bytes)?)
    }

    /// Where the records are.
    pub(super) fn records(&self) -> Option<Range<usize>> {
        let start = self.features()?.end;
        let records = self.num_images.checked_add(self.num_unreadable)?;
        Some(start..start.checked_add(records.checked_mul(RECORD_BYTES)?)?)
    }

    /// Bytes of the whole file.
    pub(super) fn num_bytes(&self) -> Option<usize> {
        self.records()?.end.checked_add(self.text_bytes)
    }
}

/// Bytes of a feature.
pub(super) fn row_bytes(identity: &Identity) -> usize {
    identity.embed_dim.saturating_mul(identity.precision.num_bytes())
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Record {
    pub(super) modified_ns: i64,
    pub(super) num_bytes: u64,
    /// Its path, and behind it why it cannot be read.
    pub(super) text_start: u64,
    pub(super) path_len: u32,
    pub(super) reason_len: u32,
}

impl Record {
    pub(super) fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.modified_ns.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.num_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.text_start.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.path_len.to_le_bytes());
        bytes[28..].copy_from_slice(&self.reason_len.to_le_bytes());
        bytes
    }

    pub(super) fn of_bytes(bytes: &[u8; RECORD_BYTES]) -> Self {
        let part = |at: usize| bytes[at..at + 8].try_into().unwrap_or_default();
        let half = |at: usize| bytes[at..at + 4].try_into().unwrap_or_default();
        Self {
            modified_ns: i64::from_le_bytes(part(0)),
            num_bytes: u64::from_le_bytes(part(8)),
            text_start: u64::from_le_bytes(part(16)),
            path_len: u32::from_le_bytes(half(24)),
            reason_len: u32::from_le_bytes(half(28)),
        }
    }
}

/// A file that an index has no feature of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) source: Source,
    pub(crate) reason: String,
}

/// A feature `[dim]` as it is stored.
pub(super) fn encode(feature: &[f32], precision: Precision) -> Vec<u8> {
    match precision {
        Precision::F32 => feature.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Precision::F16 => {
            feature.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip() {
        let record = Record {
            modified_ns: -5,
            num_bytes: u64::MAX,
            text_start: 1 << 40,
            path_len: 7,
            reason_len: 9,
        };
        assert_eq!(Record::of_bytes(&record.to_bytes()), record);
    }

    #[test]
    fn features_are_stored_in_their_precision() {
        assert_eq!(encode(&[1.0, -2.0], Precision::F32), [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
        assert_eq!(encode(&[1.0, -2.0], Precision::F16), [0, 0x3c, 0, 0xc0]);
    }
}
