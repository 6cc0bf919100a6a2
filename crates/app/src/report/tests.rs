//! Reports on small matrices made by hand: three finished cells, one out of memory, one
//! unfinished, the others missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::cell::CellId;
use super::compare::Verdict;
use super::figure::{Absent, Figure};
use super::model::MemoryBasis;
use super::{Lang, Report, write};

/// A matrix directory that is removed at the end of its test.
struct Fixture {
    dir: PathBuf,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Fixture {
    fn empty(test: &str) -> Fixture {
        let dir = std::env::temp_dir().join(format!("tbps-report-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Fixture { dir }
    }

    /// fp32 finds 20 of 40 queries first, amp 36, amp-ema-gc 21.
    fn mixed(test: &str) -> Fixture {
        let fixture = Fixture::empty(test);
        fixture.done("fp32.s0", 20, 7200.0, 8.0);
        fixture.done("amp.s0", 36, 3600.0, 6.0);
        fixture.done("amp-ema-gc.s0", 21, 1800.0, 2.0);
        let message = "out of memory at step 3: lower batch_size | <script>";
        let oom = json!({"cell": "fp32-gc", "seed": 0, "status": "oom", "message": message,
            "val": null, "train_s": 12.0, "samples_per_s": null, "peak_vram_gib": 0.0, "steps": 3});
        fixture.file("fp32-gc.s0", "summary.json", &oom.to_string());
        fixture.file("amp-gc.s0", "metrics.jsonl", "{\"kind\":\"eval\",\"st");
        fixture
    }

    fn file(&self, run: &str, name: &str, text: &str) {
        let path = self.dir.join(run).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A finished run: `first` of 40 queries found first, and the rest second.
    fn done(&self, run: &str, first: usize, train_s_to_best: f64, vram_gib: f64) {
        let amp = run.starts_with("amp");
        let r1 = 100.0 * first as f64 / 40.0;
        let scores = json!({"r1": r1, "r5": 95.0, "r10": 97.5, "map": 61.25, "minp": 40.0});
        let reached = (r1 >= 60.0).then_some(train_s_to_best / 2.0);
        let summary = json!({
            "status": "done", "epochs": 10, "best_epoch": 7, "val": scores, "val_raw": scores,
            "test": null, "train_s_to_best": train_s_to_best,
            "e2e_s_to_best": train_s_to_best * 1.25, "train_s": 14400.0, "e2e_s": 18000.0,
            "warmup_s": 36.0, "time_to_target": [{"r1": 60.0, "train_s": reached, "e2e_s": reached,
            "epoch": reached.map(|_| 3)}], "samples_per_s": 512.5, "steps": 900,
            "executed_steps": 900, "skipped_steps": if amp { 2 } else { 0 },
            "final_scale": amp.then_some(65536.0), "peak_vram_gib": vram_gib,
            "peak_host_gib": 1.5, "peak_alloc_gib": null, "tape_gib": vram_gib / 2.0, "tf32": !amp,
        });
        let ranks: Vec<u32> = (0..40).map(|query| u32::from(query >= first)).collect();
        let ranks = json!({"split": "val", "weights": "raw", "t2i": ranks, "i2t": []});
        let evaluation = |step: usize, r1: f64, train_s: f64| {
            let val = json!({"r1": r1});
            json!({"kind": "eval", "step": step, "epoch": 1, "val": val, "train_s": train_s})
        };
        let metrics = format!(
            "{}\n{}\n{}\n",
            json!({"kind": "step", "step": 1, "loss": 3.0, "train_s": 1.0}),
            evaluation(450, r1 / 2.0, train_s_to_best / 2.0),
            evaluation(900, r1, train_s_to_best),
        );
        let provenance = json!({"burn_version": "0.22.1", "device": "flex", "cpu": "Some CPU",
            "compute_dtype": [if amp { "f16" } else { "f32" }], "selection_split": "val",
            "dataset": {"num_files": 60, "annotation_sha256": "ab".repeat(32)}});
        self.file(run, "summary.json", &summary.to_string());
        self.file(run, "run.json", &provenance.to_string());
        self.file(run, "metrics.jsonl", &metrics);
        let best = self.dir.join(run).join("checkpoints/best");
        fs::create_dir_all(&best).unwrap();
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut file, ranks.to_string().as_bytes()).unwrap();
        fs::write(best.join("ranks.json.gz"), file.finish().unwrap()).unwrap();
    }

    fn report(&self, lang: Lang) -> Report {
        write(&self.dir, lang).unwrap()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.read("report.json")).unwrap()
    }
}

fn cell<'a>(json: &'a Value, name: &str) -> &'a Value {
    json["cells"].as_array().unwrap().iter().find(|cell| cell["cell"] == name).unwrap()
}

