//! How numbers are written, the same throughout a report.

use serde::Serialize;

use super::figure::Unit;

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

/// What the numbers of a report have in common.
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
            Unit::Percent | Unit::Hours => decimals(value, 2),
            Unit::Points => minus(format!("{value:+.2}")),
            Unit::PercentLess | Unit::PercentMore => decimals(value, 1),
            Unit::Seconds if self.time_unit == TimeUnit::Seconds => decimals(value, 1),
            Unit::Seconds => decimals(self.time_unit.of(value), 2),
            Unit::Milliseconds => decimals(value, if value.abs() < 100.0 { 1 } else { 0 }),
            Unit::Gib => decimals(value, self.gib_decimals),
            Unit::SamplesPerSecond => decimals(value, if value < 1000.0 { 1 } else { 0 }),
            Unit::Count => minus(format!("{value}")),
        }
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
        check(12.34, Unit::Milliseconds, "12.3");
        check(123.4, Unit::Milliseconds, "123");
        check(65_536.0, Unit::Count, "65536");
        check(0.5, Unit::Count, "0.5");
    }
}
