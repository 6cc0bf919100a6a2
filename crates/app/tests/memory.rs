//! Memory that stays flat, and memory as `tbps plan` predicts it.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use support::trained;

/// Relative, of what is allocated.
const FLAT: f64 = 0.005;
/// Relative, of a predicted peak.
const PREDICTED: f64 = 0.1;

/// A model between the smoke's and ViT-B/16, whose weights are of both kinds of size.
const MODEL: [&str; 11] = [
    "model.embed_dim=64",
    "model.vision.image_height=96",
    "model.vision.image_width=48",
    "model.vision.width=192",
    "model.vision.layers=5",
    "model.vision.heads=3",
    "model.text.vocab_size=2000",
    "model.text.width=128",
    "model.text.layers=4",
    "model.text.heads=2",
    "model.text.context_length=40",
];

fn with(command: &str, settings: &[&str]) -> Command {
    let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/base.toml");
    let mut tbps = Command::new(env!("CARGO_BIN_EXE_tbps"));
    tbps.arg(command).arg("--config").arg(base);
    MODEL.iter().chain(settings).for_each(|set| {
        tbps.args(["--set", set]);
    });
    tbps
}

/// The lines of a bench of so many pieces of work.
fn bench(pieces: usize, work: &str, settings: &[&str]) -> Vec<Value> {
    let mut command = with("bench", settings);
    command.args(["--work", work, "--caption-length", "40"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.as_ref().unwrap().write_all("\n".repeat(pieces).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), pieces + 2);
    lines
}

#[test]
fn steps_leave_nothing_behind() {
    let cell = ["ema.enabled=true", "precision=amp-fp16", "recompute=block", "train.batch_size=2"];
    for settings in [&cell[..], &["train.batch_size=2"]] {
        let lines = bench(250, "train", settings);
        let held = |piece: usize| lines[piece]["held_bytes"].as_f64().unwrap();
        let (early, late) = (held(50), held(250));
        assert!(early > 1e6 && (late / early - 1.0).abs() < FLAT, "{early} bytes, then {late}");
    }
}

#[test]
fn evaluations_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    // A model beside which the log of a few epochs, which burn-train keeps, is small.
    let settings = [
        "ema.enabled=true",
        "train.epochs=20",
        "train.max_batches=1",
        "model.vision.width=256",
        "model.vision.heads=4",
        "model.vision.layers=6",
    ];
    let run = trained(folder.path(), "fp32-ema", &settings);
    let log = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let held: Vec<f64> = lines.filter_map(|line| line["resident_bytes"].as_f64()).collect();
    assert_eq!(held.len(), 20);
    // The first evaluation may still allocate what is kept for good.
    let (early, late) = (held[1], held[19]);
    assert!(early > 1e5 && (late / early - 1.0).abs() < FLAT, "{held:?}");
}

#[test]
fn the_peak_of_every_cell_is_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("plan.json");
    for batch in ["train.batch_size=6", "train.batch_size=24"] {
        let plan = with("plan", &[batch, "eval.batch_size=1"]).arg("--json").arg(&json).output();
        assert!(plan.unwrap().status.success());
        let plan: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let cells = plan["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 8);
        for cell in cells {
            let name = cell["name"].as_str().unwrap();
            let mut settings = vec![batch];
            settings.extend(name.contains("amp").then_some("precision=amp-fp16"));
            settings.extend(name.contains("ema").then_some("ema.enabled=true"));
            settings.extend(name.contains("gc").then_some("recompute=block"));
            let done = &bench(1, "train", &settings)[2];
            let predicted = cell["step"].as_f64().unwrap();
            let measured = done["peak_alloc_gib"].as_f64().unwrap() * f64::from(1 << 30);
            let off = predicted / measured - 1.0;
            assert!(off.abs() <= PREDICTED, "{name}, {batch}: {predicted} of {measured}");
        }
    }
}
