//! The ways a task ends early that have an exit status of their own.

use std::fmt;

/// Exit status of every ending that is not in [`Halt`].
const FAILED: u8 = 1;

/// Why a task stopped; carried inside an `anyhow::Error` up to `main`.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The command line or the state it points at makes no sense: exit status 2, nothing was
    /// started.
    Usage(String),
    /// Someone asked us to stop, and the same command goes on from here: exit status 130.
    Interrupted(String),
}

impl Halt {
    /// The exit status that belongs to an error, found anywhere in its chain.
    pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
        match error.downcast_ref::<Self>() {
            Some(Self::Usage(_)) => 2,
            Some(Self::Interrupted(_)) => 130,
            None => FAILED,
        }
    }

    /// A usage error as an `anyhow::Error`.
    pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
        Self::Usage(message.into()).into()
    }
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Interrupted(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Halt {}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn exit_code_survives_added_context() {
        let usage: anyhow::Result<()> = Err(Halt::usage("no data"));
        assert_eq!(Halt::exit_code(&usage.context("preparing").unwrap_err()), 2);
        assert_eq!(Halt::exit_code(&Halt::Interrupted("stopped".into()).into()), 130);
        assert_eq!(Halt::exit_code(&anyhow!("anything else")), 1);
    }
}
