//! Comparisons of two cells: how much less time or memory, and whether R@1 differs by more than
//! the noise of the queries and of the seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tbps_metrics::bootstrap::{Interval, paired_difference};

use super::agree::Hardware;
use super::cell::CellId;
use super::figure::{Absent, Figure, Known, Source, Unit};
use super::load::{Matrix, RANKS, Run, Status};
use super::notation::Notation;

/// Resamples of the paired bootstrap.
pub(crate) const RESAMPLES: usize = 10_000;
/// Seed of the paired bootstrap's stream: fixed, so that a report can be made again.
pub(crate) const BOOTSTRAP_SEED: u64 = 0;
/// Figures whose change is a speed-up or a slow-down.
const SPEEDS: [&str; 4] = ["train_s_to_best", "e2e_s_to_best", "samples_per_s", "step_ms"];

/// The difference of two cells in R@1 on the selection split.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Difference {
    /// Mean difference over the queries in percentage points, with its 95% interval as range.
    pub(crate) figure: Figure,
    /// The median of the seeds' own differences and their lowest and highest, where there are
    /// several.
    pub(crate) seeds: Figure,
    /// What interval and seeds say; `None` when there is no interval.
    pub(crate) verdict: Option<Verdict>,
}

/// What can be said about the sign of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Higher,
    Lower,
    /// The interval contains 0, or the seeds do not agree on the sign.
    NoDifference,
}

impl Difference {
    pub(crate) fn absent(reason: Absent) -> Difference {
        let seeds = Figure::absent(Absent::NotApplicable);
        Difference { figure: Figure::absent(reason), seeds, verdict: None }
    }
}

/// Whether a change is told as a saving or as a gain; both are negative when it went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// `100 (1 - x / base)`: how much less time or memory.
    Less,
    /// `100 (x / base - 1)`: how much more throughput.
    More,
}

impl Change {
    fn percent(self, value: f64, base: f64) -> f64 {
        match self {
            Change::Less => 100.0 * (1.0 - value / base),
            Change::More => 100.0 * (value / base - 1.0),
        }
    }
}

/// Answers questions about pairs of cells, each bootstrap computed once.
pub(crate) struct Comparator<'a> {
    matrix: &'a Matrix,
    notation: Notation,
    /// The kinds of machines of the runs.
    letters: Vec<(String, char)>,
    known: BTreeMap<(CellId, CellId), Difference>,
}

