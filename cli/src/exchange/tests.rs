//! An export that is imported and exported again is the same byte for byte. Tested
//! for every kind, with a value in every column.

use crate::exchange::export::{Window, export};
use crate::exchange::import::target::Target;
use crate::exchange::import::{Input, import_as};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tacho_source::catalog;
use tacho_source::exchange::{Field, Place, SESSIONS, fields, has_ticks, kinds, table_of};
use tacho_source::time::timestamp;
use tacho_tape::format::schema::{ColumnDef, ColumnType, Role, SINCE_CALL, Schema};
use tacho_tape::testing::Random;
use tacho_tape::{Identity, Part, PartBuilder, Snapshot};

const NODE: u64 = 7;
const TICKS: i64 = 90;
const BEGIN_MS: i64 = 1_788_300_000_000;
/// Time from the begin of a slot to its tick, in ms.
const TAKEN_MS: i64 = 3;
/// Values for fields with names.
const NAMES: [&str; 6] = ["a", "naïve", "with, comma", "say \"x\"", "two\nlines", " "];

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tacho-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Position of a row.
#[derive(Clone, Copy)]
struct Row {
    tick: i64,
    /// Index of the row within its tick.
    index: u64,
}

impl Row {
    /// Slots are a minute apart; the hour ends between two of them.
    fn slot_ms(self) -> i64 {
        BEGIN_MS + self.tick * 60_000
    }

    /// The process that a reference to a session means. It differs for each row of
    /// a tick.
    fn pid(self, column: &str) -> i64 {
        100 + (self.index as i64 + column.len() as i64) % 4
    }
}

fn started_us(pid: i64) -> i64 {
    (BEGIN_MS - 100_000) * 1_000 + pid * 7
}

fn instant(us: i64) -> String {
    timestamp(us).to_string()
}

/// A value in the form of `export`; rows with the same seed have the same value.
fn value(schema: &Schema, field: &Field, row: Row, seed: u64) -> String {
    let name = field
        .name
        .bytes()
        .fold(seed, |sum, b| sum * 31 % 65_521 + u64::from(b));
    let mut random = Random(name);
    let number = 1 + random.below(900) as i64;
    match field.column.ty {
        ColumnType::Time if field.table == "run" => {
            // Ages in whole seconds that exceed the interval are stored exactly
            // (starts.rs of the tape).
            let query = row.slot_ms() + TAKEN_MS - 70_000 - row.index as i64 * 1_000;
            let start = match field.name.as_str() {
                "query_start" => query,
                "xact_start" => query - 61_000,
                _ => query + 17,
            };
            instant(start * 1_000)
        }
        ColumnType::Time if field.name == "taken_at" => instant((row.slot_ms() + TAKEN_MS) * 1_000),
        ColumnType::Time => instant(row.slot_ms() * 1_000),
        ColumnType::TimeUs => instant(started_us(number)),
        ColumnType::Name | ColumnType::Bytes => NAMES[random.below(6) as usize].to_string(),
        ColumnType::Enum => {
            let labels: Vec<&str> = schema
                .labels(&field.column.target)
                .map(|l| l.label.as_str())
                .filter(|l| *l != "failed")
                .collect();
            labels[random.below(labels.len() as u64) as usize].to_string()
        }
        ColumnType::Int => (-number).to_string(),
        // A sealed file has whole seconds, plus 1 (last_calls.rs of the tape).
        _ if field.column.name == SINCE_CALL => (number * 1_000 + 1).to_string(),
        _ if field.is_measured() => (number - 1).to_string(),
        _ if field.is_fraction() => format!("{}.{:02}", number / 100, number % 100),
        _ => number.to_string(),
    }
}

