//! Runs the cases of `conformance/` on tapes of this program. Sessions of the
//! inputs become samples; from there on everything is as in a recording. Cases
//! that need facts a client cannot see are left out, with the reason.
#![allow(clippy::unwrap_used)]

use crate::batch::Batch;
use crate::clock::Due;
use crate::identity::Identity;
use crate::locks::{Edge, Tag};
use crate::names::{Kind, Names};
use crate::options::Options;
use crate::output::Output;
use crate::rows::{self, Tick};
use crate::sample::{Sample, Session};
use crate::texts::Text;
use clap::Parser;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tacho_source::json::Json;
use tacho_source::{Ask, Source, Tapes, catalog, time};
use tacho_tape::query::QueryResult;
use tacho_tape::write::recording::Recording;

/// Columns of markers that refer to names.
const MARKER_NAMES: [&str; 10] = [
    "detail",
    "command",
    "object_class",
    "object_name",
    "database",
    "username",
    "application",
    "client_addr",
    "old_value",
    "new_value",
];

/// A line of an input, by column name.
type Line = BTreeMap<String, String>;

fn conformance() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance")
}

fn lines(input: &str) -> Vec<Line> {
    let path = conformance().join("inputs").join(input);
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

fn text<'a>(line: &'a Line, column: &str) -> &'a str {
    line.get(column).map_or("", String::as_str)
}

fn number(line: &Line, column: &str, default: i64) -> i64 {
    match text(line, column) {
        "" => default,
        text => text.parse().unwrap(),
    }
}

/// The time in a column; 0 if the column is empty.
fn time_us(line: &Line, column: &str) -> i64 {
    match text(line, column) {
        "" => 0,
        text => time::moment(text, 0, &time::zone("UTC").unwrap()).unwrap(),
    }
}

/// Gives each name an OID.
fn oid(names: &mut Names, kind: Kind, name: &str) -> u32 {
    let oid = name.bytes().fold(0, |oid: u32, byte| {
        oid.wrapping_mul(31).wrapping_add(byte.into())
    });
    names.set(kind, oid, name);
    oid
}

fn session(line: &Line, names: &mut Names) -> Session {
    let or = |column, default: &str| match line.contains_key(column) {
        true => text(line, column).to_string(),
        false => default.to_string(),
    };
    Session {
        pid: number(line, "pid", 0),
        backend_start_us: time_us(line, "backend_start"),
        database: oid(names, Kind::Database, text(line, "database")),
        user: oid(names, Kind::Role, text(line, "username")),
        application: text(line, "application").into(),
        client_addr: text(line, "client_addr").into(),
        backend_type: or("backend_type", "client backend"),
        leader: number(line, "leader_pid", number(line, "leader", 0)),
        state: or("state", "active"),
        wait_type: text(line, "wait_event_type").into(),
        wait_event: text(line, "wait_event").into(),
        query_id: number(line, "query_id", 0),
        query_start_ms: time_us(line, "query_start") / 1_000,
        xact_start_ms: time_us(line, "xact_start") / 1_000,
        only_blocks: number(line, "marked", 0) != 0,
        ..Session::default()
    }
}

fn edge(waiter: i64, blocker: i64) -> Edge {
    Edge {
        waiter,
        blocker,
        prepared: 0,
        gid: Vec::new(),
        hard: true,
        tag: Tag::default(),
        modes_held: 0,
        mode_requested: 0,
        wait_start_ms: 0,
    }
}

/// Blocking edges by time, from inputs that say more about a blocker than its
/// process.
fn edges(file: &Value) -> BTreeMap<i64, Vec<Edge>> {
    let mut edges: BTreeMap<i64, Vec<Edge>> = BTreeMap::new();
    let input = file["with"]["locks"].as_str();
    for line in input.map_or(Vec::new(), lines) {
        let field = |column| number(&line, column, 0);
        let found = Edge {
            prepared: field("blocker_xid"),
            gid: text(&line, "blocker_gid").into(),
            hard: field("hard") == 1,
            tag: Tag {
                locktype: text(&line, "locktype").into(),
                database: field("lock_database"),
                fields: ["field1", "field2", "field3"].map(field),
            },
            modes_held: u32::try_from(field("modes_held")).unwrap(),
            mode_requested: u32::try_from(field("mode_requested")).unwrap(),
            wait_start_ms: time_us(&line, "wait_start") / 1_000,
            ..edge(field("waiter"), field("blocker"))
        };
        let at = time_us(&line, "time") / 1_000;
        edges.entry(at).or_default().push(found);
    }
    edges
}

/// Groups lines by tick, in the order of ticks.
fn ticks(input: &str) -> Vec<Vec<Line>> {
    let mut ticks: Vec<Vec<Line>> = Vec::new();
    for line in lines(input) {
        let same = |tick: &&mut Vec<Line>| {
            text(&tick[0], "time") == text(&line, "time")
                && text(&tick[0], "tick") == text(&line, "tick")
        };
        match ticks.last_mut().filter(same) {
            Some(tick) => tick.push(line),
            None => ticks.push(vec![line]),
        }
    }
    ticks
}

