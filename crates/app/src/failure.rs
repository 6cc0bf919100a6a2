//! How a command ends when it does not succeed: the exit status that goes with an error.

use std::fmt;

/// An error with an exit status of its own; every other error ends with status 1.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bad usage or configuration: status 2.
    Usage(String),
    /// Interrupted, and resumable: status 130.
    Interrupted(String),
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
        Self::Usage(message.into()).into()
    }

    /// The exit status of any error of the program.
    pub(crate) fn exit_status(error: &anyhow::Error) -> u8 {
        match error.downcast_ref() {
            Some(Self::Usage(_)) => 2,
            Some(Self::Interrupted(_)) => 130,
            None => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Interrupted(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}
