//! Where things are in the file of a cache.

use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::annotation::Fingerprint;
use crate::image::ImageSize;

/// Raised when decoding or resizing gives other bytes than before.
const VERSION: u32 = 1;
/// Bytes of the header, padded with spaces: a page, so that the images begin on one.
const HEADER_BYTES: usize = 4096;
/// Bytes of a checksum.
const CRC_BYTES: usize = size_of::<u32>();

/// What the header says. Two caches with equal headers are equal.
#[derive(Serialize)]
struct Header<'a> {
    format: &'static str,
    version: u32,
    dataset: &'a Fingerprint,
    image_size: String,
    num_images: usize,
    paths_sha256: String,
}

/// The header, and the places that follow from it.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) size: ImageSize,
    pub(super) num_images: usize,
    header: Vec<u8>,
}

impl Layout {
    /// For the image files `paths`, in that order.
    pub(super) fn new(fingerprint: &Fingerprint, size: ImageSize, paths: &[&Path]) -> Self {
        let mut hash = Sha256::new();
        for path in paths {
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update([0]);
        }
        let header = Header {
            format: "tbps resized images",
            version: VERSION,
            dataset: fingerprint,
            image_size: size.to_string(),
            num_images: paths.len(),
            paths_sha256: hex(&hash.finalize()),
        };
        let mut header = serde_json::to_vec(&header).expect("strings and numbers are JSON");
        header.resize(HEADER_BYTES - 1, b' ');
        header.push(b'\n');
        Self { size, num_images: paths.len(), header }
    }

    /// `384x128-` and the start of a hash of the header.
    pub(super) fn file_name(&self) -> String {
        format!("{}-{}.pixels", self.size, hex(&Sha256::digest(&self.header)[..8]))
    }

    pub(super) fn header_bytes(&self) -> &[u8] {
        &self.header
    }

    /// Bytes of the whole file.
    pub(super) fn num_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + self.num_images as u64 * (self.image_bytes() + CRC_BYTES) as u64
    }

    /// Bytes of one image.
    pub(super) fn image_bytes(&self) -> usize {
        self.size.num_elements()
    }

    pub(super) fn header(&self) -> Range<usize> {
        0..HEADER_BYTES
    }

    /// Where an image is.
    pub(super) fn image(&self, index: usize) -> Range<usize> {
        let start = HEADER_BYTES + index * self.image_bytes();
        start..start + self.image_bytes()
    }

    /// The checksum that the file has for an image.
    pub(super) fn crc(&self, file: &[u8], index: usize) -> u32 {
        let start = HEADER_BYTES + self.num_images * self.image_bytes() + index * CRC_BYTES;
        let mut bytes = [0; CRC_BYTES];
        bytes.copy_from_slice(&file[start..start + CRC_BYTES]);
        u32::from_le_bytes(bytes)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
