//! The record of a case, in JSON and as a row of the table.

use serde::Serialize;
use serde_json::Value;

use super::case::{Case, Work};
use super::measure::{Measured, Outcome};
use super::stats::{self, Spread};

/// One case. Ratios are ours by PyTorch's; null is what was not measured or does not exist.
#[derive(Debug, Serialize)]
pub(super) struct Record {
    case: String,
    work: &'static str,
    device: String,
    batch: u32,
    caption_length: Option<u32>,
    precision: &'static str,
    ema: bool,
    recompute: &'static str,
    /// Whether the sides took turns, or ran one after the other.
    alternated: bool,
    /// Pieces of work of each side, or of ours alone.
    pairs: usize,
    ours_s: Option<Spread>,
    peer_s: Option<Spread>,
    /// The median of the pairs' ratios.
    time_ratio: Option<f64>,
    /// Between two order statistics of the pairs' ratios.
    time_ratio_interval: Option<[f64; 2]>,
    /// The probability, without assumptions on the distribution, that it holds the median.
    time_ratio_interval_coverage: Option<f64>,
    /// What `ours_peak_gib` and `peer_peak_gib` are.
    peak_of: &'static str,
    ours_peak_gib: Option<f64>,
    peer_peak_gib: Option<f64>,
    memory_ratio: Option<f64>,
    /// Live tensors in the device's pool.
    ours_pool_in_use_gib: Option<f64>,
    peer_pool_in_use_gib: Option<f64>,
    /// Of our process, by NVML, sampled all the time.
    ours_nvml_gib: Option<f64>,
    /// Rise of the device's memory in use, by nvidia-smi between two pieces: the same for both.
    ours_driver_gib: Option<f64>,
    peer_driver_gib: Option<f64>,
    /// Of host allocations, to the byte.
    ours_alloc_gib: Option<f64>,
    ours_tape_bytes: Option<u64>,
    /// The same, computed from the sizes alone.
    ours_planned_tape_bytes: Option<u64>,
    peer_saved_bytes: Option<u64>,
    tape_ratio: Option<f64>,
    ours_images_per_s: Option<f64>,
    peer_images_per_s: Option<f64>,
    ours_loss: Option<f64>,
    peer_loss: Option<f64>,
    ours_skipped_steps: Option<u64>,
    /// Whether f32 products ran in TF32.
    tf32: Option<bool>,
    peer_tf32: Option<bool>,
    compute_dtype: Value,
    ours_threads: Option<u64>,
    peer_threads: Option<u64>,
    ours_num_parameters: Option<u64>,
    peer_num_parameters: Option<u64>,
    ours_warm_up_s: Option<f64>,
    peer_warm_up_s: Option<f64>,
    /// Why something is missing; null if nothing is.
    pub(super) failed: Option<String>,
}

/// The head of the table.
pub(super) const TABLE_HEAD: &str = "| case | ours, s | PyTorch, s | time ratio [interval] | \
     peak GiB: ours, PyTorch | ratio | tape MiB: ours, saved | ratio | images/s |\n\
     | --- | ---: | ---: | --- | --- | ---: | --- | ---: | ---: |";

