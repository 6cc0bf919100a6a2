//! `cargo xtask bench` from end to end, with stand-ins for both sides (`fake/bench_side.sh`), outside
//! of a checkout.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A folder without a checkout, and what happened in it.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn run(&self, args: &str, env: &[(&str, &str)]) -> Output {
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/bench_side.sh");
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(["bench", "--binary"]).arg(&fake);
        if args.contains("--peer") {
            command.arg("--python").arg(&fake);
        }
        command
            .args(args.split_whitespace())
            .args(["--json", "figures.json"])
            .current_dir(self.dir.path())
            .env_remove("CARGO_MANIFEST_DIR")
            .env("FAKE_CALLS", self.dir.path().join("calls"))
            .envs(env.iter().copied())
            .output()
            .unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&fs::read(self.dir.path().join("figures.json")).unwrap()).unwrap()
    }

    /// Command lines of the sides, without the folder that is ours.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("calls")).unwrap();
        let folder = format!("{}/", self.dir.path().canonicalize().unwrap().display());
        text.lines().map(|line| line.replace(&folder, "")).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn expect_code(output: &Output, code: i32) {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{stdout}\n{stderr}");
}

#[test]
fn both_sides_of_every_case_are_measured_and_recorded() {
    let bench = Bench::new();
    let args = "--peer --pairs 2 --batch 4 --cells fp32,amp-ema-gc --caption-lengths 77,32";
    let output = bench.run(args, &[]);
    expect_code(&output, 0);

    let json = bench.json();
    let cases = json["cases"].as_array().unwrap();
    let names: Vec<&str> = cases.iter().map(|case| case["case"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "train/fp32/77",
            "train/amp-ema-gc/77",
            "encode/fp32",
            "encode/amp",
            "train/fp32/32",
            "train/amp-ema-gc/32",
        ]
    );
    assert_eq!(json["tbps"], json!({"version": "1.2.3", "commit": "abc"}));
    assert_eq!(json["peer"], json!({"torch": "2.15.0"}));
    let case = &cases[0];
    assert_eq!(
        case["ours_s"],
        json!({"median": 2.0, "min": 2.0, "max": 2.0, "pieces": [2.0, 2.0]})
    );
    assert_eq!((&case["time_ratio"], &case["pairs"]), (&json!(0.5), &json!(2)));
    assert_eq!((&case["memory_ratio"], &case["tape_ratio"]), (&json!(0.75), &json!(0.5)));
    assert_eq!((&case["alternated"], &case["failed"]), (&json!(true), &Value::Null));
    assert_eq!(cases[2]["ours_images_per_s"], json!(2.0));

    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().filter(|line| line.starts_with("| train/")).count(), 4, "{stdout}");
    assert_eq!(
        bench.calls()[2..4],
        [
            "bench --config bench/base.toml --work train --device flex --caption-length 77 --set \
             train.batch_size=4 --set precision=\"amp-fp16\" --set ema.enabled=true --set \
             recompute=\"block\" --set seed=0",
            "bench/peer.py --work train --device flex --precision amp-fp16 --batch 4 \
             --caption-length 77 --threads 2 --recompute --ema",
        ]
    );
}

#[test]
fn without_a_peer_its_figures_are_null_and_the_reason_is_kept() {
    let bench = Bench::new();
    // Of an option that is given twice the last counts: so is the GPU's script overridden.
    let args = "--pairs 2 --cells amp --work train,encode --caption-lengths 77,32 --without-peer \
                no-torch --cells fp32 --work train --caption-lengths 77";
    let output = bench.run(args, &[]);
    expect_code(&output, 0);
    let json = bench.json();
    assert_eq!(json["cases"].as_array().unwrap().len(), 1);
    assert_eq!(json["cases"][0]["case"], "train/fp32/77");
    assert_eq!((&json["peer"], &json["peer_absent"]), (&Value::Null, &json!("no-torch")));
    let case = &json["cases"][0];
    assert_eq!((&case["ours_s"]["median"], &case["pairs"]), (&json!(2.0), &json!(2)));
    assert_eq!((&case["peer_s"], &case["time_ratio"]), (&Value::Null, &Value::Null));
    assert_eq!(bench.calls().len(), 1);
}

#[test]
fn a_side_that_dies_fails_its_case_and_the_others_go_on() {
    let check = |env: (&str, &str), expected: &str| {
        let bench = Bench::new();
        let args = "--peer --pairs 3 --cells fp32,amp --work train --caption-lengths 77";
        let output = bench.run(args, &[env]);
        expect_code(&output, 1);
        let json = bench.json();
        assert_eq!(json["cases"][0]["failed"], Value::Null);
        assert_eq!(json["cases"][0]["time_ratio"], json!(0.5));
        assert_eq!(json["cases"][1]["failed"], expected);
        assert_eq!(json["cases"][1]["time_ratio"], Value::Null);
        assert!(text(&output.stdout).contains(expected));
        let verdict = "error: 1 of 2 cases failed: train/amp/77\n";
        assert!(text(&output.stderr).ends_with(verdict), "{}", text(&output.stderr));
    };
    check(("FAKE_DEAD", "amp-fp16"), "tbps died at its work: error: the device is out of memory");
    check(
        ("FAKE_UNREADY", "--precision amp-fp16"),
        "PyTorch died at its start: ModuleNotFoundError: No module named 'torch'",
    );
}

/// On a GPU the sides run one after the other, so that ours is measured when PyTorch's fails.
#[test]
fn on_a_gpu_our_figures_outlive_the_other_side() {
    let bench = Bench::new();
    let args = "--device cuda --peer --pairs 2 --cells fp32 --work train --caption-lengths 77";
    let output = bench.run(args, &[("FAKE_DEAD", "--precision")]);
    expect_code(&output, 1);
    let case = &bench.json()["cases"][0];
    assert_eq!((&case["batch"], &case["alternated"]), (&json!(64), &json!(false)));
    assert_eq!(case["ours_s"]["median"], json!(2.0));
    assert_eq!(case["failed"], "PyTorch died at its work: error: the device is out of memory");
}

#[test]
fn a_time_limit_ends_a_hanging_side_and_what_is_left_is_recorded_as_not_reached() {
    let bench = Bench::new();
    let args =
        "--pairs 2 --max-seconds 3 --cells fp32,amp --work train,encode --caption-lengths 77";
    let began = Instant::now();
    let output = bench.run(args, &[("FAKE_SLOW", "bench")]);
    expect_code(&output, 1);
    // Ample: without the limit each case would take a minute.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let json = bench.json();
    assert_eq!(json["cases"].as_array().unwrap().len(), 4);
    assert_eq!(json["cases"][0]["failed"], "tbps at its work: ran out of its time");
    assert_eq!(json["cases"][3]["failed"], "not reached");
}

#[test]
fn nonsense_is_refused_before_anything_is_started() {
    let check = |args: &str, part: &str| {
        let bench = Bench::new();
        let output = bench.run(args, &[]);
        expect_code(&output, 2);
        assert!(text(&output.stderr).contains(part), "{}", text(&output.stderr));
        assert!(!bench.dir.path().join("calls").exists());
        assert!(!bench.dir.path().join("figures.json").exists());
    };
    check("--cells fp16", "is no cell");
    check("--pairs 0", "--pairs");
    check("--caption-lengths 78", "78");
    check("--venv somewhere", "add --peer");
    check("--binary /no/such/file", "is no file");
    check("--peer --python /no/such/file", "is no file");
    check("--peer --without-peer why", "cannot be used with");
}
