//! `tbps embed`: features of images and texts under any weights.

use crate::cli::EmbedArgs;
use crate::embedder::Embedder;
use crate::failure::Failure;
use crate::model_source::ModelSource;
use crate::run_dir::{require_creatable, write_atomically};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use safetensors::tensor::{Dtype, TensorView};
use std::fs;
use std::path::{Path, PathBuf};
use tbps_data::Tokenizer;

const BATCH_SIZE: usize = 32;
/// Extensions of the formats that can be decoded.
const EXTENSIONS: [&str; 4] = ["bmp", "jpeg", "jpg", "png"];

pub(crate) fn run(args: &EmbedArgs) -> Result<()> {
    require_creatable(&args.out)?;
    let images = args.images.as_deref().map(image_files).transpose()?.unwrap_or_default();
    let texts =
        args.texts.as_deref().map(|file| lines(file, "--texts")).transpose()?.unwrap_or_default();
    let device = args.device.open()?;
    let source = ModelSource::open(&args.model, &device)?;
    let tokenizer = Tokenizer::new(source.model.text.vocab_size)?;
    let context_length = source.model.text.context_length;
    let embedder = Embedder {
        clip: &source.clip,
        compute: source.compute,
        image_size: source.image_size(),
        context_length,
        batch_size: BATCH_SIZE,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        device: &device,
        cache: None,
    };
    let bar = bar(images.len());
    let image_features = embedder.images(&images, &mut |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
    let token_ids = tokenizer.encode_batch(&borrowed, context_length);
    let text_features = embedder.captions(&token_ids)?;
    let names: Vec<String> = images.iter().map(|path| file_name(path)).collect();
    let metadata = [
        ("image_names", serde_json::to_string(&names)?),
        ("texts", serde_json::to_string(&texts)?),
        ("weights", serde_json::to_string(&source.record)?),
        ("model", serde_json::to_string(&source.model)?),
    ];
    let dim = source.model.embed_dim;
    write(
        &args.out,
        dim,
        [("image_features", image_features), ("text_features", text_features)],
        metadata,
    )
}

/// The image, or those of a folder in the order of their names.
fn image_files(path: &Path) -> Result<Vec<PathBuf>> {
    let shown = path.display();
    if !path.is_dir() {
        return match path.is_file() {
            true => Ok(vec![path.to_path_buf()]),
            false => Err(Failure::usage(format!("--images: there is no {shown}"))),
        };
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {shown}"))?;
    let files = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut files = files.with_context(|| format!("cannot read {shown}"))?;
    files.retain(|file| {
        let extension = file.extension().unwrap_or_default().to_ascii_lowercase();
        file.is_file() && EXTENSIONS.iter().any(|known| extension == *known)
    });
    files.sort();
    match files.is_empty() {
        true => Err(Failure::usage(format!("--images: {shown} holds no .jpg, .png or .bmp file"))),
        false => Ok(files),
    }
}

/// The lines of a UTF-8 file that the option `option` names, at least one.
pub(crate) fn lines(path: &Path, option: &str) -> Result<Vec<String>> {
    let shown = path.display();
    let bytes = fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let Ok(text) = String::from_utf8(bytes) else {
        bail!("{shown} is not UTF-8: save it as UTF-8, a text a line");
    };
    let texts: Vec<String> = text.lines().map(str::to_owned).collect();
    match texts.is_empty() {
        true => Err(Failure::usage(format!("{option}: {shown} is empty: write a text a line"))),
        false => Ok(texts),
    }
}

fn bar(len: usize) -> ProgressBar {
    let bar = ProgressBar::new(len as u64);
    if let Ok(style) = ProgressStyle::with_template("embedding images {bar:40} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Writes the features that there are, `[rows, dim]`.
fn write(
    out: &Path,
    dim: usize,
    features: [(&str, Vec<f32>); 2],
    metadata: [(&str, String); 4],
) -> Result<()> {
    let bytes = features.map(|(name, floats)| {
        let bytes: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
        (name, [floats.len() / dim, dim], bytes)
    });
    let views = bytes
        .iter()
        .filter(|(_, [rows, _], _)| *rows > 0)
        .map(|(name, shape, bytes)| {
            Ok((*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes)?))
        })
        .collect::<Result<Vec<_>>>()?;
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
    write_atomically(out, &safetensors::serialize(views, Some(metadata))?)
}