#[test]
fn the_table_says_what_the_runs_say() {
    let fixture = Fixture::mixed("table");
    let report = fixture.report(Lang::En);
    let markdown = fixture.read("report.md");
    let row = |line: &str| assert!(markdown.contains(line), "no {line:?} in\n{markdown}");
    row("| **FP32** (TF32) | done | 50.00 | baseline | 7 | 2.00 | — | 8.00 | — | 512.5 |");
    row("| done | 90.00 | +40.00 [+25.00, +55.00] | 7 | 1.00 | 50.0 | 6.00 | 25.0 | 512.5 |");
    row("| done | 52.50 | no difference (+2.50 [0.00, +7.50]) | 7 | 0.50 | 75.0 | 2.00 | 75.0 |");
    row("| **FP32+EMA** | missing | — | — | — | — | — | — | — | — |");
    row("| **AMP+GC** | unfinished | — | — |");
    row(
        "| **FP32+GC** | out of memory (out of memory at step 3: lower batch_size \\| &lt;script>) |",
    );
    row("| **AMP** | **FP32 → AMP** | +40.00 [+25.00, +55.00] | 50.0 | 0.0 | 25.0 | 25.0 |");
    row("FP32+GC: out of memory");
    assert!(report.answer.sentence.starts_with("AMP+EMA+GC reaches"), "{}", report.answer.sentence);
    assert!(report.answer.sentence.contains("75.0% less time and 75.0% less memory"));
    assert_eq!(report.memory_basis, MemoryBasis::Vram);
}

#[test]
fn a_run_that_is_not_done_has_no_numbers() {
    let fixture = Fixture::mixed("failed");
    fixture.report(Lang::En);
    let json = fixture.json();
    for (name, status) in [("fp32-gc", "oom"), ("amp-gc", "unfinished"), ("fp32-ema", "missing")] {
        let cell = cell(&json, name);
        assert_eq!(cell["runs"][0]["status"], status, "{name}");
        for (key, figure) in cell["figures"].as_object().unwrap() {
            assert!(figure["value"].is_null(), "{name} has {key} = {figure}");
        }
        let line = fixture.read("report.csv");
        let line = line.lines().find(|line| line.starts_with(&format!("{name},"))).unwrap();
        assert_eq!(line.trim_end_matches(','), format!("{name},{status},0"));
    }
    assert_eq!(json["cells"].as_array().unwrap().len(), 8);
}

#[test]
fn a_target_not_reached_is_not_a_number() {
    let fixture = Fixture::mixed("target");
    fixture.done("fp32.s1", 36, 7200.0, 8.0);
    let report = fixture.report(Lang::En);
    let target =
        |id| report.cells.iter().find(|c| c.cell == id).unwrap().targets[0].train_s.clone();
    let partly = Absent::NotReached { reached: 1, seeds: 2 };
    assert_eq!(target(CellId::BASELINE), Figure::absent(partly));
    let amp = CellId { amp: true, ..CellId::BASELINE };
    assert_eq!(target(amp).value(), Some(1800.0));
    let all = CellId::ALL[7];
    assert_eq!(target(all), Figure::absent(Absent::NotReached { reached: 0, seeds: 1 }));
    assert!(fixture.read("report.md").contains("not reached by all (1 of 2 seeds)"));
}

#[test]
fn seeds_give_median_and_range_and_share_the_bootstrap() {
    let fixture = Fixture::empty("seeds");
    for (seed, first) in [(0, 20), (1, 24), (2, 22)] {
        fixture.done(&format!("fp32.s{seed}"), first, 7200.0 + 360.0 * seed as f64, 8.0);
        fixture.done(&format!("amp.s{seed}"), 36, 3600.0, 6.0);
    }
    let report = fixture.report(Lang::En);
    let base = report.cells[0].figures["val_r1"].known().unwrap();
    assert_eq!((base.value, base.range), (55.0, Some([50.0, 60.0])));
    let difference = &report.cells[4].r1_vs_fp32;
    assert_eq!(difference.verdict, Some(Verdict::Higher));
    assert!((difference.figure.value().unwrap() - 35.0).abs() < 1e-9);
    assert!(fixture.read("report.md").contains("| 55.00 (50.00–60.00) | baseline | 7 |"));
    assert!(fixture.read("report.md").contains("Seeds 0, 1, 2"));
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let fixture = Fixture::mixed("page");
    fixture.report(Lang::En);
    let html = fixture.read("report.html");
    for reference in ["http:", "https:", "src=", "href=", "url(", "@import", "<link", "<script"] {
        assert!(!html.contains(reference), "{reference} in report.html");
    }
    assert_eq!(html.matches("<svg viewBox=\"0 0 880").count(), 3);
    assert_eq!(html.matches("<svg viewBox=\"0 0 360").count(), 3);
    for tag in ["svg", "table", "section", "div", "tr", "td", "th", "figure", "details", "small"] {
        let opened = html.matches(&format!("<{tag}>")).count();
        let opened = opened + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "<{tag}> is unbalanced");
    }
}

