//! A part of a matrix's trainings, for one of several machines.

use std::fmt;
use std::str::FromStr;

/// The i-th of n parts, such as `2/3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1 to `count`.
    index: u64,
    count: u64,
}

impl Shard {
    /// How many parts there are.
    pub(crate) fn count(self) -> u64 {
        self.count
    }

    /// Whether the nth training of the matrix, from 0, is in this part. The parts take turns, so
    /// that each has cells of every kind.
    pub(crate) fn takes(self, nth: usize) -> bool {
        nth as u64 % self.count == self.index - 1
    }

    /// A file name's part, such as `2-of-3`.
    pub(crate) fn slug(self) -> String {
        format!("{}-of-{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Self { index, count }),
            _ => Err("one part of several is needed, such as 1/3, 2/3 or 3/3".into()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_training_is_in_one_part() {
        let shards: Vec<Shard> =
            ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for nth in 0..16 {
            assert_eq!(shards.iter().filter(|shard| shard.takes(nth)).count(), 1, "{nth}");
        }
        assert!((0..16).all(|nth| "1/1".parse::<Shard>().unwrap().takes(nth)));
        assert_eq!(shards[1].to_string(), "2/3");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "1", "0/3", "4/3", "-1/3", "1/0", "a/b", "1/3/3"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
