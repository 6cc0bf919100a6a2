//! The command lines of the `tbps` processes that a matrix starts.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::plan::{Job, Plan};

/// The configuration key of the data set's folder.
const DATA_KEY: &str = "data.root";
/// The configuration key of the pretrained weights.
const WEIGHTS_KEY: &str = "weights.file";
/// Generated data are the same for every matrix; the seeds of the cells are another thing.
const DATA_SEED: &str = "0";

/// A program and its arguments, printable as a line for a shell.
pub(crate) struct CommandLine {
    program: PathBuf,
    args: Vec<OsString>,
}

impl CommandLine {
    fn new<A: AsRef<OsStr>>(program: &Path, args: impl IntoIterator<Item = A>) -> Self {
        let args = args.into_iter().map(|arg| arg.as_ref().to_os_string()).collect();
        Self { program: program.to_path_buf(), args }
    }

    fn push<A: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = A>) {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_os_string()));
    }

    /// The process to start, in the workspace root.
    pub(crate) fn process(&self, root: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(root);
        command
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", quote(self.program.as_os_str()))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quote(arg)))
    }
}

/// The options of `cargo xtask ablate` that make this matrix, for another process or machine.
pub(crate) fn ablate(plan: &Plan, max_time: Option<Duration>) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["--preset".into(), plan.preset.to_string().into()];
    let mut push = |option: &str, value: &OsStr| args.extend([option.into(), value.to_os_string()]);
    if !plan.generate_data {
        push("--data", plan.data.as_os_str());
    }
    if let Some(weights) = &plan.weights {
        push("--weights", weights.as_os_str());
    }
    if let Some(tbps) = &plan.tbps {
        push("--tbps", tbps.as_os_str());
    }
    push("--seeds", OsStr::new(&plan.seeds.to_string()));
    push("--device", OsStr::new(&plan.device));
    push("--out", plan.out.as_os_str());
    for setting in &plan.settings {
        push("--set", OsStr::new(setting));
    }
    if let Some(time) = max_time {
        push("--max-time", OsStr::new(&(time.as_secs_f64() / 3600.0).to_string()));
    }
    args
}

/// Trains one cell with one seed, or goes on with it.
///
/// # Errors
/// When a path is not UTF-8: it could not stand in a TOML value.
pub(crate) fn train(tbps: &Path, plan: &Plan, job: &Job, resume: bool) -> Result<CommandLine> {
    let mut line = CommandLine::new(tbps, ["train", "--config"]);
    line.push([format!("configs/{}.toml", plan.preset)]);
    let mut settings = vec![toml_path(DATA_KEY, &plan.data)?];
    if let Some(weights) = &plan.weights {
        settings.push(toml_path(WEIGHTS_KEY, weights)?);
    }
    settings.extend(job.cell.settings(job.seed));
    settings.extend(plan.settings.iter().cloned());
    for setting in settings {
        line.push(["--set".to_string(), setting]);
    }
    line.push([OsStr::new("--out"), job.dir.as_os_str()]);
    line.push(["--device", &plan.device]);
    if resume {
        line.push(["--resume"]);
    }
    Ok(line)
}

/// Writes the summary of a training that the system killed for want of memory.
pub(crate) fn record_oom(tbps: &Path, plan: &Plan, job: &Job) -> CommandLine {
    let mut line = CommandLine::new(tbps, ["record-oom", "--run"]);
    line.push([job.dir.as_os_str()]);
    line.push(["--device", &plan.device]);
    line
}

/// Generates the data of a synthetic preset.
pub(crate) fn synth(tbps: &Path, plan: &Plan) -> CommandLine {
    let mut line = CommandLine::new(tbps, ["data", "synth", "--preset"]);
    line.push([plan.preset.to_string()]);
    line.push(["--seed", DATA_SEED, "--out"]);
    line.push([&plan.data]);
    line
}

/// Decodes every picture once and looks for missing ones.
pub(crate) fn check(tbps: &Path, plan: &Plan) -> CommandLine {
    let mut line = CommandLine::new(tbps, ["data", "check"]);
    line.push([&plan.data]);
    line.push([OsStr::new("--keep"), plan.out.as_os_str()]);
    line
}

/// Tests the device before anything is trained on it; nothing for the CPU, which is the reference.
pub(crate) fn doctor(tbps: &Path, plan: &Plan) -> Option<CommandLine> {
    let arguments = ["doctor", "--short", "--device", &plan.device];
    (plan.device != "flex").then(|| CommandLine::new(tbps, arguments))
}

/// Writes the tables and plots of the matrix.
pub(crate) fn report(tbps: &Path, plan: &Plan) -> CommandLine {
    let mut line = CommandLine::new(tbps, ["report"]);
    line.push([&plan.out]);
    line
}

/// `key="path"`; JSON's escapes are a subset of those of a TOML basic string.
fn toml_path(key: &str, path: &Path) -> Result<String> {
    let text =
        path.to_str().with_context(|| format!("{} is not UTF-8; rename it", path.display()))?;
    Ok(format!("{key}={}", serde_json::Value::from(text)))
}

/// A word as a POSIX shell reads it back.
pub(crate) fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ablate::preset::Preset;

    fn plan() -> Plan {
        Plan {
            root: "/w".into(),
            preset: Preset::Smoke,
            data: "/d/my data".into(),
            generate_data: true,
            weights: None,
            seeds: 2,
            device: "flex".into(),
            out: "/o".into(),
            settings: vec![],
            tbps: None,
            shard: None,
        }
    }

    #[test]
    fn train_line_names_config_axes_and_directory() {
        let plan = plan();
        let job = plan.jobs().pop().unwrap();
        let line = train(Path::new("/t/tbps"), &plan, &job, false).unwrap();
        assert_eq!(
            line.to_string(),
            "/t/tbps train --config configs/smoke.toml --set 'data.root=\"/d/my data\"' \
             --set 'precision=\"amp-fp16\"' --set ema.enabled=true \
             --set 'recompute=\"block\"' --set seed=1 \
             --out /o/amp-ema-gc.s1 --device flex"
        );
    }

    #[test]
    fn train_line_takes_weights_extra_settings_and_resume() {
        let mut plan = plan();
        plan.weights = Some("/m/clip.safetensors".into());
        plan.settings = vec!["optim.lr=1e-5".into()];
        let line = train(Path::new("tbps"), &plan, &plan.jobs()[0], true).unwrap().to_string();
        assert!(line.contains("--set 'weights.file=\"/m/clip.safetensors\"'"), "{line}");
        assert!(line.contains("--set seed=0 --set optim.lr=1e-5 --out"), "{line}");
        assert!(line.ends_with("--device flex --resume"), "{line}");
    }

    #[test]
    fn data_and_report_lines() {
        let (tbps, plan) = (Path::new("tbps"), plan());
        let synth = synth(tbps, &plan).to_string();
        assert_eq!(synth, "tbps data synth --preset smoke --seed 0 --out '/d/my data'");
        assert_eq!(check(tbps, &plan).to_string(), "tbps data check '/d/my data' --keep /o");
        assert_eq!(report(tbps, &plan).to_string(), "tbps report /o");
    }

    #[test]
    fn every_device_but_the_cpu_is_examined() {
        let mut plan = plan();
        assert!(doctor(Path::new("tbps"), &plan).is_none());
        plan.device = "cuda:1".into();
        let line = doctor(Path::new("tbps"), &plan).unwrap().to_string();
        assert_eq!(line, "tbps doctor --short --device cuda:1");
    }

    #[test]
    fn quoting_survives_a_quote() {
        assert_eq!(quote(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(quote(OsStr::new("")), "''");
    }
}
