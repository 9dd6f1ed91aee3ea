//! Compares answers of a real server with the source asked directly.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{QUERY, Scratch, Server, WINDOW};
use serde_json::json;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tacho_source::json::Json;
use tacho_source::{Ask, Source, Tapes};
use tacho_tape::files::storage::OsStorage;
use tacho_tape::testing::repeat::repeat_day;
use tacho_tape::testing::{Load, Sampler};
use tacho_tape::write::seal::seal_log;

/// Rows as the command line prints them with `--json`.
fn rows(tape: &Path, function: &str, query: &str) -> String {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
    let owned = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
    let ask = Ask {
        server: None,
        function: function.to_string(),
        arguments: pairs.map(owned).collect(),
        texts: true,
        memory_bytes: 1 << 30,
        threads: 1,
    };
    let mut tapes = Tapes::new(1 << 20);
    tapes.add(tape.to_str().unwrap()).unwrap();
    let mut json = Json::new(Vec::new());
    tapes.ask(&ask, &AtomicBool::new(false), &mut json).unwrap();
    let (rows, _) = json.into_parts().unwrap();
    String::from_utf8(rows).unwrap().trim_end().to_string()
}

/// A history of some days with the same hour in each.
fn days(scratch: &Scratch, days: u64) {
    let load = Load {
        sessions: 40,
        same: 20,
        ..Load::default()
    };
    let tape = scratch.tape();
    Sampler::new(7, load).write_tape(&tape, 1_000, &[]).unwrap();
    let storage = OsStorage::new(&tape);
    seal_log(&storage, 1, u64::MAX).unwrap();
    repeat_day(&storage, 1, days).unwrap();
}

const LONG: &str = "/api/v1/top?dimension=pid&by=query_id&since=2000d&until=2026-09-22&n=all&bucket=1d&application=app0,app1,app2";

#[test]
fn rows_equal_the_command_line() {
    let scratch = Scratch::shop("rows");
    let server = Server::known(&scratch.tape(), &[]);
    for (function, more) in [
        ("aas", ""),
        ("timeline", "&bucket=1m&by=wait_event_type"),
        ("top", "&dimension=query_id"),
        ("samples", "&n=5&scope=all"),
        ("sessions", ""),
        ("markers", ""),
    ] {
        let query = format!("{WINDOW}{more}");
        let answer = server.get(&format!("/api/v1/{function}?server=shop&{query}"));
        let text = answer.text();
        let expected = rows(&scratch.tape(), function, &query);
        let begin = text.find("\"rows\": ").unwrap() + 8;
        assert_eq!(text[begin..begin + expected.len()], expected, "{function}");
        let json = answer.json();
        let names = json["columns"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|c| c["name"].as_str().unwrap()).collect();
        if let Some(row) = json["rows"][0].as_object() {
            assert_eq!(row.len(), names.len());
            assert!(names.iter().all(|name| row.contains_key(*name)));
        }
    }
    let text = rows(&scratch.tape(), "samples", &format!("{WINDOW}&n=all"));
    assert!(text.contains(&format!("\"query_id\": \"{QUERY}\"")));
    assert!(text.contains("\"sample_time\": \"2026-09-21T14:13:2"));
}

#[test]
fn servers_and_functions_are_listed() {
    let scratch = Scratch::shop("lists");
    let gone = format!("gone={}", scratch.0.join("x").display());
    let root = scratch.0.display().to_string();
    let args = ["--tape", &gone, "--root", &root];
    let server = Server::known(&scratch.tape(), &args);
    let expected = json!({"servers": [
        {"name": "gone", "state": "missing", "marks": true},
        {"name": "shop", "state": "recorded", "marks": true},
    ], "longest_with_causes_s": 7 * 86_400});
    assert_eq!(server.get("/api/v1/servers").json(), expected);
    let json = server.get("/api/v1/functions").json();
    let functions = json["functions"].as_array().unwrap();
    assert_eq!(functions.len(), tacho_tape::query::list().len());
    let status = functions.iter().find(|f| f["name"] == "status").unwrap();
    let expected = json!({
        "name": "status",
        "about": "Contents of the history",
        "arguments": [
            {"name": "node", "type": "id", "about": "Node id, or all: the mean of all nodes, weighted by time observed", "default": "the newest"},
            {"name": "tz", "type": "zone", "about": "Time zone of times", "default": "UTC"},
        ],
        "columns": [{"name": "metric", "type": "text"}, {"name": "value", "type": "text"}],
    });
    assert_eq!(*status, expected);
    let dimensions = json["dimensions"].as_array().unwrap();
    let first = json!({"name": "wait_event_type", "about": "class of the wait event"});
    assert_eq!(dimensions[0], first);
}

