//! `tbps data`: make, check and look at data.

use crate::cli::{CONTEXT_LENGTH, DataCommand, DataDir};
use crate::failure::Failure;
use crate::run_dir::{require_creatable, write_atomically, write_json};
use crate::{data_check, data_stats, pixel_cache, print};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use safetensors::tensor::{Dtype, TensorView};
use std::fs;
use std::num::NonZero;
use std::path::Path;
use tbps_data::synth::{self, Preset};
use tbps_data::{ImageSize, Tokenizer, pixels};

pub(crate) fn run(command: DataCommand) -> Result<()> {
    match command {
        DataCommand::Synth { preset, seed, out } => synthesise(&preset, seed, &out),
        DataCommand::Check { data, json, keep } => check(&data, json.as_deref(), keep.as_deref()),
        DataCommand::Cache { data, image_size, out } => cache(&data, image_size, &out),
        DataCommand::Stats { data, context_length, json } => {
            data_stats::run(&data, context_length, json.as_deref())
        }
        DataCommand::Tokens { file, texts } => tokens(file.as_deref(), texts),
        DataCommand::Pixels { image, image_size, out } => write_pixels(&image, image_size, &out),
    }
}

fn synthesise(preset: &str, seed: u64, out: &Path) -> Result<()> {
    let preset: Preset = preset.parse().map_err(|e| Failure::usage(format!("--preset: {e}")))?;
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("drawing people {bar:40} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    let summary = synth::generate(preset, seed, out, &|done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    for (name, split) in [("train", summary.train), ("val", summary.val), ("test", summary.test)] {
        let (ids, images, captions) = (split.ids, split.images, split.captions);
        print(&format!("{name:5}  {ids} people, {images} images, {captions} captions\n"))?;
    }
    Ok(())
}

fn check(data: &DataDir, json: Option<&Path>, keep: Option<&Path>) -> Result<()> {
    json.map_or(Ok(()), require_creatable)?;
    let (dir, dataset) = (&data.dir, data.open()?);
    if let Some(runs) = keep
        && data_check::known(&dataset, runs)?.is_some()
    {
        return print(&format!("{}: as it was when no fault was found\n", dir.display()));
    }
    let report = data_check::full(&dataset);
    if let Some(runs) = keep.filter(|_| report.faults.is_empty()) {
        data_check::keep(&dataset.fingerprint()?, runs)?;
    }
    if let Some(path) = json {
        write_json(path, &report)?;
    }
    for fault in &report.faults {
        print(&format!("{fault}\n"))?;
    }
    match report.faults.len() {
        0 => print(&format!("{}: {} images, no fault\n", dir.display(), report.num_images)),
        n => bail!(
            "{}: {n} fault(s) in {} images, listed above: repair or download what they name",
            dir.display(),
            report.num_images
        ),
    }
}

fn cache(data: &DataDir, size: ImageSize, out: &Path) -> Result<()> {
    let dataset = data.open()?;
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    pixel_cache::open_or_build(&dataset, &dataset.fingerprint()?, size, out, threads)?;
    print(&format!("{}: all images at {size} are in {}\n", data.dir.display(), out.display()))
}

fn tokens(file: Option<&Path>, mut texts: Vec<String>) -> Result<()> {
    if let Some(path) = file {
        let content =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        texts.extend(content.lines().map(str::to_owned));
    }
    if texts.is_empty() {
        return Err(Failure::usage("give a TEXT, or --file FILE with a text on a line"));
    }
    let tokenizer = Tokenizer::new(Tokenizer::CLIP_VOCAB_SIZE)?;
    for text in &texts {
        let ids = serde_json::to_string(&tokenizer.encode(text, CONTEXT_LENGTH))?;
        print(&format!("{ids}\n"))?;
    }
    Ok(())
}

fn write_pixels(image: &Path, size: ImageSize, out: &Path) -> Result<()> {
    require_creatable(out)?;
    let values = pixels(image, size)?;
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![3, size.height, size.width], &bytes)?;
    write_atomically(out, &safetensors::serialize([("pixels", view)], None)?)
}
