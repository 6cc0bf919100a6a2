//! A headless Chromium, told what to do over a pair of pipes (its DevTools protocol).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// Where a Chromium is looked for, after `TBPS_CHROMIUM`.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// Much longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
];

/// A browser with one page.
pub(crate) struct Chromium {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    num_sent: u64,
    session: Option<String>,
    /// What the page complained about since it was opened.
    problems: Vec<String>,
    _folder: TempDir,
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Chromium {
    /// Starts one.
    ///
    /// # Panics
    /// When there is no Chromium: a page that nobody opened is not tested.
    pub(crate) fn start() -> Chromium {
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
        let child = Command::new("sh")
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
        let mut browser = Chromium {
            child,
            commands,
            messages,
            num_sent: 0,
            session: None,
            problems: Vec::new(),
            _folder: folder,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", target);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        browser
    }

    /// Opens a file in a window of this size and waits until it is loaded.
    pub(crate) fn open(&mut self, page: &Path, [width, height]: [u32; 2], scheme: &str) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let feature = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": feature}));
        self.problems.clear();
        let url = format!("file://{}", std::fs::canonicalize(page).unwrap().display());
        let navigated = self.call("Page.navigate", json!({"url": url}));
        assert!(navigated.get("errorText").is_none(), "{navigated}");
        while self.next()["method"] != "Page.loadEventFired" {}
    }

    /// The value of a JavaScript expression.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", params);
        assert!(result.get("exceptionDetails").is_none(), "{result}");
        result["result"]["value"].clone()
    }

    /// Errors, exceptions and warnings of the page so far.
    pub(crate) fn problems(&mut self) -> Vec<String> {
        self.evaluate("0"); // what was reported before the answer has arrived with it
        self.problems.clone()
    }

    /// A PNG of the page's top.
    pub(crate) fn screenshot(&mut self, [width, height]: [u32; 2]) -> Vec<u8> {
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
        let params = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        self.data("Page.captureScreenshot", params)
    }

    /// The page as it prints.
    pub(crate) fn pdf(&mut self) -> Vec<u8> {
        self.data("Page.printToPDF", json!({"printBackground": true}))
    }

    fn data(&mut self, method: &str, params: Value) -> Vec<u8> {
        let result = self.call(method, params);
        STANDARD.decode(result["data"].as_str().unwrap()).unwrap()
    }

    /// Sends a command and waits for its result.
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.num_sent += 1;
        let id = self.num_sent;
        let mut command = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let message = self.next();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
        }
    }

    fn next(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("Chromium says nothing");
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.problems.push(params.to_string()),
            Some("Runtime.consoleAPICalled") if params["type"] != "log" => {
                self.problems.push(params.to_string());
            }
            Some("Log.entryAdded") => self.problems.push(params["entry"].to_string()),
            _ => {}
        }
        message
    }
}
