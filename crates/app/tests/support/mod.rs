//! What the end-to-end tests share: the binary, a small data set, and the smoke preset.

#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The program under test.
pub(crate) fn tbps() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tbps"))
}

/// Synthetic pedestrians of the smoke preset, made once per test process. They stay behind in
/// cargo's own folder for temporary files, because nothing runs after the last test. Read only.
pub(crate) fn smoke_data() -> &'static Path {
    static DATA: OnceLock<TempDir> = OnceLock::new();
    let folder = DATA.get_or_init(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut synth = tbps();
        synth.args(["data", "synth", "--preset", "smoke", "--out"]).arg(folder.path());
        let output = synth.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        folder
    });
    folder.path()
}

/// `configs/smoke.toml`.
pub(crate) fn smoke_config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/smoke.toml")
}

/// `tbps train` of the smoke preset on the smoke data into `out`, with `KEY=VALUE` settings.
pub(crate) fn train_command(out: &Path, settings: &[&str]) -> Command {
    let mut train = tbps();
    train.arg("train").arg("--config").arg(smoke_config()).arg("--out").arg(out);
    train.arg("--set").arg(format!("data.root={}", smoke_data().display()));
    for setting in settings {
        train.args(["--set", setting]);
    }
    train
}

/// Runs [`train_command`] to its end.
pub(crate) fn train(out: &Path, settings: &[&str]) -> Output {
    train_command(out, settings).output().unwrap()
}

/// The message of a command that was refused: the one line of its standard error, without
/// `error: `.
///
/// # Panics
/// When standard error is anything but one such line.
pub(crate) fn error_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let line = text.strip_prefix("error: ").and_then(|rest| rest.strip_suffix('\n'));
    match line {
        Some(line) if !line.contains('\n') => line.to_owned(),
        _ => panic!("not one `error: ` line, but {:?}: {text:?}", output.status),
    }
}

/// The lines of a run's `metrics.jsonl` without times and memory, which alone may differ between equal
/// runs.
pub(crate) fn metrics(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let timeless = |line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut()
            .unwrap()
            .retain(|key, _| !key.ends_with("_s") && !key.ends_with("_bytes"));
        line
    };
    text.lines().map(timeless).collect()
}

/// A JSON file of a run.
pub(crate) fn json(run: &Path, file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(run.join(file)).unwrap()).unwrap()
}

/// The ranks of a run's best checkpoint.
pub(crate) fn ranks(run: &Path) -> Value {
    let file = std::fs::File::open(run.join("checkpoints/best/ranks.json.gz")).unwrap();
    serde_json::from_reader(flate2::read::GzDecoder::new(file)).unwrap()
}

/// Trains to the end and returns the run's directory in `folder`.
///
/// # Panics
/// When training fails, with what it printed.
pub(crate) fn trained(folder: &Path, name: &str, settings: &[&str]) -> PathBuf {
    let run = folder.join(name);
    let output = train(&run, settings);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    run
}
