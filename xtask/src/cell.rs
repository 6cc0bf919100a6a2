//! The eight cells of the matrix: one factor per axis, everything else equal.

/// One combination of the three axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Mixed precision: f16 matmuls with a loss scaler over f32 parameters.
    pub(crate) amp: bool,
    /// Exponential moving average of the weights, used for evaluation.
    pub(crate) ema: bool,
    /// Recomputation of each block's activations in the backward pass ("gradient checkpointing").
    pub(crate) gc: bool,
}

/// The keys that the matrix sets itself, which `--set` must therefore leave alone.
pub(crate) const AXIS_KEYS: [&str; 4] = ["precision", "ema.enabled", "recompute", "seed"];

impl Cell {
    /// All cells, the plain baseline first.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let switch = [false, true];
        switch.into_iter().flat_map(move |amp| {
            switch.into_iter().flat_map(move |gc| switch.map(|ema| Self { amp, ema, gc }))
        })
    }

    /// The cell's name in run directories and reports, such as `amp-ema-gc`.
    pub(crate) fn name(self) -> String {
        let parts = [
            if self.amp { "amp" } else { "fp32" },
            if self.ema { "-ema" } else { "" },
            if self.gc { "-gc" } else { "" },
        ];
        parts.concat()
    }

    /// The compute dtype's policy, as the configuration names it.
    pub(crate) fn precision(self) -> &'static str {
        if self.amp { "amp-fp16" } else { "fp32" }
    }

    /// What the backward pass runs again, as the configuration names it.
    pub(crate) fn recompute(self) -> &'static str {
        if self.gc { "block" } else { "off" }
    }

    /// The `--set` values, as TOML, that make a training this cell with this seed.
    pub(crate) fn settings(self, seed: u64) -> [String; 4] {
        [
            format!("precision=\"{}\"", self.precision()),
            format!("ema.enabled={}", self.ema),
            format!("recompute=\"{}\"", self.recompute()),
            format!("seed={seed}"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_are_the_eight_combinations_in_a_fixed_order() {
        let names: Vec<String> = Cell::all().map(Cell::name).collect();
        assert_eq!(
            names,
            [
                "fp32",
                "fp32-ema",
                "fp32-gc",
                "fp32-ema-gc",
                "amp",
                "amp-ema",
                "amp-gc",
                "amp-ema-gc"
            ]
        );
    }

    #[test]
    fn settings_follow_the_name() {
        let check = |name: &str, expected: [&str; 4]| {
            let cell = Cell::all().find(|cell| cell.name() == name).unwrap();
            assert_eq!(cell.settings(3), expected, "{name}");
        };
        check("fp32", ["precision=\"fp32\"", "ema.enabled=false", "recompute=\"off\"", "seed=3"]);
        check(
            "amp-gc",
            ["precision=\"amp-fp16\"", "ema.enabled=false", "recompute=\"block\"", "seed=3"],
        );
        check(
            "fp32-ema",
            ["precision=\"fp32\"", "ema.enabled=true", "recompute=\"off\"", "seed=3"],
        );
    }

    #[test]
    fn every_axis_key_is_set_by_every_cell() {
        for cell in Cell::all() {
            let settings = cell.settings(0);
            let keys: Vec<&str> = settings.iter().filter_map(|s| s.split('=').next()).collect();
            assert_eq!(keys, AXIS_KEYS);
        }
    }
}
