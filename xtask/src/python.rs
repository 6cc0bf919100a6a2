//! The Python interpreter of the commands that compare with PyTorch: a given one, or one in a virtual
//! environment with pinned packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::halt::Halt;

/// Where the packages come from.
#[derive(Args)]
pub(crate) struct Python {
    /// Python 3 that has the packages of this command's requirements.txt already
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Where to install them otherwise [default: a folder `venv` of this command in the target
    /// directory]
    #[arg(long, value_name = "DIR", conflicts_with = "python")]
    venv: Option<PathBuf>,
}

impl Python {
    /// Whether the command line says anything about it.
    pub(crate) fn is_given(&self) -> bool {
        self.python.is_some() || self.venv.is_some()
    }

    /// The interpreter to call: the given one, or that of a virtual environment, by default in
    /// `venv`, which is made and brought up to `requirements`.
    ///
    /// # Errors
    /// [`Halt::Usage`] when the given one is no file; when the packages cannot be installed.
    pub(crate) fn interpreter(&self, venv: &Path, requirements: &Path) -> Result<PathBuf> {
        match &self.python {
            Some(python) if !python.is_file() => {
                let shown = python.display();
                Err(Halt::usage(format!("--python {shown} is no file: name an interpreter")))
            }
            // Not canonical: the interpreter of a virtual environment is a link out of it.
            Some(python) => Ok(std::path::absolute(python)?),
            None => install(self.venv.as_deref().unwrap_or(venv), requirements),
        }
    }
}

fn install(venv: &Path, requirements: &Path) -> Result<PathBuf> {
    eprintln!("installing the packages of {} into {}", requirements.display(), venv.display());
    succeed(Command::new("python3").args(["-m", "venv"]).arg(venv), "python3 -m venv")?;
    let folder = if cfg!(windows) { "Scripts" } else { "bin" };
    let python = std::path::absolute(venv.join(folder).join("python"))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--requirement"]);
    succeed(pip.arg(requirements), "pip install")?;
    Ok(python)
}

/// Runs a command to its end.
///
/// # Errors
/// When it cannot be started or fails; it has then said why.
pub(crate) fn succeed(command: &mut Command, name: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("{name} cannot be started"))?;
    if !status.success() {
        bail!("{name} failed, {status}; its message is above");
    }
    Ok(())
}
