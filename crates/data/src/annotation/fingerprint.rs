//! A short identity of a copy of a data set.

use std::fs;

use sha2::{Digest, Sha256};

use super::Dataset;
use crate::error::DataError;

/// Tells two copies of a data set apart without reading the pixels.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fingerprint {
    /// SHA-256 of the annotation file, 64 lower-case hexadecimal digits.
    pub annotation_sha256: String,
    /// Image files that the annotation names.
    pub num_files: u64,
    /// Bytes in those files, all together.
    pub num_bytes: u64,
}

pub(super) fn of(dataset: &Dataset) -> Result<Fingerprint, DataError> {
    let annotation = fs::read(&dataset.annotation).map_err(DataError::io(&dataset.annotation))?;
    let mut fingerprint =
        Fingerprint { annotation_sha256: sha256_hex(&annotation), num_files: 0, num_bytes: 0 };
    for image in dataset.images() {
        let path = dataset.image_path(image);
        fingerprint.num_bytes += fs::metadata(&path).map_err(DataError::io(&path))?.len();
        fingerprint.num_files += 1;
    }
    Ok(fingerprint)
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_the_standard_test_message() {
        // FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), expected);
    }
}
