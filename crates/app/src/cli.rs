//! The command line.

use crate::device::DeviceName;
use crate::failure::Failure;
use crate::report::Lang;
use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use tbps_data::{DatasetName, ImageSize};
use tbps_model::config::Activation;
use tbps_model::pos_embed::PosEmbedResize;

/// Most tokens of a caption in CLIP.
pub(crate) const CONTEXT_LENGTH: usize = 77;

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
    /// Write the features of images and texts under any weights.
    Embed(EmbedArgs),
    /// Find people in images by a sentence or an image.
    Search(Box<crate::search::SearchArgs>),
    /// Show a page to search with, and answer its requests.
    Serve(Box<crate::serve::ServeArgs>),
    /// Make, check or look at data.
    #[command(subcommand)]
    Data(DataCommand),
    /// Look at, convert or hand on weights.
    #[command(subcommand)]
    Weights(WeightsCommand),
    /// Predict the memory of a training and say what fits.
    Plan(PlanArgs),
    /// Test whether a device computes what it should.
    Doctor(crate::doctor::DoctorArgs),
    /// Print the completions of a shell.
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write manual pages into a folder.
    Man { folder: PathBuf },
    /// Write report.md, .html, .json and .csv for a matrix of runs.
    Report(ReportArgs),
    /// One side of `cargo xtask bench`.
    #[command(hide = true)]
    Bench(BenchArgs),
    /// Write the summary of a run that the system killed for want of memory.
    #[command(hide = true)]
    RecordOom {
        #[arg(long)]
        run: PathBuf,
        #[arg(long, default_value = "flex")]
        device: DeviceName,
    },
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
pub(crate) struct BenchArgs {
    #[arg(long)]
    pub(crate) config: PathBuf,
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    #[arg(long, value_enum)]
    pub(crate) work: BenchWork,
    /// Tokens of every caption; default: as many as the model reads.
    #[arg(long, value_name = "N")]
    pub(crate) caption_length: Option<usize>,
    #[arg(long, default_value = "flex")]
    pub(crate) device: DeviceName,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Settings over configs/base.toml.
    #[arg(long)]
    pub(crate) config: PathBuf,
    /// Overrides one setting; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// `flex` (CPU) or `cuda[:index]`; it need not be there.
    #[arg(long, default_value = "flex")]
    pub(crate) device: DeviceName,
    /// What the device has; default: what its driver says.
    #[arg(long, value_name = "GIB")]
    pub(crate) memory_gib: Option<f64>,
    /// Writes the predictions, in bytes.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchWork {
    Train,
    Encode,
}

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// A run's directory.
    #[arg(long, conflicts_with = "features", required_unless_present = "features")]
    pub(crate) run: Option<PathBuf>,
    /// What to evaluate on. Test is meant to be read once; each reading is recorded in the run.
    #[arg(long, value_enum, conflicts_with = "features", required_unless_present = "features")]
    pub(crate) split: Option<AnySplit>,
    /// Evaluates on this data set's folder instead of the run's own.
    #[arg(long, value_name = "DIR", conflicts_with = "features")]
    pub(crate) data: Option<PathBuf>,
    /// Which data set the folder holds: cuhk-pedes, icfg-pedes or rstpreid; default: by its files.
    #[arg(long, value_name = "NAME", requires = "data")]
    pub(crate) dataset: Option<DatasetName>,
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
    /// Writes the captions whose person was found last, with the images, as a page.
    #[arg(long, value_name = "FILE", conflicts_with = "features")]
    pub(crate) hardest: Option<PathBuf>,
    /// How many captions that page has.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "hardest")]
    pub(crate) hardest_count: usize,
    /// `flex` (CPU) or `cuda[:index]`.
    #[arg(long, default_value = "flex", conflicts_with = "features")]
    pub(crate) device: DeviceName,
}

/// A split of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnySplit {
    Train,
    Val,
    Test,
}

impl From<AnySplit> for tbps_data::SplitName {
    fn from(split: AnySplit) -> Self {
        match split {
            AnySplit::Train => Self::Train,
            AnySplit::Val => Self::Val,
            AnySplit::Test => Self::Test,
        }
    }
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
        #[command(flatten)]
        data: DataDir,
        /// Writes the faults.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// A folder of runs: a clean result is kept there for them, and one that is there is taken.
        #[arg(long, value_name = "DIR", conflicts_with = "json")]
        keep: Option<PathBuf>,
    },
    /// Decode and resize every image once, for data.cache.
    Cache {
        #[command(flatten)]
        data: DataDir,
        /// Such as 384x128.
        #[arg(long, value_name = "HxW")]
        image_size: ImageSize,
        /// The directory that data.cache will name.
        #[arg(long)]
        out: PathBuf,
    },
    /// Count people, images and captions beside the published numbers, and measure the captions.
    Stats {
        #[command(flatten)]
        data: DataDir,
        /// Token ids that a model reads.
        #[arg(long, value_name = "N", default_value_t = CONTEXT_LENGTH)]
        context_length: usize,
        /// Writes the statistics.
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
        image_size: ImageSize,
        #[arg(long)]
        out: PathBuf,
    },
}

