//! ICFG-PEDES as its authors publish it: `ICFG-PEDES.json` beside `imgs/`.
//!
//! The records are those of CUHK-PEDES, with ids from 0 and one caption each. SSAN's README writes
//! the file's name with an underscore, and so do copies. `imgs/train` and `imgs/test` are folders
//! of MSMT17, where the images come from, and say nothing of the split. There is no val split: part
//! of train is held out for it ([`Dataset::hold_out`](super::Dataset::hold_out)).

use super::layout::{Layout, counts};

pub(super) const LAYOUT: Layout = Layout {
    title: "ICFG-PEDES",
    files: &["ICFG-PEDES.json", "ICFG_PEDES.json"],
    path_field: "file_path",
    // A public reader finds 34,673 different files in the 34,674 records of train.
    joins_records: true,
    official: [counts(3_102, 34_674, 34_674), counts(0, 0, 0), counts(1_000, 19_848, 19_848)],
};
