//! `recompute`, the setting.

use serde::{Deserialize, Serialize};

/// What of a tower's forward is run again in the backward, instead of being kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Recompute {
    /// Nothing.
    Off,
    /// Every block.
    Block,
    /// Every block, so many at a time: fewer inputs are kept, and a longer tape is alive.
    Every(usize),
    /// The attention half of every block: its scores are what grows with the sequence.
    Attention,
}

impl TryFrom<String> for Recompute {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let every = || text.strip_prefix("every-")?.parse().ok().filter(|k| *k > 1);
        match text.as_str() {
            "off" => Ok(Self::Off),
            "block" => Ok(Self::Block),
            "attention" => Ok(Self::Attention),
            _ => every().map(Self::Every).ok_or_else(|| {
                format!("`{text}` is none of off, block, attention, and every-K with K from 2")
            }),
        }
    }
}

impl From<Recompute> for String {
    fn from(recompute: Recompute) -> Self {
        match recompute {
            Recompute::Off => "off".to_owned(),
            Recompute::Block => "block".to_owned(),
            Recompute::Every(k) => format!("every-{k}"),
            Recompute::Attention => "attention".to_owned(),
        }
    }
}
