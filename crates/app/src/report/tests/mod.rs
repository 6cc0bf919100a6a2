//! Reports on small matrices made by hand.

mod agreement;
mod fixture;
mod sources;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::cell::CellId;
use super::compare::Verdict;
use super::figure::{Absent, Figure};
use super::model::MemoryBasis;
use super::{Lang, write};
use fixture::Fixture;

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
    row("| done | 90.00 | +40.00 [+25.00, +55.00] | 7 | 1.00 | 50.0 TF32 | 6.00 | 25.0 | 512.5 |");
    row("| 52.50 | no difference (+2.50 [0.00, +7.50]) | 7 | 0.50 | 75.0 TF32 | 2.00 | 75.0 |");
    row("| **FP32+EMA** | missing | — | — | — | — | — | — | — | — |");
    row("| **AMP+GC** | unfinished (step 900 of 1200) | — | — |");
    row(
        "| **FP32+GC** | out of memory (out of memory at step 3: lower batch_size \\| &lt;script>) |",
    );
    row(
        "| **AMP** | **FP32 → AMP** | +40.00 [+25.00, +55.00] | 50.0 TF32 | 0.0 TF32 | 25.0 | 25.0 |",
    );
    row("FP32+GC: out of memory");
    row("> 3 of 8 runs are done.");
    let answer = report.answer.sentence.plain();
    assert!(answer.starts_with("AMP+EMA+GC reaches"), "{answer}");
    let savings = "75.0% less time (against f32 in TF32) and 75.0% less memory";
    assert!(answer.contains(savings), "{answer}");
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
    let csv = fixture.read("report.csv");
    assert!(csv.starts_with("cell,status,num_done,tf32,val_r1,"), "{csv}");
    assert!(csv.contains("\nfp32,done,1,true,50,") && csv.contains("\namp,done,1,false,90,"));
}

#[test]
fn a_target_not_reached_is_not_a_number() {
    let fixture = Fixture::mixed("target");
    fixture.done("fp32.s1", 36, 7200.0, 8.0);
    let report = fixture.report(Lang::En);
    let target =
        |id| report.cells.iter().find(|c| c.cell == id).unwrap().targets[0].train_s.clone();
    // Of one finite and one infinite time, the median is infinite.
    let partly = Absent::NotReached { reached: 1, seeds: 2 };
    assert_eq!(target(CellId::BASELINE), Figure::absent(partly));
    let amp = CellId { amp: true, ..CellId::BASELINE };
    assert_eq!(target(amp).value(), Some(1800.0));
    let all = CellId::ALL[7];
    assert_eq!(target(all), Figure::absent(Absent::NotReached { reached: 0, seeds: 1 }));
    assert!(fixture.read("report.md").contains("not reached by all (1 of 2 seeds)"));
    fixture.done("fp32.s2", 36, 7200.0, 8.0);
    let report = fixture.report(Lang::En);
    let figure = &report.cells[0].targets[0].train_s;
    assert_eq!(figure.value(), Some(3600.0));
    assert!(fixture.read("report.md").contains("| 1.00 (1.00–∞) |"));
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
    assert_eq!(difference.seeds.known().unwrap().range, Some([30.0, 40.0]));
    assert!(fixture.read("report.md").contains("; seeds +30.00 … +40.00"));
    assert!((difference.figure.value().unwrap() - 35.0).abs() < 1e-9);
    assert!(fixture.read("report.md").contains("| 55.00 (50.00–60.00) | baseline | 7 |"));
    assert!(fixture.read("report.md").contains("Seeds 0, 1, 2"));
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let fixture = Fixture::mixed("page");
    fixture.report(Lang::En);
    let html = fixture.read("report.html");
    for reference in ["http:", "https:", "href=", "url(", "@import", "<link", "<script"] {
        assert!(!html.contains(reference), "{reference} in report.html");
    }
    assert_eq!(html.matches("src=").count(), html.matches("src=\"data:image/jpeg").count());
    // R@1 over time and epochs, memory against time, savings, steps, loss scale.
    assert_eq!(html.matches("<svg viewBox=\"0 0 880").count(), 6);
    assert_eq!(html.matches("<svg viewBox=\"0 0 360").count(), 6);
    let tags = [
        "svg", "table", "section", "div", "tr", "td", "th", "figure", "details", "small", "data",
        "article", "span",
    ];
    for tag in tags {
        let opened = html.matches(&format!("<{tag}>")).count();
        let opened = opened + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "<{tag}> is unbalanced");
    }
}

