//! The command line.

use crate::config::SplitName;
use crate::device::DeviceName;
use crate::failure::Failure;
use crate::report::Lang;
use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Train text-based person search on one device and measure what mixed precision, weight averaging
/// and activation recomputation buy.
#[derive(Debug, Parser)]
#[command(name = "tbps", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Reads the command line. Asked for help or its version, the program ends here.
    ///
    /// # Errors
    /// A usage failure that says what is wrong, without the usage that clap prints below it.
    pub(crate) fn read() -> Result<Self> {
        Self::try_parse().map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
            _ => Failure::usage(one_line(&error.to_string())),
        })
    }
}

/// The part of clap's message that is about the mistake.
fn one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let end = message.find("\n\nUsage:").or_else(|| message.find("\n\nFor more information"));
    let paragraphs = message[..end.unwrap_or(message.len())].split("\n\n");
    let lines = paragraphs.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.chain(["see --help".to_owned()]).collect::<Vec<_>>().join("; ")
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train one cell into a run directory.
    Train(TrainArgs),
    /// Score a run, or any model's features, by this project's metrics.
    Eval(EvalArgs),
    /// Make, check or look at data.
    #[command(subcommand)]
    Data(DataCommand),
    /// Write report.md, .html, .json and .csv for a matrix of runs.
    Report(ReportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// Settings over configs/base.toml.
    #[arg(long)]
    pub(crate) config: PathBuf,
    /// Overrides one setting, such as optim.lr=1e-5; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// The run's directory.
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// `flex` (CPU) or `cuda[:index]`.
    #[arg(long, default_value = "flex")]
    pub(crate) device: DeviceName,
    /// Go on with the run in the directory.
    #[arg(long)]
    pub(crate) resume: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// A run's directory.
    #[arg(long, conflicts_with = "features", required_unless_present = "features")]
    pub(crate) run: Option<PathBuf>,
    /// What to evaluate on. Test is meant to be read once.
    #[arg(long, value_enum, conflicts_with = "features", required_unless_present = "features")]
    pub(crate) split: Option<SplitName>,
    /// Which weights of the best checkpoint; default: those it was selected by.
    #[arg(long, value_enum, conflicts_with = "features")]
    pub(crate) which: Option<Which>,
    /// A safetensors file of image_features, text_features, image_pids and text_pids.
    #[arg(long, value_name = "FILE")]
    pub(crate) features: Option<PathBuf>,
    /// Writes each query's first-match rank.
    #[arg(long, value_name = "FILE")]
    pub(crate) ranks: Option<PathBuf>,
    /// Writes the scores.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// `flex` (CPU) or `cuda[:index]`.
    #[arg(long, default_value = "flex", conflicts_with = "features")]
    pub(crate) device: DeviceName,
}

/// Weights of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    Ema,
    Raw,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Draw synthetic pedestrians in CUHK-PEDES's layout.
    Synth {
        /// demo, smoke or cuhk-size.
        #[arg(long)]
        preset: String,
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// A new directory.
        #[arg(long)]
        out: PathBuf,
    },
    /// Decode every image and list everything that is wrong.
    Check {
        /// The directory with reid_raw.json and imgs/.
        dir: PathBuf,
        /// Writes the faults.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Print CLIP token ids: a JSON array a text.
    Tokens {
        /// A text a line, UTF-8.
        #[arg(long)]
        file: Option<PathBuf>,
        texts: Vec<String>,
    },
    /// Write an image as the model sees it: `pixels [3, H, W]`, f32, normalised.
    Pixels {
        image: PathBuf,
        /// Such as 384x128.
        #[arg(long, value_name = "HxW")]
        image_size: String,
        #[arg(long)]
        out: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A directory of runs.
    pub(crate) runs: PathBuf,
    #[arg(long, value_enum, default_value_t = Lang::En)]
    pub(crate) lang: Lang,
}
