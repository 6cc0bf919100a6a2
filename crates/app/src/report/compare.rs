//! Comparisons of two cells: how much less time or memory, and whether R@1 differs by more than
//! the queries' noise.

use std::collections::BTreeMap;

use serde::Serialize;
use tbps_metrics::bootstrap::{Interval, paired_difference};

use super::cell::CellId;
use super::figure::{Absent, Figure, Known, Notation, Source, Unit};
use super::load::{Matrix, Run, Status};

/// Resamples of the paired bootstrap.
pub(crate) const RESAMPLES: usize = 10_000;
/// Seed of the paired bootstrap's stream: fixed, so that a report can be made again.
pub(crate) const BOOTSTRAP_SEED: u64 = 0;

/// The difference of two cells in validation R@1.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Difference {
    /// Mean difference over the queries in percentage points, with its 95% interval as range.
    pub(crate) figure: Figure,
    /// What the interval says; `None` when there is no interval.
    pub(crate) verdict: Option<Verdict>,
}

/// What a 95% interval says about the sign of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Higher,
    Lower,
    /// The interval contains 0.
    NoDifference,
}

impl Difference {
    pub(crate) fn absent(reason: Absent) -> Difference {
        Difference { figure: Figure::absent(reason), verdict: None }
    }
}

/// Answers questions about pairs of cells, each bootstrap computed once.
pub(crate) struct Comparator<'a> {
    matrix: &'a Matrix,
    notation: Notation,
    known: BTreeMap<(CellId, CellId), Difference>,
}

impl<'a> Comparator<'a> {
    pub(crate) fn new(matrix: &'a Matrix, notation: Notation) -> Comparator<'a> {
        Comparator { matrix, notation, known: BTreeMap::new() }
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
        let (mean, range) = (interval.mean, [interval.low, interval.high]);
        let [low, high] = range.map(|end| self.notation.show(end, Unit::Points));
        let of = pairs.iter().flat_map(|(a, b)| [&a.id, &b.id]);
        let of = of.map(|id| format!("{id}:checkpoints/best/ranks.json.gz")).collect();
        let source = Source::Formula { formula: "paired_bootstrap", of };
        let figure = Figure::Known(Known {
            value: mean,
            range: Some(range),
            unit: Unit::Points,
            shown: self.notation.show(mean, Unit::Points),
            shown_range: Some(format!("[{low}, {high}]")),
            source,
        });
        Ok(Difference { figure, verdict: Some(verdict(&interval)) })
    }

    /// The finished runs of both cells that share a seed.
    fn done_pairs(&self, cell: CellId, base: CellId) -> Result<Vec<(&'a Run, &'a Run)>, Absent> {
        let ours = self.matrix.done(cell).map_err(Absent::NotDone)?;
        let theirs = self.matrix.done(base).map_err(|_| Absent::NoBaseline)?;
        let twin = |run: &'a Run| {
            theirs.iter().find(|other| other.seed == run.seed).map(|other| (run, *other))
        };
        let pairs: Vec<_> = ours.into_iter().filter_map(twin).collect();
        if pairs.is_empty() { Err(Absent::NotComparable) } else { Ok(pairs) }
    }
}

impl Matrix {
    /// The finished runs of `cell`, or the status of its first run when there is none.
    fn done(&self, cell: CellId) -> Result<Vec<&Run>, Status> {
        let runs: Vec<&Run> = self.runs.iter().filter(|run| run.cell == cell).collect();
        let done = runs.iter().copied().filter(|run| run.status == Status::Done);
        match done.collect::<Vec<_>>() {
            done if !done.is_empty() => Ok(done),
            _ => Err(runs.first().map_or(Status::Missing, |run| run.status)),
        }
    }
}

fn verdict(interval: &Interval) -> Verdict {
    match interval.contains_zero() {
        true => Verdict::NoDifference,
        false if interval.mean > 0.0 => Verdict::Higher,
        false => Verdict::Lower,
    }
}

