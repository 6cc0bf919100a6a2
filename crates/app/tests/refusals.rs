//! Bad input, end to end: each is refused with one line that says what is wrong, with exit status 2
//! for usage and configuration and 1 for everything else, before anything is trained or written.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "refusals/data.rs"]
mod data;
#[path = "refusals/runs.rs"]
mod runs;
#[path = "refusals/scores.rs"]
mod scores;
#[path = "refusals/settings.rs"]
mod settings;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{error_line, smoke_config, tbps, train_command};
use tempfile::TempDir;

const USAGE: i32 = 2;
const FAILURE: i32 = 1;

/// Runs a command that must be refused with `status` and a line that has `expected` in it.
fn refused(command: &mut Command, status: i32, expected: &str) {
    let output = command.output().unwrap();
    let line = error_line(&output);
    assert!(line.contains(expected), "expected `{expected}` in: {line}");
    assert_eq!(output.status.code(), Some(status), "{line}");
}

/// As [`refused`], of a training into `folder`, which must be left as it was.
fn refused_in(folder: &Path, command: &mut Command, status: i32, expected: &str) {
    let before = listing(folder);
    refused(command, status, expected);
    assert_eq!(listing(folder), before, "{expected}: something was left behind");
}

/// Every file and folder below `folder`, with the sizes of files.
fn listing(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(listing(&entry.path()));
            found.push((entry.path(), 0));
        } else {
            found.push((entry.path(), entry.metadata().unwrap().len()));
        }
    }
    found.sort();
    found
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Cuts a file to its first `len` bytes.
fn cut(path: &Path, len: u64) {
    fs::File::options().write(true).open(path).unwrap().set_len(len).unwrap();
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn command_lines() {
    for (args, expected) in [
        (&["fly"][..], "unrecognized subcommand 'fly'; see --help"),
        (&["train", "--fast"], "unexpected argument '--fast' found; see --help"),
        (
            &["report", "x", "--lan", "en"],
            "'--lan' found; tip: a similar argument exists: '--lang'",
        ),
        (&["train", "--out", "x"], "required arguments were not provided: --config <CONFIG>"),
        (&["eval", "--run", "x"], "required arguments were not provided: --split <SPLIT>"),
        (&["eval", "--run", "x", "--split", "all"], "invalid value 'all' for '--split"),
        (&["eval", "--run", "x", "--split", "val", "--dataset", "rstpreid"], "--data <DIR>"),
        (
            &["data", "stats", "x", "--dataset", "market"],
            "for '--dataset <NAME>': dataset = market: expected cuhk-pedes, icfg-pedes or rstpreid",
        ),
        (&["eval", "--features", "x", "--run", "y"], "cannot be used with"),
        (&["eval", "--features", "x", "--split", "val"], "cannot be used with"),
        (&["report", "x", "--lang", "fr"], "invalid value 'fr' for '--lang"),
    ] {
        refused(tbps().args(args), USAGE, expected);
    }
    let folder = folder();
    for (device, expected) in [
        ("tpu", "`tpu` is no device: expected flex or cuda[:index]"),
        ("cuda:first", "`cuda:first` is no device"),
        #[cfg(not(feature = "cuda"))]
        ("cuda", "no CUDA backend: build with `--features cuda`, or use --device flex"),
        #[cfg(not(feature = "cube-cpu"))]
        ("cube-cpu", "no cube-cpu: benchmarks/gpu/emulate.sh makes one; or use --device flex"),
    ] {
        let mut command = train_command(&folder.path().join("run"), &[]);
        refused_in(folder.path(), command.args(["--device", device]), USAGE, expected);
    }
    #[cfg(feature = "cuda")]
    {
        let mut command = train_command(&folder.path().join("run"), &[]);
        let command = command.args(["--device", "cuda:99"]);
        refused_in(folder.path(), command, FAILURE, "cuda:99 cannot be used: ");
    }
}

#[test]
fn reports() {
    let folder = folder();
    let report = |path: &Path| {
        let mut command = tbps();
        command.arg("report").arg(path);
        command
    };
    let expected = "give the directory that holds <cell>.s<seed>, such as fp32.s0";
    refused_in(folder.path(), &mut report(folder.path()), FAILURE, expected);
    refused(&mut report(&folder.path().join("absent")), FAILURE, "absent: No such file");
    refused(&mut report(&smoke_config()), FAILURE, "smoke.toml: Not a directory");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    // More than a pipe holds.
    let folder = folder();
    let texts = folder.path().join("texts.txt");
    fs::write(&texts, "a man in a red coat\n".repeat(5_000)).unwrap();
    let mut command = tbps();
    command.args(["data", "tokens", "--file"]).arg(texts);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
