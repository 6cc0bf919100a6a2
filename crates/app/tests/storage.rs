//! Disks that fill up or turn read-only under a run: one line says so, nothing is lost, and the run
//! goes on once there is room.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use support::{error_line, json, metrics, train_command, trained};

const SETTINGS: [&str; 2] = ["ema.enabled=true", "train.epochs=3"];

/// What two equal runs have in common.
fn result(run: &Path) -> (Vec<Value>, Value) {
    let mut summary = json(run, "summary.json");
    (metrics(run), summary["best_weights_sha256"].take())
}

/// `command`, started by a shell script as its `"$@"`.
fn in_shell(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    shell
}

/// Starts a run and kills it once it has made `steps`.
fn killed_after(steps: u64, run: &Path) {
    let mut child = train_command(run, &SETTINGS).spawn().unwrap();
    while fs::metadata(run.join("executed_steps")).map_or(0, |file| file.len()) < steps {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it was killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn refused(output: &Output, expected: &str) {
    let line = error_line(output);
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(line.contains(expected), "{line}");
    assert!(line.ends_with("with --resume goes on from the last checkpoint"), "{line}");
}

/// A limit on the size of files stands in for a full disk: it needs no rights.
#[test]
fn a_checkpoint_that_cannot_be_written_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let straight = trained(folder.path(), "straight", &SETTINGS);
    let run = folder.path().join("run");
    killed_after(8, &run);
    let before = json(&run.join("checkpoints/last"), "manifest.json");

    let mut resume = train_command(&run, &SETTINGS);
    resume.arg("--resume");
    // 1 MiB: less than the optimizer's state. Ignored, the signal becomes an error.
    let mut limited = in_shell("trap '' XFSZ; ulimit -f 2048; exec \"$@\"", &resume);
    refused(&limited.output().unwrap(), "last.tmp/optimizer.safetensors: File too large");
    assert_eq!(json(&run.join("checkpoints/last"), "manifest.json"), before);
    assert!(!run.join("checkpoints/last.tmp").exists() && !run.join("summary.json").exists());

    assert!(resume.output().unwrap().status.success());
    assert_eq!(result(&straight), result(&run));
}

/// A small disk of our own, filled by somebody else while the run is on it, then read-only. In a
/// mount namespace, which some containers do not allow.
#[test]
fn a_disk_that_fills_up_and_one_that_turns_read_only() {
    let in_namespace = |script: &str, command: &Command| {
        let shell = in_shell(script, command);
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--map-root-user", "--mount"])
            .arg(shell.get_program())
            .args(shell.get_args());
        unshare
    };
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = format!("mount -t tmpfs -o size=64m tmpfs {}", disk.display());
    let possible = in_namespace(&mount, &Command::new("true")).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        println!("not tested: this system lets nobody mount a disk of their own");
        return;
    }
    let straight = trained(folder.path(), "straight", &SETTINGS);
    let run = disk.join("run");
    let script = format!(
        "cd {folder} && {mount}
        \"$@\" 2>full.err & run=$!
        until test -d disk/run/checkpoints/last; do sleep 0.01; done
        dd if=/dev/zero of=disk/filler bs=64k 2>dd.err
        wait $run; echo $? >full.status
        ls disk/run/checkpoints >full.list
        rm disk/filler
        mount -o remount,ro disk
        \"$@\" --resume 2>ro.err; echo $? >ro.status
        mount -o remount,rw disk
        \"$@\" --resume 2>rest.err; echo $? >rest.status
        cp -r disk/run run",
        folder = folder.path().display()
    );
    let output = in_namespace(&script, &train_command(&run, &SETTINGS)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let full = read("full.err");
    assert_eq!((full.lines().count(), read("full.status").trim()), (1, "1"), "{full}");
    assert!(full.contains("No space left on device (os error 28)"), "{full}");
    assert!(full.contains("--resume goes on from the last checkpoint"), "{full}");
    assert!(!read("full.list").contains("tmp"), "{}", read("full.list"));
    let read_only = read("ro.err");
    assert_eq!((read_only.lines().count(), read("ro.status").trim()), (1, "2"), "{read_only}");
    assert!(read_only.contains("Read-only file system (os error 30)"), "{read_only}");
    assert_eq!(read("rest.status").trim(), "0", "{}", read("rest.err"));
    assert_eq!(result(&straight), result(&folder.path().join("run")));
}
