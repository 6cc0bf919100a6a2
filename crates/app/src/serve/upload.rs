//! Reading an uploaded picture, and a refusal that is heard.

use super::reply::Refused;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

/// Bytes of a picture.
pub(super) const MAX_UPLOAD: usize = 10 << 20;
/// Bytes that are taken of a body, most of them to be forgotten: a client that is cut off while it
/// still sends does not hear why.
const MAX_TAKEN: usize = 128 << 20;
/// How long an upload may take.
const UPLOAD_TIME: Duration = Duration::from_secs(10);

/// The body of a request, at most [`MAX_UPLOAD`] bytes.
pub(super) async fn read(request: Request) -> Result<Vec<u8>, Refused> {
    let too_large = || {
        let message =
            format!("the picture has more than {} MiB: send a smaller one", MAX_UPLOAD >> 20);
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let headers = request.headers();
    let announced = headers.get(CONTENT_LENGTH).and_then(|n| n.to_str().ok()?.parse().ok());
    let waits = headers.contains_key(EXPECT); // for permission to send
    let at_most = if waits { MAX_UPLOAD } else { MAX_TAKEN };
    if announced.is_some_and(|bytes: usize| bytes > at_most) {
        return Err(too_large());
    }
    match tokio::time::timeout(UPLOAD_TIME, take(request.into_body())).await {
        Ok(bytes) => bytes.ok_or_else(too_large),
        Err(_) => Err(Refused::new(StatusCode::REQUEST_TIMEOUT, "the picture came too slowly")),
    }
}

/// A body, or nothing when it is too large or broken off.
async fn take(mut body: Body) -> Option<Vec<u8>> {
    let (mut bytes, mut taken) = (Vec::new(), 0);
    while taken <= MAX_TAKEN
        && let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
    {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        taken += data.len();
        match taken <= MAX_UPLOAD {
            true => bytes.extend_from_slice(&data),
            false => bytes = Vec::new(),
        }
    }
    (taken <= MAX_UPLOAD).then_some(bytes)
}
