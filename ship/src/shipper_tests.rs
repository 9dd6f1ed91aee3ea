//! Shipped objects are read back as engines read them, and compared with answers
//! of the tape.

mod damage;
mod late;
mod parts;
mod redaction;

use crate::command::Commands;
use crate::hours::HOUR_MS;
use crate::limits::Limits;
use crate::place::{Directory, Place, Result};
use crate::redact::{Redaction, Rule};
use crate::shipped::{Row, all_rows, files, number, objects, rows, text};
use crate::shipper::{LookResult, SERVERS, Settings, Shipper};
use parquet::record::Field as Cell;
use std::cell::Cell as Counter;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tacho_source::catalog;
use tacho_tape::format::frame::Frame;
use tacho_tape::query::{self, QueryResult, Sink, Value};
use tacho_tape::testing::{self, Arguments, Load, Random, Sampler, stats_schema};
use tacho_tape::write::recording::Recording;
use tacho_tape::write::writer::Code;
use tacho_tape::{Identity, Part, PartBuilder, Snapshot};

const NODE: u64 = 0xA7;
/// 2026-10-21 20:00 UTC.
const BEGIN_MS: i64 = 497_804 * HOUR_MS;
const STEP_MS: i64 = 10_000;
/// Ticks per part, so that parts do not end with hours.
const TICKS: i64 = 150;
const WAITS: [(&str, &str); 4] = [
    ("IO", "DataFileRead"),
    ("Lock", "transactionid"),
    ("Client", "ClientRead"),
    ("Client", "ClientWrite"),
];
const SECRET: [&str; 3] = ["select secret from vault", "10.9.8.7", "secret-app"];

fn ms(tick: i64) -> i64 {
    BEGIN_MS + tick * STEP_MS
}

/// A part with random samples, statistics, locks, markers, readings and texts.
fn part(first: i64, ticks: i64) -> Part {
    let mut b = PartBuilder::new(Arc::new(stats_schema())).unwrap();
    let mut random = Random(first as u64);
    let [kind, database, user, application, address] =
        ["client backend", "shop", "alice", SECRET[2], SECRET[1]].map(|n| b.name(n).unwrap());
    let waits = WAITS.map(|(class, event)| {
        let (class, event) = (b.name(class).unwrap(), b.name(event).unwrap());
        let names = [("wait_event_type", class), ("wait_event", event)];
        b.intern("wait", &names).unwrap()
    });
    let statements = [0, -5, 77].map(|id| b.intern("statement", &[("query_id", id)]).unwrap());
    let sessions = [(1, 1), (2, 1), (3, 2), (4, 1)].map(|(pid, category)| {
        let names = [
            ("backend_type", kind),
            ("database", database),
            ("username", user),
        ];
        let others = [("application", application), ("client_addr", address)];
        let own = [
            ("pid", pid),
            ("backend_start", 1_000 * BEGIN_MS),
            ("category", category),
        ];
        b.intern("session", &[&own[..], &names, &others].concat())
            .unwrap()
    });
    for tick in first..first + ticks {
        if random.chance(3) {
            continue;
        }
        let failed = random.chance(3);
        let status = if failed { 3 } else { 1 };
        let interval = if tick > 400 { STEP_MS / 2 } else { STEP_MS };
        let values = [
            ("tick", tick),
            ("slot_time", ms(tick)),
            ("interval_ms", interval),
        ];
        let others = [("status", status), ("next_xid", 500 + tick)];
        b.row("tick", &[&values[..], &others].concat()).unwrap();
        for (at, session) in sessions.iter().enumerate().filter(|_| !failed) {
            if random.chance(40) {
                continue;
            }
            let wait = if random.chance(50) {
                waits[random.below(4) as usize]
            } else {
                0
            };
            let values = [
                ("state", [1, 1, 3, 0][random.below(4) as usize]),
                ("wait", wait),
                ("cpu", if wait == 0 { random.below(4) as i64 } else { 0 }),
                ("marked", i64::from(at == 3 && random.chance(20))),
                ("statement", statements[random.below(3) as usize]),
                ("query_start", ms(tick) - 5),
                (
                    "blocked_by",
                    if random.chance(20) { sessions[0] } else { 0 },
                ),
            ];
            b.sample(tick as u64, *session, &values).unwrap();
        }
        if random.chance(10) {
            let lock = [
                ("at", tick),
                ("waiter", sessions[1]),
                ("blocker", sessions[0]),
            ];
            b.row(
                "lock",
                &[&lock[..], &[("locktype", 6), ("hard", 1)]].concat(),
            )
            .unwrap();
        }
        if tick % 6 == 0 {
            others_of(&mut b, tick, database, user, &mut random);
        }
    }
    let text = [("query_id", 77), ("encoding", 6), ("database", database)];
    b.row_bytes("text", &text, &[("bytes", SECRET[0].as_bytes())])
        .unwrap();
    b.finish(Identity {
        node: NODE,
        system_identifier: 42,
        timeline: 1,
        postmaster_start_us: 0,
    })
}

