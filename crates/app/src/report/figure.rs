//! One number of the report: its value, how it is shown, and where it comes from. A number that
//! does not exist says why instead: there is no placeholder value.

use serde::Serialize;

use super::load::Status;

/// A number with its source, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Figure {
    Known(Known),
    Absent {
        /// Always JSON's `null`, so that a reader of `value` never meets a made-up number.
        value: (),
        reason: Absent,
    },
}

/// A number that was measured, or computed from measured ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Known {
    /// In `unit`.
    pub(crate) value: f64,
    /// Lowest and highest of the seeds, or the ends of a confidence interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range: Option<[f64; 2]>,
    pub(crate) unit: Unit,
    /// Exactly the characters that stand in report.md and report.html.
    pub(crate) shown: String,
    /// The same for `range`; none where both ends equal the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shown_range: Option<String>,
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
    /// The target was reached by `reached` of `seeds` runs, not by all.
    NotReached { reached: usize, seeds: usize },
    /// There is no finished run to compare with.
    NoBaseline,
    /// The number has no meaning for this cell, such as a loss scale without a scaler.
    NotApplicable,
    /// The two cells did not rank the same queries.
    NotComparable,
}

/// Where a number comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Source {
    /// A key of a run's summary.json.
    Run { run: String, key: String },
    /// A formula (explained under `formulas`) of other numbers: `run:key` or `cell:figure`.
    Formula { formula: &'static str, of: Vec<String> },
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
    #[serde(rename = "GiB")]
    Gib,
    #[serde(rename = "samples/s")]
    SamplesPerSecond,
    #[serde(rename = "count")]
    Count,
}

/// The unit that times are shown in: one for the whole report, so that columns compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum TimeUnit {
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "min")]
    Minutes,
    #[serde(rename = "h")]
    Hours,
}

impl TimeUnit {
    /// The unit in which the longest time of the report reads well.
    pub(crate) fn for_longest(seconds: f64) -> TimeUnit {
        match seconds {
            s if s < 600.0 => TimeUnit::Seconds,
            s if s < 3.0 * 3600.0 => TimeUnit::Minutes,
            _ => TimeUnit::Hours,
        }
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            TimeUnit::Seconds => "s",
            TimeUnit::Minutes => "min",
            TimeUnit::Hours => "h",
        }
    }

    /// `seconds` in this unit.
    pub(crate) fn of(self, seconds: f64) -> f64 {
        match self {
            TimeUnit::Seconds => seconds,
            TimeUnit::Minutes => seconds / 60.0,
            TimeUnit::Hours => seconds / 3600.0,
        }
    }
}

/// How numbers are written, the same throughout a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Notation {
    pub(crate) time_unit: TimeUnit,
    pub(crate) gib_decimals: usize,
}

impl Notation {
    /// `value`, which is in `unit`, as people read it (without the unit's symbol).
    pub(crate) fn show(self, value: f64, unit: Unit) -> String {
        let decimals = |value: f64, decimals: usize| minus(format!("{value:.decimals$}"));
        match unit {
            Unit::Percent => decimals(value, 2),
            Unit::Points => minus(format!("{value:+.2}")),
            Unit::PercentLess | Unit::PercentMore => decimals(value, 1),
            Unit::Seconds if self.time_unit == TimeUnit::Seconds => decimals(value, 1),
            Unit::Seconds => decimals(self.time_unit.of(value), 2),
            Unit::Gib => decimals(value, self.gib_decimals),
            Unit::SamplesPerSecond => decimals(value, if value < 1000.0 { 1 } else { 0 }),
            Unit::Count => minus(format!("{value}")),
        }
    }

    /// A single number with its source.
    pub(crate) fn known(self, value: f64, unit: Unit, source: Source) -> Figure {
        let shown = self.show(value, unit);
        Figure::Known(Known { value, range: None, unit, shown, shown_range: None, source })
    }

    /// The median of the seeds with their range; one seed is shown as itself.
    pub(crate) fn median(self, values: &[(f64, String, String)], unit: Unit) -> Figure {
        if let [(value, run, key)] = values {
            let source = Source::Run { run: run.clone(), key: key.clone() };
            return self.known(*value, unit, source);
        }
        let mut sorted: Vec<f64> = values.iter().map(|(value, ..)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&low), Some(&high)) = (sorted.first(), sorted.last()) else {
            return Figure::absent(Absent::NotMeasured);
        };
        let middle = sorted.len() / 2;
        let value = match sorted.len() % 2 {
            0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        };
        let shown_range =
            (low < high).then(|| format!("{}–{}", self.show(low, unit), self.show(high, unit)));
        let of = values.iter().map(|(_, run, key)| format!("{run}:{key}")).collect();
        let source = Source::Formula { formula: "median_of_seeds", of };
        let (shown, range) = (self.show(value, unit), Some([low, high]));
        Figure::Known(Known { value, range, unit, shown, shown_range, source })
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
}

/// A typographic minus; what rounds to zero loses its sign.
fn minus(text: String) -> String {
    let digits = text.trim_start_matches(['+', '-']);
    if digits.chars().all(|c| matches!(c, '0' | '.')) {
        return digits.to_owned();
    }
    text.replacen('-', "−", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOURS: Notation = Notation { time_unit: TimeUnit::Hours, gib_decimals: 2 };

    #[test]
    fn numbers_read_as_people_write_them() {
        let check = |value, unit, expected: &str| assert_eq!(HOURS.show(value, unit), expected);
        check(70.0065, Unit::Percent, "70.01");
        check(-0.001, Unit::Percent, "0.00");
        check(0.001, Unit::Points, "0.00");
        check(1.05, Unit::Points, "+1.05");
        check(-1.05, Unit::Points, "−1.05");
        check(30_744.0, Unit::Seconds, "8.54");
        check(65_536.0, Unit::Count, "65536");
        check(0.5, Unit::Count, "0.5");
    }

    #[test]
    fn several_seeds_give_median_and_range() {
        let seed = |value: f64, s: usize| (value, format!("amp.s{s}"), "val.r1".to_owned());
        let figure = HOURS.median(&[seed(70.5, 0), seed(70.0, 1), seed(72.0, 2)], Unit::Percent);
        let known = figure.known().expect("three values");
        assert_eq!((known.value, known.range), (70.5, Some([70.0, 72.0])));
        assert_eq!(known.shown, "70.50");
        assert_eq!(known.shown_range.as_deref(), Some("70.00–72.00"));
        let Figure::Known(two) = HOURS.median(&[seed(1.0, 0), seed(2.0, 1)], Unit::Percent) else {
            panic!("two values have a median");
        };
        assert_eq!(two.value, 1.5);
    }

    #[test]
    fn an_absent_number_is_null_with_a_reason() {
        let absent = Figure::absent(Absent::NotReached { reached: 1, seeds: 3 });
        let json = serde_json::to_value(absent).expect("plain data");
        assert!(json["value"].is_null());
        assert_eq!(json["reason"]["not_reached"]["reached"], 1);
    }
}
