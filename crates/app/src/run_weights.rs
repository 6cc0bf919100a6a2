//! The weights of a run's best checkpoint.

use crate::checkpoint;
use crate::cli::Which;
use crate::config::Config;
use crate::failure::Failure;
use crate::model_file::ModelFile;
use crate::run_dir::RunDir;
use crate::say;
use anyhow::{Context, Result};
use std::path::Path;

/// A run's configuration and the weights that are asked for, or those it was selected by.
///
/// # Errors
/// A usage failure when there is no such run, or it has no such weights; a damaged checkpoint.
pub(crate) fn best(root: &Path, which: Option<Which>) -> Result<(Config, ModelFile)> {
    let run = RunDir::existing(root)?;
    let config = Config::of_run(&run.config())?;
    let name = file_name(which, &config, root)?;
    let bytes = of_checkpoint(&run, &config, name)?;
    let shown = run.checkpoints().join("best").join(name).display().to_string();
    Ok((config, ModelFile::of_bytes(&bytes, shown)?))
}

/// The file of the best checkpoint that holds the weights that are asked for.
fn file_name(which: Option<Which>, config: &Config, root: &Path) -> Result<&'static str> {
    match (which, config.ema.enabled) {
        (Some(Which::Ema), false) => Err(Failure::usage(format!(
            "{} was trained without EMA: leave --which out",
            root.display()
        ))),
        (Some(Which::Raw), true) => Ok("raw.safetensors"),
        _ => Ok("weights.safetensors"),
    }
}

/// The bytes of a file of the best checkpoint, which must be of the run's configuration.
fn of_checkpoint(run: &RunDir, config: &Config, name: &str) -> Result<Vec<u8>> {
    let shown = run.root().display();
    let (mut files, damage) = checkpoint::read(&run.checkpoints(), "best")?
        .with_context(|| format!("{shown} has no best checkpoint yet: train it further"))?;
    if let Some(damage) = damage {
        say(&format!("warning: {damage}; these are the weights of the best checkpoint before it"));
    }
    let mut take = |name: &str| {
        files.remove(name).with_context(|| format!("the best checkpoint of {shown} has no {name}"))
    };
    let trained = String::from_utf8(take("config.toml")?).context("config.toml")?;
    let trained = Config::parse(&trained, &[], "config.toml of the best checkpoint")?;
    // Data may have moved since.
    let moved = Config { data: config.data.clone(), ..trained };
    if moved != *config {
        return Err(Failure::usage(format!(
            "{} is not what the best checkpoint was trained with: restore it from the config.toml \
             in checkpoints/best",
            run.config().display()
        )));
    }
    take(name)
}
