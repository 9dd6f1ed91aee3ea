//! `latency_history` on executions whose figures are computed by hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::{QueryError, Value};
use tacho_tape::testing::{Answer, Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const MINUTE: i64 = 60_000_000;

fn catalog() -> Schema {
    tacho_tape::catalog::schema()
}

/// Five minutes. In the first, query 7 of app runs. In the second no query runs. The third and
/// fourth are not recorded. In the fifth both queries run, and two executions of query 7 were not
/// timed.
fn store() -> Snapshot {
    let mut builder = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
    let mut entry = |query_id, username: &str| {
        let username = builder.name(username).unwrap();
        let values = [
            ("query_id", query_id),
            ("username", username),
            ("toplevel", 1),
        ];
        builder.intern("entry", &values).unwrap()
    };
    let (seven, eight) = (entry(7, "app"), entry(8, "report"));
    let mut record = |minute: i64, entry: i64, counted: &[(&str, i64)]| {
        let row = [
            ("time", minute * 60_000),
            ("elapsed_ms", 60_000),
            ("entry", entry),
        ];
        builder
            .row("statement_stats", &[&row, counted].concat())
            .unwrap();
    };
    for minute in [1, 2, 5] {
        record(minute, 0, &[]);
    }
    record(
        1,
        seven,
        &[("calls", 12), ("histogram_9", 10), ("histogram_23", 2)],
    );
    record(5, seven, &[("calls", 5), ("histogram_0", 3)]);
    record(5, eight, &[("calls", 1), ("histogram_9", 1)]);
    Snapshot::from_parts(vec![builder.finish(Identity {
        node: 7,
        ..Identity::default()
    })])
}

fn answer(function: &str, change: impl FnOnce(&mut Arguments)) -> Result<Answer, QueryError> {
    let catalog = catalog();
    let mut spec = Arguments::new(&catalog, 5 * MINUTE);
    spec.since_us = Some(0);
    change(&mut spec);
    let mut answer = Answer::default();
    run(function, &spec, &store(), &mut answer)?;
    Ok(answer)
}

/// `from to ms-from ms-to calls grain coverage`, `-` for null, times in minutes.
fn ask(change: impl FnOnce(&mut Arguments)) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::Int(n) => n.to_string(),
        Value::Numeric(n) => (*n as f64 / 10_000.0).to_string(),
        Value::Time(us) | Value::Interval(us) => (us / MINUTE).to_string(),
        _ => "-".to_string(),
    };
    let rows = answer("latency_history", change).unwrap().rows;
    let line = |row: &Vec<Value>| row.iter().map(text).collect::<Vec<_>>().join(" ");
    rows.iter().map(line).collect()
}

#[test]
fn executions_are_counted_by_duration() {
    let expected = [
        "0 5 0 0.002 3 1 60",
        "0 5 0.512 1.024 11 1 60",
        "0 5 8388.608 - 2 1 60",
        "0 5 - - 2 1 60",
    ];
    assert_eq!(ask(|_| ()), expected);
}

#[test]
fn a_minute_without_executions_is_not_one_without_a_record() {
    let expected = [
        "0 1 0.512 1.024 10 1 100",
        "0 1 8388.608 - 2 1 100",
        "1 2 - - 0 1 100",
        "2 3 - - - - 0",
        "3 4 - - - - 0",
        "4 5 0 0.002 3 1 100",
        "4 5 0.512 1.024 1 1 100",
        "4 5 - - 2 1 100",
    ];
    assert_eq!(ask(|spec| spec.bucket_us = Some(MINUTE)), expected);
}

#[test]
fn only_filters_of_statistics_are_taken() {
    let of = |name: &str, value: &str| {
        let filter = (name.to_string(), value.to_string());
        ask(|spec| spec.filters.push(filter))
    };
    assert_eq!(of("query_id", "8"), ["0 5 0.512 1.024 1 1 60"]);
    assert_eq!(of("username", "report"), ["0 5 0.512 1.024 1 1 60"]);
    assert_eq!(of("query_id", "9"), ["0 5 - - 0 1 60"]);
    assert_eq!(
        ask(|spec| spec.owner = Some("report".to_string())),
        ["0 5 0.512 1.024 1 1 60"]
    );
    let filter = ("query_id".to_string(), "x".to_string());
    let error = answer("latency_history", |spec| spec.filters.push(filter))
        .err()
        .unwrap();
    assert_eq!(error.message, "invalid value \"x\" for filter \"query_id\"");
}

