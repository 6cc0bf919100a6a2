//! What runs must have in common to stand in one report, and what marks those of other hardware.

use std::fs;

use super::Fixture;
use super::fixture::read_json;
use crate::report::figure::{Absent, Figure};
use crate::report::{Lang, write};

fn two_cells(test: &str) -> Fixture {
    let fixture = Fixture::empty(test);
    fixture.done("fp32.s0", 20, 7200.0, 8.0);
    fixture.done("amp.s0", 36, 3600.0, 6.0);
    fixture
}

#[test]
fn runs_that_differ_in_what_they_must_share_are_refused() {
    for (name, file, from, to, expected) in [
        ("data", "run.json", "abab", "cdcd", "differ in run.json: dataset.annotation_sha256 (ab"),
        (
            "code",
            "run.json",
            "c0ffee",
            "c0c0a",
            "differ in run.json: git_commit (c0ffee and c0c0a)",
        ),
        (
            "protocol",
            "run.json",
            "\"protocol\":1",
            "\"protocol\":2",
            "run.json: protocol (1 and 2)",
        ),
        ("split", "run.json", "\"val\"", "\"test\"", "run.json: selection_split (val and test)"),
        ("config", "config.toml", "lr = 0.001", "lr = 0.002", "config.toml: optim.lr (0.001 and"),
        ("cache", "config.toml", "cache = \"\"", "cache = \"c\"", "data.cache (none and used)"),
        ("batches", "metrics.jsonl", "0-450", "x-450", "trained on other batches in epoch 1"),
    ] {
        let fixture = two_cells(&format!("refused-{name}"));
        fixture.report(Lang::En);
        let before = fixture.read("report.json");
        fixture.change("amp.s0", file, from, to);
        let refusal = fixture.refusal();
        assert!(refusal.starts_with("fp32.s0 and amp.s0 "), "{refusal}");
        assert!(refusal.contains(expected), "{refusal}");
        assert_eq!(fixture.read("report.json"), before, "nothing is written");
    }
}

#[test]
fn places_seeds_and_axes_may_differ() {
    let fixture = two_cells("free");
    fixture.done("fp32.s1", 20, 7200.0, 8.0);
    fixture.change("amp.s0", "config.toml", "/data/of/amp", "/elsewhere");
    fixture.report(Lang::En);
    // All cells of one precision must have the same one.
    fixture.done("amp-ema.s0", 20, 7200.0, 8.0);
    fixture.change("amp-ema.s0", "config.toml", "amp-fp16", "amp-bf16");
    let refusal = fixture.refusal();
    assert!(refusal.contains("config.toml: precision with AMP (\"amp-"), "{refusal}");
}

#[test]
fn other_hardware_is_marked_and_not_compared() {
    let fixture = two_cells("hardware");
    fixture.change("amp.s0", "run.json", "Some CPU", "Another CPU");
    let report = fixture.report(Lang::En);
    assert_eq!(report.hardware.len(), 2);
    let amp = &report.cells[4];
    let other = Figure::absent(Absent::OtherHardware);
    assert_eq!(amp.figures["train_s_to_best_less"], other);
    assert_eq!(amp.figures["peak_memory_less"], other);
    assert_eq!(amp.r1_vs_fp32.figure.value(), Some(40.0), "accuracy is compared");
    let markdown = fixture.read("report.md");
    for text in
        ["**FP32** (TF32, hardware A)", "**AMP** (hardware B)", "> The runs are from different"]
    {
        assert!(markdown.contains(text), "no {text:?} in\n{markdown}");
    }
}

#[test]
fn the_attempts_of_a_run_count_too() {
    let fixture = two_cells("attempts");
    let with = |run: &str, attempts: &str| {
        let record = "\"protocol\":1";
        fixture.change(run, "run.json", record, &format!("\"attempts\":{attempts},{record}"));
    };
    with("amp.s0", r#"[{"git_commit":"c0ffee"},{"git_commit":"c0ffee","cpu":"Another CPU"}]"#);
    let report = fixture.report(Lang::En);
    let letters = |cell: usize| report.cells[cell].hardware.iter().collect::<String>();
    assert_eq!((letters(0), letters(4)), ("A".to_owned(), "AB".to_owned()));
    let other = Figure::absent(Absent::OtherHardware);
    assert_eq!(report.cells[4].figures["train_s_to_best_less"], other);
    with("fp32.s0", r#"[{"git_commit":"c0ffee"},{"git_commit":"c0c0a"}]"#);
    let refusal = fixture.refusal();
    let expected = "the attempts of fp32.s0 differ in run.json: git_commit (c0ffee and c0c0a)";
    assert!(refusal.starts_with(expected), "{refusal}");
}

#[test]
fn merged_shards_report_what_one_directory_reports() {
    let whole = Fixture::mixed("merge");
    whole.report(Lang::En);
    let expected = whole.json();
    let shards = [0, 1, 2].map(|i| Fixture::empty(&format!("merge-shard-{i}")));
    let runs = fs::read_dir(&whole.dir).unwrap().map(|entry| entry.unwrap().path());
    let mut runs: Vec<_> = runs.filter(|path| path.is_dir()).collect();
    runs.sort();
    for (i, run) in runs.iter().enumerate() {
        fs::rename(run, shards[i % 3].dir.join(run.file_name().unwrap())).unwrap();
    }
    let dirs = shards.each_ref().map(|shard| shard.dir.clone());
    let out = Fixture::empty("merge-out");
    write(&dirs, Some(&out.dir.join("merged")), Lang::En, 6).unwrap();
    let mut merged = read_json(&out.dir.join("merged/report.json"));
    merged["matrix"] = expected["matrix"].clone();
    assert_eq!(merged, expected);
    assert!(!dirs[0].join("report.json").exists());

    let again = runs[1].file_name().unwrap();
    fs::create_dir_all(dirs[0].join(again)).unwrap();
    let twice = write(&dirs, None, Lang::En, 0).unwrap_err().to_string();
    assert!(twice.starts_with(&format!("{} is in ", again.display())), "{twice}");
}
