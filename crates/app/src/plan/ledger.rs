//! Bytes that are held, as a step takes and frees them.

/// An account of memory in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    held: u64,
    /// Parameter gradients among what is held, of parts of the network that are done.
    gathered: u64,
    peak: u64,
    tape_peak: u64,
}

impl Ledger {
    pub(super) fn hold(&mut self, bytes: u64) {
        self.held += bytes;
        self.peak = self.peak.max(self.held);
        self.tape_peak = self.tape_peak.max(self.held - self.gathered);
    }

    /// # Panics
    /// When more is freed than is held: the walk is wrong.
    pub(super) fn free(&mut self, bytes: u64) {
        self.held = self.held.checked_sub(bytes).expect("what is freed was held");
    }

    /// What an operation holds while it runs, beside its inputs and results.
    pub(super) fn workspace(&mut self, bytes: u64) {
        self.hold(bytes);
        self.free(bytes);
    }

    /// Gradients that are held already count as such from now on.
    pub(super) fn gather(&mut self, bytes: u64) {
        self.gathered += bytes;
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    #[cfg(test)]
    pub(super) fn gathered(&self) -> u64 {
        self.gathered
    }

    /// The most that was held.
    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    /// The most that was held beside gathered gradients.
    pub(super) fn tape_peak(&self) -> u64 {
        self.tape_peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_kept_and_gradients_told_apart() {
        let mut ledger = Ledger::default();
        ledger.hold(10);
        ledger.workspace(5);
        ledger.hold(4);
        ledger.gather(4);
        ledger.free(10);
        ledger.hold(13);
        assert_eq!((ledger.peak(), ledger.tape_peak()), (17, 15));
    }
}