/// Rows that come once a minute: statistics, recorded a moment later, and a
/// reading of the server.
fn others_of(b: &mut PartBuilder, tick: i64, database: i64, user: i64, random: &mut Random) {
    let time = ms(tick) + 300;
    for id in [0, 77, -5] {
        let entry = [("query_id", id), ("database", database), ("username", user)];
        let entry = b
            .intern("entry", &[&entry[..], &[("toplevel", 1)]].concat())
            .unwrap();
        let row = [("time", time), ("elapsed_ms", 60_000), ("entry", entry)];
        let calls = random.below(50) as i64;
        let sums = [
            ("calls", calls),
            ("total_exec_time", calls * 123),
            ("histogram_3", calls),
        ];
        b.row("statement_stats", &[&row[..], &sums].concat())
            .unwrap();
    }
    b.row("statement_stats", &[("time", time), ("elapsed_ms", 60_000)])
        .unwrap();
    let wal = random.below(1_000) as i64;
    let reading = [
        ("time", time),
        ("elapsed_ms", 60_000),
        ("wal_bytes", 1 + wal),
    ];
    b.row("server", &[&reading[..], &[("load_1", 151)]].concat())
        .unwrap();
    if random.chance(10) {
        let detail = b.name("deploy \"1.4\"\n").unwrap();
        let [application, address] = [SECRET[2], SECRET[1]].map(|n| b.name(n).unwrap());
        let marker = [("time", ms(tick)), ("kind", 17), ("detail", detail)];
        let client = [("application", application), ("client_addr", address)];
        b.row("marker", &[&marker[..], &client].concat()).unwrap();
    }
}

/// A tape of three hours and twenty minutes.
fn tape() -> Snapshot {
    Snapshot::from_parts((0..8).map(|n| part(n * TICKS, TICKS)))
}

/// End of the recorded time.
const NOW_MS: i64 = BEGIN_MS + 8 * TICKS * STEP_MS;

/// A directory that fails at one of its calls: before the call, or after its work
/// is done.
struct Failing<'p> {
    place: &'p Directory,
    calls: Counter<usize>,
    fail_at: usize,
    is_done: bool,
}

impl Failing<'_> {
    fn call<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let number = self.calls.get();
        self.calls.set(number + 1);
        let done = (number < self.fail_at || number == self.fail_at && self.is_done).then(call);
        match (number < self.fail_at, done) {
            (true, Some(done)) => done,
            _ => Err("killed".into()),
        }
    }
}

impl Place for Failing<'_> {
    fn put_new(&self, name: &str, bytes: Vec<u8>) -> Result<bool> {
        self.call(|| self.place.put_new(name, bytes))
    }

    fn list(&self, directory: &str, each: &mut dyn FnMut(&str)) -> Result<()> {
        self.call(|| self.place.list(directory, each))
    }
}

fn directory(root: &Path) -> Directory {
    Directory::open(&format!("file://{}", root.display())).unwrap()
}

fn settings(server: &str) -> Settings {
    Settings {
        server: Some(server.to_string()),
        labels: vec![("env".into(), "prod".into())],
        ..Settings::default()
    }
}

fn ship(place: &dyn Place, tape: &Snapshot, settings: Settings, now_ms: i64) -> Result<LookResult> {
    Shipper::new(place, settings).ship_due_hours(tape, now_ms, &|| true)
}