/// Per query, the share of seeds that found it first, in percent, for both sides. Queries that
/// either side excluded (they have no positive) are left out of both.
fn paired_hits(ours: &[&Run], theirs: &[&Run]) -> Result<(Vec<f64>, Vec<f64>), Absent> {
    let ranks = |runs: &[&Run]| -> Result<Vec<Vec<Option<u32>>>, Absent> {
        let all: Option<Vec<_>> = runs.iter().map(|run| run.t2i_ranks.clone()).collect();
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

/// Whether a change is told as a saving or as a gain; both are negative when it went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// `100 (1 - x / base)`: how much less time or memory.
    Less,
    /// `100 (x / base - 1)`: how much more throughput.
    More,
}

/// The figure `key` of one cell relative to the same figure of another, in percent.
pub(crate) fn relative(
    notation: Notation,
    change: Change,
    key: &str,
    (cell, figure): (CellId, &Figure),
    (base, base_figure): (CellId, &Figure),
) -> Figure {
    if cell == base {
        return Figure::absent(Absent::NotApplicable);
    }
    let (value, base_value) = match (figure, base_figure) {
        (Figure::Absent { reason, .. }, _) => return Figure::absent(*reason),
        (_, Figure::Absent { reason: Absent::NotDone(_), .. }) => {
            return Figure::absent(Absent::NoBaseline);
        }
        (_, Figure::Absent { reason, .. }) => return Figure::absent(*reason),
        (Figure::Known(known), Figure::Known(base)) => (known.value, base.value),
    };
    if base_value == 0.0 {
        return Figure::absent(Absent::NotComparable);
    }
    let ratio = value / base_value;
    let (value, unit, formula) = match change {
        Change::Less => (100.0 * (1.0 - ratio), Unit::PercentLess, "percent_less"),
        Change::More => (100.0 * (ratio - 1.0), Unit::PercentMore, "percent_more"),
    };
    let of = [cell, base].map(|cell| format!("{}:{key}", cell.name())).to_vec();
    notation.known(value, unit, Source::Formula { formula, of })
}

#[cfg(test)]
mod tests {
    use super::super::figure::TimeUnit;
    use super::*;

    const NOTATION: Notation = Notation { time_unit: TimeUnit::Hours, gib_decimals: 2 };

    #[test]
    fn the_interval_decides_the_verdict() {
        let check = |low, high, expected| {
            let interval = Interval { mean: (low + high) / 2.0, low, high };
            assert_eq!(verdict(&interval), expected, "{interval:?}");
        };
        check(0.1, 2.0, Verdict::Higher);
        check(-2.0, -0.1, Verdict::Lower);
        check(-0.1, 2.0, Verdict::NoDifference);
        check(0.0, 2.0, Verdict::NoDifference);
    }

    #[test]
    fn a_saving_is_relative_to_the_base() {
        let amp = CellId { amp: true, ..CellId::BASELINE };
        let gib = |value| {
            let source = Source::Run { run: "r".to_owned(), key: "k".to_owned() };
            NOTATION.known(value, Unit::Gib, source)
        };
        let less = |a: &Figure, b: &Figure| {
            relative(NOTATION, Change::Less, "k", (amp, a), (CellId::BASELINE, b))
        };
        let saved = less(&gib(4.23), &gib(14.15));
        assert_eq!(saved.known().expect("both known").shown, "70.1");
        let wasted = less(&gib(3.0), &gib(2.0));
        assert_eq!(wasted.known().expect("both known").shown, "−50.0");
        let failed = Figure::absent(Absent::NotDone(Status::Oom));
        assert_eq!(less(&failed, &gib(2.0)), failed);
        assert_eq!(less(&gib(2.0), &failed), Figure::absent(Absent::NoBaseline));
        assert_eq!(less(&gib(2.0), &gib(0.0)), Figure::absent(Absent::NotComparable));
    }

    #[test]
    fn excluded_queries_leave_both_sides() {
        let run = |ranks: &[Option<u32>]| Run {
            id: String::new(),
            cell: CellId::BASELINE,
            seed: 0,
            status: Status::Done,
            note: None,
            summary: serde_json::Value::Null,
            provenance: serde_json::Value::Null,
            evaluations: Vec::new(),
            t2i_ranks: Some(ranks.to_vec()),
        };
        let a = run(&[Some(0), Some(3), None]);
        let b = run(&[Some(0), Some(0), Some(0)]);
        let hits = paired_hits(&[&a, &b], &[&b, &b]).expect("equal lengths");
        assert_eq!(hits, (vec![100.0, 50.0], vec![100.0, 100.0]));
        let short = run(&[Some(0)]);
        assert_eq!(paired_hits(&[&a], &[&short]), Err(Absent::NotComparable));
    }
}