/// Records an input as if it had been sampled.
struct Play {
    output: Output,
    names: Names,
    texts: BTreeSet<i64>,
    edges: BTreeMap<i64, Vec<Edge>>,
    due: Due,
    last_slot_ms: Option<i64>,
}

impl Play {
    fn new(directory: &Path, file: &Value) -> Play {
        let recording = Recording::open(directory, Duration::ZERO).unwrap();
        let mut output = Output::new(
            recording,
            crate::log::Log::default(),
            std::sync::Arc::default(),
        );
        let settings =
            Options::parse_from(["tacho-record", "--tape", "x", "--retention-age", "0"]).settings;
        output.begin_life(&Identity::default(), &settings, "");
        Play {
            output,
            names: Names::default(),
            texts: BTreeSet::new(),
            edges: edges(file),
            due: Due {
                tick: 0,
                slot_ms: 0,
                elapsed_ms: 0,
                late: false,
                missed: 0,
            },
            last_slot_ms: None,
        }
    }

    /// Records one tick; a failed one leaves a hole.
    fn tick(&mut self, lines: &[Line]) {
        let first = &lines[0];
        let interval_ms = number(first, "interval_ms", 1_000);
        let time_ms = time_us(first, "time").div_euclid(1_000);
        let slots = self
            .last_slot_ms
            .map_or(1, |last| (time_ms - last) / interval_ms);
        self.due.tick = number(first, "tick", self.due.tick + slots.max(1));
        self.due.slot_ms = time_ms;
        self.due.late = text(first, "tick_status") == "late";
        self.last_slot_ms = Some(time_ms);
        if text(first, "tick_status") == "failed" {
            return;
        }
        let sampled = lines.iter().filter(|line| !text(line, "pid").is_empty());
        let sample = Sample {
            server_us: time_us(first, "time"),
            sessions: sampled
                .clone()
                .map(|line| session(line, &mut self.names))
                .collect(),
            ..Sample::default()
        };
        let blocked = sampled
            .clone()
            .filter(|line| !text(line, "blocked_by").is_empty());
        let blocked =
            blocked.map(|line| edge(number(line, "pid", 0), number(line, "blocked_by", 0)));
        let mut edges = self.edges.remove(&time_ms).unwrap_or_default();
        edges.extend(blocked);
        let tick = Tick {
            due: self.due,
            interval_ms,
            max_connections: 0,
            vcpus_x100: number(first, "vcpus", 0) * 100,
            edges: &edges,
            unresolved: 0,
        };
        let mut batch = Batch::new(time_ms);
        let dictionary = &mut self.output.dictionary;
        dictionary.begin_frame(time_ms);
        rows::put(&mut batch, dictionary, &self.names, &sample, &tick);
        for line in sampled {
            let query_id = number(line, "query_id", 0);
            if query_id != 0 && self.texts.insert(query_id) {
                Text::of(query_id, text(line, "query_text")).put(
                    &mut batch,
                    dictionary,
                    &self.names,
                );
            }
        }
        self.output.put(batch);
    }

    fn markers(&mut self, input: &str) {
        for line in lines(input) {
            let times = ["time", "since", "until"].map(|column| time_us(&line, column) / 1_000);
            let mut batch = Batch::new(times[0]);
            let dictionary = &mut self.output.dictionary;
            dictionary.begin_frame(times[0]);
            let number = |name: &str| number(&line, name, 0);
            let label = |set: &str, name: &str| {
                let value = catalog::schema().value(set, text(&line, name));
                value.unwrap_or(0)
            };
            let mut fields = vec![
                ("time", times[0]),
                ("since", times[1]),
                ("until", times[2]),
                ("kind", label("marker", "kind")),
                ("outcome", label("outcome", "outcome")),
                ("object_oid", number("object_oid")),
                ("left_out", number("left_out")),
            ];
            for name in MARKER_NAMES {
                let bytes = text(&line, name).as_bytes();
                fields.push((name, dictionary.name(&mut batch, bytes)));
            }
            batch.add("marker", &fields);
            self.output.put(batch);
        }
    }
}

/// Compares values; numbers compare by their text. An object may have more
/// members than expected.
fn matches(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Object(got), Value::Object(want)) => want
            .iter()
            .all(|(name, want)| got.get(name).is_some_and(|got| matches(got, want))),
        (Value::Array(got), Value::Array(want)) => {
            got.len() == want.len() && got.iter().zip(want).all(|(got, want)| matches(got, want))
        }
        (Value::String(got), Value::Object(_)) => {
            serde_json::from_str(got).is_ok_and(|got: Value| matches(&got, want))
        }
        _ => got == want,
    }
}

