//! The eight cells: {FP32, AMP} x {EMA off, on} x {GC off, on}, and the pairs of them that differ
//! in one technique alone.

use serde::{Serialize, Serializer};

/// One cell of the matrix: which of the three techniques are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CellId {
    /// Mixed precision (FP16 compute with a loss scaler) instead of FP32.
    pub(crate) amp: bool,
    /// Weight averaging.
    pub(crate) ema: bool,
    /// Activation recomputation ("gradient checkpointing").
    pub(crate) gc: bool,
}

impl CellId {
    /// What every cell is compared with.
    pub(crate) const BASELINE: CellId = CellId { amp: false, ema: false, gc: false };

    /// All eight, in the order in which they are always shown.
    pub(crate) const ALL: [CellId; 8] = {
        let mut all = [CellId::BASELINE; 8];
        let mut i = 0;
        while i < all.len() {
            all[i] = CellId { amp: i & 4 != 0, ema: i & 1 != 0, gc: i & 2 != 0 };
            i += 1;
        }
        all
    };

    /// The name used for run directories, such as `amp-ema-gc`.
    pub(crate) fn name(self) -> String {
        self.parts(["fp32", "amp"], ["ema", "gc"]).join("-")
    }

    /// The name shown to people, such as `AMP+EMA+GC`.
    pub(crate) fn label(self) -> String {
        self.parts(["FP32", "AMP"], ["EMA", "GC"]).join("+")
    }

    /// The cell whose directory name is `name`, if there is one.
    pub(crate) fn parse(name: &str) -> Option<CellId> {
        CellId::ALL.into_iter().find(|cell| cell.name() == name)
    }

    fn parts(self, precision: [&'static str; 2], extras: [&'static str; 2]) -> Vec<&'static str> {
        let mut parts = vec![precision[usize::from(self.amp)]];
        parts.extend(self.ema.then_some(extras[0]));
        parts.extend(self.gc.then_some(extras[1]));
        parts
    }
}

impl Serialize for CellId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

/// One axis of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Technique {
    Amp,
    Ema,
    Gc,
}

impl Technique {
    pub(crate) const ALL: [Technique; 3] = [Technique::Amp, Technique::Ema, Technique::Gc];

    /// The technique's name as people write it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Technique::Amp => "AMP",
            Technique::Ema => "EMA",
            Technique::Gc => "GC",
        }
    }

    /// `cell` with this technique switched on or off.
    pub(crate) fn set(self, cell: CellId, on: bool) -> CellId {
        match self {
            Technique::Amp => CellId { amp: on, ..cell },
            Technique::Ema => CellId { ema: on, ..cell },
            Technique::Gc => CellId { gc: on, ..cell },
        }
    }

    /// The four pairs (without, with) that differ in this technique alone.
    pub(crate) fn pairs(self) -> Vec<(CellId, CellId)> {
        let without = CellId::ALL.into_iter().filter(|&cell| self.set(cell, false) == cell);
        without.map(|cell| (cell, self.set(cell, true))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_run_directories() {
        let names: Vec<String> = CellId::ALL.into_iter().map(CellId::name).collect();
        let expected = ["fp32", "fp32-ema", "fp32-gc", "fp32-ema-gc"];
        assert_eq!(names[..4], expected);
        assert_eq!(names[4..], expected.map(|name| name.replace("fp32", "amp")));
        assert_eq!(CellId::ALL[7].label(), "AMP+EMA+GC");
        assert_eq!(CellId::parse("amp-gc-ema"), None);
    }

    #[test]
    fn pairs_differ_in_one_technique() {
        let pairs: Vec<(String, String)> =
            Technique::Gc.pairs().iter().map(|(a, b)| (a.name(), b.name())).collect();
        assert_eq!(pairs.len(), 4);
        assert_eq!(pairs[3], ("amp-ema".to_owned(), "amp-ema-gc".to_owned()));
    }
}
