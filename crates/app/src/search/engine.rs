//! A model and an index that is up to date: texts and images to the gallery items most like them.

use super::args::EngineArgs;
use crate::config::Config;
use crate::embedder::Embedder;
use crate::failure::Failure;
use crate::index::{BATCH, Gallery, Identity, Index, Made, Maker, Precision, open_or_update};
use crate::model_source::ModelSource;
use crate::run_dir::RunDir;
use crate::{checkpoint, dataset, say};
use anyhow::Result;
use burn::tensor::Device;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tbps_data::{DataError, Dataset, ImageSize, Tokenizer, load_readable};
use tbps_metrics::retrieval::{normalise_rows, top_k};

/// Unreadable files that are named at the terminal; `--json` names all.
const MOST_NAMED: usize = 20;

/// What answers queries.
pub(crate) struct Engine {
    model: Model,
    pub(crate) index: Index,
    /// The folder that the index's paths start from.
    pub(crate) root: PathBuf,
    /// Files that are not searched, with the reasons.
    pub(crate) unreadable: Vec<(String, String)>,
    /// Who is on an image, where that is known.
    pids: BTreeMap<String, i64>,
}

/// An image that was found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Found {
    /// From 1.
    pub(crate) rank: usize,
    /// Its place in the index.
    pub(crate) id: usize,
    /// Cosine similarity.
    pub(crate) score: f32,
    /// Below the gallery.
    pub(crate) path: String,
    /// The person's id, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<i64>,
}

impl Engine {
    /// Opens the model, and the index after an update; says on standard error what that took.
    ///
    /// # Errors
    /// Those of [`ModelSource::open`] and [`open_or_update`].
    pub(crate) fn open(args: &EngineArgs) -> Result<Self> {
        let path = index_path(args)?;
        let gallery = gallery(args)?;
        let device = args.device.open()?;
        let mut model = Model::open(args, &device)?;
        let precision = if args.half { Precision::F16 } else { Precision::F32 };
        let identity = Identity::new(&model.source, precision);
        let made = open_or_update(&path, &gallery, &identity, args.reindex, &mut model)?;
        model.bar.finish_and_clear();
        let Made { index, embedded, resumed, kept, unreadable } = made;
        say(&format!(
            "{}: {} images; {embedded} embedded now, {resumed} by an interrupted run before, {kept} \
             kept, {} unreadable",
            path.display(),
            index.len(),
            unreadable.len()
        ));
        let unreadable: Vec<(String, String)> =
            unreadable.into_iter().map(|file| (file.source.path, file.reason)).collect();
        for (path, reason) in unreadable.iter().take(MOST_NAMED) {
            say(&format!("unreadable: {path}: {reason}"));
        }
        if unreadable.len() > MOST_NAMED {
            say(&format!("and {} more; --json names them", unreadable.len() - MOST_NAMED));
        }
        Ok(Self { model, index, root: gallery.root, unreadable, pids: gallery.pids })
    }

    /// The image size of the model.
    pub(crate) fn image_size(&self) -> ImageSize {
        self.model.source.image_size()
    }

    /// Features of texts, `[texts, dim]`, of unit length.
    pub(crate) fn texts(&self, texts: &[&str]) -> Result<Vec<f32>> {
        let Model { source, tokenizer, .. } = &self.model;
        let token_ids = tokenizer.encode_batch(texts, source.model.text.context_length);
        self.unit(self.model.embedder().captions(&token_ids)?)
    }

    /// The feature of normalised pixels `[3, height, width]`, of unit length.
    pub(crate) fn pixels(&self, pixels: Vec<f32>) -> Result<Vec<f32>> {
        self.unit(self.model.embedder().pixels(pixels)?)
    }

    fn unit(&self, mut features: Vec<f32>) -> Result<Vec<f32>> {
        normalise_rows(&mut features, self.index.dim());
        Ok(features)
    }

    /// The `k` images most like each of `queries [q, dim]`, best first.
    pub(crate) fn search(&self, queries: &[f32], k: usize) -> Result<Vec<Vec<Found>>> {
        let hits = top_k(queries, self.index.rows(), self.index.dim(), k)?;
        let found = |(rank, hit): (usize, tbps_metrics::retrieval::Hit)| -> Result<Found> {
            let path = self.index.source(hit.index)?.path;
            let pid = self.pids.get(&path).copied();
            Ok(Found { rank: rank + 1, id: hit.index, score: hit.similarity, path, pid })
        };
        hits.into_iter().map(|hits| hits.into_iter().enumerate().map(found).collect()).collect()
    }
}