#[derive(Default)]
struct Answer {
    names: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Sink for Answer {
    fn begin(&mut self, fields: &[query::Field]) -> QueryResult<()> {
        self.names = fields.iter().map(|f| f.0.to_string()).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.rows.push(values);
        Ok(())
    }
}

impl Answer {
    fn value(&self, row: &[Value], column: &str) -> Value {
        let at = self.names.iter().position(|name| *name == column).unwrap();
        row[at].clone()
    }
}

/// The tape's answer about the hours that are shipped.
fn ask(tape: &Snapshot, function: &str, with: impl FnOnce(&mut Arguments)) -> Answer {
    let mut spec = Arguments::new(catalog::schema(), NOW_MS * 1_000);
    spec.since_us = Some(BEGIN_MS * 1_000);
    spec.until_us = Some((BEGIN_MS + 3 * HOUR_MS) * 1_000);
    spec.n = Some(1_000);
    with(&mut spec);
    let mut answer = Answer::default();
    testing::run(function, &spec, tape, &mut answer).unwrap();
    answer
}

/// Sums by key in ten-thousandths of a second, as in answers.
fn seconds<'r>(rows: impl Iterator<Item = (&'r Row, String)>) -> BTreeMap<String, i128> {
    let mut sums = BTreeMap::new();
    for (row, key) in rows {
        *sums.entry(key).or_default() += i128::from(number(row, "weight_ms")) * 10;
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

fn top(tape: &Snapshot, dimension: &str, scope: &str) -> BTreeMap<String, i128> {
    let answer = ask(tape, "top", |spec| {
        spec.dimension = Some(dimension.into());
        spec.scope = Some(scope.into());
    });
    let keys = answer.rows.iter().filter_map(|row| {
        let key = match answer.value(row, "key") {
            Value::Text(key) => key.to_string(),
            Value::Id(id) => id.to_string(),
            _ => "none".into(),
        };
        match answer.value(row, "backend_seconds") {
            Value::Numeric(n) if n != 0 => Some((key, n)),
            _ => None,
        }
    });
    keys.collect()
}

#[test]
fn runs_and_minutes_have_the_sums_of_top_and_aas_to_the_last_digit() {
    let (root, tape) = (tempfile::tempdir().unwrap(), tape());
    let done = ship(&directory(root.path()), &tape, settings("shop"), NOW_MS).unwrap();
    assert_eq!((done.hours, done.objects, done.damage.len()), (3, 27, 0));
    let runs = rows(root.path(), "sample_runs");
    let in_scope = |scope: &str| {
        let scopes: &[&str] = match scope {
            "load" => &["load"],
            "foreground" => &["load", "foreground"],
            _ => &["load", "foreground", "all"],
        };
        let scopes: BTreeSet<String> = scopes.iter().map(|s| s.to_string()).collect();
        runs.iter()
            .filter(move |row| scopes.contains(&text(row, "scope").unwrap()))
    };
    for scope in ["load", "foreground", "all"] {
        let by = |column: &'static str| {
            seconds(in_scope(scope).map(move |row| {
                let key = match &row[column] {
                    Cell::Null => "none".to_string(),
                    Cell::Str(text) => text.clone(),
                    other => other.to_string(),
                };
                (row, key)
            }))
        };
        for dimension in ["wait_event", "state", "category", "pid", "client_addr"] {
            let known = top(&tape, dimension, scope);
            assert!(!known.is_empty());
            let known: BTreeMap<_, _> = known.into_iter().map(|(k, n)| (none(k), n)).collect();
            assert_eq!(by(dimension), known, "{scope} {dimension}");
        }
    }
    let minutes = rows(root.path(), "load_minute");
    let load = minutes
        .iter()
        .map(|row| (row, text(row, "wait_event").unwrap_or("none".into())));
    assert_eq!(seconds(load.clone()), {
        let known = top(&tape, "wait_event", "load");
        known.into_iter().map(|(k, n)| (none(k), n)).collect()
    });
    let sum = |rows: &[Row], column| rows.iter().map(|row| number(row, column)).sum::<i64>();
    let observed = sum(&rows(root.path(), "ticks"), "weight_ms");
    assert_eq!(sum(&minutes, "observed_ms"), observed);
    let answer = ask(&tape, "aas", |_| ());
    let average = answer.value(&answer.rows[0], "avg_aas");
    let load = i128::from(sum(&minutes, "weight_ms"));
    let twice = load * 20_000 + i128::from(observed);
    assert_eq!(average, Value::Numeric(twice / (2 * i128::from(observed))));
}

/// The first hour is over, a pass over the statistics was made since then, and the
/// second hour is not over.
const FIRST_MS: i64 = BEGIN_MS + HOUR_MS + 300_000;

#[test]
fn a_crash_at_any_call_neither_loses_nor_doubles() {
    let (whole, tape) = (tempfile::tempdir().unwrap(), tape());
    let shipped = |place: &dyn Place| ship(place, &tape, settings("shop"), FIRST_MS);
    let done = shipped(&directory(whole.path())).unwrap();
    assert_eq!((done.hours, done.objects), (1, 9));
    let whole = objects(whole.path());
    assert_eq!(whole.len(), 10);
    // The calls: a list, the redaction, two lists, then the objects.
    for fail_at in 0..13 {
        for is_done in [false, true] {
            let root = tempfile::tempdir().unwrap();
            let place = &directory(root.path());
            let calls = Counter::new(0);
            let failing = Failing {
                place,
                calls,
                fail_at,
                is_done,
            };
            assert_eq!(
                shipped(&failing),
                Err("killed".into()),
                "{fail_at} {is_done}"
            );
            let is_complete = fail_at == 12 && is_done;
            let calls = fail_at + usize::from(is_done);
            let left = calls.saturating_sub(4);
            let put = left + usize::from(calls > 1);
            assert_eq!(objects(root.path()).len(), put);
            assert_eq!(rows(root.path(), "ticks").is_empty(), !is_complete);
            let again = shipped(place).unwrap();
            assert_eq!(again.objects, 9 - left as u64, "{fail_at} {is_done}");
            assert!(objects(root.path()) == whole, "{fail_at} {is_done}");
            assert_eq!(shipped(place), Ok(LookResult::default()));
        }
    }
}

#[test]
fn an_hour_of_a_damaged_file_is_shipped_without_it_and_repaired_as_a_new_generation() {
    let (root, tape) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let look = || {
        let store = Snapshot::open(tape.path()).unwrap();
        ship(
            &directory(root.path()),
            &store,
            settings("shop"),
            i64::MAX / 2_000,
        )
        .unwrap()
    };
    let ticks = || rows(root.path(), "ticks").len();
    record(tape.path(), None, 90);
    let file = tape.path().join("0000000002.tape");
    let whole = fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    // Damages bytes after the head of the file: its columns, or some of them.
    damaged[200..whole.len() / 2]
        .iter_mut()
        .for_each(|byte| *byte ^= 0x55);
    fs::write(&file, &damaged).unwrap();
    let done = look();
    assert_eq!((done.hours, done.damage.len()), (1, 1), "{done:?}");
    assert!(done.damage[0].contains("0000000002.tape"), "{done:?}");
    let said = text(&rows(root.path(), SERVERS)[0], "damage");
    assert_eq!(said, Some(done.damage[0].clone()));
    let without = ticks();
    assert!(without < 47, "{without}");
    assert_eq!(
        rows(root.path(), "load_minute")
            .iter()
            .filter(|r| r["observed_ms"] != Cell::Null)
            .count(),
        without
    );
    fs::write(&file, &whole).unwrap();
    let done = look();
    assert_eq!((done.hours, done.damage.len(), ticks()), (1, 0, 47));
}

/// Writes an empty key as "none", as the tests do.
fn none(key: String) -> String {
    if key.is_empty() { "none".into() } else { key }
}

#[test]
fn statements_have_the_sums_of_statements_history_to_the_last_digit() {
    let (root, tape) = (tempfile::tempdir().unwrap(), tape());
    ship(&directory(root.path()), &tape, settings("shop"), NOW_MS).unwrap();
    let mut shipped: BTreeMap<String, (i64, i128, i64)> = BTreeMap::new();
    let mut intervals = 0;
    for row in rows(root.path(), "statements") {
        if row["toplevel"] == Cell::Null {
            intervals += number(&row, "elapsed_ms");
            continue;
        }
        let key = match &row["query_id"] {
            Cell::Null => "(evicted)".to_string(),
            id => id.to_string(),
        };
        let sums = shipped.entry(key).or_default();
        let known = match number(&row, "query_id") {
            77 => FINGERPRINT,
            _ => 0,
        };
        assert_eq!(number(&row, "fingerprint"), known);
        sums.0 += number(&row, "calls");
        sums.1 += i128::from(number(&row, "total_exec_time_ms")) * 100;
        sums.2 += number(&row, "histogram_3");
    }
    let answer = ask(&tape, "statements_history", |_| ());
    let known = answer.rows.iter().map(|row| {
        let (Value::Text(key), Value::Int(calls)) =
            (answer.value(row, "key"), answer.value(row, "calls"))
        else {
            panic!("{row:?}");
        };
        let Value::Numeric(time) = answer.value(row, "total_exec_time") else {
            panic!("{row:?}");
        };
        (key.to_string(), (calls, time, calls))
    });
    let known: BTreeMap<_, _> = known.collect();
    assert_eq!(known.len(), 3);
    assert_eq!(shipped, known);
    // A record per minute, except for minutes with missed ticks.
    assert!(
        intervals > 170 * 60_000 && intervals <= 180 * 60_000,
        "{intervals}"
    );
}

#[test]
fn locks_markers_readings_and_texts_equal_the_recording() {
    let (root, tape) = (tempfile::tempdir().unwrap(), tape());
    ship(&directory(root.path()), &tape, settings("shop"), NOW_MS).unwrap();
    let parts: Vec<Part> = (0..8).map(|n| part(n * TICKS, TICKS)).collect();
    let end_ms = BEGIN_MS + 3 * HOUR_MS;
    let sum = |table: &str, time: &str, column: &str| -> (usize, i64) {
        let each = parts.iter().map(|part| {
            let times = part.ints(table, time).unwrap();
            let values = part.ints(table, column).unwrap();
            let end = if time == "at" {
                3 * HOUR_MS / STEP_MS
            } else {
                end_ms
            };
            let rows = times.iter().zip(values.iter()).filter(|row| *row.0 < end);
            rows.fold((0, 0), |sum, row| (sum.0 + 1, sum.1 + row.1))
        });
        each.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    };
    let locks = rows(root.path(), "locks");
    assert_eq!((locks.len(), locks.len() as i64), sum("lock", "at", "hard"));
    for row in &locks {
        assert_eq!(text(row, "locktype").as_deref(), Some("transactionid"));
        let pids = (number(row, "waiter"), number(row, "blocker"));
        let place = (number(row, "time"), number(row, "wait_start"));
        assert_eq!(
            (pids, place),
            ((2, 1), (ms(number(row, "tick")) * 1_000, 0))
        );
    }
    let markers = rows(root.path(), "markers");
    assert_eq!(markers.len(), sum("marker", "time", "kind").0);
    for row in &markers {
        let said = (text(row, "kind"), text(row, "detail"));
        assert_eq!(said, (Some("mark".into()), Some("deploy \"1.4\"\n".into())));
    }
    let readings = rows(root.path(), "server");
    let of = |metric: &str| {
        let found = readings
            .iter()
            .filter(|r| text(r, "metric").as_deref() == Some(metric));
        found.map(|row| number(row, "value")).collect::<Vec<_>>()
    };
    let (count, stored) = sum("server", "time", "wal_bytes");
    let wal = of("wal_bytes");
    // Stored plus one, as all measurements are.
    assert_eq!(
        (wal.len(), wal.iter().sum::<i64>()),
        (count, stored - count as i64)
    );
    assert_eq!(of("load_1"), vec![150; count]);
    let texts = rows(root.path(), "texts");
    assert_eq!(texts.len(), 3);
    for row in &texts {
        let said = (number(row, "query_id"), text(row, "query_text"));
        assert_eq!(said, (77, Some(SECRET[0].into())));
        // printf 'select secret from vault' | sha256sum
        assert_eq!(number(row, "fingerprint"), FINGERPRINT);
    }
}

const FINGERPRINT: i64 = 0xb885_cfea_8631_9db5_u64 as i64;

#[test]
fn hours_that_are_not_over_or_not_sealed_stay() {
    let (root, tape) = (tempfile::tempdir().unwrap(), tape());
    let place = directory(root.path());
    let end = BEGIN_MS + HOUR_MS;
    // The first pass over the statistics since then is made at 300.
    for (now_ms, hours) in [
        (BEGIN_MS, 0),
        (end, 0),
        (end + 299, 0),
        (end + 300, 1),
        (end + HOUR_MS - 1, 0),
    ] {
        let done = ship(&place, &tape, settings("shop"), now_ms).unwrap();
        assert_eq!(done.hours, hours, "{now_ms}");
    }
}

#[test]
fn an_hour_that_is_partly_in_a_log_stays_until_the_log_is_sealed() {
    let (root, tape) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let look = || {
        let store = Snapshot::open(tape.path()).unwrap();
        let done = ship(
            &directory(root.path()),
            &store,
            settings("shop"),
            i64::MAX / 2_000,
        );
        (done.unwrap().hours, rows(root.path(), "ticks").len())
    };
    // From 14:13 to 15:43; the writer seals every ten minutes.
    let end_ms = record(tape.path(), None, 90);
    assert_eq!(look(), (1, 47));
    assert_eq!(look(), (0, 47));
    record(tape.path(), Some(end_ms + HOUR_MS), 1);
    assert_eq!(look(), (1, 90));
}

/// Records `minutes`, by default from 14:13:20 on, and returns the end. Waits
/// until logs that existed before are sealed.
fn record(directory: &Path, begin_ms: Option<i64>, minutes: usize) -> i64 {
    let load = Load {
        interval_ms: 60_000,
        trouble: 0,
        ..Load::default()
    };
    let mut sampler = Sampler::new(minutes as u64, load);
    sampler.slot_ms = begin_ms.unwrap_or(sampler.slot_ms);
    let second = std::time::Duration::from_secs(1);
    let mut recording = Recording::open(directory, second).unwrap();
    let mut frames = vec![sampler.hello(&[])];
    frames.extend((0..minutes).map(|_| sampler.frame().0));
    for frame in &frames {
        let frame = Frame::parse(frame).unwrap().unwrap();
        assert_eq!(recording.push(&frame), Code::Written);
    }
    let is_log = |path: &&PathBuf| path.extension().is_some_and(|end| end == "open");
    for _ in 0..600 {
        if files(directory).iter().filter(is_log).count() == 1 {
            break;
        }
        recording.housekeeping();
        std::thread::sleep(second / 10);
    }
    recording.finish();
    sampler.slot_ms
}

#[test]
fn a_late_hour_is_a_new_generation_and_one_that_lost_ticks_is_not() {
    let root = tempfile::tempdir().unwrap();
    let place = directory(root.path());
    let of_parts = |parts: &[i64]| {
        let parts = parts.iter().map(|n| part(n * TICKS, TICKS));
        let tape = Snapshot::from_parts(parts);
        ship(&place, &tape, settings("shop"), FIRST_MS).unwrap()
    };
    assert_eq!(of_parts(&[0, 2]).hours, 1);
    let before = rows(root.path(), "ticks");
    assert_eq!(of_parts(&[0, 1, 2]).hours, 1);
    let whole = rows(root.path(), "ticks");
    assert!(whole.len() > before.len());
    assert_eq!(
        all_rows(root.path(), "ticks").len(),
        before.len() + whole.len()
    );
    let (other, tape) = (tempfile::tempdir().unwrap(), tape());
    ship(&directory(other.path()), &tape, settings("shop"), FIRST_MS).unwrap();
    assert!(rows(other.path(), "sample_runs") == rows(root.path(), "sample_runs"));
    // Retention has removed the first part.
    assert_eq!(of_parts(&[1, 2]), LookResult::default());
}

#[test]
fn two_shippers_at_once_put_each_object_once() {
    let (root, other, tape) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tape(),
    );
    let shipped = |root: &Path| ship(&directory(root), &tape, settings("shop"), NOW_MS).unwrap();
    let alone = shipped(other.path());
    let both = std::thread::scope(|threads| {
        let two = [0; 2].map(|_| threads.spawn(|| shipped(root.path())));
        two.map(|shipper| shipper.join().unwrap())
    });
    assert_eq!(both[0].objects + both[1].objects, alone.objects);
    assert_eq!(both[0].hours + both[1].hours, alone.hours);
    assert!(objects(root.path()) == objects(other.path()));
}