impl<'a> Comparator<'a> {
    pub(crate) fn new(
        matrix: &'a Matrix,
        notation: Notation,
        hardware: &[Hardware],
    ) -> Comparator<'a> {
        let of = |kind: &'_ Hardware| {
            let letter = kind.letter;
            kind.runs.iter().map(move |run| (run.clone(), letter)).collect::<Vec<_>>()
        };
        let letters = hardware.iter().flat_map(of).collect();
        Comparator { matrix, notation, letters, known: BTreeMap::new() }
    }

    /// R@1 of `cell` less R@1 of `base`, paired by query.
    pub(crate) fn r1(&mut self, cell: CellId, base: CellId) -> Difference {
        if let Some(known) = self.known.get(&(cell, base)) {
            return known.clone();
        }
        let difference = self.compute(cell, base).unwrap_or_else(Difference::absent);
        self.known.insert((cell, base), difference.clone());
        difference
    }

    fn compute(&self, cell: CellId, base: CellId) -> Result<Difference, Absent> {
        if cell == base {
            return Err(Absent::NotApplicable);
        }
        let pairs = self.done_pairs(cell, base)?;
        let ours: Vec<&Run> = pairs.iter().map(|pair| pair.0).collect();
        let theirs: Vec<&Run> = pairs.iter().map(|pair| pair.1).collect();
        let (a, b) = paired_hits(&ours, &theirs)?;
        let interval = paired_difference(&a, &b, RESAMPLES, BOOTSTRAP_SEED)
            .map_err(|_| Absent::NotComparable)?;
        let range = [interval.low, interval.high];
        let [low, high] = range.map(|end| self.notation.show(end, Unit::Points));
        let of = pairs.iter().flat_map(|(a, b)| [&a.id, &b.id]);
        let source = Source::formula("paired_bootstrap", of.map(|id| format!("{id}/{RANKS}:t2i")));
        let id = format!("{}:r1_vs_{}", cell.name(), base.name());
        let known = Known::new(self.notation, id.as_str(), interval.mean, Unit::Points, source);
        let figure =
            Known { range: Some(range), shown_range: Some(format!("[{low}, {high}]")), ..known };
        let by_seed = seed_differences(&pairs)?;
        let verdict = Some(verdict(&interval, by_seed.values().copied()));
        let seeds = self.seed_spread(&id, cell, base, by_seed);
        Ok(Difference { figure: figure.into(), seeds, verdict })
    }

    /// The seeds' differences as a figure of its own, where there are several.
    fn seed_spread(
        &self,
        id: &str,
        cell: CellId,
        base: CellId,
        by_seed: BTreeMap<u64, f64>,
    ) -> Figure {
        if by_seed.len() < 2 {
            return Figure::absent(Absent::NotApplicable);
        }
        let mut sorted: Vec<f64> = by_seed.values().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => (sorted[half - 1] + sorted[half]) / 2.0,
            _ => sorted[half],
        };
        let of = [cell, base].map(|cell| format!("{}:val_r1", cell.name()));
        let source = Source::formula("difference_by_seed", of);
        let id = format!("{id}_seeds");
        let known = Known::new(self.notation, id, median, Unit::Points, source);
        known.over_seeds(self.notation, by_seed).into()
    }

    /// The finished runs of both cells that share a seed.
    fn done_pairs(&self, cell: CellId, base: CellId) -> Result<Vec<(&'a Run, &'a Run)>, Absent> {
        let ours = self.done(cell).map_err(Absent::NotDone)?;
        let theirs = self.done(base).map_err(|_| Absent::NoBaseline)?;
        let twin = |run: &'a Run| {
            theirs.iter().find(|other| other.seed == run.seed).map(|other| (run, *other))
        };
        let pairs: Vec<_> = ours.into_iter().filter_map(twin).collect();
        if pairs.is_empty() { Err(Absent::NotComparable) } else { Ok(pairs) }
    }

    /// The finished runs of `cell`, or the status of its first run when there is none.
    fn done(&self, cell: CellId) -> Result<Vec<&'a Run>, Status> {
        let runs = self.matrix.of(cell);
        let done = runs.iter().copied().filter(|run| run.status == Status::Done);
        match done.collect::<Vec<_>>() {
            done if !done.is_empty() => Ok(done),
            _ => Err(runs.first().map_or(Status::Missing, |run| run.status)),
        }
    }

    /// How much the figure `key` of one cell changed from another's, in percent: from median to
    /// median, with the seeds' own changes as range.
    pub(crate) fn relative(
        &self,
        change: Change,
        key: &str,
        (cell, figure): (CellId, &Figure),
        (base, base_figure): (CellId, &Figure),
    ) -> Figure {
        if cell == base {
            return Figure::absent(Absent::NotApplicable);
        }
        let (known, base_known) = match (figure, base_figure) {
            (Figure::Absent { reason, .. }, _) => return Figure::absent(*reason),
            (_, Figure::Absent { reason: Absent::NotDone(_), .. }) => {
                return Figure::absent(Absent::NoBaseline);
            }
            (_, Figure::Absent { reason, .. }) => return Figure::absent(*reason),
            (Figure::Known(known), Figure::Known(base)) => (known, base),
        };
        if base_known.value == 0.0 {
            return Figure::absent(Absent::NotComparable);
        }
        let [ours, theirs] = [cell, base].map(|cell| self.machines(cell));
        if !ours.is_empty() && !theirs.is_empty() && ours != theirs {
            return Figure::absent(Absent::OtherHardware);
        }
        let (unit, formula) = match change {
            Change::Less => (Unit::PercentLess, "percent_less"),
            Change::More => (Unit::PercentMore, "percent_more"),
        };
        let value = change.percent(known.value, base_known.value);
        let source = Source::formula(formula, [known.id.clone(), base_known.id.clone()]);
        let suffix = formula.trim_start_matches("percent_");
        let id = format!("{}:{key}_{suffix}_vs_{}", cell.name(), base.name());
        let by_seed = known.by_seed.iter().filter_map(|(seed, value)| {
            let base = base_known.by_seed.get(seed).filter(|base| **base != 0.0)?;
            Some((*seed, change.percent(*value, *base)))
        });
        let known = Known::new(self.notation, id, value, unit, source);
        let known = known.over_seeds(self.notation, by_seed);
        let tf32 = SPEEDS.contains(&key) && (self.is_tf32(cell) || self.is_tf32(base));
        Known { tf32, ..known }.into()
    }

    fn is_tf32(&self, cell: CellId) -> bool {
        self.matrix.of(cell).iter().any(|run| run.tf32())
    }

    /// The kinds of machines that the finished runs of a cell ran on; none where no record says so.
    fn machines(&self, cell: CellId) -> BTreeSet<char> {
        let done = self.matrix.of(cell).into_iter().filter(|run| run.status == Status::Done);
        let letters = done.flat_map(|run| self.letters.iter().filter(move |of| of.0 == run.id));
        letters.map(|(_, letter)| *letter).collect()
    }
}

