//! `cargo xtask ablate` from end to end, with a stand-in for `tbps` (`fake/tbps.sh`).
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Long enough for a loaded machine; every wait ends as soon as its condition holds.
const PATIENCE: Duration = Duration::from_secs(60);
const FAST: &str = "0";
/// Slow enough that a test can act in the middle of a training.
const SLOW: &str = "0.5";

/// An empty workspace of our own, so that generated data and runs do not land in the real one.
struct Workspace {
    dir: tempfile::TempDir,
}

impl Workspace {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("xtask")).unwrap();
        fs::write(dir.path().join("xtask/Cargo.toml"), "").unwrap();
        Self { dir }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.dir.path().join("runs/smoke").join(name)
    }

    fn command(&self, step_s: &str, args: &str) -> Command {
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/tbps.sh");
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command
            .args(["ablate", "--preset", "smoke", "--tbps"])
            .arg(fake)
            .args(args.split_whitespace())
            .current_dir(self.dir.path())
            .env("CARGO_MANIFEST_DIR", self.dir.path().join("xtask"))
            .env("FAKE_CALLS", self.dir.path().join("calls"))
            .env("FAKE_STEP_S", step_s);
        command
    }

    /// Starts a slow matrix and waits until its first cell has made a step.
    fn start_slow(&self) -> Child {
        self.start(self.command(SLOW, ""))
    }

    fn start(&self, mut command: Command) -> Child {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the first step", || self.out("fp32.s0/metrics.jsonl").exists());
        child
    }

    /// The command lines that `tbps` was given so far and that begin with `prefix`.
    fn calls(&self, prefix: &str) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("calls")).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(prefix)).map(String::from).collect()
    }

    fn pid(&self, run: &str) -> Pid {
        let text = fs::read_to_string(self.out(run).join("pid")).unwrap();
        Pid::from_raw(text.trim().parse().unwrap()).unwrap()
    }

    fn num_done(&self) -> usize {
        let runs = fs::read_dir(self.out("")).unwrap();
        let summary = |run: fs::DirEntry| fs::read_to_string(run.path().join("summary.json")).ok();
        runs.filter_map(|run| summary(run.unwrap())).filter(|text| text.contains("done")).count()
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asserts the exit status, showing what was said if it is another.
fn expect_code(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

#[test]
fn a_matrix_runs_once_and_is_reported_each_time() {
    let workspace = Workspace::new();
    let output = workspace.command(FAST, "").output().unwrap();
    expect_code(&output, 0);
    assert_eq!(workspace.num_done(), 8);
    assert_eq!(workspace.calls("data synth").len(), 1);
    assert_eq!(workspace.calls("data check").len(), 1);
    assert_eq!(workspace.calls("train").len(), 8);
    let stdout = text(&output.stdout);
    assert!(stdout.contains("| cell | R@1 |\n| --- | --- |\n| fp32 | 1.0 |\n"), "{stdout}");
    assert!(stdout.contains("runs/smoke/report.html"), "{stdout}");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("[1/8] fp32.s0: started\n"), "{stderr}");
    assert!(stderr.contains("[8/8] amp-ema-gc.s0: done  in "), "{stderr}");
    let log = fs::read_to_string(workspace.out("logs/amp.s0.log")).unwrap();
    assert_eq!(log, "training amp.s0 from step 0\n");

    // A second seed: what is there stays; the check finds its own result.
    let output = workspace.command(FAST, "--seeds 2").output().unwrap();
    expect_code(&output, 0);
    assert_eq!(workspace.num_done(), 16);
    assert_eq!(workspace.calls("data synth").len(), 1);
    assert_eq!(workspace.calls("data check").len(), 2);
    assert_eq!(workspace.calls("train").len(), 16);
    assert_eq!(workspace.calls("report").len(), 2);
}

#[test]
fn a_cell_that_the_system_kills_for_want_of_memory_is_recorded_as_that() {
    let workspace = Workspace::new();
    let output = workspace.command(FAST, "").env("FAKE_ABORT", "fp32.s0").output().unwrap();
    expect_code(&output, 1);
    assert_eq!(workspace.num_done(), 7);
    let summary = fs::read_to_string(workspace.out("fp32.s0/summary.json")).unwrap();
    assert_eq!(summary, "{\"status\": \"oom\"}\n");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("[1/8] fp32.s0: oom"), "{stderr}");
}

#[test]
fn a_failed_cell_is_reported_kept_and_tried_again() {
    let workspace = Workspace::new();
    let output = workspace.command(FAST, "").env("FAKE_FAIL", "amp.s0").output().unwrap();
    expect_code(&output, 1);
    assert_eq!(workspace.num_done(), 7);
    assert_eq!(workspace.calls("report").len(), 1);
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("amp.s0: oom: error: the device is out of memory; use recompute"),
        "{stderr}"
    );
    let verdict = "error: 1 of 8 cells are not done (amp.s0); the same command tries them again\n";
    assert!(stderr.ends_with(verdict), "{stderr}");

    expect_code(&workspace.command(FAST, "").output().unwrap(), 0);
    assert_eq!(workspace.calls("train").len(), 9);
    let kept = fs::read_to_string(workspace.out("amp.s0.failed-1/summary.json")).unwrap();
    assert!(kept.contains("oom"), "{kept}");
}