#[test]
fn a_run_that_selected_on_test_says_so() {
    let fixture = Fixture::empty("selected-on-test");
    for (run, train_s_to_best) in [("fp32.s0", 7200.0), ("amp.s0", 3600.0)] {
        fixture.done(run, 20, train_s_to_best, 8.0);
        let [val, test] = ["val", "test"].map(|split| format!("\"selection_split\":\"{split}\""));
        fixture.change(run, "run.json", &val, &test);
        let ranks = vec![0; fixture::NUM_QUERIES];
        let ranks = json!({"split": "test", "weights": "raw", "t2i": ranks, "i2t": []});
        fixture.ranks(run, &ranks);
    }
    let report = fixture.report(Lang::En);
    assert!(report.selected_on_test);
    let answer = report.answer.sentence.plain();
    assert!(answer.contains("its best test checkpoint"), "{answer}");
    assert_eq!(report.cells[4].r1_vs_fp32.figure.value(), Some(0.0));
    let markdown = fixture.read("report.md");
    for text in
        ["| **FP32** (TF32, selected on test) | done |", "selected its checkpoint on the test"]
    {
        assert!(markdown.contains(text), "no {text:?} in\n{markdown}");
    }
    assert!(fixture.read("report.html").contains("class=\"notice\""));
}

#[test]
fn every_ending_shows_as_what_it_is() {
    let fixture = Fixture::mixed("endings");
    for (run, status) in [("fp32-ema.s0", "failed"), ("fp32-ema-gc.s0", "diverged")] {
        let summary = json!({"status": status, "message": format!("why it {status}")});
        fixture.file(run, "summary.json", &summary.to_string());
    }
    fixture.file("amp-ema.s0", "config.toml", "nonsense");
    fixture.report(Lang::En);
    let markdown = fixture.read("report.md");
    for text in [
        "| **FP32+EMA** | failed (why it failed) | — |",
        "| **FP32+EMA+GC** | diverged (why it diverged) | — |",
        "| **FP32+GC** | out of memory (out of memory at step 3",
        "| **AMP+EMA** | unreadable (config.toml: ",
        "| **AMP+GC** | unfinished (step 900 of 1200) | — |",
    ] {
        assert!(markdown.contains(text), "no {text:?} in\n{markdown}");
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
    assert!(html.contains("<html lang=\"ko\">") && html.contains(">75.0</data>% 감소"));
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
    assert!(report.answer.sentence.plain().contains("baseline is not done"));
    let amp = &report.cells[4];
    assert_eq!(amp.r1_vs_fp32.figure, Figure::absent(Absent::NoBaseline));
    assert_eq!(amp.figures["peak_memory_less"], Figure::absent(Absent::NoBaseline));
    assert_eq!(amp.figures["val_r1"].value(), Some(90.0));
}

#[test]
fn a_directory_without_runs_is_an_error_that_helps() {
    let fixture = Fixture::empty("none");
    let message = fixture.try_report(Lang::En).unwrap_err().to_string();
    assert!(message.contains("fp32.s0"), "{message}");
    let nowhere = [Path::new("/nonexistent/matrix").to_path_buf()];
    assert!(write(&nowhere, None, Lang::En, 0).is_err());
}

#[test]
fn the_files_are_replaced_together_or_not_at_all() {
    let fixture = Fixture::mixed("together");
    fixture.report(Lang::En);
    let names = ["report.html", "report.md", "report.csv", "report.json"];
    let before = names.map(|name| fixture.read(name));
    fixture.done("fp32-ema.s0", 30, 7200.0, 8.0);
    let obstacle = fixture.dir.join(".report.csv.tmp");
    fs::create_dir(&obstacle).unwrap();
    let refusal = fixture.refusal();
    assert!(refusal.contains("cannot write"), "{refusal}");
    assert_eq!(names.map(|name| fixture.read(name)), before);
    fs::remove_dir(obstacle).unwrap();
    fixture.report(Lang::En);
    let staged = fs::read_dir(&fixture.dir)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp"));
    assert_eq!(staged.count(), 0);
    // The page names the report.json that it was written with.
    let hash = crate::checkpoint::sha256(fixture.read("report.json").as_bytes());
    assert!(fixture.read("report.html").contains(&hash));
    assert!(fixture.read("report.md").contains(&hash));
}
