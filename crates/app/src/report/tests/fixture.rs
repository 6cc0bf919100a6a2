//! Small matrices made by hand.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::report::{Lang, Report, write};

/// Captions of the split.
pub(super) const NUM_QUERIES: usize = 40;

/// A matrix directory that is removed at the end of its test.
pub(super) struct Fixture {
    pub(super) dir: PathBuf,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Fixture {
    pub(super) fn empty(test: &str) -> Fixture {
        let dir = std::env::temp_dir().join(format!("tbps-report-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Fixture { dir }
    }

    /// fp32 finds 20 of 40 queries first, amp 36, amp-ema-gc 21; fp32-gc ran out of memory, amp-gc
    /// is under way, and the others are missing.
    pub(super) fn mixed(test: &str) -> Fixture {
        let fixture = Fixture::empty(test);
        fixture.done("fp32.s0", 20, 7200.0, 8.0);
        fixture.done("amp.s0", 36, 3600.0, 6.0);
        fixture.done("amp-ema-gc.s0", 21, 1800.0, 2.0);
        let message = "out of memory at step 3: lower batch_size | <script>";
        let oom = json!({"cell": "fp32-gc", "seed": 0, "status": "oom", "message": message,
            "val": null, "train_s": 12.0, "samples_per_s": null, "peak_vram_gib": 0.0, "steps": 3});
        fixture.file("fp32-gc.s0", "summary.json", &oom.to_string());
        fixture.done("amp-gc.s0", 30, 1800.0, 2.0);
        fs::remove_file(fixture.dir.join("amp-gc.s0/summary.json")).unwrap();
        let whole = fixture.read("amp-gc.s0/metrics.jsonl");
        fixture.file("amp-gc.s0", "metrics.jsonl", &(whole + "{\"kind\":\"eval\",\"st"));
        fixture
    }

    pub(super) fn file(&self, run: &str, name: &str, text: &str) {
        let path = self.dir.join(run).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A finished run: `first` of 40 queries found first, and the rest second.
    pub(super) fn done(&self, run: &str, first: usize, train_s_to_best: f64, vram_gib: f64) {
        let (cell, seed) = run.rsplit_once(".s").unwrap();
        let has = |part: &str| cell.split('-').any(|p| p == part);
        let (amp, r1) = (has("amp"), 100.0 * first as f64 / NUM_QUERIES as f64);
        let scores = json!({"r1": r1, "r5": 95.0, "r10": 97.5, "map": 61.25, "minp": 40.0});
        let reached = (r1 >= 60.0).then_some(train_s_to_best / 2.0);
        let summary = json!({
            "status": "done", "epochs": 10, "best_epoch": 7, "val": scores, "val_raw": scores,
            "test": null, "train_s_to_best": train_s_to_best,
            "e2e_s_to_best": train_s_to_best * 1.25, "train_s": 14400.0, "e2e_s": 18000.0,
            "eval_s": 3000.0, "checkpoint_s": 500.0,
            "warmup_s": 36.0, "time_to_target": [{"r1": 60.0, "train_s": reached, "e2e_s": reached,
            "epoch": reached.map(|_| 3)}], "samples_per_s": 512.5, "steps": 900,
            "executed_steps": 900, "skipped_steps": if amp { 2 } else { 0 },
            "final_scale": amp.then_some(65536.0), "peak_vram_gib": vram_gib,
            "peak_host_gib": 1.5, "peak_alloc_gib": null, "tape_gib": vram_gib / 2.0, "tf32": !amp,
        });
        self.file(run, "summary.json", &summary.to_string());
        self.file(run, "run.json", &provenance(cell, seed).to_string());
        let precision = if amp { "amp-fp16" } else { "fp32" };
        let recompute = if has("gc") { "block" } else { "off" };
        let config = format!(
            "seed = {seed}\nprecision = \"{precision}\"\nrecompute = \"{recompute}\"\n\
             [data]\nroot = \"/data/of/{cell}\"\ncache = \"\"\n[ema]\nenabled = {}\n\
             [eval]\ntargets = [60.0]\n[optim]\nlr = 0.001\n",
            has("ema")
        );
        self.file(run, "config.toml", &config);
        self.file(run, "metrics.jsonl", &metrics(amp, seed, r1, train_s_to_best));
        let ranks: Vec<u32> = (0..NUM_QUERIES).map(|query| u32::from(query >= first)).collect();
        let top: Vec<[u32; 2]> = ranks.iter().map(|_| [0, 1]).collect();
        self.ranks(
            run,
            &json!({"split": "val", "weights": "raw", "t2i": ranks, "i2t": [],
            "t2i_top": top}),
        );
    }

    pub(super) fn ranks(&self, run: &str, ranks: &Value) {
        let best = self.dir.join(run).join("checkpoints/best");
        fs::create_dir_all(&best).unwrap();
        let mut file = GzEncoder::new(Vec::new(), Compression::fast());
        file.write_all(ranks.to_string().as_bytes()).unwrap();
        fs::write(best.join("ranks.json.gz"), file.finish().unwrap()).unwrap();
    }

    /// Replaces a part of a run's file.
    pub(super) fn change(&self, run: &str, name: &str, from: &str, to: &str) {
        let text = self.read(&format!("{run}/{name}"));
        assert!(text.contains(from), "no {from} in {text}");
        self.file(run, name, &text.replace(from, to));
    }

    pub(super) fn report(&self, lang: Lang) -> Report {
        self.try_report(lang).unwrap()
    }

    pub(super) fn try_report(&self, lang: Lang) -> anyhow::Result<Report> {
        write(std::slice::from_ref(&self.dir), None, lang, 6)
    }

    /// Why there is no report.
    pub(super) fn refusal(&self) -> String {
        self.try_report(Lang::En).unwrap_err().to_string()
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap()
    }

    pub(super) fn json(&self) -> Value {
        read_json(&self.dir.join("report.json"))
    }
}

pub(super) fn read_json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn provenance(cell: &str, seed: &str) -> Value {
    json!({"protocol": 1, "burn_version": "0.22.1", "device": "flex", "backend": "flex",
        "cpu": "Some CPU", "num_cpus": 2, "cell": cell, "seed": seed, "git_commit": "c0ffee",
        "git_dirty": false, "total_steps": 1200, "selection_split": "val",
        "dataset_name": "synth-demo",
        "dataset": {"num_files": 60, "annotation_sha256": "ab".repeat(32)}})
}

fn metrics(amp: bool, seed: &str, r1: f64, train_s_to_best: f64) -> String {
    let step = |step: u64, scale: f64, skipped: bool| {
        let scale = amp.then_some(scale);
        json!({"kind": "step", "step": step, "loss": 3.0, "scale": scale,
            "skipped": amp && skipped, "wait_s": 0.5, "compute_s": 10.25, "update_s": 1.0 / 3.0,
            "train_s": 1.0})
    };
    let evaluation = |step: u64, epoch: u64, r1: f64, train_s: f64| {
        json!({"kind": "eval", "step": step, "epoch": epoch, "val": {"r1": r1},
            "batch_hash": format!("{seed}-{step}"), "train_s": train_s})
    };
    let lines = [
        step(1, 131_072.0, true),
        step(2, 65_536.0, false),
        evaluation(450, 1, r1 / 2.0, train_s_to_best / 2.0),
        step(900, 65_536.0, false),
        evaluation(900, 2, r1, train_s_to_best),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}