#[test]
fn errors_equal_errors_of_postgresql() {
    let scratch = Scratch::shop("errors");
    let server = Server::known(&scratch.tape(), &[]);
    let answer = server.get("/api/v1/top?since=soon");
    let expected = json!({
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "message": "invalid time \"soon\"",
        "hint": "Use the form now, 1h, 03:12, \"yesterday 14:00\", \"2026-11-21 03:12\" or 2026-11-21T03:12:00Z.",
        "sqlstate": "22007",
    });
    answer.problem();
    assert_eq!(answer.json(), expected);
    let said = |path: &str| {
        let (status, message, sqlstate) = server.get(path).problem();
        format!("{status} {sqlstate} {message}")
    };
    assert_eq!(
        said("/api/v1/nothing"),
        "404 42704 function \"nothing\" does not exist"
    );
    assert_eq!(
        said("/api/v1/aas?server=x"),
        "404 42704 server \"x\" does not exist"
    );
    assert_eq!(
        said("/api/v1/aas?x=1"),
        "400 22023 function \"aas\" has no argument \"x\""
    );
    assert_eq!(said("/x"), "404 42704 path not found");
}

#[test]
fn an_answer_of_a_window_that_is_over_is_sent_once() {
    let scratch = Scratch::shop("etag");
    let server = Server::known(&scratch.tape(), &[]);
    let path = format!("/api/v1/top?{WINDOW}");
    let first = server.get(&path);
    let tag = first.header("etag").unwrap().to_string();
    let known = format!("If-None-Match: W/\"x\", {tag}\r\n");
    let second = server.get_with(&path, &known);
    assert_eq!((second.status, second.body.len()), (304, 0));
    assert_eq!(second.header("etag"), Some(&*tag));
    let other = server.get_with(&format!("{path}&n=2"), &known);
    assert_eq!(other.status, 200);
    let zipped = server.get_with(&path, "Accept-Encoding: gzip\r\n");
    assert_eq!(zipped.header("content-encoding"), Some("gzip"));
    assert_eq!(zipped.header("etag"), Some(&*tag));
    let mut text = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&*zipped.body);
    decoder.read_to_end(&mut text).unwrap();
    assert_eq!(text, first.body);
    assert!(zipped.body.len() < first.body.len() / 2);
    for running in ["", "?since=2026-09-21", "?until=2999-01-01"] {
        let answer = server.get(&format!("/api/v1/aas{running}"));
        assert_eq!(answer.header("etag"), None, "{running}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

#[test]
fn an_abandoned_question_ends_and_questions_are_limited() {
    let scratch = Scratch::new("cancel");
    days(&scratch, 400);
    let server = Server::known(&scratch.tape(), &["--questions", "1"]);
    let mut client = server.connect();
    client.write_all(server.head(LONG, "").as_bytes()).unwrap();
    server.wait_for("tacho_web_running", 1.0);
    let answer = server.get("/api/v1/status");
    let expected = (429, "too many questions at once".into(), "53300".into());
    assert_eq!(answer.problem(), expected);
    assert_eq!(answer.header("retry-after"), Some("1"));
    drop(client);
    let outcome = |function: &str, outcome: &str| {
        format!("tacho_web_questions_total{{function=\"{function}\",outcome=\"{outcome}\"}}")
    };
    server.wait_for("tacho_web_running", 0.0);
    assert_eq!(server.metric(&outcome("top", "canceled")), 1.0);
    assert_eq!(server.metric(&outcome("top", "answered")), 0.0);
    assert_eq!(server.metric(&outcome("status", "refused")), 1.0);
    assert_eq!(server.get("/api/v1/status").status, 200);
}

#[test]
fn an_answer_that_takes_too_much_memory_is_refused_in_words() {
    let scratch = Scratch::shop("memory");
    let server = Server::known(&scratch.tape(), &["--memory-limit-mb", "1"]);
    let answer = server.get(&format!("/api/v1/samples?{WINDOW}&n=all&scope=all"));
    let (status, _, sqlstate) = answer.problem();
    assert_eq!((status, &*sqlstate), (503, "53200"));
    let few = Server::known(&scratch.tape(), &["--memory-limit-mb", "64"]);
    let answer = few.get(&format!("/api/v1/samples?{WINDOW}&n=all&scope=all"));
    assert_eq!(answer.status, 200);
}
