//! Hostile requests, sent byte by byte as by a client, see `fuzz.rs` of the tape.
//! Checked: no panic; no answer is cut or lacks the common headers; no answer without
//! token or cookie; every connection ends.
#![allow(clippy::unwrap_used)]

use crate::access::Peer;
use crate::api::Api;
use crate::guard::{Door, HEADERS};
use crate::options::Options;
use crate::places::Places;
use crate::routes;
use crate::serve::{self, Limits};
use axum::Router;
use clap::Parser;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tacho_tape::testing::fuzz::{Fuzz, keep};
use tacho_tape::testing::{Load, Sampler};
use tokio::runtime::Runtime;

const TOKEN: &str = "of-whoever-may-ask-here";
/// How long the server waits for the head of a request, and then again for its body.
const HEAD: Duration = Duration::from_millis(10);
/// A connection that lasts longer counts as endless.
const LONG: Duration = Duration::from_secs(60);
/// Statuses that need no token: refusals by the rules, bytes that are not a request,
/// and the redirection from the base path to its page.
const TURNED_AWAY: [u16; 8] = [308, 400, 401, 403, 408, 414, 421, 431];

const WORDS: [&str; 44] = [
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\0",
    " ",
    "/",
    "//",
    "/../",
    "%2e%2e%2f",
    "%00",
    "%ff",
    "?",
    "&",
    "=",
    "+",
    ";",
    "GET ",
    "HEAD ",
    "POST ",
    "OPTIONS ",
    "HTTP/1.0",
    "HTTP/2.0",
    "Host: localhost\r\n",
    "Host: evil.example\r\n",
    "Origin: null\r\n",
    "Cookie: ",
    "Authorization: Bearer ",
    "Sec-Fetch-Site: cross-site\r\n",
    "Content-Length: ",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "Connection: close\r\n",
    "Accept-Encoding: gzip\r\n",
    "18446744073709551616",
    "-1",
    "1e300",
    "server=",
    "since=",
    "bucket=",
    "dimension=",
    "text=",
    "9999-12-31T23:59:59Z",
    "\u{202e}\u{1b}[2J",
    "<script>",
];

static PANICS: AtomicUsize = AtomicUsize::new(0);

struct Site {
    scratch: PathBuf,
    runtime: Runtime,
    router: Router,
    places: Arc<Places>,
    limits: Limits,
}

impl Site {
    fn new() -> Site {
        let scratch = std::env::temp_dir().join(format!("tacho-web-fuzz-{}", std::process::id()));
        let (tape, token) = (scratch.join("shop"), scratch.join("token"));
        std::fs::create_dir_all(&scratch).unwrap();
        Sampler::new(7, Load::default())
            .write_tape(&tape, 30, &[])
            .unwrap();
        std::fs::write(&token, TOKEN).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&token, mode).unwrap();
        let [tape, token] = [tape, token].map(|path| path.display().to_string());
        let options = [
            "tacho-web",
            "--tape",
            &tape,
            "--token-file",
            &token,
            "--base-path",
            "/t",
        ];
        let options = Options::parse_from(options);
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let token = options.token().unwrap();
        let door = Door::new(&options, token, &options.listen().unwrap(), None).unwrap();
        let limits = Limits {
            head: HEAD,
            ..Limits::new(&options, options.base().unwrap(), None)
        };
        Site {
            router: routes::router(Api::new(&options, options.source().unwrap(), door)),
            places: Places::new(16, LONG),
            scratch,
            runtime,
            limits,
        }
    }

    /// Sends a request. Returns everything answered until the connection ends, or
    /// until the begin of an event stream.
    fn ask(&self, request: &[u8]) -> Vec<u8> {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        ours.set_read_timeout(Some(LONG)).unwrap();
        ours.set_write_timeout(Some(LONG)).unwrap();
        let _inside = self.runtime.enter();
        let place = self.runtime.block_on(self.places.take());
        let theirs = tokio::net::UnixStream::from_std(theirs).unwrap();
        serve::spawn(theirs, Peer(None), &self.router, &self.limits, place);
        // The server may refuse a request before all of it is sent.
        let _ = ours.write_all(request);
        let (mut all, mut bytes) = (Vec::new(), [0; 16 << 10]);
        loop {
            match ours.read(&mut bytes) {
                Ok(0) => return all,
                Ok(got) => all.extend_from_slice(&bytes[..got]),
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return all,
                Err(e) => panic!("the connection does not end: {e}"),
            }
            if String::from_utf8_lossy(&all).contains("content-type: text/event-stream\r\n") {
                return all;
            }
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

struct Answer<'a> {
    status: u16,
    headers: HashMap<&'a str, &'a str>,
    body: Vec<u8>,
}

/// The first answer, and the bytes after it.
fn answer<'a>(all: &'a [u8], heads: bool) -> (Answer<'a>, &'a [u8]) {
    let end = all
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .expect("a whole head");
    let (head, rest) = (std::str::from_utf8(&all[..end]).unwrap(), &all[end + 4..]);
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap();
    assert!(
        line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 "),
        "{line}"
    );
    assert!(!head.contains('\0'), "{head}");
    let status = line[9..12].parse().unwrap();
    let headers: HashMap<_, _> = lines.map(|line| line.split_once(": ").unwrap()).collect();
    let has_none = matches!(status, 100 | 204 | 304);
    let of_head = heads && (rest.is_empty() || rest.starts_with(b"HTTP/1."));
    let (body, rest) = match headers.get("content-length") {
        _ if has_none || of_head => (Vec::new(), rest),
        Some(length) => {
            let (body, rest) = rest.split_at(length.parse().unwrap());
            (body.to_vec(), rest)
        }
        None if headers.get("transfer-encoding") == Some(&"chunked") => chunks(rest),
        None => (rest.to_vec(), &rest[rest.len()..]),
    };
    (
        Answer {
            status,
            headers,
            body,
        },
        rest,
    )
}

