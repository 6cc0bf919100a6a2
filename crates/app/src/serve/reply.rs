//! What is sent back: JSON, files, and refusals in JSON.

use super::worker::Refusal;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use serde_json::{Value, json};

/// A refusal: its status and what a person can do.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// 400
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 404
    pub(super) fn absent(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 503: come back in a second.
    pub(super) fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once: try again")
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Busy => Self::busy(),
            Refusal::Failed => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the search failed: the server's log says why",
            ),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response<Body> {
        let mut response = json_of(self.status, &json!({ "error": self.message }));
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// A JSON body.
pub(super) fn json_of(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = file("application/json", value.to_string().into_bytes());
    *response.status_mut() = status;
    response
}

/// A body of a media type, which nobody keeps.
pub(super) fn file(media_type: &'static str, bytes: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
