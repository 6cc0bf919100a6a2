//! Who may ask: clients that know the token, or where there is none, pages of this server only.

use super::reply::{Refused, file};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::middleware::Next;
use axum::response::IntoResponse;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

const COOKIE_NAME: &str = "tbps_token";
const LOGIN: &str = include_str!("login.html");
/// The page loads its own files, and pictures that were chosen for upload; nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' blob:; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// The token, if clients need one.
#[derive(Clone)]
pub(super) struct Guard {
    token: Option<Arc<str>>,
}

impl Guard {
    pub(super) fn new(token: Option<String>) -> Self {
        Self { token: token.map(Into::into) }
    }

    /// Refuses whom it must, else goes on.
    fn check(&self, request: &Request) -> Result<(), Box<Response<Body>>> {
        let headers = request.headers();
        let Some(token) = &self.token else {
            // A page elsewhere could have its name resolved to this machine: only addresses and
            // localhost are this server's names.
            return match headers.get(HOST).and_then(|host| host.to_str().ok()).is_some_and(is_ours)
            {
                true => Ok(()),
                false => Err(Box::new(
                    Refused::new(
                        StatusCode::MISDIRECTED_REQUEST,
                        "ask by address or as localhost, not by another name",
                    )
                    .into_response(),
                )),
            };
        };
        if presented(headers).any(|shown| same(shown, token)) {
            return Ok(());
        }
        if request.uri().path() != "/" {
            let message = "a token is needed: send Authorization: Bearer TOKEN";
            let refused = Refused::new(StatusCode::UNAUTHORIZED, message);
            return Err(Box::new(refused.into_response()));
        }
        let mut response = file("text/html; charset=utf-8", LOGIN.into());
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        let given = request.uri().query().and_then(|query| query.strip_prefix("token="));
        if given.is_some_and(|given| same(given, token)) {
            *response.status_mut() = StatusCode::SEE_OTHER;
            *response.body_mut() = Body::empty();
            let cookie = format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict");
            let headers = response.headers_mut();
            headers.insert(LOCATION, HeaderValue::from_static("/"));
            if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                headers.insert(SET_COOKIE, cookie);
            }
        }
        Err(Box::new(response))
    }
}

/// Lets a request through or not, adds the headers of a careful server, and logs the time.
pub(super) async fn guard(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let began = Instant::now();
    let line = format!("{} {}", request.method(), request.uri().path());
    let mut response = match guard.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refused) => *refused,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let ms = began.elapsed().as_secs_f64() * 1e3;
    let took =
        headers.remove("server-timing").and_then(|took| took.to_str().map(str::to_owned).ok());
    let took = took.map_or_else(String::new, |took| format!(" ({took})"));
    let line = line.replace(char::is_control, " ");
    crate::say(&format!("{line} {} {ms:.1} ms{took}", response.status().as_u16()));
    response
}

/// The tokens that a request shows.
fn presented(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let cookies = cookies
        .flat_map(|line| line.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .filter_map(|(name, value)| (name == COOKIE_NAME).then_some(value));
    bearer.into_iter().chain(cookies)
}

/// Compares hashes, so that the time says nothing of how much was right.
fn same(given: &str, token: &str) -> bool {
    crate::checkpoint::sha256(given.as_bytes()) == crate::checkpoint::sha256(token.as_bytes())
}

/// Whether a Host header names an address or localhost.
fn is_ours(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses_or_localhost() {
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "192.168.0.7"] {
            assert!(is_ours(host), "{host}");
        }
        for host in ["evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!is_ours(host), "{host}");
        }
    }

    #[test]
    fn tokens_come_as_a_header_or_a_cookie() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer abc"));
        headers.append(COOKIE, HeaderValue::from_static("other=1; tbps_token=def; x=2"));
        assert_eq!(presented(&headers).collect::<Vec<_>>(), ["abc", "def"]);
        assert!(same("abc", "abc") && !same("abc", "abcd"));
    }
}