fn verdict(interval: &Interval, by_seed: impl Iterator<Item = f64> + Clone) -> Verdict {
    let same_sign = |sign: f64| by_seed.clone().all(|difference| difference * sign > 0.0);
    match interval.contains_zero() {
        false if interval.mean > 0.0 && same_sign(1.0) => Verdict::Higher,
        false if interval.mean < 0.0 && same_sign(-1.0) => Verdict::Lower,
        _ => Verdict::NoDifference,
    }
}

/// The difference in R@1 that each pair of runs recorded, in percentage points.
fn seed_differences(pairs: &[(&Run, &Run)]) -> Result<BTreeMap<u64, f64>, Absent> {
    let r1 = |run: &Run| run.summary["val"]["r1"].as_f64().ok_or(Absent::NotMeasured);
    pairs.iter().map(|(a, b)| Ok((a.seed, r1(a)? - r1(b)?))).collect()
}

/// Per query, the share of seeds that found it first, in percent, for both sides. Queries that
/// either side excluded (they have no positive) are left out of both.
fn paired_hits(ours: &[&Run], theirs: &[&Run]) -> Result<(Vec<f64>, Vec<f64>), Absent> {
    let ranks = |runs: &[&'_ Run]| -> Result<Vec<Vec<Option<u32>>>, Absent> {
        let all: Option<Vec<_>> =
            runs.iter().map(|run| run.t2i_ranks().map(<[_]>::to_vec)).collect();
        all.ok_or(Absent::NotMeasured)
    };
    let (ours, theirs) = (ranks(ours)?, ranks(theirs)?);
    let num_queries = ours.first().map_or(0, Vec::len);
    if ours.iter().chain(&theirs).any(|ranks| ranks.len() != num_queries) {
        return Err(Absent::NotComparable);
    }
    let hits = |side: &[Vec<Option<u32>>], query: usize| -> Option<f64> {
        let per_seed: Option<Vec<u32>> = side.iter().map(|ranks| ranks[query]).collect();
        let first = per_seed?.iter().filter(|&&rank| rank == 0).count();
        Some(100.0 * first as f64 / side.len() as f64)
    };
    let both = (0..num_queries).filter_map(|q| Some((hits(&ours, q)?, hits(&theirs, q)?)));
    let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
    if a.is_empty() { Err(Absent::NotComparable) } else { Ok((a, b)) }
}

#[cfg(test)]
mod tests;
