//! Runs that end badly say how, and what to try.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::Value;
use std::path::Path;
use support::{error_line, json, tbps, train};

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