/// The text of a row's field. It depends on the tick, or also on the row.
fn text(schema: &Schema, field: &Field, row: Row) -> String {
    let by_tick = row.tick as u64;
    let by_row = by_tick * 10 + row.index;
    match (&field.place, field.name.as_str()) {
        (_, "time") => instant(row.slot_ms() * 1_000),
        (Place::Tick, "tick") => (row.tick + 1).to_string(),
        (Place::Tick, "interval_ms") => "60000".to_string(),
        (Place::Tick, _) => value(schema, field, row, by_tick),
        (Place::Reference(column), _) if field.table == "session" => {
            let pid = row.pid(column);
            match field.column.name.as_str() {
                "pid" => pid.to_string(),
                "backend_start" => instant(started_us(pid)),
                _ => value(schema, field, row, pid as u64),
            }
        }
        _ => value(schema, field, row, by_row),
    }
}

/// Rows of a kind, three per tick; one tick has no sessions.
fn made(schema: &Schema, kind: &str) -> String {
    let table = table_of(schema, kind).unwrap();
    let fields = fields(schema, table);
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(fields.iter().map(|f| &f.name)).unwrap();
    for tick in 0..TICKS {
        let nobody = kind == SESSIONS && tick == 5;
        for index in 0..if nobody { 1 } else { 3 } {
            let row = Row { tick, index };
            let texts = fields.iter().map(|field| {
                let of_row = field.place != Place::Tick;
                match kind {
                    _ if nobody && of_row => String::new(),
                    // Texts have no ticks: an export gives them the first time of
                    // their file.
                    "texts" if field.name == "time" => instant(BEGIN_MS * 1_000),
                    _ => text(schema, field, row),
                }
            });
            out.write_record(texts).unwrap();
        }
    }
    String::from_utf8(out.into_inner().unwrap()).unwrap()
}

fn with_runs() -> Schema {
    catalog::schema().clone().with_runs()
}

fn imported(schema: &Schema, directory: &Path, texts: &[(&str, String)]) {
    let inputs = texts.iter().map(|(kind, text)| Input {
        kind: (*kind).to_string(),
        file: (*kind).to_string(),
        read: Box::new(Cursor::new(text.clone().into_bytes())),
    });
    let target = Target::open(directory, Some(NODE), false).unwrap();
    import_as(Arc::new(schema.clone()), inputs.collect(), target, 1_000).unwrap();
}

fn exported(schema: &Schema, directory: &Path, kind: &str) -> String {
    let store = Snapshot::open(directory).unwrap();
    let parts: Vec<&Part> = store.parts(NODE).collect();
    let mut out = Vec::new();
    let window = Window {
        since: i64::MIN,
        until: i64::MAX,
    };
    let mut damage = Vec::new();
    export(kind, schema, &parts, window, &mut out, &mut damage).unwrap();
    assert!(damage.is_empty());
    String::from_utf8(out).unwrap()
}

fn records(text: &str) -> Vec<csv::StringRecord> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes());
    let mut records: Vec<_> = reader.records().map(Result::unwrap).collect();
    records[1..].sort_by(|a, b| a.iter().cmp(b.iter()));
    records
}

/// The kinds to import: the kind alone, or with sessions if its rows belong to
/// ticks.
fn given<'k>(schema: &Schema, kind: &'k str) -> Vec<&'k str> {
    let of_ticks = kind == "texts" || has_ticks(table_of(schema, kind).unwrap());
    match of_ticks && kind != SESSIONS {
        true => vec![SESSIONS, kind],
        false => vec![kind],
    }
}

fn check(kind: &str) {
    let schema = with_runs();
    let given = given(&schema, kind);
    let scratch = Scratch::new(&format!("round-{kind}"));
    std::fs::create_dir(&scratch.0).unwrap();
    let [first, second] = ["first", "second"].map(|name| scratch.0.join(name));
    let texts: Vec<_> = given.iter().map(|k| (*k, made(&schema, k))).collect();
    imported(&schema, &first, &texts);
    let out = given.iter().map(|k| (*k, exported(&schema, &first, k)));
    let out: Vec<_> = out.collect();
    for ((kind, was), (_, is)) in texts.iter().zip(&out) {
        let (was, is) = (records(was), records(is));
        let different = was.iter().zip(&is).find(|(was, is)| was != is);
        assert_eq!(different, None, "{kind}");
        assert_eq!(was.len(), is.len(), "{kind}");
    }
    imported(&schema, &second, &out);
    for (kind, was) in &out {
        let is = exported(&schema, &second, kind);
        assert!(*was == is, "{kind} is not the same");
    }
}

