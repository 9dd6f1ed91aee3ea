//! Asks a source of tapes and the engine directly, and compares the answers.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tacho_source::json::Json;
use tacho_source::{Ask, Source, State, Tapes, catalog};
use tacho_tape::Snapshot;
use tacho_tape::files::storage::OsStorage;
use tacho_tape::locate::Surroundings;
use tacho_tape::query::{self, QueryError, QueryResult};
use tacho_tape::testing::{self, Arguments};
use tacho_tape::testing::{Load, Sampler};
use tacho_tape::write::seal::seal_log;

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

/// The engine's answer for the same window.
fn directly(directory: &Path, function: &str, set: impl FnOnce(&mut Arguments)) -> String {
    let mut spec = Arguments::new(catalog::schema(), SINCE_US + 3_600_000_000);
    spec.since_us = Some(SINCE_US);
    spec.until_us = Some(SINCE_US + 600_000_000);
    set(&mut spec);
    let store = Snapshot::open(directory).unwrap();
    let mut out = Vec::new();
    let mut json = Json::new(&mut out);
    testing::run(function, &spec, &store, &mut json).unwrap();
    json.finish().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn an_answer_equals_the_engine_with_defaults_for_people() {
    let scratch = Scratch::new("source-answer");
    let directory = scratch.tape("shop");
    let mut tapes = Tapes::new(1 << 20);
    tapes.add(directory.to_str().unwrap()).unwrap();
    let window = [("since", SINCE), ("until", UNTIL)];
    let got = answer(&tapes, &ask(Some("shop"), "top", &window)).unwrap();
    let expected = directly(&directory, "top", |spec| {
        spec.dimension = Some("wait_event".into());
        spec.n = Some(10);
        spec.scope = Some("load".into());
    });
    assert_eq!(got, expected);
    // Brackets, ten keys, and a row for the rest.
    assert_eq!(got.lines().count(), 13);
    // Times without an offset are in UTC.
    let local = [("since", "2026-09-21 14:13:20"), ("until", UNTIL)];
    assert_eq!(answer(&tapes, &ask(None, "top", &local)).unwrap(), expected);
}

#[test]
fn the_next_answer_has_newly_written_rows() {
    let scratch = Scratch::new("source-later");
    let directory = scratch.0.join("shop");
    let mut sampler = Sampler::new(7, Load::default());
    sampler.write_tape(&directory, 30, &[]).unwrap();
    let mut tapes = Tapes::new(1 << 20);
    tapes.add(directory.to_str().unwrap()).unwrap();
    tapes.add_root(scratch.0.clone());
    let window = [("since", SINCE), ("until", UNTIL)];
    let mut before = String::new();
    for step in 0..5 {
        let log = directory.join("0000000001.open");
        let mut log = std::fs::File::options().append(true).open(log).unwrap();
        log.write_all(&sampler.frame().0).unwrap();
        match step {
            2 => tapes.forget(),
            4 => drop(seal_log(&OsStorage::new(&directory), 1, u64::MAX).unwrap()),
            _ => (),
        }
        let got = answer(&tapes, &ask(Some("shop"), "aas", &window)).unwrap();
        assert_eq!(got, directly(&directory, "aas", |_| ()), "{step}");
        assert_ne!(got, before, "{step}");
        before = got;
    }
    // First another history takes the directory's place, then none.
    let away = scratch.0.join("away");
    std::fs::rename(&directory, &away).unwrap();
    let gone = answer(&tapes, &ask(Some("shop"), "aas", &window)).unwrap_err();
    assert_eq!(gone.sqlstate, "58P01");
    let moved = answer(&tapes, &ask(Some("away"), "aas", &window)).unwrap();
    assert_eq!(moved, before);
    let mut other = Sampler::new(8, Load::default());
    other.write_tape(&directory, 20, &[]).unwrap();
    let got = answer(&tapes, &ask(Some("shop"), "aas", &window)).unwrap();
    assert_eq!(got, directly(&directory, "aas", |_| ()));
    assert_ne!(got, before);
}

#[test]
fn columns_that_are_kept_have_a_bound_and_are_given_back() {
    let scratch = Scratch::new("source-bound");
    let mut tapes = Tapes::new(64 << 10);
    tapes.add(scratch.tape("shop").to_str().unwrap()).unwrap();
    let storage = OsStorage::new(scratch.0.join("shop"));
    seal_log(&storage, 1, u64::MAX).unwrap();
    let all = [("since", SINCE), ("until", UNTIL), ("n", "all")];
    answer(&tapes, &ask(None, "samples", &all)).unwrap();
    let kept = tapes.kept_bytes();
    assert!((1..=64 << 10).contains(&kept), "{kept}");
    tapes.forget();
    assert_eq!(tapes.kept_bytes(), 0);
}

#[test]
fn texts_are_answered_or_hidden() {
    let scratch = Scratch::new("source-texts");
    let mut tapes = Tapes::new(1 << 20);
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
    let mut tapes = Tapes::new(1 << 20);
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
    assert_eq!(error(None), missing("no server specified"));
    assert_eq!(error(Some("gone")).sqlstate, "58P01");
}

fn missing(message: impl Into<String>) -> QueryError {
    QueryError::undefined(message).hint("Available are gone, prod/billing, prod/shop.")
}

#[test]
fn equal_names_of_tapes_become_distinct() {
    let mut tapes = Tapes::new(1 << 20);
    tapes.add("/var/lib/a").unwrap();
    tapes.add("b=/var/lib/a").unwrap();
    let error = tapes.add("/srv/a/").unwrap_err();
    assert_eq!(error.message, "duplicate name in \"/srv/a/\"");
    for text in ["=x", "x=", "", "/"] {
        assert_eq!(tapes.add(text).unwrap_err().sqlstate, "22023", "{text}");
    }
    tapes.add("/data/15/main/tacho").unwrap();
    tapes.add("/tacho").unwrap();
    let names: Vec<String> = tapes.servers().into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["a", "b", "main", "tacho"]);
}

