//! `tables_history` on records whose sums are computed by hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::Value;
use tacho_tape::testing::{Answer, Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const MINUTE: i64 = 60_000_000;

fn catalog() -> Schema {
    tacho_tape::catalog::schema()
}

struct Tape(PartBuilder);

impl Tape {
    /// Records of minutes 5 and 10. Table 16400 of shop: 10 rows read, then 30; table 16500: 200 rows
    /// inserted in minute 5; others: 7 rows read, then 1. Only 16400 has a name.
    fn new() -> Tape {
        let mut tape = Tape(PartBuilder::new(Arc::new(catalog().with_runs())).unwrap());
        let tick = [
            ("tick", 1),
            ("slot_time", 600_000),
            ("interval_ms", 1000),
            ("status", 1),
        ];
        tape.0.row("tick", &tick).unwrap();
        tape.record(
            5,
            16400,
            &[
                ("tuples_returned", 10),
                ("live_tuples", 100),
                ("last_vacuum", 7),
            ],
        );
        tape.record(
            5,
            16500,
            &[("tuples_inserted", 200), ("tuples_newpage_updated", 1)],
        );
        tape.record(5, 0, &[("tuples_returned", 7), ("others", 3)]);
        tape.record(10, 16400, &[("tuples_returned", 30), ("live_tuples", 140)]);
        tape.record(10, 0, &[("tuples_returned", 1), ("others", 1)]);
        let names = ["public", "orders"].map(|name| tape.0.name(name).unwrap());
        let name = [
            ("database_oid", 5),
            ("oid", 16400),
            ("schema", names[0]),
            ("name", names[1]),
        ];
        tape.0.row("relation", &name).unwrap();
        tape
    }

    fn record(&mut self, minute: i64, oid: i64, more: &[(&str, i64)]) {
        let shop = self.0.name("shop").unwrap();
        let database = if oid == 0 { (0, 0) } else { (5, shop) };
        let row = [
            ("time", minute * 60_000),
            ("elapsed_ms", 300_000),
            ("database_oid", database.0),
            ("database", database.1),
            ("oid", oid),
        ];
        self.0
            .row("table_stats", &[&row[..], more].concat())
            .unwrap();
    }

    /// The values of some columns, a row a line.
    fn ask(self, columns: &[&str], change: impl FnOnce(&mut Arguments)) -> Vec<String> {
        let store = Snapshot::from_parts(vec![self.0.finish(Identity::default())]);
        let catalog = catalog();
        let mut spec = Arguments::new(&catalog, 20 * MINUTE);
        spec.since_us = Some(0);
        spec.until_us = Some(10 * MINUTE);
        change(&mut spec);
        let mut answer = Answer::default();
        run("tables_history", &spec, &store, &mut answer).unwrap();
        let place = |name: &&str| answer.place(name);
        let places: Vec<usize> = columns.iter().map(place).collect();
        let text = |row: &Vec<Value>| -> String {
            let values = places.iter().map(|place| shown(&row[*place]));
            values.collect::<Vec<_>>().join(" ")
        };
        answer.rows.iter().map(text).collect()
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_string(),
        Value::Text(text) => text.to_string(),
        Value::Int(n) | Value::Time(n) => n.to_string(),
        Value::Numeric(n) => (n / 10_000).to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_largest_come_first_and_the_others_last() {
    let columns = ["key", "database", "work", "intervals", "coverage_pct"];
    let expected = [
        "5/16500 shop 200 1 100",
        "public.orders shop 40 2 100",
        "(other) null 8 2 100",
    ];
    assert_eq!(Tape::new().ask(&columns, |_| ()), expected);
    let one = ["5/16500 shop 200 1 100", "(other) null 48 4 100"];
    assert_eq!(Tape::new().ask(&columns, |spec| spec.n = Some(1)), one);
    let read = Tape::new().ask(&columns, |spec| {
        spec.order_by = Some("tuples_returned".to_string());
        spec.n = Some(1);
    });
    assert_eq!(
        read,
        ["public.orders shop 40 2 100", "(other) null 208 3 100"]
    );
}

#[test]
fn the_state_is_the_one_of_the_last_record() {
    let columns = [
        "key",
        "live_tuples",
        "last_vacuum",
        "tuples_newpage_updated",
    ];
    let expected = [
        "5/16500 0 null 0",
        "public.orders 140 null null",
        "(other) null null null",
    ];
    assert_eq!(Tape::new().ask(&columns, |_| ()), expected);
    let first = Tape::new().ask(&columns, |spec| spec.until_us = Some(5 * MINUTE));
    assert_eq!(first[1], "public.orders 100 7000 null");
}

#[test]
fn a_record_belongs_to_the_bucket_with_its_middle() {
    let columns = ["period_start", "key", "tuples_returned"];
    let found = Tape::new().ask(&columns, |spec| spec.bucket_us = Some(5 * MINUTE));
    let expected = [
        "0 5/16500 0",
        "0 public.orders 10",
        "0 (other) 7",
        "300000000 public.orders 30",
        "300000000 (other) 1",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_role_that_sees_its_own_rows_sees_numbers() {
    let found = Tape::new().ask(&["key"], |spec| spec.owner = Some("app".to_string()));
    assert_eq!(found, ["5/16500", "5/16400", "(other)"]);
}

#[test]
fn a_filter_of_databases_leaves_the_others_out() {
    let shop = |spec: &mut Arguments| spec.filters = vec![("database".into(), "shop".into())];
    assert_eq!(
        Tape::new().ask(&["key"], shop),
        ["5/16500", "public.orders"]
    );
    let other = |spec: &mut Arguments| spec.filters = vec![("database".into(), "!shop".into())];
    assert!(Tape::new().ask(&["key"], other).is_empty());
}