#[test]
fn a_look_that_a_signal_has_ended_says_so() {
    let (root, tape) = (tempfile::tempdir().unwrap(), tape());
    let place = directory(root.path());
    let asked = Counter::new(0);
    let go_on = || {
        asked.set(asked.get() + 1);
        asked.get() < 2
    };
    let mut shipper = Shipper::new(&place, settings("shop"));
    let done = shipper.ship_due_hours(&tape, NOW_MS, &go_on).unwrap();
    assert_eq!(
        (done.hours, done.again),
        (1, vec!["tacho ship received a signal to stop".to_string()])
    );
    let rest = shipper.ship_due_hours(&tape, NOW_MS, &|| true).unwrap();
    assert!(rest.hours > 0 && rest.again.is_empty(), "{rest:?}");
}

#[test]
fn commands_put_and_list_as_a_directory_does() {
    let (root, other, tape) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tape(),
    );
    let server = "it's $(a) `server`/..";
    let shipped = |place: &dyn Place| ship(place, &tape, settings(server), FIRST_MS);
    shipped(&directory(other.path())).unwrap();
    let to = root.path().display();
    let put = format!("cd {to} && [ ! -e %n ] && mkdir -p \"$(dirname %n)\" && cp %f %n");
    let list = format!("cd {to} && {{ [ ! -d %n ] || ls %n; }}");
    let place = Commands::new(&put, &list, Limits::default()).unwrap();
    assert_eq!(shipped(&place).unwrap().objects, 9);
    assert!(objects(root.path()) == objects(other.path()));
    let name = objects(root.path()).into_keys().next().unwrap();
    assert_eq!(place.put_new(&name, b"second".to_vec()), Ok(false));
    assert_eq!(shipped(&place), Ok(LookResult::default()));
    let failing = Commands::new("exit 3 # %f %n", &list, Limits::default()).unwrap();
    let error = failing.put_new("ticks/x", Vec::new()).unwrap_err();
    assert_eq!(
        error,
        "command failed: exit status: 3\nDETAIL:  It was --command for object \"ticks/x\"."
    );
}