fn chunks(mut rest: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut all = Vec::new();
    loop {
        let end = rest
            .windows(2)
            .position(|w| w == b"\r\n")
            .expect("a length");
        let length = std::str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        all.extend_from_slice(&rest[end + 2..end + 2 + length]);
        assert_eq!(&rest[end + 2 + length..end + 4 + length], b"\r\n");
        rest = &rest[end + 4 + length..];
        if length == 0 {
            return (all, rest);
        }
    }
}

/// Checks what holds for every answer; returns the outcome.
fn checked(answer: &Answer) -> String {
    let header = |name: &str| answer.headers.get(name).copied();
    if answer.status == 100 {
        return "100".to_string();
    }
    let guarded = HEADERS
        .iter()
        .all(|(name, value)| header(name.as_str()) == Some(value));
    // Bytes that are not a request get an empty answer, which the rules do not see.
    let unread = matches!(answer.status, 400 | 414 | 431) && header("content-length") == Some("0");
    assert!(
        guarded || unread,
        "{} without the headers of all",
        answer.status
    );
    assert_ne!(
        answer.status,
        500,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    let kind = header("content-type").unwrap_or_default();
    let is_plain = header("content-encoding").is_none() && !answer.body.is_empty();
    if !is_plain || !kind.ends_with("json") {
        return format!("{} {kind}", answer.status);
    }
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    if kind == "application/problem+json" {
        assert_eq!(json["status"], answer.status);
        let message = json["message"].as_str().unwrap();
        // Without the quoted part, which differs each time.
        return format!(
            "{} {}",
            answer.status,
            message.split('"').next().unwrap_or_default()
        );
    }
    assert!(answer.status < 400, "{kind}");
    format!(
        "{} {}",
        answer.status,
        json["rows"].as_array().is_some_and(|rows| rows.is_empty())
    )
}

/// Checks all answers to a request; returns their statuses and the outcome.
fn asked(site: &Site, request: &[u8]) -> (Vec<u16>, String) {
    let all = site.ask(request);
    let heads = request.windows(4).any(|w| w == b"HEAD");
    let (mut rest, mut statuses, mut outcome) = (&all[..], Vec::new(), String::new());
    while !rest.is_empty() {
        let streams = |head: &[u8]| String::from_utf8_lossy(head).contains("text/event-stream\r\n");
        let end = rest
            .windows(4)
            .position(|w| w == b"\r\n\r\n")
            .unwrap_or(rest.len());
        let is_stream = streams(&rest[..(end + 2).min(rest.len())]);
        let (one, more) = match is_stream {
            true => (answer(&rest[..end + 4], true).0, &rest[rest.len()..]),
            false => answer(rest, heads),
        };
        statuses.push(one.status);
        outcome += &format!("{}; ", checked(&one));
        rest = more;
    }
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "the server panicked");
    (statuses, outcome)
}

