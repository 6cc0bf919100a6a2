//! Where the workspace is and how to call cargo in it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Message, MetadataCommand};

/// The workspace root: the folder above `xtask`.
///
/// Cargo names our folder when it runs us (`cargo xtask`). A binary started by hand looks upwards
/// from the current directory; the path at compile time is not used, since two checkouts may share
/// a target directory.
///
/// # Errors
/// When started by hand outside of a checkout.
pub(crate) fn root() -> Result<PathBuf> {
    let is_root = |dir: &Path| dir.join("xtask/Cargo.toml").is_file();
    if let Some(root) =
        env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).as_deref().and_then(Path::parent)
        && is_root(root)
    {
        return Ok(root.to_path_buf());
    }
    let here = env::current_dir().context("the current directory cannot be read")?;
    match here.ancestors().find(|dir| is_root(dir)) {
        Some(root) => Ok(root.to_path_buf()),
        None => {
            bail!("{} is not inside the tbps workspace; run `cargo xtask` from it", here.display())
        }
    }
}

/// The cargo that started us, or the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// Arguments of the cargo call that builds `tbps` for a device.
///
/// The default build has the CPU backend `flex`; any other kind of device (`cuda:1` is of kind
/// `cuda`) is a cargo feature of that name.
pub(crate) fn build_args(device: &str) -> Vec<String> {
    let mut args: Vec<String> =
        ["build", "--release", "--package", "tbps"].map(String::from).into();
    let kind = device.split(':').next().unwrap_or(device);
    if kind != "flex" {
        args.extend(["--features".into(), kind.into()]);
    }
    args
}

/// Builds the release binary and returns the path of the executable that cargo reports.
///
/// # Errors
/// When the build fails; cargo has then printed why.
pub(crate) fn build_tbps(root: &Path, device: &str) -> Result<PathBuf> {
    build(root, &build_args(device), "tbps")
}

/// Runs a cargo build and returns the path of the executable `name` that it reports.
///
/// # Errors
/// When the build fails; cargo has then printed why.
pub(crate) fn build(root: &Path, args: &[String], name: &str) -> Result<PathBuf> {
    eprintln!("building {name} (release); the first build takes minutes");
    let mut child = cargo()
        .args(args)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo cannot be started")?;
    let stdout = child.stdout.take().context("cargo gave no output")?;
    let mut executable = None;
    for message in Message::parse_stream(std::io::BufReader::new(stdout)) {
        if let Message::CompilerArtifact(artifact) =
            message.context("cargo's output cannot be read")?
            && artifact.target.name == name
            && let Some(path) = artifact.executable
        {
            executable = Some(path.into_std_path_buf());
        }
    }
    if !child.wait().context("cargo cannot be waited for")?.success() {
        bail!("{name} does not build; cargo's message is above");
    }
    executable.with_context(|| format!("cargo built no executable named {name}"))
}

/// Where [`build_tbps`] would put the executable, without building it.
///
/// # Errors
/// When cargo cannot describe the workspace.
pub(crate) fn expected_tbps(root: &Path) -> Result<PathBuf> {
    let name = format!("tbps{}", env::consts::EXE_SUFFIX);
    Ok(target_dir(root)?.join("release").join(name))
}

/// Where cargo builds.
///
/// # Errors
/// When cargo cannot describe the workspace.
pub(crate) fn target_dir(root: &Path) -> Result<PathBuf> {
    let metadata = MetadataCommand::new()
        .current_dir(root)
        .no_deps()
        .exec()
        .context("cargo metadata does not describe the workspace")?;
    Ok(metadata.target_directory.into_std_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_other_than_the_cpu_is_a_cargo_feature() {
        assert_eq!(build_args("flex").join(" "), "build --release --package tbps");
        assert_eq!(
            build_args("cuda:1").join(" "),
            "build --release --package tbps --features cuda"
        );
    }
}
