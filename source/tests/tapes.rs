//! Answers of a source of tapes, against the engine asked directly.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tacho_source::json::Json;
use tacho_source::{Ask, Source, State, Tapes, catalog};
use tacho_tape::Store;
use tacho_tape::query::{self, QueryError, QueryResult, Spec};
use tacho_tape::testing::{Load, Sampler};

/// 2026-09-21 14:13:20 UTC, where the sampler begins.
const SINCE_US: i64 = 1_790_000_000_000_000;
const SINCE: &str = "2026-09-21T14:13:20Z";
const UNTIL: &str = "2026-09-21T14:23:20Z";
/// The second query of the sampler.
const QUERY: i64 = 7_919 * 1_000_003 - 50_000;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn tape(&self, name: &str) -> PathBuf {
        let directory = self.0.join(name);
        let mut sampler = Sampler::new(
            7,
            Load {
                queries: 3,
                ..Load::default()
            },
        );
        let texts = [(QUERY, "select 'secret'")];
        sampler.write_tape(&directory, 300, &texts).unwrap();
        directory
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ask(server: Option<&str>, function: &str, arguments: &[(&str, &str)]) -> Ask {
    let owned = |(name, value): &(&str, &str)| ((*name).to_string(), (*value).to_string());
    Ask {
        server: server.map(str::to_string),
        function: function.to_string(),
        arguments: arguments.iter().map(owned).collect(),
        texts: true,
        memory_bytes: 1 << 30,
        threads: 2,
    }
}

fn answer(tapes: &Tapes, ask: &Ask) -> QueryResult<String> {
    let mut out = Vec::new();
    let mut json = Json::new(&mut out);
    tapes.ask(ask, &AtomicBool::new(false), &mut json)?;
    json.finish().unwrap();
    Ok(String::from_utf8(out).unwrap())
}

/// What the engine says of the same window.
fn directly(directory: &Path, function: &str, set: impl FnOnce(&mut Spec)) -> String {
    let mut spec = Spec::new(catalog::schema(), SINCE_US + 3_600_000_000);
    spec.since_us = Some(SINCE_US);
    spec.until_us = Some(SINCE_US + 600_000_000);
    set(&mut spec);
    let store = Store::open(directory).unwrap();
    let mut out = Vec::new();
    let mut json = Json::new(&mut out);
    query::run(function, &spec, &store, &AtomicBool::new(false), &mut json).unwrap();
    json.finish().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn an_answer_is_that_of_the_engine_with_the_defaults_of_people() {
    let scratch = Scratch::new("source-answer");
    let directory = scratch.tape("shop");
    let mut tapes = Tapes::default();
    tapes.add(directory.to_str().unwrap()).unwrap();
    let window = [("since", SINCE), ("until", UNTIL)];
    let got = answer(&tapes, &ask(Some("shop"), "top", &window)).unwrap();
    let expected = directly(&directory, "top", |spec| {
        spec.dimension = Some("wait_event".into());
        spec.n = Some(10);
        spec.scope = Some("load".into());
    });
    assert_eq!(got, expected);
    // Brackets, ten keys, and what the rest comes to.
    assert_eq!(got.lines().count(), 13);
    // Times without an offset are UTC.
    let local = [("since", "2026-09-21 14:13:20"), ("until", UNTIL)];
    assert_eq!(answer(&tapes, &ask(None, "top", &local)).unwrap(), expected);
}

#[test]
fn texts_are_answered_or_hidden() {
    let scratch = Scratch::new("source-texts");
    let mut tapes = Tapes::default();
    tapes.add(scratch.tape("shop").to_str().unwrap()).unwrap();
    let window = [("since", SINCE), ("until", UNTIL)];
    for function in ["top", "samples", "sessions", "summary", "report"] {
        let mut arguments = window.to_vec();
        if function == "top" {
            arguments.push(("dimension", "query_id"));
        }
        if function == "samples" {
            arguments.push(("n", "all"));
        }
        let mut question = ask(None, function, &arguments);
        let open = answer(&tapes, &question).unwrap();
        assert!(open.contains("'secret'"), "{function}: {open}");
        question.texts = false;
        let hidden = answer(&tapes, &question).unwrap();
        assert!(!hidden.contains("secret"), "{function}: {hidden}");
    }
}

#[test]
fn tapes_below_a_root_are_found_and_links_are_not_followed() {
    let scratch = Scratch::new("source-root");
    let outside = Scratch::new("source-outside");
    scratch.tape("prod/shop");
    scratch.tape("prod/billing");
    std::fs::create_dir_all(scratch.0.join("empty")).unwrap();
    std::os::unix::fs::symlink(outside.tape("x"), scratch.0.join("link")).unwrap();
    let mut tapes = Tapes::default();
    tapes.add_root(scratch.0.clone());
    tapes.add("gone=/nowhere/at/all").unwrap();
    let servers = tapes.servers();
    let servers: Vec<_> = servers.iter().map(|s| (s.name.as_str(), s.state)).collect();
    let expected = [
        ("gone", State::Missing),
        ("prod/billing", State::Recorded),
        ("prod/shop", State::Recorded),
    ];
    assert_eq!(servers, expected);
    let error = |name| answer(&tapes, &ask(name, "aas", &[])).unwrap_err();
    for path in ["link", "../x", "/etc", "prod", "prod/../prod/shop"] {
        let message = format!("server \"{path}\" does not exist");
        assert_eq!(error(Some(path)), missing(message));
    }
    assert_eq!(error(None), missing("which server is not said"));
    assert_eq!(error(Some("gone")).sqlstate, "58P01");
}

fn missing(message: impl Into<String>) -> QueryError {
    QueryError::undefined(message).hint("Available are gone, prod/billing, prod/shop.")
}

#[test]
fn names_of_tapes_are_told_apart() {
    let mut tapes = Tapes::default();
    tapes.add("/var/lib/a").unwrap();
    tapes.add("b=/var/lib/a").unwrap();
    let error = tapes.add("/srv/a/").unwrap_err();
    assert_eq!(error.message, "another tape has the name of \"/srv/a/\"");
    for text in ["=x", "x=", "", "/"] {
        assert_eq!(tapes.add(text).unwrap_err().sqlstate, "22023", "{text}");
    }
    let names: Vec<String> = tapes.servers().into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let scratch = Scratch::new("source-refused");
    let mut tapes = Tapes::default();
    tapes.add(scratch.tape("shop").to_str().unwrap()).unwrap();
    std::fs::create_dir(scratch.0.join("new")).unwrap();
    tapes.add(scratch.0.join("new").to_str().unwrap()).unwrap();
    let error = |function, arguments: &[(&str, &str)]| {
        let asked = answer(&tapes, &ask(Some("shop"), function, arguments));
        let error = asked.unwrap_err();
        (error.sqlstate, error.message)
    };
    let refused = [
        (
            error("nothing", &[]),
            "42704",
            "function \"nothing\" does not exist",
        ),
        (
            error("aas", &[("n", "1")]),
            "22023",
            "function \"aas\" has no argument \"n\"",
        ),
        (
            error("top", &[("n", "x")]),
            "22023",
            "invalid value \"x\" for n",
        ),
        (
            error("top", &[("by_leader", "1")]),
            "22023",
            "invalid value \"1\" for by_leader",
        ),
        (
            error("aas", &[("since", "soon")]),
            "22007",
            "invalid time \"soon\"",
        ),
        (
            error("aas", &[("tz", "Mars")]),
            "22023",
            "time zone \"Mars\" not recognized",
        ),
    ];
    for (got, sqlstate, message) in refused {
        assert_eq!(got, (sqlstate, message.to_string()));
    }
    let empty = answer(&tapes, &ask(Some("new"), "aas", &[])).unwrap_err();
    assert_eq!(empty.sqlstate, "58P01");
    let canceled = tapes.ask(
        &ask(
            Some("shop"),
            "samples",
            &[("since", SINCE), ("until", UNTIL)],
        ),
        &AtomicBool::new(true),
        &mut Json::new(Vec::new()),
    );
    assert_eq!(canceled.unwrap_err().sqlstate, query::CANCELED);
}