#[test]
fn all_classes_together_are_the_calls_of_the_statistics() {
    let sum = |function: &str| {
        let answer = answer(function, |spec| spec.bucket_us = Some(MINUTE)).unwrap();
        let calls = answer
            .fields
            .iter()
            .position(|name| *name == "calls")
            .unwrap();
        let of = |row: &Vec<Value>| match row[calls] {
            Value::Int(n) => n,
            _ => 0,
        };
        answer.rows.iter().map(of).sum::<i64>()
    };
    assert_eq!(sum("latency_history"), 18);
    assert_eq!(sum("statements_history"), 18);
}

#[test]
fn more_rows_than_an_answer_has_are_refused() {
    let error = answer("latency_history", |spec| spec.bucket_us = Some(50_000))
        .err()
        .unwrap();
    assert_eq!(error.message, "too many rows");
}

/// 19 executions of 9 s, one of 90 s and one of 10 h.
fn long() -> Snapshot {
    let mut builder = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
    let values = [("query_id", 7), ("toplevel", 1)];
    let entry = builder.intern("entry", &values).unwrap();
    let mut record = |minute: i64, entry: i64, counted: &[(&str, i64)]| {
        let row = [
            ("time", minute * 60_000),
            ("elapsed_ms", 60_000),
            ("entry", entry),
        ];
        let row = [&row, counted].concat();
        builder.row("statement_stats", &row).unwrap();
    };
    let counted = [("calls", 20), ("total_exec_time", 26_100_000)];
    let buckets = [
        ("histogram_23", 20),
        ("histogram_long_0", 19),
        ("histogram_long_3", 1),
    ];
    record(1, entry, &[&counted[..], &buckets].concat());
    let counted = [("calls", 1), ("total_exec_time", 3_600_000_000)];
    let buckets = [("histogram_23", 1), ("histogram_long_11", 1)];
    record(2, entry, &[&counted[..], &buckets].concat());
    record(1, 0, &[]);
    record(2, 0, &[]);
    Snapshot::from_parts(vec![builder.finish(Identity::default())])
}

#[test]
fn executions_of_hours_have_classes_of_their_own() {
    let catalog = catalog();
    let rows = |function: &str, columns: &[&str]| {
        let mut spec = Arguments::new(&catalog, 2 * MINUTE);
        spec.since_us = Some(0);
        spec.bucket_us = Some(MINUTE);
        let mut answer = Answer::default();
        run(function, &spec, &long(), &mut answer).unwrap();
        let place = |name: &&str| answer.place(name);
        let places: Vec<usize> = columns.iter().map(place).collect();
        let text = |row: &Vec<Value>, place: &usize| match &row[*place] {
            Value::Int(n) => n.to_string(),
            Value::Numeric(n) => (*n as f64 / 10_000.0).to_string(),
            _ => "-".to_string(),
        };
        let line = |row| {
            places
                .iter()
                .map(|p| text(row, p))
                .collect::<Vec<_>>()
                .join(" ")
        };
        answer.rows.iter().map(line).collect::<Vec<_>>()
    };
    let classes = ["exec_time_from", "exec_time_to", "calls"];
    assert_eq!(
        rows("latency_history", &classes),
        [
            "8388.608 16777.216 19",
            "67108.864 134217.728 1",
            "17179869.184 - 1"
        ]
    );
    let percentiles = ["p50_exec_time", "p95_exec_time", "p99_exec_time"];
    assert_eq!(
        rows("statements_history", &percentiles),
        [
            "10300.3854 12020.985 94714.9312",
            "36000000 36000000 36000000"
        ]
    );
}
