//! `server_history` on readings whose sums are computed by hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::{QueryError, Value};
use tacho_tape::testing::{Answer, Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const SECOND: i64 = 1_000_000;

fn catalog() -> Schema {
    tacho_tape::catalog::samples()
}

/// A reading every 10 s: log written 500, 1500, 0 bytes; one CPU, then two; database shop commits
/// 30, 0, 10; database idle commits nothing.
fn store() -> Snapshot {
    let mut builder = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
    let shop = builder.name("shop").unwrap();
    for second in 0..40 {
        let values = [
            ("tick", second + 1),
            ("slot_time", second * 1000),
            ("interval_ms", 1000),
            ("status", 1),
        ];
        builder.row("tick", &values).unwrap();
    }
    let readings = [
        (0, 0, 0, 100),
        (10, 500, 30, 100),
        (20, 1500, 0, 200),
        (30, 0, 10, 200),
    ];
    for (second, bytes, commits, vcpus) in readings {
        let elapsed = if second == 0 { 0 } else { 10_000 };
        let time = ("time", second * 1000);
        let mut values = vec![time, ("elapsed_ms", elapsed), ("vcpus", vcpus + 1)];
        if second > 0 {
            values.push(("wal_bytes", bytes + 1));
        }
        builder.row("server", &values).unwrap();
        if commits > 0 {
            let values = [time, ("object", shop), ("xact_commit", commits + 1)];
            builder.row("server_database", &values).unwrap();
        }
    }
    let identity = Identity {
        node: 7,
        ..Identity::default()
    };
    Snapshot::from_parts(vec![builder.finish(identity)])
}

fn ask(change: impl FnOnce(&mut Arguments)) -> Result<Vec<String>, QueryError> {
    let catalog = catalog();
    let mut spec = Arguments::new(&catalog, 40 * SECOND);
    spec.since_us = Some(0);
    change(&mut spec);
    let mut answer = Answer::default();
    run("server_history", &spec, &store(), &mut answer)?;
    Ok(answer.rows.iter().map(|row| line(row)).collect())
}

/// `from to metric object unit avg min max total readings`, `-` for null.
fn line(row: &[Value]) -> String {
    let text = |value: &Value| match value {
        Value::Null => "-".to_string(),
        Value::Text(text) => text.to_string(),
        Value::Int(n) | Value::Id(n) => n.to_string(),
        Value::Bool(is) => is.to_string(),
        Value::Numeric(n) => format!("{}.{:04}", n / 10_000, n % 10_000),
        Value::Time(us) | Value::Interval(us) => (us / SECOND).to_string(),
    };
    row.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Ten ticks: 8 idle clients in each, 2 active ones in the first five, 3 in transaction in the last two,
/// and a checkpointer.
#[test]
fn connections_by_state_are_means_over_all_ticks() {
    let mut builder = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
    for second in 0..10 {
        let tick = [
            ("tick", second + 1),
            ("slot_time", second * 1000),
            ("interval_ms", 1000),
            ("status", 1),
        ];
        builder.row("tick", &tick).unwrap();
        let (foreground, background) = (1, 3);
        let (active, idle, in_transaction) = (1, 2, 3);
        let counts = [
            (foreground, idle, 8),
            (foreground, active, if second < 5 { 2 } else { 0 }),
            (foreground, in_transaction, if second < 8 { 0 } else { 3 }),
            (background, 0, 1),
        ];
        for (category, state, backends) in counts.into_iter().filter(|count| count.2 > 0) {
            let count = [
                ("at", second + 1),
                ("category", category),
                ("state", state),
                ("backends", backends),
            ];
            builder.row("count", &count).unwrap();
        }
    }
    builder.row("server", &[("time", 0)]).unwrap();
    let store = Snapshot::from_parts(vec![builder.finish(Identity::default())]);
    let catalog = catalog();
    let mut spec = Arguments::new(&catalog, 10 * SECOND);
    spec.since_us = Some(0);
    spec.metric = Some("connections_by_state".to_string());
    let mut answer = Answer::default();
    run("server_history", &spec, &store, &mut answer).unwrap();
    let rows: Vec<String> = answer.rows.iter().map(|row| line(row)).collect();
    assert_eq!(
        rows,
        [
            "0 10 connections_by_state active count 1.0000 0.0000 2.0000 - 1",
            "0 10 connections_by_state idle count 8.0000 8.0000 8.0000 - 1",
            "0 10 connections_by_state idle in transaction count 0.6000 0.0000 3.0000 - 1",
        ]
    );
}

#[test]
fn connections_equal_the_counts_of_ticks() {
    let mut builder = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
    for second in 0..20 {
        let values = [
            ("tick", second + 1),
            ("slot_time", second * 1000),
            ("interval_ms", 1000),
            ("status", 1),
            ("connections", if second < 10 { 20 } else { 95 + second }),
            ("max_connections", 200),
        ];
        builder.row("tick", &values).unwrap();
    }
    let reading = [("time", 0), ("elapsed_ms", 0)];
    builder.row("server", &reading).unwrap();
    let store = Snapshot::from_parts(vec![builder.finish(Identity::default())]);
    let catalog = catalog();
    let mut spec = Arguments::new(&catalog, 20 * SECOND);
    spec.since_us = Some(0);
    spec.bucket_us = Some(10 * SECOND);
    let mut answer = Answer::default();
    run("server_history", &spec, &store, &mut answer).unwrap();
    let lines: Vec<String> = answer.rows.iter().map(|row| line(row)).collect();
    let expected = [
        "0 10 connections - count 20.0000 20.0000 20.0000 - 1",
        "0 10 max_connections - count 200.0000 200.0000 200.0000 - 1",
        "10 20 connections - count 109.5000 105.0000 114.0000 - 0",
        "10 20 max_connections - count 200.0000 200.0000 200.0000 - 0",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_window_is_one_row_a_metric() {
    let expected = [
        "0 40 vcpus - count 1.5000 1.0000 2.0000 - 4",
        "0 40 wal_bytes - bytes 66.6667 0.0000 150.0000 2000.0000 4",
        "0 40 xact_commit shop count 1.3333 0.0000 3.0000 40.0000 4",
    ];
    assert_eq!(ask(|_| ()).unwrap(), expected);
}

#[test]
fn buckets_hold_the_readings_taken_in_them() {
    let expected = [
        "0 20 wal_bytes - bytes 50.0000 50.0000 50.0000 500.0000 2",
        "20 40 wal_bytes - bytes 75.0000 0.0000 150.0000 1500.0000 2",
    ];
    let rows = ask(|spec| {
        spec.bucket_us = Some(20 * SECOND);
        spec.metric = Some("wal_bytes".to_string());
    });
    assert_eq!(rows.unwrap(), expected);
}

#[test]
fn a_window_without_a_reading_has_no_row() {
    let rows = ask(|spec| {
        spec.since_us = Some(31 * SECOND);
    });
    assert_eq!(rows.unwrap(), [""; 0]);
}

#[test]
fn metrics_and_objects_are_filters() {
    let rows = ask(|spec| spec.object = Some("shop".to_string())).unwrap();
    assert_eq!(rows.len(), 1);
    let rows = ask(|spec| spec.metric = Some("!wal_bytes,!xact_commit".to_string())).unwrap();
    assert_eq!(rows, ["0 40 vcpus - count 1.5000 1.0000 2.0000 - 4"]);
    let error = ask(|spec| spec.metric = Some("wal".to_string())).unwrap_err();
    assert_eq!(error.message, "metric \"wal\" does not exist");
}
