//! `cargo xtask ablate --emit`: the jobs for a cluster, and the Slurm script as a shell runs it.
//!
//! `emit/` has the texts for a look and for tools that are not in every build: see its README.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A workspace of our own, with the programs that the jobs call.
struct Workspace {
    dir: tempfile::TempDir,
}

impl Workspace {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("xtask")).unwrap();
        fs::write(dir.path().join("xtask/Cargo.toml"), "").unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn emit(&self, args: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.arg("ablate").args(args.split_whitespace());
        command.current_dir(self.dir.path());
        command.env("CARGO_MANIFEST_DIR", self.path("xtask")).output().unwrap()
    }

    /// The emitted text with this workspace's folder as `/workspace`.
    fn text(&self, args: &str) -> String {
        let output = self.emit(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let folder = self.dir.path().to_str().unwrap();
        String::from_utf8(output.stdout).unwrap().replace(folder, "/workspace")
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The emitted Slurm script as task 2, with the programs of this workspace.
    fn task(&self) -> Command {
        let job = self.path("job.sh");
        fs::write(&job, self.emit("--preset smoke --emit slurm --shards 3").stdout).unwrap();
        let path = std::env::join_paths([self.path("bin"), "/usr/bin".into(), "/bin".into()]);
        let mut bash = Command::new("bash");
        bash.arg(job).env("PATH", path.unwrap()).current_dir(self.dir.path());
        bash.env("SLURM_ARRAY_TASK_ID", "2").env("SLURM_JOB_ID", "77");
        bash
    }
}

const SLURM: &str = "--emit slurm --preset demo --device cuda --seeds 2 --set train.epochs=3 \
                     --max-time 11.5 --shards 4";
const K8S: &str = "--emit k8s --preset demo --device cuda --image registry.example/tbps:1 \
                   --claim tbps-workspace";

#[test]
fn the_texts_are_those_that_were_looked_at() {
    let workspace = Workspace::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emit");
    for (args, file) in [(SLURM, "slurm.sh"), (K8S, "k8s.yaml")] {
        let path = folder.join(file);
        let text = workspace.text(args);
        if std::env::var_os("TBPS_BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&path).unwrap(), "{file}: see the README beside it");
    }
    let parsed = Command::new("bash").arg("-n").arg(folder.join("slurm.sh")).output().unwrap();
    assert!(parsed.status.success() && parsed.stderr.is_empty(), "{parsed:?}");
}

#[test]
fn what_makes_no_sense_on_a_cluster_is_refused() {
    let workspace = Workspace::new();
    let check = |args: &str, part: &str| {
        let output = workspace.emit(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(part) && output.stdout.is_empty(), "{args}: {said}");
    };
    check("--emit slurm --device cuda:1", "write --device cuda");
    check("--emit slurm --shards 9", "the matrix has 8 trainings");
    check("--emit slurm --image x", "are for --emit k8s");
    check("--emit slurm --shard 1/2", "cannot be used with");
    check("--emit k8s", "needs --image NAME");
    check("--emit k8s --image x --claim y --out /elsewhere", "--out /elsewhere is outside of the");
    check("--shards 3", "--emit");
}

#[test]
fn a_task_trains_its_shard_and_ends_as_it_does() {
    let workspace = Workspace::new();
    workspace.program("cargo", "echo \"$*\" >>calls; exit ${FAKE_STATUS:-0}");
    let output = workspace.task().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let calls = fs::read_to_string(workspace.path("calls")).unwrap();
    assert!(calls.starts_with("xtask ablate --preset smoke --seeds 1 --device flex"), "{calls}");
    assert!(calls.ends_with(" --shard 2/3\n") && calls.lines().count() == 1, "{calls}");
    let failed = workspace.task().env("FAKE_STATUS", "1").output().unwrap();
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
}

#[test]
fn a_task_that_is_told_to_end_lets_its_training_save_and_is_queued_again() {
    let workspace = Workspace::new();
    // Takes a while to save once it is told to stop.
    workspace.program(
        "cargo",
        "trap 'sleep 0.3; echo saved >>calls; exit 130' TERM; touch began; \
         while :; do sleep 0.05; done",
    );
    workspace.program("scontrol", "echo \"scontrol $*\" >>calls");
    let task = workspace.task().stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !workspace.path("began").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "the task does not begin");
        thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&task), Signal::TERM).unwrap();
    let output = task.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let calls = fs::read_to_string(workspace.path("calls")).unwrap();
    assert_eq!(calls, "saved\nscontrol requeue 77\n");
}
