//! `queries` agrees with `top` about load and with `statements_history` about cost.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::{Context, Numeric, Queries, QueriesRow, StatementsHistory, Top};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const MINUTE: i64 = 60_000_000;
const ACTIVE: i64 = 1;

fn catalog() -> Schema {
    tacho_tape::catalog::schema()
}

struct Tape(PartBuilder);

impl Tape {
    /// Samples of a session every ten seconds in `seconds`.
    fn seen(&mut self, pid: i64, username: &str, query_id: i64, seconds: std::ops::Range<i64>) {
        let database = self.0.name("shop").unwrap();
        let application = self.0.name(&format!("app{pid}")).unwrap();
        let username = self.0.name(username).unwrap();
        let session = [
            ("pid", pid),
            ("category", 1),
            ("database", database),
            ("username", username),
            ("application", application),
        ];
        let session = self.0.intern("session", &session).unwrap();
        let statement = match query_id {
            0 => 0,
            id => self.0.intern("statement", &[("query_id", id)]).unwrap(),
        };
        let values = [("state", ACTIVE), ("statement", statement)];
        for second in seconds.step_by(10) {
            let tick = second as u64 / 10;
            self.0.sample(tick, session, &values).unwrap();
        }
    }

    /// Calls of a statement in the first minute, each of `ms`.
    fn counted(&mut self, query_id: i64, username: &str, calls: i64, ms: i64) {
        let database = self.0.name("shop").unwrap();
        let username = self.0.name(username).unwrap();
        let entry = [
            ("query_id", query_id),
            ("database", database),
            ("username", username),
            ("toplevel", 1),
        ];
        let entry = self.0.intern("entry", &entry).unwrap();
        let bucket = format!("histogram_{}", (ms * 1000).ilog2());
        let row = [
            ("time", 60_000),
            ("elapsed_ms", 60_000),
            ("entry", entry),
            ("calls", calls),
            ("total_exec_time", calls * ms * 100),
            ("rows", calls * 3),
            ("errors", i64::from(query_id == 9)),
            (&bucket, calls),
            ("since_call_ms", if query_id == 0 { 0 } else { 1 + ms * 10 }),
        ];
        self.0.row("statement_stats", &row).unwrap();
    }
}

/// A minute. Query 7 has load and calls of two roles, 8 has load only, 9 has calls only. One
/// session has load without a query, and an evicted entry has calls.
fn store() -> Snapshot {
    let mut tape = Tape(PartBuilder::new(Arc::new(catalog().with_runs())).unwrap());
    for second in (0..60).step_by(10) {
        let tick = [
            ("tick", second / 10),
            ("slot_time", second * 1000),
            ("interval_ms", 10_000),
            ("status", 1),
        ];
        tape.0.row("tick", &tick).unwrap();
    }
    tape.seen(1, "app", 7, 0..60);
    tape.seen(2, "report", 7, 0..30);
    tape.seen(3, "app", 8, 0..20);
    tape.seen(4, "app", 0, 0..10);
    tape.counted(7, "app", 10, 2);
    tape.counted(7, "report", 10, 100);
    tape.counted(9, "app", 1000, 1);
    tape.counted(0, "app", 5, 1);
    let interval = [("time", 60_000), ("elapsed_ms", 60_000)];
    tape.0.row("statement_stats", &interval).unwrap();
    Snapshot::from_parts(vec![tape.0.finish(Identity::default())])
}

fn ask(change: impl FnOnce(&mut Queries)) -> Vec<QueriesRow> {
    let catalog = catalog();
    let mut request = Queries {
        since: Some(0),
        ..Queries::default()
    };
    change(&mut request);
    let context = Context::new(&catalog, MINUTE);
    store().queries(&request, &context).unwrap().rows
}

/// `key load calls total-ms` of each row.
fn lines(rows: &[QueriesRow]) -> Vec<String> {
    let line = |row: &QueriesRow| {
        let ms = row.total_exec_time.map_or(-1, |ms| i128::from(ms) / 10_000);
        let load = row.avg_aas.map_or(-1, i128::from);
        let key = row.key.as_deref().unwrap();
        format!("{key} {load} {} {ms}", row.calls.unwrap_or(-1))
    };
    rows.iter().map(line).collect()
}

#[test]
fn a_query_has_its_load_and_its_cost_in_one_row() {
    let rows = ask(|_| ());
    let expected = [
        "7 15000 20 1020",
        "8 3333 0 0",
        "(no query id) 1667 0 0",
        "9 0 1000 1000",
        "(evicted) 0 5 5",
    ];
    let mut found = lines(&rows);
    found[2..].sort_unstable();
    let mut expected = expected.map(str::to_string);
    expected[2..].sort_unstable();
    assert_eq!(found, expected);
    let seven = &rows[0];
    assert_eq!(seven.usernames.as_deref(), Some("app, report"));
    assert_eq!(seven.databases.as_deref(), Some("shop"));
    assert_eq!(seven.rows, Some(60));
    // 20 calls in 60 s, a mean of 51 ms, and three quarters of the load.
    let figures = [seven.calls_per_second, seven.mean_exec_time, seven.pct];
    assert_eq!(figures, [3333, 510_000, 750_000].map(|n| Some(Numeric(n))));
    // Ten of 2 ms and ten of 100 ms: the 95th of 100 is one of 100 ms.
    assert!(
        seven
            .p95_exec_time
            .is_some_and(|ms| i128::from(ms) > 650_000)
    );
}

