//! `tbps serve`: a page to search with, and its JSON API (docs/API.md).
//!
//! `listen` holds the connections, `guard` decides who may ask, `api` answers, `worker` searches,
//! `pictures` reads image files and uploads.

mod api;
mod args;
mod guard;
mod listen;
mod params;
mod pictures;
mod reply;
mod upload;
mod worker;

pub(crate) use args::ServeArgs;

use crate::search::Engine;
use crate::{print, say};
use anyhow::Result;
use api::Server;
use guard::Guard;
use pictures::Pictures;
use std::sync::Arc;
use worker::Worker;

pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let token = args.token()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Before the work of indexing: an address that is taken is told at once.
    let listener = runtime.block_on(listen::bind(args.addr))?;
    let engine = Arc::new(Engine::open(&args.engine)?);
    let worker = Worker::start(Arc::clone(&engine))?;
    let addr = listener.local_addr()?;
    let num_images = engine.index.len();
    let server = Server { engine, worker, pictures: Pictures::new() };
    let router = api::router(server, Guard::new(token));
    print(&format!("{num_images} images to search at http://{addr}\n"))?;
    runtime.block_on(listen::serve(listener, router))?;
    say("stopped");
    Ok(())
}
