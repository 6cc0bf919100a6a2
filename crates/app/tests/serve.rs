//! `tbps serve` against clients that mean no good, and against many at once.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "serve/hostile.rs"]
mod hostile;
#[path = "serve/load.rs"]
mod load;
#[path = "support/server.rs"]
mod server;
mod support;

use server::Server;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use support::{smoke_data, tbps, trained};
use tempfile::TempDir;

/// A small run, trained once for all tests here.
fn run() -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        trained(folder.path(), "run", &[]);
        folder
    });
    folder.path().join("run")
}

/// A server over a few images that belong to the test, in `folder`.
fn start(folder: &TempDir, arguments: &[&str]) -> Server {
    let gallery = folder.path().join("gallery");
    fs::create_dir(&gallery).unwrap();
    let part = smoke_data().join("imgs/CUHK01");
    for entry in fs::read_dir(part).unwrap().take(30) {
        let from = entry.unwrap().path();
        fs::copy(&from, gallery.join(from.file_name().unwrap())).unwrap();
    }
    let index = folder.path().join("gallery.index");
    let places = ["--gallery", gallery.to_str().unwrap(), "--index", index.to_str().unwrap()];
    Server::start(folder.path(), &run(), &[&places, arguments].concat())
}

#[test]
fn the_documented_answers() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(&folder, &[]);
    let info = server.get("/api/info").json();
    let num_images = info["images"].as_u64().unwrap();
    assert!(num_images > 3);
    let answer = server.get("/api/search?q=a+man+in+a+red+coat&k=3");
    assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
    assert!(answer.head.contains("cache-control: no-store"), "{}", answer.head);
    let hits = answer.json()["hits"].as_array().unwrap().clone();
    assert_eq!(hits.len(), 3);
    let scores: Vec<f64> = hits.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let id = hits[0]["id"].as_u64().unwrap();
    let image = server.get(&format!("/api/image/{id}"));
    let path = folder.path().join("gallery").join(hits[0]["path"].as_str().unwrap());
    assert!(image.body == fs::read(path).unwrap(), "the file as it is");
    let thumb = server.get(&format!("/api/thumb/{id}"));
    assert!(thumb.body.starts_with(&[0xff, 0xd8]) && thumb.status == 200);
    let similar = server.get(&format!("/api/similar/{id}?k=2")).json();
    assert_eq!(similar["hits"][0]["id"], id);
    let upload = server.ask("POST", "/api/search/image?k=1", "", &image.body).json();
    assert_eq!(upload["hits"][0]["id"], id);

    let log = fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("GET /api/search 200 "), "{log}");
    assert!(!log.contains("red coat"), "what is looked for is nobody's business: {log}");
    let ended = server.terminate();
    assert!(ended.success(), "{ended}");
    assert!(fs::read_to_string(&server.log).unwrap().ends_with("stopped\n"));
}

#[test]
fn a_token_is_asked_for_and_a_cookie_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let token = "0123456789abcdef_-";
    let server = start(&folder, &["--token", token]);
    for path in ["/api/info", "/api/search?q=a", "/api/image/0", "/page.js", "/nothing"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    assert_eq!(server.get("/").status, 401);
    assert!(String::from_utf8(server.get("/").body).unwrap().contains("Token needed"));
    assert_eq!(server.get("/?token=wrong").status, 401);
    let login = server.get(&format!("/?token={token}"));
    assert_eq!(login.status, 303);
    assert!(login.head.contains("httponly; samesite=strict"), "{}", login.head);
    for header in [format!("authorization: Bearer {token}"), format!("cookie: tbps_token={token}")]
    {
        let answer = server.ask("GET", "/api/info", &format!("{header}\r\n"), b"");
        assert_eq!(answer.status, 200, "{header}");
    }
    let wrong = server.ask("GET", "/api/info", "authorization: Bearer 0123456789abcdef\r\n", b"");
    assert_eq!(wrong.status, 401);
    assert!(!fs::read_to_string(&server.log).unwrap().contains(token), "it is in the log");
}

#[test]
fn other_machines_are_let_in_by_nobody_by_accident() {
    let refused = |arguments: &[&str], told: &str| {
        let mut serve: Command = tbps();
        serve.arg("serve").arg("--run").arg(run()).args(["--split", "val"]).args(arguments);
        let output = serve.env_remove("TBPS_TOKEN").output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(told), "{text}");
    };
    refused(&["--addr", "0.0.0.0:0"], "--allow-remote");
    refused(&["--addr", "0.0.0.0:0", "--allow-remote"], "needs a token");
    refused(&["--addr", "0.0.0.0:0", "--allow-remote", "--token", "short"], "at least 16");
    refused(&["--addr", "localhost"], "--addr");
}
