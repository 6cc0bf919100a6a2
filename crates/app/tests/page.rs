//! The search page in a real browser: everything that a person does on it, and what goes wrong.
//!
//! `TBPS_PAGE_RUN=DIR` shows a run of yours instead of a small one that is trained here;
//! `TBPS_SCREENSHOTS=DIR` keeps the pictures that are taken on the way.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "support/browser.rs"]
mod browser;
#[path = "support/server.rs"]
mod server;
mod support;

use browser::Browser;
use server::Server;
use std::path::{Path, PathBuf};
use support::trained;

const QUERY: &str = "a woman with a red bag";

fn shot(browser: &mut Browser, folder: &Path, name: &str) {
    // Pictures in view first.
    browser.wait("[...document.images].every(i => i.complete || i.loading === 'lazy')");
    std::thread::sleep(std::time::Duration::from_millis(200));
    std::fs::write(folder.join(name), browser.screenshot()).unwrap();
}

fn found(browser: &mut Browser) -> u64 {
    browser.value("document.querySelectorAll('#results li').length").as_u64().unwrap()
}

/// Waits for results whose status line has `words`, with every picture of the first row loaded.
fn wait_for_results(browser: &mut Browser, words: &str) {
    let words = serde_json::json!(words);
    browser.wait(&format!("document.querySelector('#status').innerText.includes({words})"));
    browser.wait("!document.querySelector('#results').classList.contains('busy')");
    browser.wait("document.querySelector('#results img').naturalWidth > 0");
}

#[test]
fn a_person_searches_on_a_phone_and_on_a_desk() {
    let folder = tempfile::tempdir().unwrap();
    let run = match std::env::var_os("TBPS_PAGE_RUN") {
        Some(run) => PathBuf::from(run),
        None => trained(folder.path(), "run", &[]),
    };
    let shots = std::env::var_os("TBPS_SCREENSHOTS").map_or(folder.path().into(), PathBuf::from);
    let index = folder.path().join("val.index");
    let arguments = ["--split", "val", "--index", index.to_str().unwrap()];
    let server = Server::start(folder.path(), &run, &arguments);
    let mut browser = Browser::start();
    for (width, height) in [(390, 844), (1400, 900)] {
        browser.size(width, height);
        tour(&mut browser, &server, &shots, width);
        let wide = browser.value("document.documentElement.scrollWidth");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "it scrolls sideways at {width} px");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
    failures(&mut browser, server, folder.path(), &shots);
}

/// Types a query, opens an image, asks for more like it, uploads a picture.
fn tour(browser: &mut Browser, server: &Server, shots: &Path, width: u32) {
    let base = format!("http://{}/", server.addr);
    browser.open("about:blank");
    browser.open(&base);
    browser.wait("document.querySelectorAll('#examples button').length === 5");
    assert_eq!(found(browser), 0);
    shot(browser, shots, &format!("search-empty-{width}.png"));

    browser.click("#query");
    browser.type_text(QUERY);
    browser.key("Enter");
    wait_for_results(browser, QUERY);
    let first = found(browser);
    assert!(first > 1, "{first} images");
    shot(browser, shots, &format!("search-{width}.png"));
    browser.dark(true);
    shot(browser, shots, &format!("search-dark-{width}.png"));
    browser.dark(false);

    // The keyboard: down into the grid, right, open, right, close.
    browser.key("ArrowDown");
    browser.key("ArrowRight");
    browser.key("Enter");
    browser.wait("document.querySelector('#viewer').open");
    browser.wait("document.querySelector('#full').naturalWidth > 0");
    assert!(
        browser
            .value("document.querySelector('#viewer-title').innerText")
            .as_str()
            .unwrap()
            .starts_with("#2 ")
    );
    browser.key("ArrowRight");
    browser.wait("document.querySelector('#viewer-title').innerText.startsWith('#3 ')");
    browser.wait("document.querySelector('#full').complete");
    shot(browser, shots, &format!("search-viewer-{width}.png"));
    browser.key("Escape");
    browser.wait("!document.querySelector('#viewer').open");

    // The mouse: open the first, more like it; the first is then itself.
    browser.click("#results button");
    browser.wait("document.querySelector('#viewer').open");
    let path = browser.value("document.querySelector('#full').alt");
    browser.click("#similar");
    wait_for_results(browser, "images like no.");
    assert!(browser.value("!document.querySelector('#viewer').open") == true);
    assert_eq!(browser.value("document.querySelector('#results .path').innerText"), path);

    // Back, and forward by an example.
    browser.value("history.back()");
    wait_for_results(browser, QUERY);
    browser.click("#examples button:nth-of-type(2)");
    wait_for_results(browser, "black jacket");

    // A picture of the gallery finds itself.
    let path = browser.value("document.querySelector('#results .path').innerText");
    let body = server.get("/api/image/0").body;
    let picture = shots.join("picture.bin");
    std::fs::write(&picture, body).unwrap();
    browser.choose("#picture", &picture);
    wait_for_results(browser, "picture.bin");
    let score = browser.value("document.querySelector('#results .score').innerText");
    assert!(score.as_str().unwrap().starts_with("1.000"), "{score}");
    assert_ne!(path, "");
    std::fs::remove_file(picture).unwrap();

    // Markup is text.
    browser.click("#query");
    browser.value("document.querySelector('#query').value = ''");
    let markup = "<img src=x onerror=alert(1)><script>alert(2)</script>";
    browser.type_text(markup);
    browser.key("Enter");
    wait_for_results(browser, markup);
    assert_eq!(browser.value("document.querySelectorAll('#status img, #status script').length"), 0);
}

/// What the page says when something is wrong. The browser itself logs failed loads here, so that
/// complaints of other kinds are looked for alone.
fn failures(browser: &mut Browser, server: Server, folder: &Path, shots: &Path) {
    let error = "document.querySelector('#error')";
    browser.value("document.querySelector('#query').value = ' '");
    browser.click("#query");
    browser.key("Enter");
    browser.wait(&format!("{error}.innerText.includes('Describe a person')"));

    let bad = folder.join("bad.png");
    std::fs::write(&bad, "no picture").unwrap();
    browser.choose("#picture", &bad);
    browser.wait(&format!("{error}.innerText.includes('no whole JPEG, PNG or BMP')"));
    assert_eq!(found(browser), 0);

    let base = format!("http://{}", server.addr);
    drop(server);
    browser.value("location.hash = '#q=somebody'");
    browser.wait(&format!("{error}.innerText.includes('does not answer')"));
    shot(browser, shots, "search-error.png");

    let others: Vec<String> = browser.complaints();
    let others: Vec<&String> =
        others.iter().filter(|text| !text.starts_with("\"network\"")).collect();
    assert!(others.is_empty(), "{others:?}");
    for url in browser.requested() {
        let ours = url.starts_with(&base) || url.starts_with("about:") || url.starts_with("data:");
        assert!(ours, "the page asked for {url}");
    }
}
