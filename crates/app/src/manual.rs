//! Shell completions and manual pages, made of the command line itself.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::print;
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::fs;
use std::path::Path;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tbps", &mut script);
    print(&String::from_utf8(script)?)
}

/// Writes `tbps.1` and a page for each command into a folder.
pub(crate) fn man(folder: &Path) -> Result<()> {
    let shown = folder.display();
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::usage(format!("cannot write into {shown}: it is no folder")));
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {shown}"))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write into {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        man(folder.path()).unwrap();
        for page in ["tbps.1", "tbps-search.1", "tbps-data-check.1"] {
            let text = fs::read_to_string(folder.path().join(page)).unwrap();
            assert!(text.contains(".SH NAME"), "{page}: {text}");
        }
        assert!(!folder.path().join("tbps-record-oom.1").exists());
    }
}