fn seeds(cookie: &str) -> Vec<Vec<u8>> {
    let bearer = format!("Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n");
    let cookie = format!("Host: 127.0.0.1:8432\r\nCookie: a=b; tacho={cookie}\r\n");
    let window = "since=2026-09-21T14:13:20Z&until=2026-09-21T14:23:20Z";
    let get = |path: &str, lines: &str| format!("GET {path} HTTP/1.1\r\n{lines}\r\n");
    let post = |lines: &str, body: &str| {
        let form = "Content-Type: application/x-www-form-urlencoded";
        let length = body.len();
        format!(
            "POST /api/v1/markers HTTP/1.1\r\n{lines}{form}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let mut all = vec![
        get(
            &format!("/t/?token={TOKEN}&tab=locks"),
            "Host: localhost\r\n",
        ),
        get("/t", &bearer),
        get("/assets/index.js", &cookie),
        get(
            "/metrics",
            &format!("{bearer}Accept: application/openmetrics-text\r\n"),
        ),
        get("/api/v1/servers", &cookie) + &get("/t/api/v1/functions", &bearer),
        get("/api/v1/live?server=shop", &cookie),
        get(&format!("/api/v1/fleet?{window}&bucket=1min"), &bearer),
        get(&format!("/api/v1/report.html?{window}"), &bearer),
        get(
            &format!("/api/v1/lanes?server=shop&{window}&width=20"),
            &bearer,
        ),
        post(
            &format!("{cookie}Origin: http://127.0.0.1:8432\r\n"),
            "server=shop&text=deploy+1.4",
        ),
        post(&bearer, "{\"text\": [\"deploy\", 1e300, null]}"),
        post(
            &format!("{bearer}Transfer-Encoding: chunked\r\n"),
            "6\r\ntext=a\r\n0\r\n\r\n",
        ),
        get("/api/v1/servers", &cookie).replacen("GET", "HEAD", 1),
    ];
    let functions = tacho_tape::query::list().iter();
    all.extend(functions.map(|function| {
        let lines = format!("{bearer}Accept-Encoding: gzip\r\nIf-None-Match: W/\"a\"\r\n");
        get(
            &format!("/api/v1/{}?server=shop&{window}&n=3", function.name),
            &lines,
        )
    }));
    all.into_iter().map(String::into_bytes).collect()
}

/// The request without its secrets.
fn without(request: &[u8], secrets: [&str; 2]) -> Vec<u8> {
    let mut bytes = request.to_vec();
    for secret in secrets {
        let length = secret.len();
        for at in 0..bytes.len().saturating_sub(length - 1) {
            if &bytes[at..at + length] == secret.as_bytes() {
                bytes[at] ^= 1;
            }
        }
    }
    bytes
}

#[test]
fn fuzz_requests() {
    let told = std::panic::take_hook();
    let test = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        // Failed checks of the test itself are not panics of the server.
        if std::thread::current().id() != test {
            PANICS.fetch_add(1, Ordering::SeqCst);
        }
        told(info);
    }));
    let site = Site::new();
    let first = format!("GET /?token={TOKEN} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let first = site.ask(first.as_bytes());
    let (first, _) = answer(&first, false);
    let cookie = first.headers["set-cookie"]
        .split(['=', ';'])
        .nth(1)
        .unwrap();
    let seeds = seeds(cookie);
    for seed in &seeds {
        let (statuses, outcome) = asked(&site, seed);
        assert!(
            !statuses.is_empty() && !statuses.contains(&401),
            "{outcome}"
        );
    }
    let fuzz = Fuzz {
        name: "requests",
        seeds,
        words: &WORDS,
        mend: keep,
    };
    fuzz.run(|request| {
        let (refused, outcome) = asked(&site, &without(request, [TOKEN, cookie]));
        let is_refused = |status| TURNED_AWAY.contains(status);
        assert!(
            refused.iter().all(is_refused),
            "a stranger was answered: {outcome}"
        );
        asked(&site, request).1
    });
}