/// The model as it embeds, also for the index.
struct Model {
    source: ModelSource,
    tokenizer: Tokenizer,
    device: Device,
    threads: usize,
    bar: ProgressBar,
}

impl Model {
    fn open(args: &EngineArgs, device: &Device) -> Result<Self> {
        let source = ModelSource::open(&args.model, device)?;
        let tokenizer = Tokenizer::new(source.model.text.vocab_size)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("embedding images {bar:40} {pos}/{len} {eta}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Ok(Self { source, tokenizer, device: device.clone(), threads, bar })
    }

    fn embedder(&self) -> Embedder<'_> {
        Embedder {
            clip: &self.source.clip,
            compute: self.source.compute,
            image_size: self.source.image_size(),
            context_length: self.source.model.text.context_length,
            batch_size: BATCH,
            threads: self.threads,
            device: &self.device,
            cache: None,
        }
    }
}

impl Maker for Model {
    /// Every batch is filled up to one size, so that a feature is the same to the bit whatever is
    /// embedded with it.
    fn features(&mut self, files: &[PathBuf]) -> Result<Vec<Result<Vec<f32>, String>>> {
        let size = self.source.image_size();
        let loaded = load_readable(files, size, self.threads)?;
        let mut pixels = Vec::with_capacity(BATCH * size.num_elements());
        pixels.extend(loaded.iter().flatten().flatten());
        pixels.resize(BATCH * size.num_elements(), 0.0);
        let mut features = self.embedder().pixels(pixels)?;
        let dim = self.source.model.embed_dim;
        normalise_rows(&mut features, dim);
        let mut rows = features.chunks_exact(dim);
        let feature = |image: Result<Vec<f32>, DataError>| match image {
            Ok(_) => Ok(rows.next().unwrap_or_default().to_vec()),
            Err(DataError::Decode { source, .. }) => Err(source.to_string()),
            Err(DataError::Truncated { .. }) => Err("its JPEG data has no end".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        Ok(loaded.into_iter().map(feature).collect())
    }

    fn progress(&mut self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }

    fn say(&mut self, line: &str) {
        say(line);
    }
}

/// The images that the command line names.
fn gallery(args: &EngineArgs) -> Result<Gallery> {
    let split = match (&args.gallery, args.split) {
        (Some(folder), _) => return Gallery::of_folder(folder),
        (None, Some(split)) => split.into(),
        (None, None) => return Err(Failure::usage("give --gallery or --split")),
    };
    let dataset = match (&args.data, &args.model.run) {
        (Some(dir), _) => Dataset::open_as(dir, args.dataset)?,
        (None, Some(run)) => {
            dataset::open(&Config::of_run(&RunDir::existing(run)?.config())?.data)?
        }
        (None, None) => {
            return Err(Failure::usage(
                "--split needs a data set: add --data DIR, since weights alone name none",
            ));
        }
    };
    Gallery::of_split(&dataset, split)
}

/// The index that is asked for, or one in the run's folder that is named after the gallery and the
/// way its features are made.
fn index_path(args: &EngineArgs) -> Result<PathBuf> {
    let run = match (&args.index, &args.model.run) {
        (Some(path), _) => return Ok(path.clone()),
        (None, Some(run)) => RunDir::existing(run)?.root().join("index"),
        (None, None) => {
            return Err(Failure::usage("say with --index FILE where the features may be kept"));
        }
    };
    let place = args.gallery.as_deref().or(args.data.as_deref()).unwrap_or(Path::new(""));
    let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_path_buf());
    let which = format!(
        "{}\n{:?}\n{:?}\n{:?}\n{}",
        place.display(),
        args.model.which,
        args.model.image_size.map(|size| size.to_string()),
        args.model.activation,
        args.half
    );
    let name = match args.split {
        Some(split) => tbps_data::SplitName::from(split).to_string(),
        None => place.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let hash = checkpoint::sha256(which.as_bytes());
    Ok(run.join(format!("{name}-{}.index", &hash[..8])))
}
