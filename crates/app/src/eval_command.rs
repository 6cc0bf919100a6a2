//! `tbps eval`: scores of a run's best checkpoint, or of anybody's features.

use crate::checkpoint;
use crate::cli::{EvalArgs, Which};
use crate::config::{Config, SplitName};
use crate::evaluate::{EvalSet, Evaluation};
use crate::failure::Failure;
use crate::learner::Policy;
use crate::print;
use crate::records::Percent;
use crate::run_dir::{RunDir, write_json};
use anyhow::{Context, Result, ensure};
use safetensors::tensor::{Dtype, SafeTensors};
use serde_json::{Value, json};
use std::path::Path;
use tbps_data::{Dataset, Tokenizer};
use tbps_metrics::retrieval::{self, Scores};
use tbps_model::weights;

pub(crate) fn run(args: &EvalArgs) -> Result<()> {
    let evaluation = match (&args.features, &args.run, args.split) {
        (Some(file), _, _) => of_features(file)?,
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
    let device = args.device.open()?;
    let (mut files, _) = checkpoint::read(&run.checkpoints(), "best")?.with_context(|| {
        format!("{} has no best checkpoint yet: train it further", root.display())
    })?;
    let name = match (args.which, config.ema.enabled) {
        (Some(Which::Ema), false) => {
            return Err(Failure::usage(format!(
                "{} was trained without EMA: leave --which out",
                root.display()
            )));
        }
        (Some(Which::Raw), true) => "raw.safetensors",
        _ => "weights.safetensors",
    };
    let bytes = files.remove(name).with_context(|| format!("best has no {name}"))?;
    let clip = config.model.init(config.seed, &device)?;
    let clip = weights::load(clip, checkpoint::from_safetensors(&bytes)?)?;
    let dataset = Dataset::open(&config.data.root)?;
    let tokenizer = Tokenizer::new(config.model.text.vocab_size)?;
    let set = EvalSet::new(&dataset, split, &tokenizer, &config, &device)?;
    set.evaluate(&clip, Policy::new(&config).compute)
}

/// Any model's features, from a safetensors file.
fn of_features(path: &Path) -> Result<Evaluation> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let file = SafeTensors::deserialize(&bytes).with_context(|| shown.to_string())?;
    let (images, image_dim) = features(&file, "image_features")?;
    let (texts, text_dim) = features(&file, "text_features")?;
    ensure!(image_dim == text_dim, "{shown}: features of {image_dim} and {text_dim} dimensions");
    let (image_pids, text_pids) = (pids(&file, "image_pids")?, pids(&file, "text_pids")?);
    Ok(Evaluation {
        t2i: retrieval::evaluate(&texts, &text_pids, &images, &image_pids, image_dim)?,
        i2t: retrieval::evaluate(&images, &image_pids, &texts, &text_pids, image_dim)?,
    })
}

/// `[n, d]` f32 and `d`.
fn features(file: &SafeTensors<'_>, name: &str) -> Result<(Vec<f32>, usize)> {
    let view = file.tensor(name)?;
    ensure!(view.dtype() == Dtype::F32, "{name} is {:?}, not f32", view.dtype());
    let [_, dim] = *view.shape() else {
        anyhow::bail!("{name} has shape {:?}, not [rows, dimensions]", view.shape());
    };
    let values = view.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    Ok((values, dim))
}

/// `[n]` i64.
fn pids(file: &SafeTensors<'_>, name: &str) -> Result<Vec<i64>> {
    let view = file.tensor(name)?;
    ensure!(view.dtype() == Dtype::I64, "{name} is {:?}, not i64", view.dtype());
    Ok(view.data().as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect())
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