#[test]
fn no_object_has_redacted_text() {
    let tape = tape();
    let rules = [Rule::Texts, Rule::Addresses, Rule::Applications];
    let shipped = |rules: &[Rule], salt: Option<&[u8]>| {
        let root = tempfile::tempdir().unwrap();
        let mut settings = settings("shop");
        settings.redaction = Redaction {
            rules: rules.to_vec(),
            salt: salt.map(<[u8]>::to_vec),
        };
        ship(&directory(root.path()), &tape, settings, FIRST_MS).unwrap();
        root
    };
    // Pages are compressed: the decoded values are searched as well.
    let has = |root: &Path, secret: &str| {
        let raw = objects(root).into_values().any(|bytes| {
            bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes())
        });
        let tables = [
            "sample_runs",
            "ticks",
            "load_minute",
            "locks",
            "markers",
            "server",
            "statements",
            "texts",
            SERVERS,
        ];
        let mut rows = tables.iter().flat_map(|table| all_rows(root, table));
        raw || rows.any(|row| row.values().any(|cell| cell.to_string().contains(secret)))
    };
    let open = shipped(&[], None);
    assert_eq!(SECRET.map(|secret| has(open.path(), secret)), [true; 3]);
    for salt in [None, Some(&b"0123456789abcdef"[..])] {
        for (rule, secret) in rules.into_iter().zip(SECRET) {
            let root = shipped(&[rule], salt);
            assert!(!has(root.path(), secret), "{rule:?} {salt:?}");
            let others = SECRET.iter().filter(|other| **other != secret);
            others.for_each(|other| assert!(has(root.path(), other), "{rule:?} {other}"));
        }
        let root = shipped(&rules, salt);
        assert_eq!(SECRET.map(|secret| has(root.path(), secret)), [false; 3]);
        let hashes = rows(root.path(), "sample_runs")
            .iter()
            .filter_map(|r| text(r, "client_addr"))
            .collect::<BTreeSet<_>>();
        assert_eq!(hashes.len(), usize::from(salt.is_some()));
        assert_eq!(
            rows(root.path(), "texts").len(),
            usize::from(salt.is_some())
        );
    }
}
