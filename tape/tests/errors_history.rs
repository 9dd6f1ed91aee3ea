//! `errors_history` on records whose sums are computed by hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::{Field, QueryResult, Sink, Value};
use tacho_tape::testing::{Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const MINUTE: i64 = 60_000_000;
const UNIQUE: i64 = 83_906_754;
const DEADLOCK: i64 = 16_908_292;

fn catalog() -> Schema {
    tacho_tape::catalog::schema()
}

#[derive(Default)]
struct Answer {
    fields: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Sink for Answer {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.fields = fields.iter().map(|field| field.0.to_string()).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.rows.push(values);
        Ok(())
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_string(),
        Value::Text(text) => text.to_string(),
        Value::Int(n) | Value::Time(n) => n.to_string(),
        Value::Numeric(n) => format!("{}", *n as f64 / 10_000.0),
        other => panic!("{other:?}"),
    }
}

/// Records of minutes 1 and 2. Query 7 of ana: 30 unique violations and 6 deadlocks, then 60 unique
/// violations. Query 8 of bob: 12 deadlocks. Errors without a query of bob: 3 with U0001. Beyond the
/// room: 5.
fn tape() -> PartBuilder {
    let mut part = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
    let tick = [
        ("tick", 1),
        ("slot_time", 60_000),
        ("interval_ms", 1000),
        ("status", 1),
    ];
    part.row("tick", &tick).unwrap();
    for (id, name) in [(7, "ana"), (8, "bob"), (0, "bob")] {
        let name = part.name(name).unwrap();
        let entry = [("query_id", id), ("username", name), ("toplevel", 1)];
        part.row("entry", &entry).unwrap();
    }
    for minute in [1, 2] {
        let end = [("time", minute * 60_000), ("elapsed_ms", 60_000)];
        part.row("statement_stats", &end).unwrap();
    }
    let of_client = i64::from(b'U' - b'0') | 1 << 24;
    let rows = [
        (1, 1, UNIQUE, 30),
        (1, 1, DEADLOCK, 6),
        (2, 1, UNIQUE, 60),
        (2, 2, DEADLOCK, 12),
        (2, 3, of_client, 3),
        (2, 0, 0, 5),
    ];
    for (minute, entry, sqlstate, errors) in rows {
        let row = [
            ("time", minute * 60_000),
            ("elapsed_ms", 60_000),
            ("entry", entry),
            ("sqlstate", sqlstate),
            ("errors", errors),
        ];
        part.row("error_stats", &row).unwrap();
    }
    part
}

/// The values of some columns, a row a line.
fn ask(columns: &[&str], change: impl FnOnce(&mut Arguments)) -> Vec<String> {
    let store = Snapshot::from_parts(vec![tape().finish(Identity::default())]);
    let catalog = catalog();
    let mut spec = Arguments::new(&catalog, 20 * MINUTE);
    spec.since_us = Some(0);
    spec.until_us = Some(2 * MINUTE);
    change(&mut spec);
    let mut answer = Answer::default();
    run("errors_history", &spec, &store, &mut answer).unwrap();
    let place = |name: &&str| answer.fields.iter().position(|f| f == name).unwrap();
    let places: Vec<usize> = columns.iter().map(place).collect();
    let text = |row: &Vec<Value>| -> String {
        let values = places.iter().map(|place| shown(&row[*place]));
        values.collect::<Vec<_>>().join(" ")
    };
    answer.rows.iter().map(text).collect()
}

const WHAT: [&str; 4] = ["sqlstate", "key", "username", "errors"];

#[test]
fn the_most_frequent_come_first_and_errors_without_a_place_last() {
    let expected = [
        "23505 7 ana 90",
        "40P01 8 bob 12",
        "40P01 7 ana 6",
        "U0001 (no query id) bob 3",
        "null (other) null 5",
    ];
    assert_eq!(ask(&WHAT, |_| ()), expected);
}

#[test]
fn the_sums_by_sqlstate_are_complete_with_any_n() {
    let expected = [
        "23505 7 ana 90",
        "null (other) null 5",
        "40P01 (other) null 18",
        "U0001 (other) null 3",
    ];
    assert_eq!(ask(&WHAT, |spec| spec.n = Some(1)), expected);
}

#[test]
fn the_key_without_a_query_id_is_a_filter() {
    let found = ask(&WHAT, |spec| {
        spec.filters = vec![("query_id".to_string(), "(no query id)".to_string())];
    });
    assert_eq!(found, ["U0001 (no query id) bob 3"]);
}

#[test]
fn errors_without_a_statement_take_no_place() {
    let found = ask(&WHAT, |spec| {
        spec.n = Some(1);
        spec.filters = vec![("sqlstate".to_string(), "U0,(null)".to_string())];
    });
    assert_eq!(found, ["U0001 (no query id) bob 3", "null (other) null 5"]);
}

#[test]
fn names_and_rates_stand_beside_a_code() {
    let columns = [
        "condition",
        "class_name",
        "errors_per_second",
        "coverage_pct",
    ];
    let found = ask(&columns, |spec| spec.n = Some(2));
    assert_eq!(
        found[0],
        "unique_violation integrity constraint violation 0.75 100"
    );
    assert_eq!(found[1], "deadlock_detected transaction rollback 0.1 100");
}

#[test]
fn a_record_belongs_to_the_bucket_with_its_middle() {
    let columns = ["period_start", "sqlstate", "errors"];
    let found = ask(&columns, |spec| {
        spec.bucket_us = Some(MINUTE);
        spec.filters = vec![("username".into(), "ana".into())];
    });
    let expected = ["0 23505 30", "0 40P01 6", "60000000 23505 60"];
    assert_eq!(found, expected);
}

#[test]
fn a_filter_takes_a_code_or_a_class() {
    let with = |text: &str| {
        let filter = vec![("sqlstate".to_string(), text.to_string())];
        ask(&["sqlstate", "errors"], |spec| spec.filters = filter)
    };
    assert_eq!(with("23505"), ["23505 90"]);
    assert_eq!(with("40"), ["40P01 12", "40P01 6"]);
    assert_eq!(with("!40,!U0"), ["23505 90", "null 5"]);
    assert_eq!(with("(null)"), ["null 5"]);
    assert_eq!(with("40p01"), ["40P01 12", "40P01 6"]);
}

#[test]
fn a_role_that_sees_its_own_rows_sees_its_own_errors() {
    let found = ask(&WHAT, |spec| spec.owner = Some("bob".to_string()));
    assert_eq!(found, ["40P01 8 bob 12", "U0001 (no query id) bob 3"]);
}