/// Whose weights: a run's, or a file's.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// A run's directory: the weights of its best checkpoint.
    #[arg(long, conflicts_with = "weights", required_unless_present = "weights")]
    pub(crate) run: Option<PathBuf>,
    /// open_clip's, transformers', OpenAI's or our weights, recognised by their content.
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,
    /// Which weights of the run; default: those it was selected by.
    #[arg(long, value_enum, requires = "run")]
    pub(crate) which: Option<Which>,
    /// Such as 384x128; default: the model's.
    #[arg(long, value_name = "HxW")]
    pub(crate) image_size: Option<ImageSize>,
    /// quick-gelu or gelu; default: what the weights say, or quick-gelu where they say nothing.
    #[arg(long, value_parser = named::<Activation>)]
    pub(crate) activation: Option<Activation>,
    /// How positions are resized: bicubic-antialias (open_clip) or bilinear (IRRA).
    #[arg(long, value_parser = named::<PosEmbedResize>, default_value = "bicubic-antialias")]
    pub(crate) pos_embed: PosEmbedResize,
}

/// A value by the name that it has in a configuration.
fn named<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, serde::de::value::Error> {
    T::deserialize(serde::de::value::StrDeserializer::new(text))
}

#[derive(Debug, Args)]
pub(crate) struct EmbedArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// An image, or a folder whose images are read in the order of their names.
    #[arg(long, value_name = "DIR|FILE", required_unless_present = "texts")]
    pub(crate) images: Option<PathBuf>,
    /// A text a line, UTF-8.
    #[arg(long, value_name = "FILE")]
    pub(crate) texts: Option<PathBuf>,
    /// `flex` (CPU) or `cuda[:index]`.
    #[arg(long, default_value = "flex")]
    pub(crate) device: DeviceName,
    /// A safetensors file of image_features and text_features, f32, of unit length.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WeightsCommand {
    /// Say what a weights file is: format, source, model, tensors.
    Inspect {
        file: PathBuf,
        /// Writes the same, machine-readable.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Convert any weights to a file of ours, with what it is known to be.
    Import {
        file: PathBuf,
        /// Such as 384x128; default: the model's.
        #[arg(long, value_name = "HxW")]
        image_size: Option<ImageSize>,
        /// quick-gelu or gelu; default: what the weights say, or quick-gelu.
        #[arg(long, value_parser = named::<Activation>)]
        activation: Option<Activation>,
        /// How positions are resized: bicubic-antialias (open_clip) or bilinear (IRRA).
        #[arg(long, value_parser = named::<PosEmbedResize>, default_value = "bicubic-antialias")]
        pos_embed: PosEmbedResize,
        /// A new directory, for weights.safetensors and import.json.
        #[arg(long)]
        out: PathBuf,
    },
    /// Write weights as open_clip's safetensors.
    Export {
        #[command(flatten)]
        model: ModelArgs,
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

/// A data set on disk.
#[derive(Debug, Args)]
pub(crate) struct DataDir {
    /// The directory with the annotation file and imgs/.
    pub(crate) dir: PathBuf,
    /// Which one it is: cuhk-pedes, icfg-pedes or rstpreid; default: by its files.
    #[arg(long, value_name = "NAME")]
    dataset: Option<DatasetName>,
}

impl DataDir {
    /// Reads its annotation.
    ///
    /// # Errors
    /// As [`tbps_data::Dataset::open_as`].
    pub(crate) fn open(&self) -> Result<tbps_data::Dataset> {
        Ok(tbps_data::Dataset::open_as(&self.dir, self.dataset)?)
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The directory of a matrix's runs; several, when its shards were trained apart.
    #[arg(required = true)]
    pub(crate) runs: Vec<PathBuf>,
    #[arg(long, value_enum, default_value_t = Lang::En)]
    pub(crate) lang: Lang,
    /// Example queries with pictures of the data set; 0 for a page without any picture of it.
    #[arg(long, value_name = "N", default_value_t = 6)]
    #[arg(value_parser = clap::value_parser!(u8).range(..=20))]
    pub(crate) examples: u8,
    /// Where the files go; default: the first directory of runs.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
