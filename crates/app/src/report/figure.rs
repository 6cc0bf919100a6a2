//! One number of the report: its value, how it is shown, and where it comes from. A number that
//! does not exist says why instead: there is no placeholder value.

use std::collections::BTreeMap;

use serde::Serialize;

use super::load::Status;
use super::notation::Notation;

/// A number with its source, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Figure {
    Known(Box<Known>),
    Absent {
        /// Always JSON's `null`, so that a reader of `value` never meets a made-up number.
        value: (),
        reason: Absent,
    },
}

/// A number that was measured, or computed from measured ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Known {
    /// Names the figure within the report: sources and the page refer to it.
    pub(crate) id: String,
    /// In `unit`.
    pub(crate) value: f64,
    /// Lowest and highest of the seeds, or the ends of a confidence interval; an end that is
    /// infinite (a target that a seed did not reach) is JSON's `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range: Option<[f64; 2]>,
    /// The seeds' own values, where there are several.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) by_seed: BTreeMap<u64, f64>,
    pub(crate) unit: Unit,
    /// Exactly the characters that stand in report.md and report.html.
    pub(crate) shown: String,
    /// The same for `range`; none where both ends equal the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shown_range: Option<String>,
    /// That a speed-up compares with f32 matrix products that ran in TF32.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tf32: bool,
    pub(crate) source: Source,
}

/// Why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Absent {
    /// No run of the cell is done, so its figures mean nothing.
    NotDone(Status),
    /// The run did not record it (`null` or no such key).
    NotMeasured,
    /// The target was reached by `reached` of `seeds` runs, too few for a finite median.
    NotReached { reached: usize, seeds: usize },
    /// There is no finished run to compare with.
    NoBaseline,
    /// The number has no meaning for this cell, such as a loss scale without a scaler.
    NotApplicable,
    /// The two cells did not rank the same queries.
    NotComparable,
    /// The two cells ran on different hardware.
    OtherHardware,
    /// The paper's page does not give it.
    NotPublished,
}

/// Where a number comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Source {
    /// A key of one of a run's files.
    Record { run: String, file: &'static str, key: String },
    /// A formula (explained under `formulas`) of records `run/file:key` and figures by their id.
    Formula { formula: &'static str, of: Vec<String> },
    /// The page of the paper: `"paper"`.
    Paper(&'static str),
}

impl Source {
    pub(crate) const PAPER: Source = Source::Paper("paper");

    pub(crate) fn record(run: &str, file: &'static str, key: impl Into<String>) -> Source {
        Source::Record { run: run.to_owned(), file, key: key.into() }
    }

    pub(crate) fn formula(formula: &'static str, of: impl IntoIterator<Item = String>) -> Source {
        Source::Formula { formula, of: of.into_iter().collect() }
    }

    /// In one line; a record as formulas refer to it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Source::Record { run, file, key } => format!("{run}/{file}:{key}"),
            Source::Formula { formula, of } => format!("{formula}({})", of.join(", ")),
            Source::Paper(paper) => (*paper).to_owned(),
        }
    }
}

/// What a value counts; times are kept in seconds whatever unit they are shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    #[serde(rename = "percent")]
    Percent,
    #[serde(rename = "percentage points")]
    Points,
    #[serde(rename = "percent less")]
    PercentLess,
    #[serde(rename = "percent more")]
    PercentMore,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "h")]
    Hours,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "GiB")]
    Gib,
    #[serde(rename = "samples/s")]
    SamplesPerSecond,
    #[serde(rename = "count")]
    Count,
}

/// One seed's value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) seed: u64,
    /// Infinite where a target was not reached.
    pub(crate) value: f64,
    /// What a median of several refers to: a record, or a figure's id.
    pub(crate) reference: String,
    pub(crate) source: Source,
}

impl Measured {
    /// A value that a file of the run records.
    pub(crate) fn recorded(seed: u64, value: f64, source: Source) -> Measured {
        Measured { seed, value, reference: source.describe(), source }
    }
}

impl Known {
    /// A single number.
    pub(crate) fn new(
        notation: Notation,
        id: impl Into<String>,
        value: f64,
        unit: Unit,
        source: Source,
    ) -> Known {
        Known {
            id: id.into(),
            value,
            range: None,
            by_seed: BTreeMap::new(),
            unit,
            shown: notation.show(value, unit),
            shown_range: None,
            tf32: false,
            source,
        }
    }

