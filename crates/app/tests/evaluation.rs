//! `tbps eval`: a run's scores again, and anybody's features under our metrics.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use safetensors::tensor::{Dtype, TensorView};
use support::{json, tbps, trained};

#[test]
fn a_checkpoint_scores_what_its_summary_says() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), "run", &["ema.enabled=true"]);
    let summary = json(&run, "summary.json");
    for (split, which, expected) in [
        ("val", "ema", &summary["val"]),
        ("val", "raw", &summary["val_raw"]),
        ("test", "ema", &summary["test"]),
    ] {
        let mut eval = tbps();
        eval.arg("eval").arg("--run").arg(&run).args(["--split", split, "--which", which]);
        eval.arg("--json").arg(folder.path().join("scores.json"));
        assert!(eval.output().unwrap().status.success());
        let scores = json(folder.path(), "scores.json");
        for key in ["r1", "r5", "r10", "map", "minp"] {
            assert_eq!(scores["t2i"][key], expected[key], "{key} of {split} by {which}");
        }
    }
}

#[test]
fn a_reading_of_test_is_recorded_and_the_hardest_captions_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let run = trained(folder.path(), "run", &[]);
    let eval = |split: &str| {
        let mut eval = tbps();
        eval.arg("eval").arg("--run").arg(&run).args(["--split", split]);
        eval.arg("--hardest").arg(folder.path().join("hardest.html"));
        eval.args(["--hardest-count", "3"]).arg("--json").arg(folder.path().join("scores.json"));
        let output = eval.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let record = run.join("test_reads.jsonl");
    eval("val");
    eval("train");
    assert!(!record.exists(), "only test is");
    eval("test");
    eval("test");
    let lines = std::fs::read_to_string(record).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let scores = json(folder.path(), "scores.json");
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["scores"]["t2i"], scores["t2i"]);
    assert_eq!(lines[1]["which"], "selected");
    assert_eq!(scores["split"], "test");
    let html = std::fs::read_to_string(folder.path().join("hardest.html")).unwrap();
    assert_eq!(html.matches("<section>").count(), 3);
    assert!(html.contains("right person, ") && html.contains("another person, "), "{html}");
}

#[test]
fn features_of_any_model_are_scored() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let pids = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    // Two queries: the first finds its image at once, the second behind another; a third has none.
    let images = bytes(&[1.0, 0.0, 0.0, 1.0]);
    let texts = bytes(&[2.0, 0.1, 1.0, 0.5, 0.0, 1.0]);
    let (image_pids, text_pids) = (pids(&[7, 8]), pids(&[7, 8, 9]));
    let view = |dtype, shape: &[usize], data| TensorView::new(dtype, shape.to_vec(), data).unwrap();
    let file = folder.path().join("features.safetensors");
    let tensors = [
        ("image_features", view(Dtype::F32, &[2, 2], &images)),
        ("text_features", view(Dtype::F32, &[3, 2], &texts)),
        ("image_pids", view(Dtype::I64, &[2], &image_pids)),
        ("text_pids", view(Dtype::I64, &[3], &text_pids)),
    ];
    std::fs::write(&file, safetensors::serialize(tensors, None).unwrap()).unwrap();
    let mut eval = tbps();
    eval.arg("eval").arg("--features").arg(&file);
    eval.arg("--json").arg(folder.path().join("scores.json"));
    eval.arg("--ranks").arg(folder.path().join("ranks.json"));
    assert!(eval.output().unwrap().status.success());
    let t2i = &json(folder.path(), "scores.json")["t2i"];
    assert_eq!(t2i["r1"], 50.0);
    assert_eq!(t2i["r5"], 100.0);
    assert_eq!(t2i["map"], 75.0);
    assert_eq!((&t2i["queries"], &t2i["excluded"]), (&2.into(), &1.into()));
    assert_eq!(json(folder.path(), "ranks.json")["t2i"], serde_json::json!([0, 1, null]));
}
