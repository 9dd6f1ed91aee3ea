//! A real server on a port of its own, and a plain client, which sends given
//! bytes.
#![allow(clippy::unwrap_used, missing_docs, dead_code)]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use tacho_tape::testing::{Load, Sampler};

/// The sampler begins at 2026-09-21 14:13:20 UTC and takes 300 ticks.
pub const WINDOW: &str = "since=2026-09-21T14:13:20Z&until=2026-09-21T14:23:20Z";
/// A query of the sampler, and its text.
pub const QUERY: i64 = 7_919 * 1_000_003 - 50_000;
pub const TEXT: &str = "select '<script>alert(1)</script>', '\u{202e}\u{1b}[2J' -- secret";

pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-web-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// A history of five minutes called `shop`.
    pub fn shop(name: &str) -> Scratch {
        let scratch = Scratch::new(name);
        let texts = [(QUERY, TEXT)];
        sampler().write_tape(&scratch.tape(), 300, &texts).unwrap();
        scratch
    }

    pub fn tape(&self) -> PathBuf {
        self.0.join("shop")
    }

    /// A token in a file that only its user reads.
    pub fn token_file(&self, token: &str, mode: u32) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join("token");
        std::fs::write(&path, format!("{token}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        path.display().to_string()
    }
}

pub fn sampler() -> Sampler {
    let load = Load {
        queries: 3,
        ..Load::default()
    };
    Sampler::new(7, load)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn command(tape: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho-web"));
    command.arg("--tape").arg(tape).args(args);
    command
}

/// Output of a program that refuses to start. Without `--listen` it takes any
/// free port.
pub fn refused(tape: &Path, args: &[&str]) -> Output {
    let mut command = command(tape, args);
    if !args.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.output().unwrap()
}

pub struct Server {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    /// The line it prints.
    pub line: String,
    /// Address of the server, as `127.0.0.1:PORT`.
    pub address: String,
    pub token: String,
    /// `Cookie: …`, after the exchange of the token.
    pub cookie: String,
}

impl Server {
    /// Starts a server, without a cookie.
    pub fn start(tape: &Path, args: &[&str]) -> Server {
        Server::start_with(tape, args, Stdio::inherit()).0
    }

    /// Starts a server whose messages go to `stderr`, without a cookie.
    pub fn start_with(tape: &Path, args: &[&str], stderr: Stdio) -> (Server, Option<ChildStderr>) {
        let mut command = command(tape, args);
        if !args.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let line = line.trim_end().to_string();
        let address = line
            .strip_prefix("http://")
            .or(line.strip_prefix("https://"));
        let (address, query) = address.unwrap_or(&line).split_once('/').unwrap();
        let stderr = child.stderr.take();
        let server = Server {
            address: address.to_string(),
            token: query.trim_start_matches("?token=").to_string(),
            cookie: String::new(),
            line,
            _stdout: stdout,
            child,
        };
        (server, stderr)
    }

    /// The id of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Starts a server, and exchanges the token.
    pub fn known(tape: &Path, args: &[&str]) -> Server {
        let mut server = Server::start(tape, args);
        let answer = server.get(&format!("/?token={}", server.token));
        assert_eq!(answer.status, 303);
        let cookie = answer.header("set-cookie").unwrap();
        let pair = cookie.split(';').next().unwrap();
        server.cookie = format!("Cookie: {pair}\r\n");
        server
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    /// Gets a path, with more lines in the head.
    pub fn get_with(&self, path: &str, lines: &str) -> Answer {
        self.send(&self.head(path, lines))
    }

    pub fn head(&self, path: &str, lines: &str) -> String {
        let (host, cookie) = (&self.address, &self.cookie);
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{cookie}Connection: close\r\n{lines}\r\n")
    }

    /// Sends exactly these bytes.
    pub fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        // The server may refuse a request before all of it is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }

    /// The value of a metric, by its name with labels.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let line = |line: &str| line.strip_prefix(name)?.trim().parse::<f64>().ok();
        text.lines().find_map(line).unwrap_or(0.0)
    }

    /// Polls until a metric has a value.
    pub fn wait_for(&self, name: &str, value: f64) {
        while self.metric(name) != value {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub struct Answer {
    /// 0 without an answer.
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn parse(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
        let (head, body) = end.map_or((bytes, &[][..]), |end| (&bytes[..end], &bytes[end + 4..]));
        let head = String::from_utf8_lossy(head);
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_ascii_lowercase(), value.to_string()))
        };
        let mut answer = Answer {
            status: status.and_then(|s| s.parse().ok()).unwrap_or(0),
            headers: lines.filter_map(header).collect(),
            body: body.to_vec(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = joined(&answer.body);
        }
        answer
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.0 == name);
        found.map(|header| header.1.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Status, message and SQLSTATE of a problem.
    pub fn problem(&self) -> (u16, String, String) {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let json = self.json();
        assert_eq!(json["status"], self.status);
        let text = |name: &str| json[name].as_str().unwrap().to_string();
        (self.status, text("message"), text("sqlstate"))
    }
}

fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(end) = chunks.windows(2).position(|w| w == b"\r\n") {
        let length = std::str::from_utf8(&chunks[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            break;
        }
        all.extend_from_slice(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + 4 + length..];
    }
    all
}
