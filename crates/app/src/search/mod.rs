//! `tbps search`: finds people by a sentence or an image.

mod args;
mod engine;
pub(crate) mod sheet;
mod table;

pub(crate) use args::{EngineArgs, SearchArgs};
pub(crate) use engine::{Engine, Found};

use crate::embed_command::lines;
use crate::failure::Failure;
use crate::print;
use crate::run_dir::{require_creatable, write_atomically};
use anyhow::{Result, anyhow};
use serde_json::json;
use sheet::{Picture, Section};

pub(crate) fn run(args: &SearchArgs) -> Result<()> {
    args.html.as_deref().map(require_creatable).transpose()?;
    let texts = texts(args)?;
    let engine = Engine::open(&args.engine)?;
    let (names, features) = match &args.image {
        Some(image) => {
            let pixels = tbps_data::pixels(image, engine.image_size())?;
            (vec![image.display().to_string()], engine.pixels(pixels)?)
        }
        None => {
            let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
            let features = engine.texts(&borrowed)?;
            (texts, features)
        }
    };
    let found = engine.search(&features, args.k)?;
    if let Some(path) = &args.html {
        write_atomically(path, contact_sheet(&engine, &names, &found)?.as_bytes())?;
    }
    match args.json {
        true => print(&format!("{:#}\n", as_json(&engine, &names, &found))),
        false => print(&table::render(&names, &found)),
    }
}

/// The sentences of the command line or of its file.
fn texts(args: &SearchArgs) -> Result<Vec<String>> {
    let (texts, place) = match &args.queries {
        Some(file) => (lines(file, "--queries")?, format!("line {{}} of {}", file.display())),
        None => (args.query.clone(), "--query".to_owned()),
    };
    match texts.iter().position(|text| text.trim().is_empty()) {
        Some(blank) => {
            let place = place.replace("{}", &(blank + 1).to_string());
            Err(Failure::usage(format!("{place} is blank: describe a person")))
        }
        None => Ok(texts),
    }
}

fn as_json(engine: &Engine, names: &[String], found: &[Vec<Found>]) -> serde_json::Value {
    let results: Vec<_> = names
        .iter()
        .zip(found)
        .map(|(query, hits)| json!({ "query": query, "hits": hits }))
        .collect();
    let unreadable: Vec<_> = engine
        .unreadable
        .iter()
        .map(|(path, reason)| json!({ "path": path, "reason": reason }))
        .collect();
    json!({
        "gallery": engine.root,
        "images": engine.index.len(),
        "weights_sha256": engine.index.identity().weights_sha256,
        "unreadable": unreadable,
        "results": results,
    })
}

fn contact_sheet(engine: &Engine, names: &[String], found: &[Vec<Found>]) -> Result<String> {
    let section = |(query, hits): (&String, &Vec<Found>)| Section {
        title: query.clone(),
        note: String::new(),
        pictures: hits
            .iter()
            .map(|hit| Picture {
                file: engine.root.join(&hit.path),
                label: format!("{}. {:.4}", hit.rank, hit.score),
                detail: hit.path.clone(),
                right: None,
            })
            .collect(),
    };
    let sections: Vec<Section> = names.iter().zip(found).map(section).collect();
    let intro = format!("{} images searched, of {}", engine.index.len(), engine.root.display());
    sheet::render("Search", &intro, &sections).map_err(|e| anyhow!(e))
}
