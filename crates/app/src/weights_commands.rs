//! `tbps weights`: look at, convert and hand on weights.

use crate::cli::{ModelArgs, WeightsCommand};
use crate::config::WeightsConfig;
use crate::device::DeviceName;
use crate::failure::Failure;
use crate::model_file::{ModelFile, recipe_of};
use crate::model_source::{ModelSource, fitted_model};
use crate::run_dir::{require_creatable, write_atomically, write_json};
use crate::{model_file, print, say};
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use tbps_data::ImageSize;
use tbps_model::config::Activation;
use tbps_model::pos_embed::PosEmbedResize;
use tbps_model::weights;

pub(crate) fn run(command: WeightsCommand) -> Result<()> {
    match command {
        WeightsCommand::Inspect { file, json } => inspect(&file, json.as_deref()),
        WeightsCommand::Import { file, image_size, activation, pos_embed, out } => {
            import(&file, image_size, activation, pos_embed, &out)
        }
        WeightsCommand::Export { model, out } => export(&model, &out),
    }
}

fn inspect(path: &Path, json: Option<&Path>) -> Result<()> {
    json.map_or(Ok(()), require_creatable)?;
    let file = ModelFile::read(path)?;
    let (weights, model) = (&file.weights, file.model()?);
    let num_parameters: usize = weights.tensors.values().map(|data| data.num_elements()).sum();
    let tensors: Vec<_> = weights
        .tensors
        .iter()
        .map(|(name, data)| json!({ "name": name, "shape": data.shape().to_vec() }))
        .collect();
    let dtypes: Vec<&str> = weights.dtypes.iter().copied().collect();
    let published = file.published_as();
    if let Some(path) = json {
        write_json(
            path,
            &json!({
                "sha256": file.sha256,
                "published_as": published,
                "container": weights.container.to_string(),
                "names": weights.names.to_string(),
                "dtypes": dtypes,
                "says_its_model": weights.recipe.is_some(),
                "model": model,
                "num_parameters": num_parameters,
                "tensors": tensors,
            }),
        )?;
    }
    let assumed = if weights.recipe.is_some() { "" } else { " (assumed: the file does not say)" };
    let (v, t) = (&model.vision, &model.text);
    print(&format!(
        "format      {}, names of {}, {}\n\
         sha256      {}{}\n\
         parameters  {num_parameters} in {} tensors\n\
         image       {}x{}, patch {}, width {}, {} layers, {} heads\n\
         text        {} tokens of {}, width {}, {} layers, {} heads\n\
         embedding   {}\n\
         activation  {}{assumed}\n",
        weights.container,
        weights.names,
        dtypes.join(" and "),
        file.sha256,
        published.map_or(String::new(), |name| format!(" ({name}, as published)")),
        weights.tensors.len(),
        v.image_height,
        v.image_width,
        v.patch_size,
        v.width,
        v.layers,
        v.heads,
        t.context_length,
        t.vocab_size,
        t.width,
        t.layers,
        t.heads,
        model.embed_dim,
        model_file::quoted(&model.activation).trim_matches('"'),
    ))
}

fn import(
    path: &Path,
    image_size: Option<ImageSize>,
    activation: Option<Activation>,
    pos_embed: PosEmbedResize,
    out: &Path,
) -> Result<()> {
    let shown = out.display();
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) || out.is_file() {
        return Err(Failure::usage(format!("{shown} is not empty: choose another --out")));
    }
    let file = ModelFile::read(path)?;
    let model = fitted_model(&file, image_size, activation)?;
    let settings =
        WeightsConfig { file: PathBuf::new(), pos_embed, allow_mismatch: activation.is_some() };
    // Loading it finds what is missing.
    let clip = model.init(0, &DeviceName::Flex.open()?)?;
    let (clip, record) = file.load_into(clip, &model, &settings)?;
    let bytes = model_file::of(&clip, &model)?;
    fs::create_dir_all(out).with_context(|| format!("cannot create {shown}"))?;
    write_atomically(&out.join("weights.safetensors"), &bytes)?;
    write_json(&out.join("import.json"), &json!({ "source": record, "model": model }))?;
    say(&format!("{}: {}", path.display(), record.in_words(&model)));
    print(&format!("{}\n", out.join("weights.safetensors").display()))
}

fn export(args: &ModelArgs, out: &Path) -> Result<()> {
    require_creatable(out)?;
    let source = ModelSource::open(args, &DeviceName::Flex.open()?)?;
    let tensors = weights::state_dict(&source.clip).into_iter().collect();
    let bytes = weights::export(&tensors, &recipe_of(&source.model))?;
    write_atomically(out, &bytes)?;
    print(&format!("{}\n", out.display()))
}
