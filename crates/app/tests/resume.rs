//! The same seed gives the same run, also when it is interrupted on the way (killed: `kills.rs`).

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use support::{json, metrics, ranks, train, train_command, trained};

const SETTINGS: [&str; 3] =
    ["precision=amp-fp16", "ema.enabled=true", "objective.losses=['itc', 'sdm', 'id']"];

/// What two equal runs have in common.
fn result(run: &Path) -> (Vec<Value>, Value, Value) {
    let mut summary = json(run, "summary.json");
    let best = summary["best_weights_sha256"].take();
    (metrics(run), best, ranks(run))
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let first = trained(folder.path(), "first", &SETTINGS);
    let threads = [&SETTINGS[..], &["data.threads=1"]].concat();
    let second = trained(folder.path(), "second", &threads);
    assert_eq!(result(&first), result(&second));
    let other = [&SETTINGS[..], &["seed=1"]].concat();
    let other = trained(folder.path(), "other", &other);
    assert_ne!(result(&first), result(&other));
}

#[test]
fn a_finished_run_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), "run", &[]);
    let before = std::fs::read(run.join("summary.json")).unwrap();
    let again = train_command(&run, &[]).arg("--resume").output().unwrap();
    assert!(again.status.success());
    assert_eq!(std::fs::read(run.join("summary.json")).unwrap(), before);
    assert_eq!(train(&run, &[]).status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_and_says_how_to_go_on() {
    use std::process::{Command, Stdio};
    let folder = tempfile::tempdir().unwrap();
    let straight = trained(folder.path(), "straight", &[]);
    let run = folder.path().join("run");
    let mut command = train_command(&run, &[]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    while !run.join("metrics.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--resume goes on from there"));
    assert!(train_command(&run, &[]).arg("--resume").status().unwrap().success());
    assert_eq!(result(&straight), result(&run));
    let summary = json(&run, "summary.json");
    assert_eq!(summary["executed_steps"], summary["steps"]);
}

#[test]
fn a_run_ends_when_it_has_had_its_time_or_its_targets() {
    let folder = tempfile::tempdir().unwrap();
    let timed = trained(folder.path(), "timed", &["train.max_hours=1e-9"]);
    let summary = json(&timed, "summary.json");
    assert_eq!((&summary["status"], &summary["steps"]), (&"done".into(), &1.into()));
    assert_eq!(summary["message"], "stopped after train.max_hours = 1e-9");
    assert!(summary["test"]["r1"].is_f64(), "the checkpoint is evaluated all the same");

    let settings = ["train.stop_at_target=true", "eval.targets=[0.001]", "train.epochs=5"];
    let reached = trained(folder.path(), "reached", &settings);
    let summary = json(&reached, "summary.json");
    let epochs = summary["epochs"].as_u64().unwrap();
    assert_eq!(summary["time_to_target"][0]["epoch"], epochs);
    assert!(epochs < 5, "not reached in {epochs} epochs");
    assert_eq!(summary["message"], "stopped: every target is reached");
}

#[test]
fn checkpoints_are_written_by_the_clock_too() {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["train.checkpoint_every_steps=0", "train.checkpoint_every_min=1e-9"];
    let run = folder.path().join("run");
    let mut child = train_command(&run, &settings).spawn().unwrap();
    while std::fs::metadata(run.join("executed_steps")).map_or(0, |file| file.len()) < 3 {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it was killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The first epoch has 16 steps: without the clock there would be no checkpoint yet.
    let state = json(&run.join("checkpoints/last"), "state.json");
    assert!(state["step"].as_u64().unwrap() >= 2, "{state}");
}
