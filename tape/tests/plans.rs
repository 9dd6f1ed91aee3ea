//! `plans` and `plan_changes` on executions that are known by hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::{Field, QueryResult, Sink, Value};
use tacho_tape::testing::{Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const MINUTE: i64 = 60_000_000;

fn catalog() -> Schema {
    tacho_tape::catalog::schema()
}

/// Executions of a plan in a minute: id, calls, ms, longest ms (0 = not known).
type Counted = (i64, i64, i64, i64);

struct Tape(PartBuilder);

impl Tape {
    fn new() -> Tape {
        Tape(PartBuilder::new(Arc::new(catalog().with_runs())).unwrap())
    }

    fn entry(&mut self, query_id: i64) -> i64 {
        let names = ["shop", "app"].map(|name| self.0.name(name).unwrap());
        let values = [
            ("query_id", query_id),
            ("database", names[0]),
            ("username", names[1]),
            ("toplevel", 1),
        ];
        self.0.intern("entry", &values).unwrap()
    }

    /// A minute of a statement: its calls and their time in ms, each of one row and two
    /// blocks.
    fn minute(&mut self, minute: i64, query_id: i64, calls: i64, ms: i64) {
        let entry = self.entry(query_id);
        self.row("statement_stats", minute, entry, calls, ms, &[]);
    }

    fn row(
        &mut self,
        table: &str,
        minute: i64,
        entry: i64,
        calls: i64,
        ms: i64,
        more: &[(&str, i64)],
    ) {
        let row = [
            ("time", minute * 60_000),
            ("elapsed_ms", 60_000),
            ("entry", entry),
            ("calls", calls),
            ("total_exec_time", ms * 100),
            ("rows", calls),
            ("shared_blks_hit", calls),
            ("shared_blks_read", calls),
        ];
        self.0.row(table, &[&row[..], more].concat()).unwrap();
    }

    /// A minute of a statement that has several plans; `alone` is the plan that it had
    /// alone since second 1.
    fn plans(&mut self, minute: i64, query_id: i64, alone: i64, counted: &[Counted]) {
        let entry = self.entry(query_id);
        let sum = |of: fn(&Counted) -> i64| counted.iter().map(of).sum();
        self.row(
            "statement_stats",
            minute,
            entry,
            sum(|c| c.1),
            sum(|c| c.2),
            &[],
        );
        for &(plan_id, calls, ms, longest) in counted {
            let since = match plan_id {
                0 => 0,
                id if id == alone => 1_000,
                id => 60_000 * 2 + id,
            };
            let more = [
                ("plan_id", plan_id),
                ("plan_since", since),
                ("was_alone", i64::from(plan_id == alone)),
                ("max_exec_time", longest * 100),
            ];
            self.row("plan_stats", minute, entry, calls, ms, &more);
        }
    }

    /// A tick at second 30 of a minute, with a session that executes a plan, or none.
    fn seen(&mut self, minute: i64, query_id: i64, plan_id: i64) {
        let tick = minute - 1;
        let values = [
            ("tick", tick),
            ("slot_time", tick * 60_000 + 30_000),
            ("interval_ms", 60_000),
            ("status", 1),
        ];
        self.0.row("tick", &values).unwrap();
        if plan_id == 0 {
            return;
        }
        let names = ["shop", "app"].map(|name| self.0.name(name).unwrap());
        let session = [
            ("pid", 1),
            ("category", 1),
            ("database", names[0]),
            ("username", names[1]),
        ];
        let session = self.0.intern("session", &session).unwrap();
        let statement = [("query_id", query_id), ("plan_id", plan_id)];
        let statement = self.0.intern("statement", &statement).unwrap();
        let values = [("state", 1), ("statement", statement)];
        self.0.sample(tick as u64, session, &values).unwrap();
    }

    fn finish(self) -> Snapshot {
        Snapshot::from_parts(vec![self.0.finish(Identity::default())])
    }
}

struct Lines<'c> {
    columns: &'c [&'c str],
    places: Vec<usize>,
    lines: Vec<String>,
}

impl Sink for Lines<'_> {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        let place = |name: &&str| fields.iter().position(|f| f.0 == *name).unwrap();
        self.places = self.columns.iter().map(place).collect();
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        let text = |place: &usize| match &values[*place] {
            Value::Int(n) | Value::Id(n) => n.to_string(),
            Value::Numeric(n) => (*n as f64 / 10_000.0).to_string(),
            Value::Time(us) => format!("{}s", *us as f64 / 1e6),
            Value::Interval(us) => format!("{}s", us / 1_000_000),
            Value::Text(text) => text.to_string(),
            _ => "-".to_string(),
        };
        let texts: Vec<String> = self.places.iter().map(text).collect();
        self.lines.push(texts.join(" "));
        Ok(())
    }
}

