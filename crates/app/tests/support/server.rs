//! A running `tbps serve`, and HTTP by hand: hostile requests are none that a client library sends.

#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::support::tbps;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A server on a free port, ended when dropped.
pub(crate) struct Server {
    process: Child,
    /// `127.0.0.1:PORT`
    pub(crate) addr: String,
    pub(crate) log: PathBuf,
}

/// An answer: status, head in lower case, body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Server {
    /// Starts a server of a run and waits until it listens; its log goes into `folder`.
    pub(crate) fn start(folder: &Path, run: &Path, arguments: &[&str]) -> Self {
        let log = folder.join("server.log");
        let mut serve = tbps();
        serve.arg("serve").arg("--run").arg(run).args(["--addr", "127.0.0.1:0"]).args(arguments);
        serve.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        let mut process = serve.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let addr = line.trim().rsplit_once("http://").map(|(_, addr)| addr.to_owned());
        let Some(addr) = addr else {
            panic!("no address: {line} {}", std::fs::read_to_string(log).unwrap())
        };
        Self { process, addr, log }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes as they are and reads all that comes back; nothing when the connection broke
    /// off before a status.
    pub(crate) fn raw(&self, request: &[u8]) -> Option<Answer> {
        let mut stream = self.connect();
        // A server may refuse before it has read everything.
        drop(stream.write_all(request));
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes));
        answer(&bytes)
    }

    /// A request with `Connection: close`, further headers, and a body.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\
             {headers}\r\n",
            self.addr,
            body.len()
        );
        self.raw(&[head.as_bytes(), body].concat()).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", b"")
    }

    /// Resident bytes of the process.
    #[cfg(target_os = "linux")]
    pub(crate) fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Takes an answer apart.
fn answer(bytes: &[u8]) -> Option<Answer> {
    let split = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..split]).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head, body: bytes[split + 4..].to_vec() })
}
