//! Measuring a case: the sides by turns, or one after the other.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::budget::Budget;
use super::case::{Case, Peer};
use super::machine;
use super::side::{Side, Told};

/// Before each piece of work: PyTorch's threads spin for a while after theirs.
const REST: Duration = Duration::from_millis(300);

/// What all cases have in common.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) tbps: PathBuf,
    pub(super) config: PathBuf,
    pub(super) peer: Option<Peer>,
    pub(super) num_pairs: usize,
}

/// What came of a case. A side that did its work is kept when the other fails after it.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) ours: Option<Measured>,
    pub(super) peer: Option<Measured>,
    /// Why something is missing.
    pub(super) failed: Option<String>,
}

/// One side of a case.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) told: Told,
    /// By how much the device's memory in use rose above that before the process started, at its
    /// highest between two pieces of work, as the driver says; `None` on the host.
    pub(super) driver_gib: Option<f64>,
}

impl Setup {
    /// Measures a case within its budget.
    pub(super) fn measure(&self, case: &Case, budget: Budget) -> Outcome {
        let ours = case.ours(&self.tbps, &self.config);
        let mut outcome = Outcome::default();
        let ended = match &self.peer {
            Some(peer) if case.alternates() => {
                self.by_turns(case, ours, peer, budget, &mut outcome)
            }
            _ => self.one_by_one(case, ours, budget, &mut outcome),
        };
        outcome.failed = ended.err().map(|error| format!("{error:#}"));
        outcome
    }

    fn by_turns(
        &self,
        case: &Case,
        ours: Command,
        peer: &Peer,
        budget: Budget,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let mut ours = Side::start("tbps", ours, budget.deadline())?;
        let peer = case.peer(peer, ours.threads(), false);
        let mut peer = Side::start("PyTorch", peer, budget.deadline())?;
        let last_call = budget.last_call(Instant::now());
        while goes_on(peer.pieces.len(), self.num_pairs, last_call) {
            for side in [&mut ours, &mut peer] {
                std::thread::sleep(REST);
                side.work()?;
            }
        }
        outcome.ours = Some(Measured { told: ours.finish()?, driver_gib: None });
        outcome.peer = Some(Measured { told: peer.finish()?, driver_gib: None });
        Ok(())
    }

    fn one_by_one(
        &self,
        case: &Case,
        ours: Command,
        budget: Budget,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let Some(peer) = &self.peer else {
            outcome.ours = Some(self.alone("tbps", case, ours, budget)?);
            return Ok(());
        };
        let first = budget.of_first_side(Instant::now());
        let ours = outcome.ours.insert(self.alone("tbps", case, ours, first)?);
        let tf32 = ours.told.done["tf32"] == true;
        let threads = ours.told.ready["threads"].as_u64().and_then(|n| n.try_into().ok());
        let peer = case.peer(peer, threads, tf32);
        outcome.peer = Some(self.alone("PyTorch", case, peer, budget)?);
        Ok(())
    }

    fn alone(
        &self,
        name: &'static str,
        case: &Case,
        command: Command,
        budget: Budget,
    ) -> Result<Measured> {
        let used = || machine::gpu_used_gib(&case.device);
        let before = used();
        let mut highest = before;
        let mut side = Side::start(name, command, budget.deadline())?;
        let last_call = budget.last_call(Instant::now());
        while goes_on(side.pieces.len(), self.num_pairs, last_call) {
            std::thread::sleep(REST);
            side.work()?;
            highest = used().into_iter().chain(highest).reduce(f64::max);
        }
        let driver_gib = highest.zip(before).map(|(highest, before)| highest - before);
        Ok(Measured { told: side.finish()?, driver_gib })
    }
}

/// Whether another piece is begun: the first in any case.
fn goes_on(num_done: usize, num_wanted: usize, last_call: Option<Instant>) -> bool {
    let in_time = last_call.is_none_or(|last_call| Instant::now() < last_call);
    num_done < num_wanted && (in_time || num_done == 0)
}