#[test]
fn every_order_puts_its_measure_first() {
    let first = |order: &str| {
        let rows = ask(|asked| asked.order_by = Some(order.to_string()));
        rows[0].key.as_deref().unwrap().to_string()
    };
    let orders = ["load", "time", "calls", "mean", "p95", "rows", "errors"];
    assert_eq!(orders.map(first), ["7", "7", "9", "7", "7", "9", "9"]);
}

#[test]
fn the_rest_is_one_row_that_completes_the_sums() {
    let all = ask(|_| ());
    let rows = ask(|asked| asked.n = Some(1));
    assert_eq!(lines(&rows), ["7 15000 20 1020", "(other) 5000 1005 1005"]);
    let calls = |rows: &[QueriesRow]| rows.iter().filter_map(|row| row.calls).sum::<i64>();
    assert_eq!(calls(&rows), calls(&all));
}

#[test]
fn a_filter_that_costs_do_not_know_leaves_the_queries_with_load() {
    let filter = |name: &str, text: &str| vec![(name.to_string(), text.to_string())];
    let rows = ask(|asked| asked.filters = filter("application", "app2"));
    assert_eq!(lines(&rows), ["7 5000 20 1020"]);
    let rows = ask(|asked| asked.filters = filter("username", "report"));
    assert_eq!(lines(&rows), ["7 5000 10 1000"]);
}

#[test]
fn load_equals_top_and_cost_equals_statements_history() {
    let (catalog, store) = (catalog(), store());
    let context = Context::new(&catalog, MINUTE);
    let top = Top {
        dimension: Some("query_id".to_string()),
        since: Some(0),
        ..Top::default()
    };
    let statements = StatementsHistory {
        since: Some(0),
        ..StatementsHistory::default()
    };
    let load = store.top(&top, &context).unwrap().rows;
    let cost = store.statements_history(&statements, &context).unwrap();
    for row in ask(|_| ()) {
        let own = load.iter().find(|own| own.key == row.key);
        let zero = row.avg_aas.filter(|aas| *aas != Numeric(0));
        assert_eq!(zero, own.and_then(|own| own.avg_aas), "{:?}", row.key);
        // Query 7 has a row there for each of its two roles.
        let own: Vec<_> = cost.rows.iter().filter(|own| own.key == row.key).collect();
        if let [own] = own[..] {
            let figures = |row: &QueriesRow| (row.calls_per_second, row.p99_exec_time);
            assert_eq!(figures(&row), (own.calls_per_second, own.p99_exec_time));
        }
    }
}

#[test]
fn queries_are_ordered_by_the_last_call_of_any_role() {
    let rows = ask(|request| request.order_by = Some("last_call".into()));
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row.key.as_deref().unwrap(), row.last_call))
        .collect();
    let expected = [
        ("9", Some(59_990_000)),
        ("7", Some(59_980_000)),
        ("8", None),
        ("(no query id)", None),
        ("(evicted)", None),
    ];
    assert_eq!(found[..2], expected[..2]);
    for row in &expected[2..] {
        assert!(found.contains(row), "{row:?}");
    }
}

/// The last call in each minute of `statements_history`, in seconds.
fn last_calls(rows: &[[(&str, i64); 3]]) -> Vec<Option<i64>> {
    let catalog = catalog();
    let mut builder = PartBuilder::new(Arc::new(catalog.clone().with_runs())).unwrap();
    let entry = [("query_id", 7), ("toplevel", 1)];
    let entry = builder.intern("entry", &entry).unwrap();
    for row in rows {
        let own = [("elapsed_ms", 60_000), ("calls", 1)];
        let own = [&row[..], &own].concat();
        builder.row("statement_stats", &own).unwrap();
        let pass = [("time", row[0].1), ("elapsed_ms", 60_000)];
        builder.row("statement_stats", &pass).unwrap();
    }
    assert_eq!(entry, 1);
    let store = Snapshot::from_parts(vec![builder.finish(Identity::default())]);
    let request = StatementsHistory {
        since: Some(0),
        bucket: Some(MINUTE),
        ..StatementsHistory::default()
    };
    let context = Context::new(&catalog, 3 * MINUTE);
    let answer = store.statements_history(&request, &context).unwrap();
    let seconds = |us: i64| us / 1_000_000;
    answer
        .rows
        .iter()
        .map(|row| row.last_call.map(seconds))
        .collect()
}

#[test]
fn an_interval_with_a_later_call_in_its_group_ends_with_a_call() {
    let row = |minute: i64, since: i64| {
        [
            ("time", minute * 60_000),
            ("entry", 1),
            ("since_call_ms", since),
        ]
    };
    assert_eq!(
        last_calls(&[row(1, 0), row(2, 0), row(3, 20_001)]),
        [Some(60), Some(120), Some(160)]
    );
    // A tape of `tacho record` knows no last call.
    assert_eq!(last_calls(&[row(1, 0), row(2, 0), row(3, 0)]), [None; 3]);
}
