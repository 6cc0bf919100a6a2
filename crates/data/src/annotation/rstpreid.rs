//! RSTPReid as its authors publish it: `data_captions.json` beside `imgs/`.
//!
//! The file is a list of `{"id", "img_path", "captions", "split"}`: the path has another key than
//! that of the other data sets, and the images lie directly in `imgs/`. Ids start at 0; every
//! person has five images and every image two captions.

use super::layout::{Layout, counts};

pub(super) const LAYOUT: Layout = Layout {
    title: "RSTPReid",
    files: &["data_captions.json"],
    path_field: "img_path",
    joins_records: false,
    official: [counts(3_701, 18_505, 37_010), counts(200, 1_000, 2_000), counts(200, 1_000, 2_000)],
};
