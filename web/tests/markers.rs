//! Markers over HTTP: who may write one, and the file that results.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Answer, Scratch, Server};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;

const TEXT: &str = "text=deploy+1.4";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

fn post(server: &Server, path: &str, lines: &str, body: &str) -> Answer {
    let length = format!("Content-Length: {}\r\n", body.len());
    let head = server
        .head(path, &(length + lines))
        .replacen("GET", "POST", 1);
    server.send(&(head + body))
}

/// Texts of the markers left for the writer.
fn left(scratch: &Scratch) -> Vec<String> {
    let files = std::fs::read_dir(scratch.tape()).unwrap().flatten();
    let marks = files.filter(|f| f.file_name().to_string_lossy().starts_with("marker-"));
    let text = |f: std::fs::DirEntry| {
        assert_eq!(f.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(f.path()).unwrap();
        text.split_once('\n').unwrap().1.to_string()
    };
    marks.map(text).collect()
}

/// Holds the lock of a recorder.
fn recorder(scratch: &Scratch) -> File {
    let lock = File::create(scratch.tape().join("lock")).unwrap();
    lock.try_lock().unwrap();
    lock
}

#[test]
fn a_marker_is_left_for_the_writer() {
    let scratch = Scratch::shop("mark");
    let server = Server::known(&scratch.tape(), &[]);
    let (status, message, sqlstate) = post(&server, "/api/v1/markers", FORM, TEXT).problem();
    assert_eq!((status, &*sqlstate), (409, "55000"));
    assert!(
        message.starts_with("no recorder runs for directory"),
        "{message}"
    );
    let lock = recorder(&scratch);
    let answer = post(&server, "/api/v1/markers", FORM, TEXT);
    assert_eq!((answer.status, answer.body.len()), (202, 0));
    let named = post(
        &server,
        "/api/v1/markers",
        FORM,
        "server=shop&text=%3Cb%3E+%E2%9A%91",
    );
    assert_eq!(named.status, 202);
    let mut texts = left(&scratch);
    texts.sort();
    assert_eq!(texts, ["<b> ⚑", "deploy 1.4"]);
    let long = format!("text={}", "x".repeat(1_001));
    for (body, status, sqlstate) in [
        ("", 400, "22023"),
        ("text=", 400, "22023"),
        ("text=a%0Ab", 400, "22023"),
        ("text=%1B[2J", 400, "22023"),
        ("text=a&text=b", 400, "22023"),
        ("text=a&kind=start", 400, "22023"),
        ("text=a&server=other", 404, "42704"),
        (&*long, 400, "22023"),
        (&*"x".repeat(20_000), 413, "22023"),
    ] {
        let problem = post(&server, "/api/v1/markers", FORM, body).problem();
        assert_eq!(
            (problem.0, &*problem.2),
            (status, sqlstate),
            "{body}: {}",
            problem.1
        );
    }
    let json = "Content-Type: application/json\r\n";
    assert_eq!(post(&server, "/api/v1/markers", json, TEXT).status, 415);
    for other in ["/api/v1/top", "/api/v1/servers", "/metrics", "/"] {
        assert_eq!(post(&server, other, FORM, TEXT).status, 405, "{other}");
    }
    assert_eq!(left(&scratch).len(), 2);
    drop(lock);
}

#[test]
fn only_the_page_with_its_cookie_writes_a_marker() {
    let scratch = Scratch::shop("mark-attack");
    let _lock = recorder(&scratch);
    let mut server = Server::known(&scratch.tape(), &[]);
    let own = format!(
        "Origin: http://{}\r\nSec-Fetch-Site: same-origin\r\n",
        server.address
    );
    assert_eq!(
        post(&server, "/api/v1/markers", &(own + FORM), TEXT).status,
        202
    );
    let port = server.address.rsplit(':').next().unwrap();
    for lines in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: http://127.0.0.1:1\r\n",
        &format!("Origin: http://localhost:{port}.evil.example\r\n"),
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n",
        "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n",
    ] {
        let lines = format!("{lines}{FORM}");
        assert_eq!(
            post(&server, "/api/v1/markers", &lines, TEXT).status,
            403,
            "{lines}"
        );
    }
    server.cookie = String::new();
    assert_eq!(post(&server, "/api/v1/markers", FORM, TEXT).status, 401);
    assert_eq!(left(&scratch).len(), 1);
}
