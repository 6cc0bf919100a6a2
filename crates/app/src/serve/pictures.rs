//! Image files and uploads, decoded beside the network's threads and a few at a time.

use super::reply::Refused;
use crate::index::media_type;
use crate::search::Engine;
use axum::http::StatusCode;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tbps_data::ImageSize;
use tbps_data::image::{decode_bytes, normalize, resize, thumbnail};
use tokio::sync::Semaphore;

/// Memory that decoding an upload may take: 22 million pixels.
const MAX_DECODED: u64 = 64 << 20;
/// Bytes of a file that is shown.
const MAX_FILE: u64 = 64 << 20;
/// Longest side of a picture in the grid, in pixels: sharp on a dense screen.
const THUMB_SIDE: usize = 320;
/// How long work may wait for its turn.
const TURN_TIME: Duration = Duration::from_secs(10);
/// Work that may wait for its turn.
const QUEUE: usize = 256;

/// Turns at decoding, as many as there are cores.
#[derive(Clone)]
pub(super) struct Pictures {
    turns: Arc<Semaphore>,
    queue: Arc<Semaphore>,
}

impl Pictures {
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { turns: Arc::new(Semaphore::new(cores)), queue: Arc::new(Semaphore::new(QUEUE)) }
    }

    /// Does a piece of work when it is its turn.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        let _place = self.queue.try_acquire().map_err(|_| Refused::busy())?;
        let turn = tokio::time::timeout(TURN_TIME, Arc::clone(&self.turns).acquire_owned());
        let Ok(Ok(turn)) = turn.await else { return Err(Refused::busy()) };
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn; // kept until the work ends, also when nobody waits for it any more
            work()
        });
        let failed = || Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "the picture failed");
        done.await.map_err(|_| failed())?
    }
}

/// The file of an image. Only the index says where it is, and never outside of its gallery.
pub(super) fn file_of(engine: &Engine, image: usize) -> Result<PathBuf, Refused> {
    let path = engine.index.source(image).map(|source| PathBuf::from(source.path));
    let inside = |path: &PathBuf| path.components().all(|c| matches!(c, Component::Normal(_)));
    let path = path.ok().filter(inside);
    path.map(|path| engine.root.join(path)).ok_or_else(gone)
}

fn gone() -> Refused {
    Refused::new(StatusCode::GONE, "the image is no longer there: start the server again")
}

/// An image file as it is, and its media type.
pub(super) fn whole(path: &Path) -> Result<(&'static str, Vec<u8>), Refused> {
    let open = File::open(path).map_err(|_| gone())?;
    let mut bytes = Vec::new();
    open.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|_| gone())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(gone());
    }
    // Whatever has taken the image's place is not shown.
    Ok((media_type(&bytes).ok_or_else(gone)?, bytes))
}

/// An image file as a small JPEG.
pub(super) fn small(path: &Path) -> Result<Vec<u8>, Refused> {
    let bytes = fs::read(path).map_err(|_| gone())?;
    let image = decode_bytes(&bytes, path, 4 * MAX_DECODED).map_err(|_| gone())?;
    Ok(thumbnail(&image, THUMB_SIDE))
}

/// An upload as the model sees it, `[3, height, width]`.
pub(super) fn pixels(bytes: &[u8], size: ImageSize) -> Result<Vec<f32>, Refused> {
    let image = decode_bytes(bytes, Path::new("upload"), MAX_DECODED).map_err(|_| {
        Refused::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "this is no whole JPEG, PNG or BMP picture of up to 22 million pixels",
        )
    })?;
    let mut pixels = vec![0.0; size.num_elements()];
    normalize(&resize(&image, size), &mut pixels);
    Ok(pixels)
}
