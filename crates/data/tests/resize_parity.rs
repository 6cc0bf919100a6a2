//! The resize against images recorded from Pillow 12 (`fixtures/resize`): equal to the bit.

#![expect(clippy::unwrap_used, reason = "a test helper that fails should fail the test")]

use std::path::{Path, PathBuf};

use tbps_data::image::{decode, resize};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/resize").join(name)
}

fn check(input: &str, size: &str, expected: &str) {
    let resized = resize(&decode(&fixture(input)).unwrap(), size.parse().unwrap());
    let expected = decode(&fixture(expected)).unwrap();
    assert_eq!(resized.dimensions(), expected.dimensions(), "{size}");
    let off = resized.iter().zip(expected.iter()).filter(|(ours, theirs)| ours != theirs).count();
    assert_eq!(off, 0, "values that differ from PIL at {size}");
}

#[test]
fn equals_pil_for_every_kind_of_size() {
    for size in ["16x8", "37x23", "37x10", "9x23", "64x48", "5x60", "61x7", "1x1", "1x23", "2x3"] {
        check("input.png", size, &format!("{size}.png"));
    }
    check("one_pixel.png", "6x4", "one_pixel_6x4.png");
}
