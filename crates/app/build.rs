//! Records what the binary is built from, for the provenance of runs.

use std::path::Path;
use std::process::Command;

fn main() {
    // At run time: a script that was compiled for another checkout may be run for this one.
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&manifest_dir).join("../..");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let commit = output(&root, "git", &["rev-parse", "HEAD"]);
    let changes = output(&root, "git", &["status", "--porcelain", "--untracked-files=no"]);
    let dirty = changes.map(|list| (!list.is_empty()).to_string());
    for (name, value) in [
        ("TBPS_GIT_COMMIT", commit),
        ("TBPS_GIT_DIRTY", dirty),
        ("TBPS_RUSTC", output(&root, &rustc, &["--version"])),
    ] {
        println!("cargo::rustc-env={name}={}", value.unwrap_or_default());
    }
    for watched in [".git/HEAD", ".git/index", "crates", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
}

/// Trimmed standard output of a command that succeeds.
fn output(root: &Path, program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).current_dir(root).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