fn ask(
    store: &Snapshot,
    function: &str,
    columns: &[&str],
    change: impl FnOnce(&mut Arguments),
) -> Vec<String> {
    let catalog = catalog();
    let mut arguments = Arguments::new(&catalog, 60 * MINUTE);
    arguments.since_us = Some(0);
    change(&mut arguments);
    let mut lines = Lines {
        columns,
        places: Vec::new(),
        lines: Vec::new(),
    };
    run(function, &arguments, store, &mut lines).unwrap();
    lines.lines
}

const PLANS: &[&str] = &[
    "query_id",
    "plan_id",
    "calls",
    "mean_exec_time",
    "max_exec_time",
    "pct",
    "first_seen",
    "last_seen",
    "source",
];
const CHANGES: &[&str] = &[
    "query_id",
    "old_plan_id",
    "new_plan_id",
    "changed_at",
    "grain",
    "old_calls",
    "new_calls",
    "old_mean_exec_time",
    "new_mean_exec_time",
    "ratio",
    "time_lost",
];

fn plans(store: &Snapshot, query_id: Option<&str>) -> Vec<String> {
    ask(store, "plans", PLANS, |arguments| {
        let filter = query_id.map(|id| ("query_id".to_string(), id.to_string()));
        arguments.filters.extend(filter);
    })
}

fn changes(store: &Snapshot) -> Vec<String> {
    ask(store, "plan_changes", CHANGES, |_| ())
}

/// Query 7 has plan 5 of 1 ms for two minutes. In the third it turns to plan 6 of 11 ms, and stays
/// there for two more. Query 8 has one plan all the time.
fn turned() -> Tape {
    let mut tape = Tape::new();
    for minute in 1..=2 {
        tape.minute(minute, 7, 100, 100);
    }
    tape.plans(3, 7, 5, &[(5, 40, 40, 2), (6, 60, 660, 12)]);
    for minute in 4..=5 {
        tape.plans(minute, 7, 5, &[(6, 100, 1_100, 15)]);
    }
    for minute in 1..=5 {
        tape.minute(minute, 8, 10, 100);
    }
    tape
}

#[test]
fn minutes_before_the_second_plan_are_of_the_first_one() {
    let store = turned().finish();
    let expected = [
        "7 6 260 11 15 92.2581 120.006s 300s counters",
        "7 5 240 1 - 7.7419 1s 180s counters",
    ];
    assert_eq!(plans(&store, Some("7")), expected);
    assert_eq!(plans(&store, None), expected);
}

#[test]
fn the_p95_of_a_plan_is_of_intervals_without_another_plan() {
    let mut tape = Tape::new();
    let entry = tape.entry(7);
    let stats = |tape: &mut Tape, minute, calls, ms, more: &[(&str, i64)]| {
        tape.row("statement_stats", minute, entry, calls, ms, more);
    };
    let mut counted = |minute, plan_id, calls, ms| {
        let alone = plan_id == 5;
        let more = [
            ("plan_id", plan_id),
            ("plan_since", if alone { 1_000 } else { 130_000 }),
            ("was_alone", i64::from(alone)),
        ];
        tape.row("plan_stats", minute, entry, calls, ms, &more);
    };
    counted(3, 5, 50, 75);
    counted(3, 6, 50, 15_000);
    counted(4, 6, 50, 15_000);
    counted(6, 8, 1, 40_000);
    counted(6, 9, 1, 1);
    // Workers of plan 7 ended in a minute in which only plan 6 has calls.
    counted(7, 6, 50, 15_000);
    let workers = [("plan_id", 7), ("plan_since", 400_000), ("cpu_time", 300)];
    tape.row("plan_stats", 7, entry, 0, 0, &workers);
    // Plan 5 alone: 1.024 to 2.048 ms. Then both plans, in one histogram.
    stats(&mut tape, 1, 60, 90, &[("histogram_10", 60)]);
    stats(&mut tape, 2, 40, 60, &[("histogram_10", 40)]);
    let both = [("histogram_10", 50), ("histogram_18", 50)];
    stats(&mut tape, 3, 100, 15_075, &both);
    // Plan 6 alone: 262.144 to 524.288 ms. Minute 5 has no executions.
    stats(&mut tape, 4, 50, 15_000, &[("histogram_18", 50)]);
    let both = [
        ("histogram_9", 1),
        ("histogram_22", 1),
        ("histogram_long_3", 1),
    ];
    stats(&mut tape, 6, 2, 40_001, &both);
    stats(&mut tape, 7, 50, 15_000, &[("histogram_18", 50)]);
    let columns = ["plan_id", "calls", "mean_exec_time", "p95_exec_time"];
    let store = tape.finish();
    let found = ask(&store, "plans", &columns, |arguments| {
        arguments.filters.push(("query_id".into(), "7".into()));
    });
    // 100 calls took 150 ms, so the slowest is below 1.976 ms: 1.024 + 0.95 * 0.952. The 100 calls
    // of plan 6 alone took 30 s, so the slowest is below 337.856 ms: 262.144 + 0.95 * 75.712.
    let expected = [
        "6 150 300 334.0704",
        "8 1 40000 -",
        "5 150 1.5 1.9284",
        "9 1 1 -",
        "7 0 - -",
    ];
    assert_eq!(found, expected);
}

