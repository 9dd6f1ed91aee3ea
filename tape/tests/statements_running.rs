//! `statements_history` shows executions that have not ended.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::{Field, QueryResult, Sink, Value};
use tacho_tape::testing::{Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const MINUTE: i64 = 60_000_000;
const ACTIVE: i64 = 1;
const IDLE_IN_TRANSACTION: i64 = 3;
const FAILED: i64 = 3;

fn catalog() -> Schema {
    tacho_tape::catalog::schema()
}

/// A session; a test adds its samples.
struct Session {
    row: i64,
    statement: i64,
}

struct Tape(PartBuilder);

impl Tape {
    fn new() -> Tape {
        Tape(PartBuilder::new(Arc::new(catalog().with_runs())).unwrap())
    }

    /// Adds a tick, one every ten seconds, at this second and with this status.
    fn tick(&mut self, second: i64, status: i64) {
        let values = [
            ("tick", second / 10),
            ("slot_time", second * 1000),
            ("interval_ms", 10_000),
            ("status", status),
        ];
        self.0.row("tick", &values).unwrap();
    }

    fn session(&mut self, pid: i64, username: &str, query_id: i64, leader: i64) -> Session {
        let database = self.0.name("shop").unwrap();
        let username = self.0.name(username).unwrap();
        let values = [
            ("pid", pid),
            ("category", 1),
            ("database", database),
            ("username", username),
            ("leader", leader),
        ];
        Session {
            row: self.0.intern("session", &values).unwrap(),
            statement: self
                .0
                .intern("statement", &[("query_id", query_id)])
                .unwrap(),
        }
    }

    /// The session is seen during `seconds`, in a query that began at `start`.
    fn seen(&mut self, session: &Session, seconds: std::ops::Range<i64>, start: i64, state: i64) {
        let values = [
            ("state", state),
            ("statement", session.statement),
            ("query_start", start * 1000),
        ];
        for second in seconds.step_by(10) {
            self.0
                .sample(second as u64 / 10, session.row, &values)
                .unwrap();
        }
    }

    /// Records a minute in which a role's query had some calls.
    fn counted(&mut self, minute: i64, query_id: i64, username: &str, calls: i64, ms: i64) {
        let database = self.0.name("shop").unwrap();
        let username = self.0.name(username).unwrap();
        let values = [
            ("query_id", query_id),
            ("database", database),
            ("username", username),
            ("toplevel", 1),
        ];
        let entry = self.0.intern("entry", &values).unwrap();
        let times = [("time", minute * 60_000), ("elapsed_ms", 60_000)];
        let counted = [
            ("entry", entry),
            ("calls", calls),
            ("total_exec_time", ms * 100),
        ];
        if calls > 0 {
            let row = [&times[..], &counted].concat();
            self.0.row("statement_stats", &row).unwrap();
        }
        self.0.row("statement_stats", &times).unwrap();
    }

    fn finish(self) -> Snapshot {
        Snapshot::from_parts(vec![self.0.finish(Identity::default())])
    }
}

/// Three minutes. Query 7 runs from second 5 to second 155, query 8 from second 115 on. A parallel
/// worker of query 8, and a session that is idle in its transaction, are not executions.
fn store() -> Snapshot {
    let mut tape = Tape::new();
    let seven = tape.session(1, "app", 7, 0);
    let eight = tape.session(2, "report", 8, 0);
    let worker = tape.session(3, "report", 8, 2);
    let idle = tape.session(4, "app", 9, 0);
    (0..180).step_by(10).for_each(|second| tape.tick(second, 1));
    tape.seen(&seven, 10..160, 5, ACTIVE);
    tape.seen(&eight, 120..180, 115, ACTIVE);
    tape.seen(&worker, 120..180, 115, ACTIVE);
    tape.seen(&idle, 0..180, 0, IDLE_IN_TRANSACTION);
    tape.counted(1, 7, "app", 0, 0);
    tape.counted(2, 7, "app", 0, 0);
    tape.counted(3, 7, "app", 1, 150_000);
    tape.finish()
}

#[derive(Default)]
struct Lines {
    places: Vec<usize>,
    lines: Vec<String>,
}

impl Sink for Lines {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        let place = |name: &str| fields.iter().position(|field| field.0 == name).unwrap();
        let shown = [
            "period_end",
            "key",
            "calls",
            "total_exec_time",
            "running",
            "running_time",
        ];
        self.places = shown.map(place).to_vec();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        let text = |place: &usize| match &values[*place] {
            Value::Int(n) => n.to_string(),
            Value::Numeric(n) => (n / 10_000).to_string(),
            Value::Time(us) => (us / MINUTE).to_string(),
            Value::Text(text) => text.to_string(),
            _ => "-".to_string(),
        };
        let line: Vec<String> = self.places.iter().map(text).collect();
        self.lines.push(line.join(" "));
        Ok(())
    }
}

