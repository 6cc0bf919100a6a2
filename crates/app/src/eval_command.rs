//! `tbps eval`: scores of a run's best checkpoint, or of anybody's features.

use crate::checkpoint;
use crate::cli::{EvalArgs, Which};
use crate::config::{Config, SplitName};
use crate::evaluate::{EvalSet, Evaluation};
use crate::failure::Failure;
use crate::learner::Policy;
use crate::records::Percent;
use crate::run_dir::{RunDir, require_creatable, write_json};
use crate::{print, say};
use anyhow::{Context, Result, bail, ensure};
use safetensors::tensor::{Dtype, SafeTensors};
use serde_json::{Value, json};
use std::path::Path;
use tbps_data::{Dataset, Tokenizer};
use tbps_metrics::retrieval::{self, Scores};
use tbps_model::weights;

pub(crate) fn run(args: &EvalArgs) -> Result<()> {
    for path in [&args.ranks, &args.json].into_iter().flatten() {
        require_creatable(path)?;
    }
    let evaluation = match (&args.features, &args.run, args.split) {
        (Some(file), _, _) => {
            of_features(file).with_context(|| format!("cannot score {}", file.display()))?
        }
        (None, Some(run), Some(split)) => of_run(args, run, split)?,
        _ => return Err(Failure::usage("give --run and --split, or --features")),
    };
    if let Some(path) = &args.ranks {
        let Evaluation { t2i, i2t } = &evaluation;
        write_json(path, &json!({ "t2i": t2i.first_rank, "i2t": i2t.first_rank }))?;
    }
    let (t2i, i2t) = (&evaluation.t2i.scores, &evaluation.i2t.scores);
    if let Some(path) = &args.json {
        write_json(path, &json!({ "t2i": record(t2i), "i2t": record(i2t) }))?;
    }
    print(&format!("{}\n{}\n", line("t2i", t2i), line("i2t", i2t)))
}

fn of_run(args: &EvalArgs, root: &Path, split: SplitName) -> Result<Evaluation> {
    let run = RunDir::existing(root)?;
    let config = Config::of_run(&run.config())?;
    let name = weights_name(args.which, &config, root)?;
    let device = args.device.open()?;
    let dataset = Dataset::open(&config.data.root)?;
    let tokenizer = Tokenizer::new(config.model.text.vocab_size)?;
    let set = EvalSet::new(&dataset, split, &tokenizer, &config, &device)?;
    let bytes = best_weights(&run, &config, name)?;
    let clip = config.model.init(config.seed, &device)?;
    let clip = weights::load(clip, checkpoint::from_safetensors(&bytes)?)?;
    set.evaluate(&clip, Policy::new(&config).compute)
}

/// The file of the best checkpoint that holds the weights that are asked for.
fn weights_name(which: Option<Which>, config: &Config, root: &Path) -> Result<&'static str> {
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
fn best_weights(run: &RunDir, config: &Config, name: &str) -> Result<Vec<u8>> {
    let shown = run.root().display();
    let (mut files, damage) = checkpoint::read(&run.checkpoints(), "best")?
        .with_context(|| format!("{shown} has no best checkpoint yet: train it further"))?;
    if let Some(damage) = damage {
        say(&format!("warning: {damage}; these are the scores of the best checkpoint before it"));
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

/// Any model's features, from a safetensors file.
fn of_features(path: &Path) -> Result<Evaluation> {
    let bytes = std::fs::read(path)?;
    let file = SafeTensors::deserialize(&bytes).context("it is no whole safetensors file")?;
    let (images, image_pids, image_dim) = side(&file, "image_features", "image_pids")?;
    let (texts, text_pids, text_dim) = side(&file, "text_features", "text_pids")?;
    ensure!(
        image_dim == text_dim,
        "image_features have {image_dim} dimensions and text_features {text_dim}: both must come \
         from one embedding space"
    );
    Ok(Evaluation {
        t2i: retrieval::evaluate(&texts, &text_pids, &images, &image_pids, image_dim)?,
        i2t: retrieval::evaluate(&images, &image_pids, &texts, &text_pids, image_dim)?,
    })
}

/// Features `[n, d]`, their pids `[n]`, and `d`.
fn side(file: &SafeTensors<'_>, name: &str, pids: &str) -> Result<(Vec<f32>, Vec<i64>, usize)> {
    let (features, [rows, dim]) = tensor(file, name, Dtype::F32, f32::from_le_bytes)?;
    let (pids_found, [num_pids]) = tensor(file, pids, Dtype::I64, i64::from_le_bytes)?;
    ensure!(rows > 0 && dim > 0, "{name} is empty, [{rows}, {dim}]: give at least one row");
    ensure!(num_pids == rows, "{name} has {rows} rows, but {pids} {num_pids}: give one pid a row");
    if let Some(at) = features.iter().position(|x| !x.is_finite()) {
        bail!(
            "{name} is {} in row {}, column {}: the model has diverged or the file is damaged",
            features[at],
            at / dim,
            at % dim
        );
    }
    Ok((features, pids_found, dim))
}

/// A tensor's values in row order, and its shape, which must have `D` dimensions.
fn tensor<T, const BYTES: usize, const D: usize>(
    file: &SafeTensors<'_>,
    name: &str,
    dtype: Dtype,
    decode: impl Fn([u8; BYTES]) -> T,
) -> Result<(Vec<T>, [usize; D])> {
    let view = file.tensor(name).ok().with_context(|| {
        let mut found = file.names();
        found.sort_unstable();
        format!("it has no {name}, only [{}]; `tbps eval --help` has the names", found.join(", "))
    })?;
    ensure!(view.dtype() == dtype, "{name} is {}, not {dtype}", view.dtype());
    let shape =
        view.shape().try_into().ok().with_context(|| {
            format!("{name} has shape {:?}, not {D} dimension(s)", view.shape())
        })?;
    Ok((view.data().as_chunks().0.iter().map(|bytes| decode(*bytes)).collect(), shape))
}

fn record(scores: &Scores) -> Value {
    let Percent { r1, r5, r10, map, minp } = scores.into();
    let (queries, excluded) = (scores.queries, scores.excluded);
    json!({ "r1": r1, "r5": r5, "r10": r10, "map": map, "minp": minp, "queries": queries,
            "excluded": excluded })
}

fn line(direction: &str, s: &Scores) -> String {
    format!(
        "{direction}  R@1 {:.2}  R@5 {:.2}  R@10 {:.2}  mAP {:.2}  mINP {:.2}  ({} queries, {} \
         excluded)",
        s.r1, s.r5, s.r10, s.map, s.minp, s.queries, s.excluded
    )
}
