//! How a command ends when it does not succeed: one line, and the exit status that goes with it.

use std::fmt;

/// Exit status of what was interrupted and can be resumed.
pub(crate) const INTERRUPTED: u8 = 130;

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
            Some(Self::Interrupted(_)) => INTERRUPTED,
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

/// An error and its causes on one line. A cause that the message before it spells out already is
/// not repeated.
pub(crate) fn line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if line.is_empty() {
            line = text;
        } else if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
    }
    line.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn causes_follow_unless_they_are_told() {
        let error = anyhow!("no such file").context("cannot read a: no such file").context("b");
        assert_eq!(line(&error), "b: cannot read a: no such file");
        assert_eq!(line(&anyhow!("two\nlines").context("c")), "c: two lines");
    }
}