#[test]
fn plans_have_the_cpu_time_of_their_statement() {
    let mut tape = Tape::new();
    let entry = tape.entry(7);
    let cpu = |user: i64, system: i64| [("user_time", user * 100), ("system_time", system * 100)];
    // 12 ms alone, then 5 ms of the first plan and 30 ms of the second one.
    tape.row("statement_stats", 1, entry, 10, 20, &cpu(9, 3));
    tape.row("statement_stats", 2, entry, 10, 60, &cpu(31, 4));
    let mut counted = |minute, plan_id, calls, since, alone, ms: i64| {
        let more = [
            ("plan_id", plan_id),
            ("plan_since", since),
            ("was_alone", alone),
            ("cpu_time", ms * 100),
        ];
        tape.row("plan_stats", minute, entry, calls, calls, &more);
    };
    counted(2, 5, 6, 1_000, 1, 5);
    counted(2, 6, 4, 120_000, 0, 30);
    // Workers of the second plan ended before the minute of its call.
    counted(3, 6, 0, 120_000, 0, 8);
    counted(4, 6, 1, 120_000, 0, 2);
    tape.row("statement_stats", 3, entry, 0, 0, &cpu(8, 0));
    tape.row("statement_stats", 4, entry, 1, 1, &cpu(1, 1));
    // Query 8 has one plan, and workers that ended before the minute of its call.
    let entry = tape.entry(8);
    tape.row("statement_stats", 1, entry, 0, 0, &cpu(7, 0));
    tape.row("statement_stats", 2, entry, 1, 9, &cpu(2, 0));
    // Query 9 has two plans. Workers of the second one have ended, but its call has not.
    let entry = tape.entry(9);
    tape.row("statement_stats", 1, entry, 3, 9, &cpu(15, 1));
    for (plan_id, calls, alone, ms) in [(5, 3, 1, 4), (6, 0, 0, 12), (7, 0, 0, 0)] {
        let more = [
            ("plan_id", plan_id),
            ("plan_since", plan_id * 1_000),
            ("was_alone", alone),
            ("cpu_time", ms * 100),
        ];
        tape.row("plan_stats", 1, entry, calls, calls * 3, &more);
    }
    let store = tape.finish();
    let columns = [
        "query_id",
        "plan_id",
        "calls",
        "cpu_time",
        "mean_exec_time",
        "max_exec_time",
    ];
    let of = |query_id: &str| {
        ask(&store, "plans", &columns, |arguments| {
            let filter = ("query_id".to_string(), query_id.to_string());
            arguments.filters.push(filter);
        })
    };
    assert_eq!(of("7"), ["7 5 16 17 1.625 -", "7 6 5 40 1 -"]);
    assert_eq!(of("8"), ["8 - 1 9 9 -"]);
    assert_eq!(of("9"), ["9 5 3 4 3 -", "9 6 0 12 - -"]);
    let several = ask(&store, "plans", &["query_id", "plan_id"], |_| ());
    assert_eq!(
        several,
        ["7 5", "7 6"],
        "query 9 has calls of one plan only"
    );
}

#[test]
fn a_turn_costs_what_its_executions_take_longer() {
    let store = turned().finish();
    let expected = ["7 5 6 120.006s - 240 260 1 11 11 2600"];
    assert_eq!(changes(&store), expected);
}

#[test]
fn a_turn_is_exact_if_most_calls_of_its_minute_had_the_old_plan() {
    let mut tape = Tape::new();
    for minute in 1..=2 {
        tape.minute(minute, 7, 100, 100);
    }
    tape.plans(3, 7, 5, &[(5, 600, 600, 2), (6, 60, 660, 12)]);
    tape.plans(4, 7, 5, &[(6, 100, 1_100, 15)]);
    let expected = ["7 5 6 120.006s - 800 100 1 11 11 1000"];
    assert_eq!(changes(&tape.finish()), expected);
}