#[test]
fn without_names_the_tapes_of_running_servers_are_taken() {
    let scratch = Scratch::new("source-here");
    let here = |tape: Option<&str>, data: Option<&str>| Surroundings {
        tape: tape.map(PathBuf::from),
        data: data.map(PathBuf::from),
        processes: scratch.0.join("proc"),
    };
    let names = |here: &Surroundings| {
        let mut tapes = Tapes::new(1 << 20);
        let added = tapes.add_local(here);
        let names = tapes.servers().into_iter().map(|s| s.name);
        added.map(|()| names.collect::<Vec<_>>())
    };
    assert_eq!(names(&here(Some("/a/b"), Some("/c"))).unwrap(), ["b"]);
    assert_eq!(names(&here(None, Some("/c"))).unwrap(), ["c"]);
    assert_eq!(names(&here(None, None)).unwrap_err().sqlstate, "22023");
    let run = |pid: &str, data: &str| {
        let data = scratch.0.join(data);
        std::fs::create_dir_all(data.join("tacho")).unwrap();
        std::fs::write(data.join("postmaster.pid"), format!("{pid}\n")).unwrap();
        let process = scratch.0.join("proc").join(pid);
        std::fs::create_dir_all(&process).unwrap();
        std::os::unix::fs::symlink(&data, process.join("cwd")).unwrap();
        data.join("tacho").display().to_string()
    };
    let (first, second) = (run("7", "15/main"), run("8", "16/main"));
    run("9", "16/other");
    assert_eq!(
        names(&here(None, None)).unwrap(),
        [first, second, "other".into()]
    );
}

#[test]
fn senseless_arguments_are_refused() {
    let scratch = Scratch::new("source-refused");
    let mut tapes = Tapes::new(1 << 20);
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
