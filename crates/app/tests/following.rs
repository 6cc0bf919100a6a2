//! What can be followed of a run while it is on: its log, its lines, its evaluations and clocks.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use support::{json, metrics, train, train_command, trained};

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

#[test]
fn evaluations_fall_within_epochs_too() {
    let folder = tempfile::tempdir().unwrap();
    // Of 16 steps each; the lowest target is reached by the first evaluation, the other by none.
    let settings =
        ["eval.every_steps=12", "eval.targets=[0.001, 100.0]", "train.log_every_steps=10"];
    let run = folder.path().join("run");
    let output = train(&run, &settings);
    assert!(output.status.success(), "{output:?}");
    let lines = metrics(&run);
    let steps: Vec<&Value> = of_kind(&lines, "step").iter().map(|line| &line["step"]).collect();
    assert_eq!(steps, [1, 10, 20, 30]);
    let evaluations = of_kind(&lines, "eval");
    let places: Vec<_> = evaluations.iter().map(|l| json!([l["step"], l["epoch"]])).collect();
    assert_eq!(places, [json!([12, 0.75]), json!([16, 1]), json!([24, 1.5]), json!([32, 2])]);

    let summary = json(&run, "summary.json");
    let targets = &summary["time_to_target"];
    let first = evaluations.iter().find(|line| line["val"]["r1"].as_f64() >= Some(0.001)).unwrap();
    for key in ["step", "epoch"] {
        assert_eq!(targets[0][key], first[key]);
    }
    assert!(targets[0]["train_s"].as_f64() < targets[0]["e2e_s"].as_f64());
    for key in ["train_s", "e2e_s", "epoch", "step"] {
        assert!(targets[1][key].is_null(), "{targets}");
    }

    // One line per evaluation where nobody watches.
    let said = String::from_utf8(output.stdout).unwrap();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[0].starts_with("step 12, epoch 0.75: val R@1 "), "{said:?}");
    assert!(said[0].ends_with(" %, the best so far"), "{said:?}");

    // Where it is evaluated changes nothing of what is trained.
    let plain = metrics(&trained(folder.path(), "plain", &["train.log_every_steps=10"]));
    let losses = |lines: &[Value]| -> Vec<Value> {
        of_kind(lines, "step").iter().map(|line| line["loss"].clone()).collect()
    };
    assert_eq!(losses(&lines), losses(&plain));
}

#[test]
fn the_clocks_leave_little_out() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), "run", &["ema.enabled=true", "train.epochs=5"]);
    let summary = json(&run, "summary.json");
    let of = |key: &str| summary[key].as_f64().unwrap();
    let known: f64 = ["train_s", "eval_s", "checkpoint_s", "warmup_s"].map(of).iter().sum();
    let left_s = of("e2e_s") - known;
    // Initialising the model and the first files take the same time in a run of any length.
    let most_s = 0.02 * of("e2e_s") + 0.25;
    assert!((0.0..=most_s).contains(&left_s), "{left_s} of {} s are on no clock", of("e2e_s"));
    // Every line has every clock, so that a crash takes none back.
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    for key in ["train_s", "eval_s", "checkpoint_s", "warmup_s", "e2e_s"] {
        assert!(last[key].as_f64().unwrap() > 0.0, "{key} of {last}");
    }
}

#[test]
fn every_attempt_is_recorded_and_a_directory_has_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let settings = ["train.epochs=3", "train.tensorboard=true"];
    let mut first = train_command(&run, &settings).spawn().unwrap();
    while !run.join("checkpoints/last").exists() {
        assert!(first.try_wait().unwrap().is_none(), "the run ended before it was killed");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let second = train_command(&run, &settings).arg("--resume").output().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("another tbps is training into"), "{said}");

    let mut again = train_command(&run, &settings);
    assert!(again.arg("--resume").stdout(Stdio::null()).status().unwrap().success());
    let attempts = &json(&run, "run.json")["attempts"];
    assert_eq!(attempts.as_array().unwrap().len(), 2, "{attempts}");
    assert_eq!((&attempts[0]["from_step"], &attempts[0]["device"]), (&json!(0), &json!("flex")));
    assert!(attempts[1]["from_step"].as_u64() >= Some(3), "{attempts}");
    assert_eq!(attempts[1]["tbps_version"], json(&run, "run.json")["tbps_version"]);
    let events = fs::read_dir(run.join("tensorboard")).unwrap().map(|entry| entry.unwrap());
    let names: Vec<String> = events.map(|e| e.file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("events.out.tfevents.")), "{names:?}");
}
