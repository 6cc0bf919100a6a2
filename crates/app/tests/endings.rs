//! Runs that end badly say how, and what to try.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use support::{error_line, json, tbps, train, train_command};

/// A run's summary, which must have no result.
fn ending(run: &Path, status: &str, message: &str) -> Value {
    let summary = json(run, "summary.json");
    assert_eq!(summary["status"], status, "{summary}");
    let said = summary["message"].as_str().unwrap();
    assert!(said.contains(message), "{said}");
    summary
}

#[test]
fn a_run_that_diverges_says_so_and_why() {
    let folder = tempfile::tempdir().unwrap();
    let huge = ["optim.lr=1e30", "optim.warmup_epochs=0.0"];
    // A scale that f16 cannot hold, and that hardly gives way.
    let overflow =
        ["precision=amp-fp16", "scaler.init_scale=16777216", "scaler.backoff_factor=0.99"];
    let overflow = [&overflow[..], &["train.max_consecutive_skips=3"]].concat();
    for (name, settings, message) in [
        ("fp32", &huge[..], "at step 2: try a lower optim.lr"),
        ("amp", &overflow, "3 steps in a row overflowed up to step 3: try a lower optim.lr"),
    ] {
        let run = folder.path().join(name);
        let output = train(&run, settings);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let line = error_line(&output);
        assert!(line.starts_with("diverged: ") && line.contains(message), "{line}");
        let summary = ending(&run, "diverged", message);
        assert!(summary["val"].is_null() && summary["train_s"].is_f64(), "{summary}");
    }
}

#[test]
fn a_run_that_the_system_killed_for_want_of_memory_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    assert!(train(&run, &["train.max_hours=1e-9"]).status.success());
    std::fs::remove_file(run.join("summary.json")).unwrap();
    assert!(tbps().args(["record-oom", "--run"]).arg(&run).status().unwrap().success());
    ending(&run, "oom", "try recompute = \"block\", precision = \"amp-fp16\", train.micro_batch");
}

/// A step that takes a second and more.
#[cfg(unix)]
const SLOW: [&str; 8] = [
    "model.embed_dim=256",
    "model.vision.width=256",
    "model.vision.layers=24",
    "model.text.width=256",
    "model.text.layers=24",
    "train.batch_size=32",
    "train.checkpoint_every_steps=0",
    "train.epochs=1",
];

#[cfg(unix)]
#[test]
fn a_second_signal_does_not_wait_for_the_step() {
    let interrupt = |child: &Child| {
        let kill = format!("kill -INT {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    };
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut child = train_command(&run, &SLOW).spawn().unwrap();
    let steps = || std::fs::metadata(run.join("executed_steps")).map_or(0, |file| file.len());
    let began = Instant::now();
    while steps() == 0 {
        let alive = child.try_wait().unwrap().is_none();
        assert!(alive && began.elapsed() < Duration::from_secs(120), "no step was made");
        std::thread::sleep(Duration::from_millis(2));
    }
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(100));
    assert!(child.try_wait().unwrap().is_none(), "the step was not finished");
    let second = Instant::now();
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(second.elapsed() < Duration::from_millis(500), "{:?}", second.elapsed());
    assert!(!run.join("summary.json").exists() && !run.join("checkpoints/last").exists());
}
