//! CUHK-PEDES as its authors publish it: `reid_raw.json` beside `imgs/`.
//!
//! The file is a list of `{"split", "captions", "file_path", "id"}`, sometimes with
//! `processed_tokens`, which nobody needs here. Ids start at 1 and may have gaps; most images have
//! two captions, some more. The folder of an image says nothing of its split. The download of the
//! images brings `caption_all.json`, which looks alike but has no splits.

use super::layout::{Layout, counts};

/// A file that is often taken for the annotation.
pub(super) const CAPTIONS_WITHOUT_SPLITS: &str = "caption_all.json";

pub(super) const LAYOUT: Layout = Layout {
    title: "CUHK-PEDES",
    files: &["reid_raw.json"],
    path_field: "file_path",
    joins_records: false,
    // As counted by IRRA's and TextReIDNet's readers. Its paper's 80,412 captions are two for each
    // image; some images have more.
    official: [
        counts(11_003, 34_054, 68_126),
        counts(1_000, 3_078, 6_158),
        counts(1_000, 3_074, 6_156),
    ],
};
