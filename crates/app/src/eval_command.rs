//! `tbps eval`: scores of a run's best checkpoint, or of anybody's features.

use crate::cli::{AnySplit, EvalArgs};
use crate::dataset;
use crate::evaluate::{EvalSet, Evaluation};
use crate::failure::Failure;
use crate::hardest;
use crate::learner::Policy;
use crate::pixel_cache;
use crate::records::Percent;
use crate::run_dir::{require_creatable, write_atomically, write_json};
use crate::test_reads::TestReads;
use crate::{print, run_weights};
use anyhow::{Context, Result, bail, ensure};
use safetensors::tensor::{Dtype, SafeTensors};
use serde_json::{Value, json};
use std::path::Path;
use tbps_data::{Dataset, DatasetName, Tokenizer};
use tbps_metrics::retrieval::{self, Scores};
use tbps_model::weights;

pub(crate) fn run(args: &EvalArgs) -> Result<()> {
    for path in [&args.ranks, &args.json, &args.hardest].into_iter().flatten() {
        require_creatable(path)?;
    }
    // What was evaluated on, where that is known.
    let (evaluation, source) = match (&args.features, &args.run, args.split) {
        (Some(file), _, _) => {
            let scored = of_features(file);
            (scored.with_context(|| format!("cannot score {}", file.display()))?, None)
        }
        (None, Some(run), Some(split)) => {
            let (evaluation, dataset) = of_run(args, run, split)?;
            (evaluation, Some((dataset, split)))
        }
        _ => return Err(Failure::usage("give --run and --split, or --features")),
    };
    if let Some(path) = &args.ranks {
        let Evaluation { t2i, i2t } = &evaluation;
        let ranks = json!({ "t2i": t2i.first_rank, "i2t": i2t.first_rank, "t2i_top": t2i.top });
        write_json(path, &ranks)?;
    }
    let (t2i, i2t) = (&evaluation.t2i.scores, &evaluation.i2t.scores);
    if let Some(path) = &args.json {
        let mut scores = json!({ "t2i": record(t2i), "i2t": record(i2t) });
        if let Some((dataset, split)) = source {
            scores["dataset"] = json!(dataset);
            scores["split"] = json!(tbps_data::SplitName::from(split));
        }
        write_json(path, &scores)?;
    }
    print(&format!("{}\n{}\n", line("t2i", t2i), line("i2t", i2t)))
}

/// The scores of a run's best checkpoint, and the data set they are on.
///
/// A reading of test is recorded in the run.
fn of_run(args: &EvalArgs, root: &Path, split: AnySplit) -> Result<(Evaluation, DatasetName)> {
    let record = (split == AnySplit::Test).then(|| TestReads::open(root)).transpose()?;
    let (config, file) = run_weights::best(root, args.which)?;
    let device = args.device.open()?;
    let dataset = match &args.data {
        None => dataset::open(&config.data)?,
        Some(dir) => Dataset::open_as(dir, args.dataset)?,
    };
    let tokenizer = Tokenizer::new(config.model.text.vocab_size)?;
    let set = EvalSet::new(&dataset, split, &tokenizer, &config, &device)?;
    let set = match (&args.data, config.data.cache.as_os_str().is_empty()) {
        // The cache is of the run's own data.
        (Some(_), _) | (None, true) => set,
        (None, false) => {
            set.with_cache(pixel_cache::of_run(&config, &dataset, &dataset.fingerprint()?)?)
        }
    };
    let clip = config.model.init(config.seed, &device)?;
    let sha256 = file.sha256;
    let clip = weights::load(clip, file.weights.tensors)?;
    let (evaluation, features) = set.evaluate_whole(&clip, Policy::new(&config).compute)?;
    if let Some(record) = record {
        let Evaluation { t2i, i2t } = &evaluation;
        let scores = json!({ "t2i": self::record(&t2i.scores), "i2t": self::record(&i2t.scores) });
        record.add(args.which, &sha256, &dataset.root, &scores)?;
    }
    if let Some(path) = &args.hardest {
        let t2i = &evaluation.t2i;
        let page = hardest::page(&dataset, split.into(), features, t2i, args.hardest_count)?;
        write_atomically(path, page.as_bytes())?;
    }
    Ok((evaluation, dataset.name))
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
