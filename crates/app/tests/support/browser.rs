//! Headless Chromium over its DevTools protocol, as far as a page test needs it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

const PATIENCE: Duration = Duration::from_secs(30);

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    calls: u64,
    /// What the page's protocol reported, in order.
    pub(crate) events: Vec<Value>,
    /// The profile, removed with the browser.
    _profile: TempDir,
}

impl Browser {
    /// Starts the browser.
    ///
    /// # Panics
    /// When there is none: a page that nobody looked at must not pass.
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
        let process = names.iter().find_map(|name| {
            let mut browser = Command::new(name);
            browser.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic"]);
            browser.args(["--no-first-run", "--disable-background-networking", "--disable-sync"]);
            browser.args(["--disable-component-update", "--disable-dev-shm-usage"]);
            browser.args(["--hide-scrollbars", "--remote-debugging-port=0", "about:blank"]);
            browser.arg(format!("--user-data-dir={}", profile.path().display()));
            browser.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
        });
        let process = process.expect("the page's test needs Chromium: apt-get install chromium");
        let port_file = profile.path().join("DevToolsActivePort");
        let began = Instant::now();
        let text = loop {
            match std::fs::read_to_string(&port_file) {
                Ok(text) if text.lines().count() == 2 => break text,
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
            assert!(began.elapsed() < PATIENCE, "the browser did not start");
        };
        let (port, path) = text.split_once('\n').unwrap();
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let url = format!("ws://127.0.0.1:{port}{}", path.trim());
        let (socket, _) = tungstenite::client(url, stream).unwrap();
        let (session, calls, events) = (None, 0, Vec::new());
        let mut browser = Self { process, socket, session, calls, events, _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Network", "Log", "DOM"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the protocol and keeps the events that come before its answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let mut answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.events.push(answer);
        }
    }

    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1,
                              "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Asks for a dark page, or no longer.
    pub(crate) fn dark(&mut self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": value }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
    }

    /// The value of a JavaScript expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true });
        let mut result = self.call("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&mut self, expression: &str) {
        let began = Instant::now();
        while self.value(expression) != true {
            if began.elapsed() > PATIENCE {
                let text = self.value("document.body.innerText");
                panic!("never true: {expression}; the page says {text}");
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Clicks with the mouse into the middle of an element.
    pub(crate) fn click(&mut self, selector: &str) {
        let selector = json!(selector);
        let place = self.value(&format!(
            "(() => {{ const e = document.querySelector({selector}); \
             e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect(); \
             return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left",
                                "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Types into what has the focus.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Presses a key, such as `Enter` or `/`.
    pub(crate) fn key(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let text = match key {
            "Enter" => "\r",
            key if key.len() == 1 => key,
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Chooses a file in a file input.
    pub(crate) fn choose(&mut self, selector: &str, file: &Path) {
        let document = self.call("DOM.getDocument", json!({}));
        let node = json!({ "nodeId": document["root"]["nodeId"], "selector": selector });
        let node = self.call("DOM.querySelector", node);
        let files = json!({ "nodeId": node["nodeId"], "files": [file] });
        self.call("DOM.setFileInputFiles", files);
    }

    /// Writes what the page looks like as a PNG file.
    pub(crate) fn screenshot(&mut self, file: &Path) {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }

    /// What the page complained about: console errors and warnings, exceptions, failed loads.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        self.value("0"); // events that were on their way
        let complaint = |event: &Value| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(params.to_string()),
                "Runtime.consoleAPICalled" => {
                    let bad = ["error", "warning", "assert"].map(Value::from);
                    bad.contains(&params["type"]).then(|| params.to_string())
                }
                "Log.entryAdded" => {
                    let entry = &params["entry"];
                    (entry["level"] == "error" || entry["level"] == "warning")
                        .then(|| format!("{}: {}", entry["source"], entry["text"]))
                }
                _ => None,
            }
        };
        self.events.iter().filter_map(complaint).collect()
    }

    /// Every address that the page asked for.
    pub(crate) fn requested(&self) -> Vec<String> {
        let requests = self.events.iter().filter(|e| e["method"] == "Network.requestWillBeSent");
        requests.map(|e| e["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