/// Every string under a key that says how a number is shown.
fn shown(json: &Value, found: &mut BTreeSet<String>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| shown(item, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value.as_str()) {
                    ("shown" | "shown_range", Some(text)) => found.extend([text.to_owned()]),
                    _ => shown(value, found),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_number_of_the_page_stands_in_the_json() {
    let fixture = Fixture::mixed("json");
    fixture.report(Lang::En);
    let (mut known, html) = (BTreeSet::new(), fixture.read("report.html"));
    shown(&fixture.json(), &mut known);
    let fields = html.split("<td class=\"number\">").skip(1);
    let mut num_numbers = 0;
    for field in fields.map(|rest| rest.split_once("</td>").unwrap().0) {
        let text = field.replace("no difference<small>", "").replace("</small>", "");
        // A value, or a value and its range; `no difference` has both in small print.
        let parts: Vec<&str> = text.split("<small>").flat_map(|t| t.splitn(2, " [")).collect();
        for part in parts.iter().map(|part| part.trim_start_matches('[')) {
            let as_range = format!("[{part}");
            assert!(known.contains(part) || known.contains(&as_range), "{part:?} is not in JSON");
            num_numbers += 1;
        }
    }
    assert!(num_numbers > 60, "only {num_numbers} numbers were checked");
}

#[test]
fn every_figure_names_its_source() {
    let fixture = Fixture::mixed("source");
    let report = fixture.report(Lang::En);
    let json = fixture.json();
    let source = &cell(&json, "amp")["figures"]["val_r1"]["source"];
    assert_eq!(source, &json!({"run": "amp.s0", "key": "val.r1"}));
    let less = &cell(&json, "amp")["figures"]["peak_memory_less"]["source"];
    assert_eq!(
        less,
        &json!({"formula": "percent_less", "of": ["amp:peak_memory", "fp32:peak_memory"]})
    );
    for cell in &report.cells {
        for figure in cell.figures.values().filter_map(Figure::known) {
            if let super::figure::Source::Formula { formula, of } = &figure.source {
                assert!(report.formulas.contains_key(formula), "{formula} is not explained");
                assert!(!of.is_empty());
            }
        }
    }
}

#[test]
fn korean_says_the_same() {
    let fixture = Fixture::mixed("korean");
    fixture.report(Lang::Ko);
    let (markdown, html) = (fixture.read("report.md"), fixture.read("report.html"));
    for text in ["| 52.50 | 차이 없음 (+2.50 [0.00, +7.50]) |", "메모리 부족", "시간 75.0% 감소"]
    {
        assert!(markdown.contains(text), "no {text:?} in\n{markdown}");
    }
    assert!(html.contains("<html lang=\"ko\">") && html.contains("시간 75.0% 감소"));
    for english in ["no difference", "Configuration", "Training", "against"] {
        assert!(!html.contains(english) && !markdown.contains(english), "{english} is left");
    }
}

#[test]
fn a_broken_run_does_not_hide_the_others() {
    let fixture = Fixture::mixed("broken");
    fixture.file("amp.s0", "summary.json", "{\"status\": \"splendid\"}");
    fixture.file("fp32-ema.s0", "metrics.jsonl", "nonsense\n");
    let report = fixture.report(Lang::En);
    let note = |index: usize| report.cells[index].runs[0].note.clone().unwrap();
    assert!(note(4).contains("splendid"), "{}", note(4));
    assert!(note(1).contains("metrics.jsonl:1"), "{}", note(1));
    assert!(fixture.read("report.md").contains("| **AMP** | unreadable (summary.json"));
    assert_eq!(report.cells[0].figures["val_r1"].value(), Some(50.0));
}

#[test]
fn memory_is_compared_by_what_all_runs_recorded() {
    let fixture = Fixture::mixed("basis");
    let path = "fp32.s0/summary.json";
    let summary = fixture.read(path).replace("\"peak_vram_gib\":8.0", "\"peak_vram_gib\":null");
    fixture.file("fp32.s0", "summary.json", &summary);
    let report = fixture.report(Lang::En);
    assert_eq!(report.memory_basis, MemoryBasis::HostResident);
    assert!(fixture.read("report.md").contains("Memory is compared by peak resident host memory"));
}

#[test]
fn without_a_baseline_nothing_is_compared() {
    let fixture = Fixture::mixed("baseline");
    fs::remove_dir_all(fixture.dir.join("fp32.s0")).unwrap();
    let report = fixture.report(Lang::En);
    assert!(report.answer.sentence.contains("baseline is not done"));
    let amp = &report.cells[4];
    assert_eq!(amp.r1_vs_fp32.figure, Figure::absent(Absent::NoBaseline));
    assert_eq!(amp.figures["peak_memory_less"], Figure::absent(Absent::NoBaseline));
    assert_eq!(amp.figures["val_r1"].value(), Some(90.0));
}

#[test]
fn a_directory_without_runs_is_an_error_that_helps() {
    let fixture = Fixture::empty("none");
    let message = write(&fixture.dir, Lang::En).unwrap_err().to_string();
    assert!(message.contains("fp32.s0"), "{message}");
    assert!(write(Path::new("/nonexistent/matrix"), Lang::En).is_err());
}
