//! What a data set looks like on disk, and how many people, images and captions it has.

use std::fmt;
use std::str::FromStr;

use super::{SplitName, cuhk_pedes, icfg_pedes, rstpreid};
use crate::error::DataError;

/// A data set that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatasetName {
    /// CUHK-PEDES (Li et al., CVPR 2017).
    CuhkPedes,
    /// ICFG-PEDES (Ding et al., 2021).
    IcfgPedes,
    /// RSTPReid (Zhu et al., ACM MM 2021).
    RstpReid,
}

impl DatasetName {
    /// Every data set, in the order in which messages list them.
    pub const ALL: [Self; 3] = [Self::CuhkPedes, Self::IcfgPedes, Self::RstpReid];

    pub(super) fn layout(self) -> &'static Layout {
        match self {
            Self::CuhkPedes => &cuhk_pedes::LAYOUT,
            Self::IcfgPedes => &icfg_pedes::LAYOUT,
            Self::RstpReid => &rstpreid::LAYOUT,
        }
    }

    /// How many people, images and captions a split has as published; zeros for one that was never
    /// published.
    #[must_use]
    pub fn official(self, split: SplitName) -> Counts {
        let [train, val, test] = self.layout().official;
        match split {
            SplitName::Train => train,
            SplitName::Val => val,
            SplitName::Test => test,
        }
    }
}

impl fmt::Display for DatasetName {
    /// As its authors write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.layout().title)
    }
}

impl FromStr for DatasetName {
    type Err = DataError;

    /// Reads a title in any case: `cuhk-pedes`, `icfg-pedes`, `rstpreid`.
    fn from_str(text: &str) -> Result<Self, DataError> {
        let named = |name: &Self| name.layout().title.eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named).ok_or_else(|| DataError::Setting {
            name: "dataset",
            value: text.to_owned(),
            expected: "cuhk-pedes, icfg-pedes or rstpreid",
        })
    }
}

impl serde::Serialize for DatasetName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The size of a split.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Different people.
    pub num_ids: usize,
    /// Images, each counted once.
    pub num_images: usize,
    /// Captions of all images.
    pub num_captions: usize,
}

/// How a data set's annotation is published: a list of records in one file beside `imgs/`.
pub(super) struct Layout {
    /// The name its authors gave it.
    pub(super) title: &'static str,
    /// Names under which its annotation file is found.
    pub(super) files: &'static [&'static str],
    /// The field of a record that has the image's path below `imgs/`.
    pub(super) path_field: &'static str,
    /// Whether a second record of an image of the same person and split adds to its captions; else
    /// it is an error.
    pub(super) joins_records: bool,
    /// Train, val and test as published.
    pub(super) official: [Counts; 3],
}

pub(super) const fn counts(num_ids: usize, num_images: usize, num_captions: usize) -> Counts {
    Counts { num_ids, num_images, num_captions }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        for name in DatasetName::ALL {
            assert_eq!(name.to_string().parse::<DatasetName>().unwrap(), name);
            assert_eq!(name.to_string().to_lowercase().parse::<DatasetName>().unwrap(), name);
        }
        let error = "market".parse::<DatasetName>().unwrap_err().to_string();
        assert_eq!(error, "dataset = market: expected cuhk-pedes, icfg-pedes or rstpreid");
    }

    #[test]
    fn official_counts_add_up_to_the_published_totals() {
        let totals = |name: DatasetName| {
            let [a, b, c] = name.layout().official;
            let sum = |of: fn(Counts) -> usize| of(a) + of(b) + of(c);
            (sum(|s| s.num_ids), sum(|s| s.num_images), sum(|s| s.num_captions))
        };
        assert_eq!(totals(DatasetName::CuhkPedes), (13_003, 40_206, 80_440));
        assert_eq!(totals(DatasetName::IcfgPedes), (4_102, 54_522, 54_522));
        assert_eq!(totals(DatasetName::RstpReid), (4_101, 20_505, 41_010));
    }
}
