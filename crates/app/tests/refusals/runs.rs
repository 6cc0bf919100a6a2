//! Where a run cannot begin or go on: output directories, disks, and damaged runs.

use crate::data::{data, images};
use crate::support::{train_command, trained};
use crate::{FAILURE, USAGE, copy, cut, folder, listing, refused, refused_in};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// A finished run of the smoke preset, to copy.
fn finished_run() -> &'static Path {
    static RUN: OnceLock<TempDir> = OnceLock::new();
    let folder = RUN.get_or_init(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        trained(folder.path(), "fp32.s0", &[]);
        folder
    });
    folder.path()
}

/// A folder with a copy of the finished run as `fp32.s0`, changed.
pub(super) fn run(change: impl FnOnce(&Path)) -> TempDir {
    let folder = folder();
    copy(finished_run(), folder.path());
    change(&folder.path().join("fp32.s0"));
    folder
}

fn resume(folder: &TempDir, settings: &[&str]) -> Command {
    let mut command = train_command(&folder.path().join("fp32.s0"), settings);
    command.arg("--resume");
    command
}

#[test]
fn output_directories() {
    let run = run(|_| ());
    let there = run.path().join("fp32.s0");
    let expected = "already holds a run: add --resume to go on with it, or choose another --out";
    refused_in(run.path(), &mut train_command(&there, &[]), USAGE, expected);
    let expected = "holds a run with another configuration (compare its config.toml)";
    refused_in(run.path(), &mut resume(&run, &["seed=1"]), USAGE, expected);

    let expected = "is not empty and holds no run: choose another --out";
    refused_in(run.path(), &mut train_command(run.path(), &[]), USAGE, expected);
    refused_in(run.path(), train_command(run.path(), &[]).arg("--resume"), USAGE, expected);
    for below in ["fp32.s0/config.toml", "fp32.s0/config.toml/a/b"] {
        let mut command = train_command(&run.path().join(below), &[]);
        let expected = "config.toml: Not a directory (os error 20); choose another --out";
        refused_in(run.path(), &mut command, USAGE, expected);
    }
    if cfg!(target_os = "linux") {
        let mut command = train_command(Path::new("/proc/runs/fp32.s0"), &[]);
        refused(&mut command, USAGE, "cannot write into /proc: ");
    }
}

#[test]
fn disks_that_are_too_small() {
    // Two petabytes: no disk is large enough, and the parameters are never made.
    let folder = folder();
    let sizes = ["width=65536", "layers=1024", "heads=64"];
    let towers = ["vision", "text"];
    let settings: Vec<String> =
        towers.iter().flat_map(|tower| sizes.map(|size| format!("model.{tower}.{size}"))).collect();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut command = train_command(&folder.path().join("runs/fp32.s0"), &settings);
    refused_in(folder.path(), &mut command, FAILURE, "runs/fp32.s0 need 4");
}

#[test]
fn damaged_runs() {
    let unfinished = |run: &Path| fs::remove_file(run.join("summary.json")).unwrap();
    for (summary, expected) in [
        ("{", "summary.json is damaged: remove it to go on from the last checkpoint: EOF"),
        ("{\"status\": \"perfect\"}", "summary.json is damaged"),
        ("{\"status\": \"oom\", \"message\": \"try less\"}", "is over, oom: try less; train again"),
    ] {
        let run = run(|run| fs::write(run.join("summary.json"), summary).unwrap());
        refused_in(run.path(), &mut resume(&run, &[]), FAILURE, expected);
    }
    let no_json = run(|run| {
        unfinished(run);
        fs::write(run.join("run.json"), "{").unwrap();
    });
    let expected = "run.json is damaged: remove it to have it written again";
    refused_in(no_json.path(), &mut resume(&no_json, &[]), FAILURE, expected);
    let short_log = run(|run| {
        unfinished(run);
        cut(&run.join("metrics.jsonl"), 10);
    });
    let expected = "metrics.jsonl has 10 bytes where the checkpoint counts";
    refused_in(short_log.path(), &mut resume(&short_log, &[]), FAILURE, expected);
}

#[test]
fn data_that_changed_since_the_run_began() {
    let (data, folder) = (data(|_| ()), folder());
    let setting = format!("data.root={}", data.path().display());
    let run = trained(folder.path(), "fp32.s0", &[&setting]);
    fs::remove_file(run.join("summary.json")).unwrap();
    let image = images(data.path(), "png").pop().unwrap();
    fs::copy(&images(data.path(), "png")[0], image).unwrap();
    let expected = "the data has changed since the run in";
    let before = listing(&run);
    refused(&mut resume(&folder, &[&setting]), FAILURE, expected);
    assert_eq!(listing(&run), before);
}

#[test]
fn weights_to_start_from() {
    let folder = folder();
    let weights = finished_run().join("fp32.s0/checkpoints/best/weights.safetensors");
    let absent = finished_run().join("absent");
    let text = finished_run().join("fp32.s0/config.toml");
    for (file, setting, expected) in [
        (absent, "seed=0", "cannot read "),
        (text, "seed=0", "config.toml: this is no weights file: expected safetensors"),
        (weights, "model.embed_dim=64", "these weights are of another model"),
    ] {
        let out = folder.path().join("fp32.s0");
        let file = format!("weights.file={}", file.display());
        refused(&mut train_command(&out, &[&file, setting]), FAILURE, expected);
        assert!(!out.exists(), "{expected}: a run directory was left behind");
    }
}

#[test]
fn damaged_checkpoints() {
    let torn = run(|run| {
        fs::remove_file(run.join("summary.json")).unwrap();
        cut(&run.join("checkpoints/last/weights.safetensors"), 100);
    });
    let output = resume(&torn, &[]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.lines().count(), 1);
    let damage = "last is damaged (weights.safetensors does not have the SHA-256 of manifest.json)";
    assert!(said.starts_with("warning: ") && said.contains(damage), "{said}");
    let [again, first] = [torn.path(), finished_run()].map(|folder| {
        let path = folder.join("fp32.s0/checkpoints/last/weights.safetensors");
        fs::read(path).unwrap()
    });
    assert!(again == first, "going on from the predecessor ends in other weights");

    for (file, content) in [
        ("weights.safetensors", "torn"),
        ("manifest.json", "{}"),
        ("manifest.json", "{\"../../config.toml\": \"0\"}"),
        ("manifest.json", ""),
    ] {
        let damaged = run(|run| {
            fs::remove_file(run.join("summary.json")).unwrap();
            for place in ["last", "last.previous"] {
                fs::write(run.join("checkpoints").join(place).join(file), content).unwrap();
            }
        });
        let expected = "no whole checkpoint is left: train into another --out";
        refused_in(damaged.path(), &mut resume(&damaged, &[]), FAILURE, expected);
    }
}