    /// The same with the seeds' values, whose lowest and highest are its range.
    pub(crate) fn over_seeds(
        mut self,
        notation: Notation,
        seeds: impl IntoIterator<Item = (u64, f64)>,
    ) -> Known {
        let by_seed: BTreeMap<u64, f64> = seeds.into_iter().collect();
        if by_seed.len() < 2 {
            return self;
        }
        let low = by_seed.values().copied().fold(f64::INFINITY, f64::min);
        let high = by_seed.values().copied().fold(f64::NEG_INFINITY, f64::max);
        let show = |end: f64| match end.is_finite() {
            true => notation.show(end, self.unit),
            false => "∞".to_owned(),
        };
        // A dash beside a sign would read as one.
        let signed = self.unit == Unit::Points || low < 0.0;
        let dash = if signed { " … " } else { "–" };
        self.shown_range = (low < high).then(|| format!("{}{dash}{}", show(low), show(high)));
        self.range = Some([low, high]);
        self.by_seed = by_seed.into_iter().filter(|(_, value)| value.is_finite()).collect();
        self
    }
}

impl Figure {
    pub(crate) fn absent(reason: Absent) -> Figure {
        Figure::Absent { value: (), reason }
    }

    pub(crate) fn known(&self) -> Option<&Known> {
        match self {
            Figure::Known(known) => Some(known),
            Figure::Absent { .. } => None,
        }
    }

    pub(crate) fn value(&self) -> Option<f64> {
        self.known().map(|known| known.value)
    }

    /// The median of the seeds with their range; one seed is shown as itself. A target that was not
    /// reached is infinitely far: where the median is, there is none.
    pub(crate) fn median(
        notation: Notation,
        id: impl Into<String>,
        unit: Unit,
        values: &[Measured],
    ) -> Figure {
        let mut sorted: Vec<f64> = values.iter().map(|measured| measured.value).collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let value = match sorted.len() {
            0 => return Figure::absent(Absent::NotMeasured),
            n if n % 2 == 0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        };
        if value.is_infinite() {
            let reached = sorted.iter().filter(|value| value.is_finite()).count();
            return Figure::absent(Absent::NotReached { reached, seeds: sorted.len() });
        }
        let source = match values {
            [one] => one.source.clone(),
            _ => Source::formula("median_of_seeds", values.iter().map(|m| m.reference.clone())),
        };
        let known = Known::new(notation, id, value, unit, source);
        known.over_seeds(notation, values.iter().map(|m| (m.seed, m.value))).into()
    }
}

impl From<Known> for Figure {
    fn from(known: Known) -> Figure {
        Figure::Known(Box::new(known))
    }
}

#[cfg(test)]
mod tests {
    use super::super::notation::TimeUnit;
    use super::*;

    const HOURS: Notation = Notation { time_unit: TimeUnit::Hours, gib_decimals: 2 };

    fn median(unit: Unit, values: &[f64]) -> Figure {
        let measured = |(seed, &value): (usize, &f64)| {
            let source = Source::record(&format!("amp.s{seed}"), "summary.json", "val.r1");
            Measured::recorded(seed as u64, value, source)
        };
        let values: Vec<Measured> = values.iter().enumerate().map(measured).collect();
        Figure::median(HOURS, "amp:val_r1", unit, &values)
    }

    #[test]
    fn several_seeds_give_median_and_range() {
        let figure = median(Unit::Percent, &[70.5, 70.0, 72.0]);
        let known = figure.known().unwrap();
        assert_eq!((known.value, known.range), (70.5, Some([70.0, 72.0])));
        assert_eq!(known.shown, "70.50");
        assert_eq!(known.shown_range.as_deref(), Some("70.00–72.00"));
        assert_eq!(median(Unit::Percent, &[1.0, 2.0]).value(), Some(1.5));
        let signed = median(Unit::PercentLess, &[-25.6, -7.6]);
        assert_eq!(signed.known().unwrap().shown_range.as_deref(), Some("−25.6 … −7.6"));
        let one = median(Unit::Percent, &[1.0]);
        assert_eq!(one.known().unwrap().source.describe(), "amp.s0/summary.json:val.r1");
    }

    #[test]
    fn what_was_not_reached_is_infinitely_far() {
        let never = f64::INFINITY;
        let figure = median(Unit::Seconds, &[never, 3600.0, 7200.0]);
        assert_eq!(figure.value(), Some(7200.0));
        assert_eq!(figure.known().unwrap().shown_range.as_deref(), Some("1.00–∞"));
        let json = serde_json::to_value(&figure).unwrap();
        assert_eq!(json["range"], serde_json::json!([3600.0, null]));
        assert_eq!(json["by_seed"].as_object().unwrap().len(), 2);
        let none = |reached, seeds| Figure::absent(Absent::NotReached { reached, seeds });
        assert_eq!(median(Unit::Seconds, &[never, 3600.0]), none(1, 2));
        assert_eq!(median(Unit::Seconds, &[never, never, 3600.0]), none(1, 3));
    }

    #[test]
    fn an_absent_number_is_null_with_a_reason() {
        let absent = Figure::absent(Absent::NotReached { reached: 1, seeds: 3 });
        let json = serde_json::to_value(absent).expect("plain data");
        assert!(json["value"].is_null());
        assert_eq!(json["reason"]["not_reached"]["reached"], 1);
    }
}