/// `end key calls ms running running-ms` of each row, the end in minutes.
fn ask(store: &Snapshot, change: impl FnOnce(&mut Arguments)) -> Vec<String> {
    let catalog = catalog();
    let mut asked = Arguments::new(&catalog, 3 * MINUTE);
    asked.since_us = Some(0);
    change(&mut asked);
    let mut lines = Lines::default();
    run("statements_history", &asked, store, &mut lines).unwrap();
    lines.lines
}

#[test]
fn an_execution_runs_in_each_bucket_until_the_one_that_has_its_call() {
    let lines = ask(&store(), |asked| asked.bucket_us = Some(MINUTE));
    let expected = [
        "1 7 0 0 1 45000",
        "1 8 0 0 0 0",
        "2 7 0 0 1 105000",
        "2 8 0 0 0 0",
        "3 7 1 150000 0 0",
        "3 8 0 0 1 55000",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_window_shows_what_runs_at_its_end() {
    let lines = ask(&store(), |_| ());
    assert_eq!(lines, ["3 7 1 150000 0 0", "3 8 0 0 1 55000"]);
    let lines = ask(&store(), |asked| asked.until_us = Some(MINUTE));
    assert_eq!(lines, ["1 7 0 0 1 45000"]);
}

#[test]
fn the_longest_running_come_first_where_that_is_the_order() {
    let by_running_time = |asked: &mut Arguments| {
        asked.order_by = Some("running_time".to_string());
        asked.n = Some(1);
    };
    let lines = ask(&store(), by_running_time);
    assert_eq!(lines, ["3 8 0 0 1 55000", "3 (other) 1 150000 0 0"]);
    let lines = ask(&store(), |asked| {
        by_running_time(asked);
        asked.bucket_us = Some(90_000_000);
    });
    let expected = [
        "1 7 0 0 1 75000",
        "1 (other) 0 0 0 0",
        "3 7 1 150000 0 0",
        "3 (other) 0 0 1 55000",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn only_filters_of_statistics_are_taken() {
    let of = |name: &str, value: &str| {
        let filter = (name.to_string(), value.to_string());
        ask(&store(), |asked| asked.filters.push(filter))
    };
    assert_eq!(of("query_id", "8"), ["3 8 0 0 1 55000"]);
    assert_eq!(of("username", "report"), ["3 8 0 0 1 55000"]);
    assert_eq!(of("database", "other"), Vec::<String>::new());
    assert_eq!(of("toplevel", "false"), Vec::<String>::new());
    let own = ask(&store(), |asked| asked.owner = Some("report".to_string()));
    assert_eq!(own, ["3 8 0 0 1 55000"]);
}

#[test]
fn without_a_tick_it_is_not_known_what_ran() {
    let mut tape = Tape::new();
    let seven = tape.session(1, "app", 7, 0);
    tape.tick(50, 1);
    tape.tick(60, 1);
    tape.tick(110, FAILED);
    tape.tick(120, FAILED);
    tape.seen(&seven, 50..70, 5, ACTIVE);
    tape.counted(1, 7, "app", 0, 0);
    let lines = ask(&tape.finish(), |asked| asked.bucket_us = Some(MINUTE));
    assert_eq!(lines, ["1 7 0 0 1 45000", "2 7 - - 1 55000", "3 7 - - - -"]);
}

#[test]
fn buckets_beyond_the_limit_have_no_executions() {
    let lines = |width_ms: i64| ask(&store(), |asked| asked.bucket_us = Some(width_ms * 1000));
    let known = lines(60).into_iter().filter(|line| !line.ends_with("- -"));
    // Both statements run at 18 ticks.
    assert_eq!(known.count(), 36);
    assert!(lines(59).iter().all(|line| line.ends_with("- -")));
}