/// The catalog with one more column at the end of each table.
fn later_version() -> Schema {
    let mut schema = catalog::schema().clone();
    for table in &mut schema.tables {
        table.columns.push(ColumnDef {
            id: 99,
            name: format!("added_to_{}", table.name),
            ty: ColumnType::Uint,
            role: Role::None,
            target: String::new(),
        });
    }
    schema.with_runs()
}

#[test]
fn history_of_an_older_version_is_exported_as_it_is_imported() {
    let (older, newer) = (with_runs(), later_version());
    for kind in kinds(&older) {
        let scratch = Scratch::new(&format!("older-{kind}"));
        std::fs::create_dir(&scratch.0).unwrap();
        let [first, second] = ["first", "second"].map(|name| scratch.0.join(name));
        let given = given(&older, kind);
        let texts: Vec<_> = given.iter().map(|k| (*k, made(&older, k))).collect();
        imported(&older, &first, &texts);
        let out = given.iter().map(|k| (*k, exported(&newer, &first, k)));
        let out: Vec<_> = out.collect();
        imported(&newer, &second, &out);
        for (kind, was) in &out {
            assert!(was.lines().next().unwrap().contains("added_to_"), "{kind}");
            let is = exported(&newer, &second, kind);
            assert!(*was == is, "{kind} is not the same");
        }
    }
}

#[test]
fn sessions_are_exported_as_they_were_imported() {
    check(SESSIONS);
}

#[test]
fn rows_of_ticks_are_exported_as_they_were_imported() {
    check("locks");
    check("counts");
}

#[test]
fn texts_are_exported_as_they_were_imported() {
    check("texts");
}

#[test]
fn rows_with_a_time_of_their_own_are_exported_as_they_were_imported() {
    for kind in ["markers", "server", "statements"] {
        check(kind);
    }
}

#[test]
fn every_other_kind_is_exported_as_it_was_imported() {
    let named = [
        SESSIONS,
        "locks",
        "counts",
        "texts",
        "markers",
        "server",
        "statements",
    ];
    let schema = with_runs();
    let others: Vec<&str> = kinds(&schema)
        .into_iter()
        .filter(|kind| !named.contains(kind))
        .collect();
    assert_eq!(
        others,
        [
            "plan_tree",
            "relation",
            "relation_state",
            "tree_left_out",
            "server_database",
            "server_replica",
            "server_slot",
            "server_io",
            "server_disk",
            "plan_stats",
            "table_stats",
            "error_stats"
        ]
    );
    others.into_iter().for_each(check);
}

#[test]
fn a_marker_from_a_pause_is_exported_by_its_own_time() {
    let mut builder = PartBuilder::new(Arc::new(with_runs())).unwrap();
    let tick = [("tick", 1), ("slot_time", 7_200_000), ("status", 1)];
    builder.row("tick", &tick).unwrap();
    // Recording began again two hours later: the marker is in the part of that time.
    let kind = with_runs().value("marker", "recording paused").unwrap();
    builder
        .row("marker", &[("time", 10_000), ("kind", kind)])
        .unwrap();
    let snapshot = Snapshot::from_parts(vec![builder.finish(Identity::default())]);
    let parts: Vec<&Part> = snapshot.parts(0).collect();
    let rows = |since: i64, until: i64| {
        let window = Window {
            since: since * 1_000_000,
            until: until * 1_000_000,
        };
        let (mut out, mut damage) = (Vec::new(), Vec::new());
        export(
            "markers",
            &with_runs(),
            &parts,
            window,
            &mut out,
            &mut damage,
        )
        .unwrap();
        String::from_utf8(out).unwrap().lines().count() - 1
    };
    assert_eq!([rows(0, 3_600), rows(3_600, 9_000)], [1, 0]);
}