/// Cases that a recording from outside cannot answer: a text that marks the
/// file or the case, and the reason.
const LEFT_OUT: [(&str, &str); 25] = [
    ("\"zone\"", ASKER),
    ("CPU:", KINDS),
    ("running", KINDS),
    ("runnable", KINDS),
    ("uninstrumented", KINDS),
    ("its most sessions in a tick are not known", KINDS),
    ("null in a list is one of its values", KINDS),
    ("plan_id\":\"", PLANS),
    (":\"plan_id\"", PLANS),
    ("a prepared transaction is a root blocker", UNMET),
    ("server_history", MEASURED),
    ("ticks_failed\":2", FAILED),
    ("failed tick", FAILED),
    ("sessions seen longest come first", FAILED),
    ("text of the database asked for", TEXTS),
    ("each part shows its text", TEXTS),
    ("the text of their database", TEXTS),
    ("keeps its text", ACTIVITY),
    ("chains: root_blocker", UNMET),
    ("chains: blocked_by", UNMET),
    ("chains: blocking", UNMET),
    ("chains: samples", UNMET),
    ("dimensions: blocked_by", UNMET),
    ("dimensions: root_blocker", UNMET),
    ("\"needs\":\"tags\"", TAGS),
];
const ASKER: &str = "the zone of who asks is known to the program that asks";
const KINDS: &str = "the server does not tell kinds of on-CPU activity";
const PLANS: &str = "plans are not asked for";
const TAGS: &str = "tags are read when the server analyses a text";
const MEASURED: &str = "measurements come from views: t/212";
const FAILED: &str = "a tick that fails leaves a hole";
const TEXTS: &str = "one text of a query is asked for, whatever its databases";
const ACTIVITY: &str = "texts of activity have constants";
const UNMET: &str = "who blocks is sampled, too";

fn is_left_out(file: &str, case: &Value) -> bool {
    let given = case["arguments"].as_object().unwrap();
    let named = |what: &str| format!("{file}: {what}");
    let mut whole = vec![case.to_string(), named(case["function"].as_str().unwrap())];
    whole.extend(given.keys().map(|name| named(name)));
    whole.extend(given.values().filter_map(Value::as_str).map(named));
    LEFT_OUT
        .iter()
        .any(|(part, _)| whole.iter().any(|text| text.contains(part)))
}

fn answer(tapes: &Tapes, case: &Value) -> QueryResult<Value> {
    let given = case["arguments"].as_object().unwrap().iter();
    let given = given.filter_map(|(name, value)| match value {
        Value::Null => (name == "n").then(|| (name.clone(), "all".to_string())),
        Value::String(text) => Some((name.clone(), text.clone())),
        other => Some((name.clone(), other.to_string())),
    });
    let ask = Ask {
        server: None,
        function: case["function"].as_str().unwrap().to_string(),
        arguments: given.collect(),
        texts: true,
        memory_bytes: 1 << 30,
        threads: 1,
    };
    let mut out = Vec::new();
    let mut json = Json::new(&mut out);
    tapes.ask(&ask, &AtomicBool::new(false), &mut json)?;
    json.finish().unwrap();
    Ok(serde_json::from_slice(&out).unwrap())
}

/// The difference between a case and its answer, if there is one.
fn failure(tapes: &Tapes, case: &Value) -> Option<String> {
    let (is_so, got) = match answer(tapes, case) {
        Ok(rows) => (matches(&rows, &case["rows"]), rows.to_string()),
        Err(error) => {
            let want = &case["error"];
            let is_so = want["sqlstate"] == error.sqlstate
                && want
                    .get("message")
                    .is_none_or(|want| *want == error.message);
            (is_so, error.to_string())
        }
    };
    (!is_so).then(|| format!("{}: got {got}, expected {case}", case["name"]))
}

fn record(file: &Value, directory: &Path) {
    let mut play = Play::new(directory, file);
    for tick in ticks(file["input"].as_str().unwrap()) {
        play.tick(&tick);
    }
    if let Some(input) = file["with"]["markers"].as_str() {
        play.markers(input);
    }
    assert!(play.output.finish());
}

#[test]
fn cases_hold_on_recorded_tapes() {
    let root = std::env::temp_dir().join(format!("tacho-recorded-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    let (mut left_out, mut failures) = (0, Vec::new());
    for entry in std::fs::read_dir(conformance().join("cases")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        record(&file, &root.join(name));
        let mut tapes = Tapes::new(1 << 24);
        tapes
            .add(&format!("recorded={}", root.join(name).display()))
            .unwrap();
        for case in file["cases"].as_array().unwrap() {
            match is_left_out(name, case) {
                true => left_out += 1,
                false => {
                    let failure = failure(&tapes, case);
                    failures.extend(failure.map(|failure| format!("{name}: {failure}")));
                }
            }
        }
    }
    let _ = std::fs::remove_dir_all(&root);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(left_out, 78, "cases that are left out: see is_left_out()");
}
