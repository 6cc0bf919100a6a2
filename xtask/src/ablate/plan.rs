//! What a matrix is made of, resolved from the command line before anything is started or written.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Options;
use super::preset::Preset;
use super::shard::Shard;
use crate::cell::{AXIS_KEYS, Cell};
use crate::halt::Halt;

/// A matrix that makes sense; paths are absolute.
pub(crate) struct Plan {
    /// The workspace root; children run here, so that `configs/` resolves.
    pub(crate) root: PathBuf,
    /// Names the configuration and the size.
    pub(crate) preset: Preset,
    /// The data set's folder.
    pub(crate) data: PathBuf,
    /// Whether `data` is ours to generate.
    pub(crate) generate_data: bool,
    /// Pretrained weights; `None` trains from the initialisation that the preset gives.
    pub(crate) weights: Option<PathBuf>,
    /// Every cell is trained with the seeds `0..seeds`.
    pub(crate) seeds: u64,
    /// The device's name as `tbps` takes it.
    pub(crate) device: String,
    /// The matrix directory.
    pub(crate) out: PathBuf,
    /// Further `KEY=VALUE` settings of every cell.
    pub(crate) settings: Vec<String>,
    /// An executable to use as it is; `None` builds one.
    pub(crate) tbps: Option<PathBuf>,
    /// The part of the trainings that is ours; `None`: all.
    pub(crate) shard: Option<Shard>,
}

/// One training of the matrix: a cell with a seed.
pub(crate) struct Job {
    /// The combination to train.
    pub(crate) cell: Cell,
    /// The root of all its random streams.
    pub(crate) seed: u64,
    /// `<cell>.s<seed>`.
    pub(crate) name: String,
    /// The run directory.
    pub(crate) dir: PathBuf,
    /// Where its standard output and error go. Beside the run directory, which belongs to `tbps`.
    pub(crate) log: PathBuf,
}

impl Plan {
    /// Resolves and checks the command line.
    ///
    /// # Errors
    /// [`Halt::Usage`] when something needed is not given, not there, or would undo an axis of the
    /// matrix.
    pub(crate) fn new(root: PathBuf, options: &Options) -> Result<Self> {
        let preset = options.preset;
        check_settings(&options.settings)?;
        let given_data =
            options.data.as_deref().map(|path| existing("--data", path)).transpose()?;
        let weights =
            options.weights.as_deref().map(|path| existing("--weights", path)).transpose()?;
        if !preset.is_synthetic() && (given_data.is_none() || weights.is_none()) {
            return Err(Halt::usage(format!(
                "preset {preset} needs --data DIR (with reid_raw.json and imgs/) \
                 and --weights FILE (CLIP ViT-B/16)"
            )));
        }
        let out = match &options.out {
            Some(out) => absolute(out)?,
            None => root.join("runs").join(preset.to_string()),
        };
        let plan = Self {
            generate_data: given_data.is_none(),
            data: given_data.unwrap_or_else(|| root.join(format!("data/synth-{preset}"))),
            weights,
            preset,
            seeds: options.seeds,
            device: options.device.clone(),
            out,
            settings: options.settings.clone(),
            tbps: options.tbps.as_deref().map(|path| existing("--tbps", path)).transpose()?,
            shard: options.shard,
            root,
        };
        let num_jobs = plan.all_jobs().count();
        match options.shard.filter(|shard| shard.count() > num_jobs as u64) {
            None => Ok(plan),
            Some(shard) => Err(Halt::usage(format!(
                "--shard {shard}: the matrix has {num_jobs} trainings, which is as many shards as \
                 it can have"
            ))),
        }
    }

