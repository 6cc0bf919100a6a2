//! The requests that are answered.

use super::guard::{Guard, guard};
use super::params::{MAX_K, MAX_QUERY_CHARS, Params};
use super::pictures::{self, Pictures};
use super::reply::{Refused, file, json_of};
use super::upload::{self, MAX_UPLOAD};
use super::worker::{Answer, Query, Worker};
use crate::search::Engine;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How long a query may wait for its answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Sentences to begin with.
const EXAMPLES: [&str; 5] = [
    "a woman with a red bag",
    "a man in a black jacket and blue jeans",
    "a person with a backpack and white shoes",
    "a woman in a long skirt and a hat",
    "a man wearing a yellow shirt and shorts",
];

/// What the handlers share.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) engine: Arc<Engine>,
    pub(super) worker: Worker,
    pub(super) pictures: Pictures,
}

type Reply = Result<Response<Body>, Refused>;

/// All routes behind the guard.
pub(super) fn router(server: Server, access: Guard) -> Router {
    let asset = |media_type, text: &'static str| get(async move || file(media_type, text.into()));
    Router::new()
        .route("/", asset("text/html; charset=utf-8", include_str!("page.html")))
        .route("/page.css", asset("text/css; charset=utf-8", include_str!("page.css")))
        .route("/page.js", asset("text/javascript; charset=utf-8", include_str!("page.js")))
        .route("/icon.svg", asset("image/svg+xml", include_str!("icon.svg")))
        .route("/api/info", get(info))
        .route("/api/search", get(by_text))
        .route("/api/search/image", post(by_upload))
        .route("/api/similar/{id}", get(by_id))
        .route("/api/image/{id}", get(full))
        .route("/api/thumb/{id}", get(thumb))
        .fallback(async || Refused::absent("there is nothing here"))
        .method_not_allowed_fallback(async || {
            Refused::new(StatusCode::METHOD_NOT_ALLOWED, "not by this method")
        })
        .layer(axum::middleware::from_fn_with_state(access, guard))
        .with_state(server)
}

async fn info(State(server): State<Server>) -> Reply {
    let index = &server.engine.index;
    let gallery = server.engine.root.file_name().unwrap_or_default().to_string_lossy();
    Ok(json_of(
        StatusCode::OK,
        &json!({
            "version": env!("CARGO_PKG_VERSION"),
            "images": index.len(),
            "gallery": gallery,
            "unreadable": server.engine.unreadable.len(),
            "weights_sha256": index.identity().weights_sha256,
            "image_size": index.identity().image_size,
            "examples": EXAMPLES,
            "limits": {
                "k": MAX_K,
                "query_chars": MAX_QUERY_CHARS,
                "upload_bytes": MAX_UPLOAD,
            },
        }),
    ))
}

async fn by_text(State(server): State<Server>, RawQuery(query): RawQuery) -> Reply {
    let params = Params::read(query.as_deref())?;
    let (text, k) = (params.text()?, params.k()?);
    answer(&server, Query::Text(text), k).await
}

async fn by_id(
    State(server): State<Server>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Reply {
    let k = Params::read(query.as_deref())?.k()?;
    let id = image(&server, &id)?;
    answer(&server, Query::Like(id), k).await
}

async fn by_upload(
    State(server): State<Server>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Reply {
    let k = Params::read(query.as_deref())?.k()?;
    let bytes = upload::read(request).await?;
    let size = server.engine.image_size();
    let pixels = server.pictures.work(move || pictures::pixels(&bytes, size)).await?;
    answer(&server, Query::Pixels(pixels), k).await
}

async fn answer(server: &Server, query: Query, k: usize) -> Reply {
    let asked = server.worker.ask(query, k);
    let answer = tokio::time::timeout(ANSWER_TIME, asked).await.map_err(|_| Refused::busy())??;
    let Answer { found, wait, embed, search } = answer;
    let ms = |time: Duration| (time.as_secs_f64() * 1e5).round() / 1e2;
    let (wait, embed, search) = (ms(wait), ms(embed), ms(search));
    let times = json!({ "wait": wait, "embed": embed, "search": search });
    let mut response = json_of(StatusCode::OK, &json!({ "hits": found, "ms": times }));
    // For the log, which takes it out again.
    let took = format!("wait {wait}, embed {embed}, search {search}");
    if let Ok(took) = HeaderValue::from_str(&took) {
        response.headers_mut().insert("server-timing", took);
    }
    Ok(response)
}

async fn full(State(server): State<Server>, Path(id): Path<String>) -> Reply {
    let file = pictures::file_of(&server.engine, image(&server, &id)?)?;
    let (media_type, bytes) = server.pictures.work(move || pictures::whole(&file)).await?;
    Ok(super::reply::file(media_type, bytes))
}

async fn thumb(State(server): State<Server>, Path(id): Path<String>) -> Reply {
    let file = pictures::file_of(&server.engine, image(&server, &id)?)?;
    let bytes = server.pictures.work(move || pictures::small(&file)).await?;
    Ok(super::reply::file("image/jpeg", bytes).into_response())
}

/// An image of the index by its number, which is all that a client can name.
fn image(server: &Server, id: &str) -> Result<usize, Refused> {
    let number = id.bytes().all(|byte| byte.is_ascii_digit()).then(|| id.parse().ok()).flatten();
    let known = number.filter(|&id: &usize| id < server.engine.index.len());
    known.ok_or_else(|| Refused::absent("there is no such image"))
}