#[test]
fn a_statement_with_one_plan_has_the_plan_of_its_samples() {
    let mut tape = turned();
    assert_eq!(
        plans(&turned().finish(), Some("8")),
        ["8 - 50 10 - 100 0s 300s not known: one plan, in no sample"]
    );
    for minute in 1..=5 {
        tape.seen(minute, 8, if minute == 2 { 9 } else { 0 });
    }
    assert_eq!(
        plans(&tape.finish(), Some("8")),
        ["8 9 50 10 - 100 0s 300s samples"]
    );
}

#[test]
fn an_execution_may_have_its_samples_before_the_interval_of_its_end() {
    let mut tape = Tape::new();
    tape.seen(1, 8, 9);
    tape.seen(2, 8, 0);
    tape.minute(2, 8, 1, 50_000);
    assert_eq!(
        plans(&tape.finish(), Some("8")),
        ["8 9 1 50000 - 100 60s 120s samples"]
    );
}

#[test]
fn a_restart_between_two_plans_is_seen_in_samples() {
    let mut tape = Tape::new();
    for minute in 1..=6 {
        let ms = if minute < 4 { 100 } else { 1_000 };
        tape.minute(minute, 8, 50, ms);
        tape.seen(minute, 8, [0, 9, 0, 9, 0, 10, 0][minute as usize]);
    }
    let store = tape.finish();
    let expected = [
        "8 10 100 20 - 60.6061 240s 360s samples",
        "8 - 50 20 - 30.303 180s 240s not known: one plan at a time, several in samples",
        "8 9 150 2 - 9.0909 0s 180s samples",
    ];
    assert_eq!(plans(&store, None).len(), 3);
    let mut found = plans(&store, Some("8"));
    found.sort();
    let mut expected = expected.map(str::to_string);
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(changes(&store), ["8 9 10 240s 60s 150 100 2 20 10 1800"]);
}

#[test]
fn plans_that_made_room_have_no_id() {
    let mut tape = Tape::new();
    tape.plans(1, 7, 5, &[(5, 10, 10, 1), (6, 10, 10, 1), (0, 5, 5, 0)]);
    assert_eq!(
        plans(&tape.finish(), None),
        [
            "7 5 10 1 1 40 1s 60s counters",
            "7 6 10 1 1 40 120.006s 60s counters",
            "7 - 5 1 - 20 0s 60s not known: more than four plans, or counted before a start",
        ]
    );
}

#[test]
fn plans_that_alternate_are_no_turns() {
    // In one minute.
    let mut tape = Tape::new();
    for minute in 1..=9 {
        tape.plans(minute, 7, 5, &[(5, 50, 50, 1), (6, 50, 500, 10)]);
    }
    assert_eq!(changes(&tape.finish()), [""; 0]);
    // From minute to minute.
    let mut tape = Tape::new();
    for minute in 1..=9 {
        tape.plans(minute, 7, 5, &[(5 + minute % 2, 100, 500, 10)]);
    }
    assert_eq!(changes(&tape.finish()), [""; 0]);
}

#[test]
fn a_plan_that_comes_back_is_another_turn() {
    let mut tape = Tape::new();
    for (minute, plan) in [5, 5, 6, 6, 5, 5].into_iter().enumerate() {
        let ms = if plan == 5 { 100 } else { 1_000 };
        tape.plans(minute as i64 + 1, 7, 5, &[(plan, 100, ms, 0)]);
    }
    let expected = [
        "7 5 6 120.006s - 200 200 1 10 10 1800",
        "7 6 5 240s 60s 200 200 10 1 0.1 -1800",
    ];
    let store = tape.finish();
    assert_eq!(changes(&store), expected);
    let back = ask(&store, "plan_changes", &["new_plan_id", "back_at"], |_| ());
    assert_eq!(back, ["6 240s", "5 -"], "the first plan is back since then");
}

#[test]
fn a_side_has_twenty_calls_or_thirty_seconds() {
    let turn = |calls: i64, ms: i64| {
        let mut tape = Tape::new();
        tape.plans(1, 7, 5, &[(5, 100, 100, 0)]);
        tape.plans(2, 7, 5, &[(5, 100, 100, 0), (6, 1, 1, 0)]);
        tape.plans(3, 7, 5, &[(6, calls, ms, 0)]);
        changes(&tape.finish()).len()
    };
    assert_eq!([turn(19, 29_999), turn(20, 20), turn(1, 30_000)], [0, 1, 1]);
    // One execution by another plan in between is no turn.
    let mut tape = Tape::new();
    for (minute, plan) in [5, 6, 5].into_iter().enumerate() {
        let calls = if plan == 5 { 100 } else { 1 };
        tape.plans(minute as i64 + 1, 7, 5, &[(plan, calls, 10, 0)]);
    }
    assert_eq!(changes(&tape.finish()), [""; 0]);
}
