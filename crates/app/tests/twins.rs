//! Cells that differ in one technique: what it may change, and what it must not.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::Value;
use support::{json, metrics, trained};

const AMP: &str = "precision=amp-fp16";
const EMA: &str = "ema.enabled=true";
const GC: &str = "recompute=block";

/// Losses of a run in the order of its steps.
fn losses(lines: &[Value]) -> Vec<f64> {
    lines.iter().filter_map(|line| line["loss"].as_f64()).collect()
}

#[test]
fn recomputation_changes_memory_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let losses = "objective.losses=['itc', 'sdm', 'id']";
    for (name, settings) in [
        ("fp32", vec![]),
        ("amp-ema", vec![AMP, EMA]),
        ("fp32-losses", vec![losses]),
        ("amp-ema-losses", vec![AMP, EMA, losses]),
    ] {
        let plain = trained(folder.path(), name, &settings);
        let twin = [settings.clone(), vec![GC]].concat();
        let twin = trained(folder.path(), &format!("{name}-gc"), &twin);
        assert_eq!(metrics(&plain), metrics(&twin), "{name}");
        let (plain, twin) = (json(&plain, "summary.json"), json(&twin, "summary.json"));
        assert_eq!(plain["best_weights_sha256"], twin["best_weights_sha256"], "{name}");
        let tape = |summary: &Value| summary["tape_gib"].as_f64().unwrap();
        let (kept, recomputed) = (tape(&plain), tape(&twin));
        assert!(recomputed <= 0.5 * kept, "{name}: {recomputed} GiB of {kept} GiB");
    }
}

#[test]
fn all_cells_consume_the_same_batches() {
    let folder = tempfile::tempdir().unwrap();
    let mut of_first: Option<Vec<Value>> = None;
    for cell in 0..8 {
        let axes = [AMP, EMA, GC].into_iter().enumerate();
        let settings: Vec<&str> = axes.filter(|(i, _)| cell >> i & 1 == 1).map(|of| of.1).collect();
        let run = trained(folder.path(), &cell.to_string(), &settings);
        let lines = metrics(&run);
        let evaluations = lines.iter().filter(|line| line["kind"] == "eval");
        let hashes: Vec<Value> = evaluations.map(|line| line["batch_hash"].clone()).collect();
        assert!(hashes.len() > 1 && hashes[0].as_str().unwrap().len() == 64, "{hashes:?}");
        assert_ne!(hashes[0], hashes[1], "epochs have another order");
        assert_eq!(&hashes, of_first.get_or_insert_with(|| hashes.clone()), "{settings:?}");
    }
    let other = metrics(&trained(folder.path(), "other", &["seed=1"]));
    let hash = other.iter().find_map(|line| line.get("batch_hash")).unwrap();
    assert_ne!(hash, &of_first.unwrap()[0]);
}

#[test]
fn a_cache_of_resized_images_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let plain = trained(folder.path(), "fp32", &[]);
    let setting = format!("data.cache={}", cache.display());
    let cached = trained(folder.path(), "fp32-cached", &[&setting]);
    assert_eq!(metrics(&plain), metrics(&cached));
    let (plain, cached) = (json(&plain, "summary.json"), json(&cached, "summary.json"));
    for key in ["best_weights_sha256", "val", "test"] {
        assert_eq!(plain[key], cached[key], "{key}");
    }
    let files = std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(files.filter(|path| path.extension().unwrap() == "pixels").count(), 1);
}

#[test]
fn amp_computes_in_f16_and_counts_what_it_skips() {
    let folder = tempfile::tempdir().unwrap();
    // The first scale overflows, so that the first steps are skipped.
    let scale = "scaler.init_scale=16777216";
    let fp32 = trained(folder.path(), "fp32", &[]);
    let amp = trained(folder.path(), "amp", &[AMP, scale]);
    assert_eq!(json(&fp32, "run.json")["compute_dtype"], serde_json::json!(["f32"]));
    assert_eq!(json(&amp, "run.json")["compute_dtype"], serde_json::json!(["f16"]));
    let (fp32, lines) = (metrics(&fp32), metrics(&amp));
    assert_ne!(losses(&fp32), losses(&lines));

    // A skipped step halves the scale, and the schedule waits for it.
    let steps: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "step").collect();
    let mut skipped = 0;
    for pair in steps.windows(2) {
        let scale = |line: &Value| line["scale"].as_f64().unwrap();
        if pair[0]["skipped"] == true {
            skipped += 1;
            assert_eq!(scale(pair[1]), scale(pair[0]) / 2.0);
            assert_eq!(pair[0]["lr"], pair[1]["lr"]);
            assert!(pair[0]["grad_norm"].is_null());
        } else {
            assert_eq!(scale(pair[1]), scale(pair[0]));
        }
    }
    assert!(skipped > 0, "a scale of 2^24 must overflow f16");
    let summary = json(&amp, "summary.json");
    assert_eq!(summary["skipped_steps"], skipped);
    assert_eq!(summary["final_scale"], steps.last().unwrap()["scale"]);
}

#[test]
fn the_average_is_selected_on_and_does_not_touch_training() {
    let folder = tempfile::tempdir().unwrap();
    let plain = trained(folder.path(), "fp32", &[]);
    let averaged = trained(folder.path(), "fp32-ema", &[EMA]);
    let (plain, averaged) = (metrics(&plain), metrics(&averaged));
    assert_eq!(losses(&plain), losses(&averaged));
    let of = |lines: &[Value], key: &str| -> Vec<Value> {
        let evals = lines.iter().filter(|line| line["kind"] == "eval");
        evals.map(|line| line[key].clone()).collect()
    };
    assert_eq!(of(&plain, "val"), of(&averaged, "val_raw"));
    assert_ne!(of(&averaged, "val"), of(&averaged, "val_raw"));
}
