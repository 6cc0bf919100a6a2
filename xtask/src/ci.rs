//! `cargo xtask ci`: what every commit must pass, cheapest first, stopping at the first failure.

mod edges;
mod size;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use crate::workspace;

/// Which checks to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Runs only these checks
    #[arg(long, value_name = "CHECKS", value_delimiter = ',')]
    only: Vec<Check>,
}

/// One check, in the order they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Check {
    /// rustfmt
    Fmt,
    /// Which crate may depend on which, and on burn
    Edges,
    /// No source file is too long
    Size,
    /// Lints, warnings are errors
    Clippy,
    /// The same lints where CUDA is built for, up to the link
    Cuda,
    /// All tests
    Test,
    /// The documentation builds without a warning
    Doc,
}

/// Runs the checks.
///
/// # Errors
/// At the first check that fails, naming it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = workspace::root()?;
    for &check in selected(&options.only) {
        println!("== {}", check.name());
        let began = Instant::now();
        check.run(&root).with_context(|| format!("check '{}' failed", check.name()))?;
        println!("== {} passed in {:.1} s", check.name(), began.elapsed().as_secs_f64());
    }
    Ok(())
}

/// The chosen checks in their own order, all if none is chosen.
fn selected(only: &[Check]) -> impl Iterator<Item = &'static Check> {
    Check::value_variants().iter().filter(move |check| only.is_empty() || only.contains(check))
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Edges => "edges",
            Self::Size => "size",
            Self::Clippy => "clippy",
            Self::Cuda => "cuda",
            Self::Test => "test",
            Self::Doc => "doc",
        }
    }

    fn run(self, root: &Path) -> Result<()> {
        let cargo = |args: &str| {
            let mut command = workspace::cargo();
            command.args(args.split_whitespace()).current_dir(root);
            command
        };
        match self {
            Self::Fmt => succeed(&mut cargo("fmt --all --check")),
            Self::Edges => edges::check(root),
            Self::Size => size::check(root),
            Self::Clippy => succeed(&mut cargo("clippy --workspace --all-targets -- -D warnings")),
            Self::Cuda => {
                let mut clippy =
                    cargo("clippy -p tbps --all-targets --features cuda,cube-cpu -- -D warnings");
                // The LLVM that only a link needs is neither looked for nor fetched.
                succeed(clippy.env("DOCS_RS", "1"))
            }
            Self::Test => succeed(&mut cargo("test --workspace")),
            Self::Doc => {
                let mut doc = cargo("doc --workspace --no-deps");
                succeed(doc.env("RUSTDOCFLAGS", "-D warnings"))
            }
        }
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().context("cargo cannot be started")?;
    if !status.success() {
        bail!("its message is above");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_keeps_the_order_cheapest_first() {
        let names = |only: &[Check]| selected(only).map(|check| check.name()).collect::<Vec<_>>();
        assert_eq!(names(&[]), ["fmt", "edges", "size", "clippy", "cuda", "test", "doc"]);
        assert_eq!(names(&[Check::Doc, Check::Fmt]), ["fmt", "doc"]);
    }
}
