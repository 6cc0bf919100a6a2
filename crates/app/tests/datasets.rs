//! ICFG-PEDES and RSTPReid, end to end: the smoke preset's people in their layouts.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use support::{error_line, json, metrics, smoke_data, tbps, train, trained};
use tempfile::TempDir;

/// The smoke data with another annotation file, made of the records of its own.
fn smoke_as(file: &str, change: impl Fn(&mut Vec<Value>)) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(smoke_data().join("reid_raw.json")).unwrap();
    let mut records: Vec<Value> = serde_json::from_str(&text).unwrap();
    change(&mut records);
    fs::write(folder.path().join(file), serde_json::to_vec(&records).unwrap()).unwrap();
    for record in &records {
        let path = record.get("file_path").or_else(|| record.get("img_path")).unwrap();
        let path = Path::new("imgs").join(path.as_str().unwrap());
        fs::create_dir_all(folder.path().join(&path).parent().unwrap()).unwrap();
        fs::copy(smoke_data().join(&path), folder.path().join(&path)).unwrap();
    }
    folder
}

/// In ICFG-PEDES's layout: no val split, ids from 0.
fn icfg_pedes() -> TempDir {
    smoke_as("ICFG_PEDES.json", |records| {
        records.retain(|record| record["split"] != "val");
        for record in records {
            record["id"] = json!(record["id"].as_i64().unwrap() - 1);
        }
    })
}

/// In RSTPReid's layout.
fn rstpreid() -> TempDir {
    smoke_as("data_captions.json", |records| {
        for record in records {
            let record = record.as_object_mut().unwrap();
            let path = record.remove("file_path").unwrap();
            record.insert("img_path".to_owned(), path);
        }
    })
}

#[test]
fn a_run_on_icfg_pedes_selects_on_held_out_people_and_is_scored_on_rstpreid() {
    let (icfg, rstp, folder) = (icfg_pedes(), rstpreid(), tempfile::tempdir().unwrap());
    let root = format!("data.root={}", icfg.path().display());

    let output = train(&folder.path().join("refused"), &[&root]);
    let expected = format!(
        "{} has no record of split \"val\" to select on: set data.holdout_ids to a number of \
         people of train to hold out for it",
        icfg.path().join("ICFG_PEDES.json").display()
    );
    assert_eq!((error_line(&output), output.status.code()), (expected, Some(2)));
    assert!(!folder.path().join("refused").exists());

    let settings = ["data.holdout_ids=8", "data.holdout_seed=3", "data.dataset=icfg-pedes"];
    let run = trained(folder.path(), "run", &[&[&root[..]], &settings[..]].concat());
    let provenance = json(&run, "run.json");
    assert_eq!(provenance["dataset_layout"], "ICFG-PEDES");
    assert_eq!(provenance["holdout_pids"].as_array().unwrap().len(), 8);
    assert_eq!(provenance["selection_split"], "val");

    // The smoke data have the same images and captions in every layout.
    let summary = json(&run, "summary.json");
    let own: [&str; 0] = [];
    let other = ["--data", rstp.path().to_str().unwrap()];
    let named = [other[0], other[1], "--dataset", "rstpreid"];
    for (args, split, dataset) in [
        (&own[..], "val", "ICFG-PEDES"),
        (&own[..], "test", "ICFG-PEDES"),
        (&other[..], "test", "RSTPReid"),
        (&named[..], "test", "RSTPReid"),
    ] {
        let mut eval = tbps();
        eval.arg("eval").arg("--run").arg(&run).args(["--split", split]).args(args);
        let output = eval.arg("--json").arg(folder.path().join("scores.json")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let scores = json(folder.path(), "scores.json");
        assert_eq!((&scores["dataset"], &scores["split"]), (&json!(dataset), &json!(split)));
        for key in ["r1", "r5", "r10", "map", "minp"] {
            assert_eq!(scores["t2i"][key], summary[split][key], "{key} of {split} on {dataset}");
        }
    }

    let mut eval = tbps();
    eval.arg("eval").arg("--run").arg(&run).args(["--split", "val", "--data"]).arg(rstp.path());
    let output = eval.args(["--dataset", "cuhk-pedes"]).output().unwrap();
    assert!(error_line(&output).contains("has no reid_raw.json; point to"), "{output:?}");
}

#[test]
fn a_hold_out_beside_a_val_split_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = train(&folder.path().join("run"), &["data.holdout_ids=8"]);
    let expected = "reid_raw.json has a val split, beside which holdout_ids = 8 has no effect; set \
                    it to 0";
    let line = error_line(&output);
    assert!(line.ends_with(expected), "{line}");
    assert!(!folder.path().join("run").exists());
}

#[test]
fn the_sampler_decides_how_many_false_negatives_a_batch_has() {
    let folder = tempfile::tempdir().unwrap();
    let counts = |name: &str, settings: &[&str]| -> Vec<u64> {
        let lines = metrics(&trained(folder.path(), name, settings));
        let evals = lines.iter().filter(|line| line["kind"] == "eval");
        evals.map(|line| line["same_pid_pairs"].as_u64().unwrap()).collect()
    };
    let shuffle = counts("shuffle", &[]);
    assert!(shuffle.len() == 2 && shuffle.iter().all(|count| *count > 0), "{shuffle:?}");
    assert_eq!(counts("distinct", &["data.sampler=distinct-pids"]), [0, 0]);
}

#[test]
fn statistics_name_what_differs_from_the_published_data() {
    let rstp = rstpreid();
    let file = rstp.path().join("stats.json");
    let mut command = tbps();
    command.args(["data", "stats"]).arg(rstp.path()).arg("--json").arg(&file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "RSTPReid");
    assert_eq!(
        lines[1],
        "train  64 people, 128 images, 256 captions: DIFFERS, published are 3701 people, 18505 \
         images, 37010 captions"
    );
    assert_eq!(lines[2], "       ids 1 to 64");
    assert_eq!(lines[4], "       images by captions: 128 with 2");
    let stats = json(rstp.path(), "stats.json");
    assert_eq!(stats["dataset"], "RSTPReid");
    assert_eq!(stats["splits"][0]["counts"]["num_captions"], 256);
    assert_eq!(stats["splits"][2]["official"]["num_images"], 1_000);
    assert!(stats["splits"][0]["tokens"]["max"].as_u64().unwrap() > 2);
}