    /// The trainings of our shard in the order they run: a whole table of cells with the first seed,
    /// then with the next.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        let is_ours = |nth| self.shard.is_none_or(|shard| shard.takes(nth));
        let ours = self.all_jobs().enumerate().filter(|(nth, _)| is_ours(*nth));
        ours.map(|(_, job)| job).collect()
    }

    fn all_jobs(&self) -> impl Iterator<Item = Job> {
        let with_seed = move |seed| Cell::all().map(move |cell| self.job(cell, seed));
        (0..self.seeds).flat_map(with_seed)
    }

    fn job(&self, cell: Cell, seed: u64) -> Job {
        let name = format!("{}.s{seed}", cell.name());
        let (dir, log) = (self.out.join(&name), self.logs().join(format!("{name}.log")));
        Job { cell, seed, name, dir, log }
    }

    /// The folder of the children's output.
    pub(crate) fn logs(&self) -> PathBuf {
        self.out.join("logs")
    }
}

/// Refuses settings without a value and those that would make two cells the same.
fn check_settings(settings: &[String]) -> Result<()> {
    for setting in settings {
        let Some((key, _)) = setting.split_once('=') else {
            return Err(Halt::usage(format!(
                "--set {setting} has no value; write --set KEY=VALUE"
            )));
        };
        if AXIS_KEYS.contains(&key.trim()) {
            return Err(Halt::usage(format!(
                "--set {setting} would undo an axis of the matrix: {} are set per cell",
                AXIS_KEYS.join(", ")
            )));
        }
    }
    Ok(())
}

fn existing(option: &str, path: &Path) -> Result<PathBuf> {
    if path.exists() {
        return absolute(path);
    }
    Err(Halt::usage(format!("{option} {}: there is no such file or folder", path.display())))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} has no absolute form", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    fn plan(args: &str) -> Result<Plan> {
        let cli = Cli::try_parse_from(format!("ablate {args}").split_whitespace())?;
        Plan::new(PathBuf::from("/w"), &cli.options)
    }

    #[test]
    fn defaults_are_the_demo_on_the_cpu() {
        let plan = plan("").unwrap();
        assert_eq!(plan.preset, Preset::Demo);
        assert_eq!(plan.device, "flex");
        assert_eq!(plan.out, Path::new("/w/runs/demo"));
        assert_eq!(plan.data, Path::new("/w/data/synth-demo"));
        assert!(plan.generate_data);
        assert_eq!(plan.jobs().len(), 8);
    }

    #[test]
    fn the_first_seed_fills_the_table_before_the_second_starts() {
        let names: Vec<String> =
            plan("--seeds 2").unwrap().jobs().into_iter().map(|job| job.name).collect();
        assert_eq!(names.len(), 16);
        assert_eq!(names[..2], ["fp32.s0", "fp32-ema.s0"]);
        assert_eq!(names[7..9], ["amp-ema-gc.s0", "fp32.s1"]);
    }

    #[test]
    fn shards_share_the_trainings_out() {
        let names = |args: &str| -> Vec<String> {
            plan(args).unwrap().jobs().into_iter().map(|job| job.name).collect()
        };
        let mut all: Vec<String> =
            ["1/3", "2/3", "3/3"].iter().flat_map(|i| names(&format!("--shard {i}"))).collect();
        assert_eq!(all[..4], ["fp32.s0", "fp32-ema-gc.s0", "amp-gc.s0", "fp32-ema.s0"]);
        let mut expected = names("");
        all.sort();
        expected.sort();
        assert_eq!(all, expected);
    }

    #[test]
    fn nonsense_is_refused_as_usage() {
        let check = |args: &str, part: &str| {
            let error = plan(args).err().expect(args);
            assert_eq!(Halt::exit_code(&error), 2, "{args}: {error:#}");
            assert!(error.to_string().contains(part), "{args}: {error:#}");
        };
        check("--preset cuhk-pedes", "needs --data DIR");
        check("--preset cuhk-pedes --data /tmp", "--weights FILE");
        check("--data /no/such/folder", "no such file or folder");
        check("--set train.epochs", "has no value");
        check("--set precision=\"fp32\"", "undo an axis");
        check("--set seed=7", "undo an axis");
        check("--shard 1/9", "the matrix has 8 trainings");
    }
}