#[test]
fn an_interrupt_lets_the_cell_write_its_checkpoint_and_the_same_command_resumes() {
    let workspace = Workspace::new();
    let child = workspace.start_slow();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    expect_code(&output, 130);
    let stderr = text(&output.stderr);
    let resume = "error: interrupted; the same command resumes: cargo xtask ablate --preset smoke";
    assert!(stderr.contains(resume), "{stderr}");
    assert!(test_kill_process(workspace.pid("fp32.s0")).is_err(), "the training has ended");
    assert!(workspace.out("fp32.s0/checkpoint").exists());
    assert_eq!(workspace.calls("train").len(), 1, "no further cell is started");

    expect_code(&workspace.command(FAST, "").output().unwrap(), 0);
    let trained = workspace.calls("train");
    assert_eq!(trained.len(), 9);
    assert!(trained[1].ends_with("fp32.s0 --device flex --resume"), "{}", trained[1]);
    assert!(trained[2..].iter().all(|line| !line.contains("--resume")));
    let steps = fs::read_to_string(workspace.out("fp32.s0/metrics.jsonl")).unwrap();
    assert_eq!(steps.lines().count(), 4, "no step is lost or repeated");
}

#[test]
fn a_killed_matrix_takes_its_training_along() {
    let workspace = Workspace::new();
    let mut child = workspace.start_slow();
    child.kill().unwrap();
    child.wait().unwrap();
    let training = workspace.pid("fp32.s0");
    wait_until("the training to end", || test_kill_process(training).is_err());
    assert!(!workspace.out("fp32.s0/summary.json").exists());

    expect_code(&workspace.command(FAST, "").output().unwrap(), 0);
    assert!(workspace.calls("train")[1].ends_with("--resume"));
}

#[test]
fn a_training_that_outlives_its_matrix_is_waited_for() {
    let workspace = Workspace::new();
    let mut command = workspace.command(SLOW, "");
    command.env("FAKE_DEAF", "1");
    let mut child = workspace.start(command);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(test_kill_process(workspace.pid("fp32.s0")).is_ok(), "the training goes on");

    expect_code(&workspace.command(FAST, "").output().unwrap(), 0);
    assert_eq!(workspace.calls("train").len(), 8, "nobody else trained the first cell");
    let steps = fs::read_to_string(workspace.out("fp32.s0/metrics.jsonl")).unwrap();
    assert_eq!(steps.lines().count(), 4);
}

#[test]
fn a_directory_has_one_matrix_at_a_time() {
    let workspace = Workspace::new();
    let mut child = workspace.start_slow();
    let output = workspace.command(FAST, "").output().unwrap();
    expect_code(&output, 1);
    assert!(text(&output.stderr).contains("another `cargo xtask ablate` is writing"));
    assert_eq!(workspace.calls("train").len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn shards_in_processes_of_their_own_make_one_matrix() {
    let workspace = Workspace::new();
    let shards: Vec<Child> = ["1/3", "2/3", "3/3"]
        .iter()
        .map(|shard| {
            let mut command = workspace.command("0.05", &format!("--shard {shard}"));
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for shard in shards {
        let output = shard.wait_with_output().unwrap();
        expect_code(&output, 0);
        let stdout = text(&output.stdout);
        assert!(stdout.contains("/3 is over; once all are, report them: "), "{stdout}");
    }
    assert_eq!(workspace.num_done(), 8);
    assert_eq!(workspace.calls("train").len(), 8);
    assert_eq!(workspace.calls("data synth").len(), 1, "one shard makes the data for all");
    assert_eq!(workspace.calls("report").len(), 0, "no shard has all there is to report");
    let matrix = fs::read_to_string(workspace.out("matrix.json")).unwrap();
    assert!(matrix.contains("fp32-ema") && matrix.contains("amp-ema-gc"), "{matrix}");

    // Put together, it is the matrix that one machine would have made.
    expect_code(&workspace.command(FAST, "").output().unwrap(), 0);
    assert_eq!(workspace.calls("train").len(), 8);
    assert_eq!(workspace.calls("report").len(), 1);
}

#[test]
fn max_time_ends_like_an_interrupt() {
    let workspace = Workspace::new();
    // 1.8 s: enough to start the first training, which takes 2 s, and not to end it.
    let output = workspace.command(SLOW, "--max-time 0.0005").output().unwrap();
    expect_code(&output, 130);
    let stderr = text(&output.stderr);
    assert!(stderr.contains("--max-time is over; the same command resumes"), "{stderr}");
    assert!(workspace.num_done() < 8);
}

#[test]
fn bad_usage_starts_nothing() {
    let workspace = Workspace::new();
    let check = |args: &str| {
        expect_code(&workspace.command(FAST, args).output().unwrap(), 2);
        assert!(workspace.calls("").is_empty(), "{args}");
    };
    check("--data /no/such/folder");
    check("--seeds 0");
    check("--set recompute=\"off\"");
    check("--no-such-option");
}

#[test]
fn dry_run_prints_the_commands_and_writes_nothing() {
    let workspace = Workspace::new();
    let output = workspace.command(FAST, "--dry-run").output().unwrap();
    expect_code(&output, 0);
    let stdout = text(&output.stdout);
    let kinds: Vec<&str> = stdout.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(kinds[..3], ["data", "data", "train"]);
    assert_eq!(kinds.len(), 2 + 8 + 1);
    assert!(workspace.calls("").is_empty());
    assert!(!workspace.out("").exists());
}
