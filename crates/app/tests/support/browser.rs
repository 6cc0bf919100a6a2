//! A headless Chromium with one page, told what to do over a pair of pipes (its DevTools protocol).

#![allow(dead_code, reason = "each test of a page uses a part of it")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where a Chromium is looked for, after `TBPS_CHROMIUM`.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// Much longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
];

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    commands: File,
    messages: Receiver<Value>,
    calls: u64,
    session: Option<String>,
    /// What the page's protocol reported, in order.
    events: Vec<Value>,
    /// Its profile and pipes, removed with the browser.
    _folder: TempDir,
}

impl Browser {
    /// Starts one.
    ///
    /// # Panics
    /// When there is no Chromium: a page that nobody opened is not tested.
    pub(crate) fn start() -> Self {
        let program = std::env::var("TBPS_CHROMIUM").ok().or_else(|| {
            let runs = |program: &&str| {
                let version = Command::new(program).arg("--version").stderr(Stdio::null()).output();
                version.is_ok_and(|output| output.status.success())
            };
            PROGRAMS.into_iter().find(runs).map(str::to_owned)
        });
        let program = program.expect(
            "this test opens a page in Chromium, and there is none: install it (Debian: apt-get \
             install chromium) or name it in TBPS_CHROMIUM",
        );
        let folder = tempfile::tempdir().unwrap();
        let [commands, messages] = ["commands", "messages"].map(|name| {
            let pipe = folder.path().join(name);
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            pipe
        });
        // Chromium reads file descriptor 3 and writes 4; the shell opens them in this order.
        let process = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<\"$COMMANDS\" 4>\"$MESSAGES\"", "sh", &program])
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .env("COMMANDS", &commands)
            .env("MESSAGES", &messages)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = OpenOptions::new().write(true).open(commands).unwrap();
        let mut reader = BufReader::new(File::open(messages).unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while reader.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let Ok(json) = serde_json::from_slice(&message) else { return };
                if sender.send(json).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let (calls, session, events) = (0, None, Vec::new());
        let mut browser =
            Self { process, commands, messages, calls, session, events, _folder: folder };
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
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut answer = self.next();
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
        }
    }

    /// The next message; events are kept.
    fn next(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("Chromium says nothing");
        if message["id"].is_null() {
            self.events.push(message.clone());
        }
        message
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
        let navigated = self.call("Page.navigate", json!({ "url": url }));
        assert!(navigated.get("errorText").is_none(), "{navigated}");
    }

    /// Opens a file, forgets the events before it and waits until it is loaded.
    pub(crate) fn open_file(&mut self, page: &Path) {
        self.events.clear();
        self.open(&format!("file://{}", std::fs::canonicalize(page).unwrap().display()));
        let loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(loaded) {
            self.next();
        }
    }

    /// The value of a JavaScript expression in the page, or of the promise that it is.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
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

    /// A PNG of the view.
    pub(crate) fn screenshot(&mut self) -> Vec<u8> {
        self.data("Page.captureScreenshot", json!({ "format": "png" }))
    }

    /// A PNG of the page's top, higher than the view if need be.
    pub(crate) fn screenshot_of(&mut self, [width, height]: [u32; 2]) -> Vec<u8> {
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let params = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        self.data("Page.captureScreenshot", params)
    }

    /// The page as it prints.
    pub(crate) fn pdf(&mut self) -> Vec<u8> {
        self.data("Page.printToPDF", json!({ "printBackground": true }))
    }

    fn data(&mut self, method: &str, params: Value) -> Vec<u8> {
        STANDARD.decode(self.call(method, params)["data"].as_str().unwrap()).unwrap()
    }

    /// What the page complained about: exceptions, whatever is on the console but a plain log, and
    /// entries of the browser's log, each by its source.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        self.value("0"); // events that were on their way
        let complaint = |event: &Value| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(params.to_string()),
                "Runtime.consoleAPICalled" => (params["type"] != "log").then(|| params.to_string()),
                "Log.entryAdded" => {
                    let entry = &params["entry"];
                    Some(format!("{}: {}", entry["source"], entry["text"]))
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
