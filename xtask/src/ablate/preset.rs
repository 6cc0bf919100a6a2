//! The sizes of matrix that can be asked for by name.

use std::fmt;

use clap::ValueEnum;

/// A named matrix: its configuration is `configs/<preset>.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Generated pictures, a small model: minutes on a laptop's CPU
    Demo,
    /// The smallest matrix that exercises everything: for tests
    Smoke,
    /// CUHK-PEDES and pretrained CLIP ViT-B/16: needs --data and --weights
    CuhkPedes,
}

impl Preset {
    /// Whether the pictures are generated, so that neither data nor weights need be given.
    pub(crate) fn is_synthetic(self) -> bool {
        matches!(self, Self::Demo | Self::Smoke)
    }

    /// Disk space for training so many cells one after another, in MiB.
    ///
    /// A finished cell keeps a last checkpoint (weights, two AdamW moments and the EMA: four times
    /// the weights, in f32) and a best one (the weights, raw and averaged: two times). While a
    /// last checkpoint is replaced there are two of them; the room of one cell more covers that.
    pub(crate) fn disk_mib(self, num_cells: u64) -> u64 {
        let per_cell = match self {
            // About 30 MiB of weights; the rest is metrics and logs. 2 GiB for eight cells.
            Self::Demo => 228,
            // Below 3 MiB of weights. 0.2 GiB for eight cells.
            Self::Smoke => 23,
            // CLIP ViT-B/16: 150 M parameters = 570 MiB, six times that is 3.4 GiB; the rest is the
            // margin of a long training. 40 GiB for eight cells.
            Self::CuhkPedes => 4551,
        };
        if num_cells == 0 { 0 } else { per_cell * (num_cells + 1) }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Demo => "demo",
            Self::Smoke => "smoke",
            Self::CuhkPedes => "cuhk-pedes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_space_is_for_what_is_left_to_train() {
        let gib = |mib: u64| (mib as f64 / 102.4).round() / 10.0;
        assert_eq!(gib(Preset::Demo.disk_mib(8)), 2.0);
        assert_eq!(gib(Preset::Smoke.disk_mib(8)), 0.2);
        assert_eq!(gib(Preset::CuhkPedes.disk_mib(8)), 40.0);
        assert_eq!(gib(Preset::CuhkPedes.disk_mib(1)), 8.9);
        assert_eq!(Preset::CuhkPedes.disk_mib(0), 0);
    }

    #[test]
    fn names_on_the_command_line_and_in_files_agree() {
        for preset in Preset::value_variants() {
            let value = preset.to_possible_value().expect("no variant is skipped");
            assert_eq!(value.get_name(), preset.to_string());
        }
    }
}