impl Record {
    pub(super) fn new(case: &Case, outcome: &Outcome) -> Self {
        let (ours, peer) = (Answers(outcome.ours.as_ref()), Answers(outcome.peer.as_ref()));
        let (ours_s, peer_s) = (Spread::of(ours.pieces()), Spread::of(peer.pieces()));
        let ratios: Vec<f64> =
            ours.pieces().iter().zip(peer.pieces()).map(|(ours, peer)| ours / peer).collect();
        let interval = stats::median_interval(&ratios);
        let (peak, peak_of) = match case.is_on_host() {
            true => ("peak_host_gib", "process's resident set on the host"),
            false => ("peak_pool_reserved_gib", "pool reserved on the device"),
        };
        let (ours_peak_gib, peer_peak_gib) = (ours.done_f64(peak), peer.done_f64(peak));
        let ours_tape_bytes = ours.done("tape_bytes").as_u64();
        let peer_saved_bytes = peer.done("saved_bytes").as_u64();
        let images_per_s = |spread: &Option<Spread>| {
            let seconds = spread.as_ref().filter(|_| case.work == Work::Encode)?.median;
            Some(f64::from(case.batch) / seconds)
        };
        Self {
            case: case.name(),
            work: case.work.name(),
            device: case.device.clone(),
            batch: case.batch,
            caption_length: case.caption_length,
            precision: case.cell.precision(),
            ema: case.cell.ema,
            recompute: case.cell.recompute(),
            alternated: case.alternates() && outcome.peer.is_some(),
            pairs: if ratios.is_empty() { ours.pieces().len() } else { ratios.len() },
            time_ratio: stats::median(&ratios),
            time_ratio_interval: interval.map(|interval| interval.bounds),
            time_ratio_interval_coverage: interval.map(|interval| interval.coverage),
            peak_of,
            ours_peak_gib,
            peer_peak_gib,
            memory_ratio: ratio(ours_peak_gib, peer_peak_gib),
            ours_pool_in_use_gib: ours.done_f64("peak_pool_in_use_gib"),
            peer_pool_in_use_gib: peer.done_f64("peak_pool_in_use_gib"),
            ours_nvml_gib: ours.done_f64("peak_vram_gib"),
            ours_driver_gib: ours.0.and_then(|side| side.driver_gib),
            peer_driver_gib: peer.0.and_then(|side| side.driver_gib),
            ours_alloc_gib: ours.done_f64("peak_alloc_gib"),
            ours_tape_bytes,
            ours_planned_tape_bytes: ours.ready("planned_tape_bytes").as_u64(),
            peer_saved_bytes,
            tape_ratio: ratio(
                ours_tape_bytes.map(|bytes| bytes as f64),
                peer_saved_bytes.map(|bytes| bytes as f64),
            ),
            ours_images_per_s: images_per_s(&ours_s),
            peer_images_per_s: images_per_s(&peer_s),
            ours_loss: ours.done_f64("loss"),
            peer_loss: peer.done_f64("loss"),
            ours_skipped_steps: ours.done("skipped_steps").as_u64(),
            tf32: ours.done("tf32").as_bool(),
            peer_tf32: peer.done("tf32").as_bool(),
            compute_dtype: ours.ready("compute_dtype").clone(),
            ours_threads: ours.ready("threads").as_u64(),
            peer_threads: peer.ready("threads").as_u64(),
            ours_num_parameters: ours.ready("num_parameters").as_u64(),
            peer_num_parameters: peer.ready("num_parameters").as_u64(),
            ours_warm_up_s: ours.ready("warm_up_s").as_f64(),
            peer_warm_up_s: peer.ready("warm_up_s").as_f64(),
            ours_s,
            peer_s,
            failed: outcome.failed.clone(),
        }
    }

    /// The record of a case that has not begun.
    pub(super) fn not_reached(case: &Case) -> Self {
        let failed = Some("not reached".to_owned());
        Self::new(case, &Outcome { failed, ..Outcome::default() })
    }

    /// Its name, for a message.
    pub(super) fn name(&self) -> &str {
        &self.case
    }

    /// A row below [`TABLE_HEAD`].
    pub(super) fn row(&self) -> String {
        let seconds = |side: &Option<Spread>| match side {
            Some(Spread { median, min, max, .. }) => format!("{median:.3} ({min:.3} to {max:.3})"),
            None => "-".to_owned(),
        };
        let interval = match self.time_ratio_interval {
            Some([low, high]) => format!(" [{low:.3}, {high:.3}]"),
            None => String::new(),
        };
        let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
        let row = format!(
            "| {} | {} | {} | {}{interval} | {}, {} | {} | {}, {} | {} | {}, {} |",
            self.case,
            seconds(&self.ours_s),
            seconds(&self.peer_s),
            shown(self.time_ratio, 3),
            shown(self.ours_peak_gib, 2),
            shown(self.peer_peak_gib, 2),
            shown(self.memory_ratio, 3),
            shown(mib(self.ours_tape_bytes), 1),
            shown(mib(self.peer_saved_bytes), 1),
            shown(self.tape_ratio, 3),
            shown(self.ours_images_per_s, 2),
            shown(self.peer_images_per_s, 2),
        );
        match &self.failed {
            Some(reason) => format!("{row} failed: {reason}"),
            None => row,
        }
    }
}

/// What a side said, where it did.
#[derive(Clone, Copy)]
struct Answers<'a>(Option<&'a Measured>);

impl<'a> Answers<'a> {
    fn pieces(self) -> &'a [f64] {
        self.0.map_or(&[], |side| &side.told.pieces)
    }

    fn ready(self, key: &str) -> &'a Value {
        self.0.map_or(&Value::Null, |side| &side.told.ready[key])
    }

    fn done(self, key: &str) -> &'a Value {
        self.0.map_or(&Value::Null, |side| &side.told.done[key])
    }

    fn done_f64(self, key: &str) -> Option<f64> {
        self.done(key).as_f64()
    }
}

fn ratio(ours: Option<f64>, peer: Option<f64>) -> Option<f64> {
    let peer = peer.filter(|&peer| peer > 0.0)?;
    Some(ours? / peer)
}

fn shown(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests;
