//! `indexes_history`, and the sizes of `tables_history`, on rows whose answers are computed by hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::Value;
use tacho_tape::testing::{Answer, Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const MINUTE: i64 = 60_000_000;
/// The middle of a UTC day, in minutes since 1970.
const NOON: i64 = 20_000 * 1440 + 720;

const TABLE: i64 = 16400;
const USED: i64 = 16410;
const UNUSED: i64 = 16420;
const SMALL: i64 = 16430;

fn catalog() -> Schema {
    tacho_tape::catalog::schema()
}

/// A row of `relation_state`. At the end of a round, `scans` is the minute since which all is known.
struct State {
    minute: i64,
    oid: i64,
    kind: &'static str,
    bytes: i64,
    scans: i64,
}

const fn state(minute: i64, oid: i64, kind: &'static str, bytes: i64, scans: i64) -> State {
    State {
        minute,
        oid,
        kind,
        bytes,
        scans,
    }
}

/// Rounds end 1, 11 and 21 minutes after noon. USED has 2 scans more in the second round, 3 more in
/// the third. SMALL appears in the second round.
const ROUNDS: [State; 10] = [
    state(0, TABLE, "table", 80_000, 1),
    state(0, USED, "primary key", 10_000, 100),
    state(0, UNUSED, "index", 40_000, 7),
    state(1, 0, "", 0, 0),
    state(10, USED, "primary key", 12_000, 102),
    state(10, SMALL, "unique index", 8_000, 0),
    state(11, 0, "", 0, 0),
    state(20, USED, "primary key", 20_000, 105),
    state(20, TABLE, "table", 96_000, 1),
    state(21, 0, "", 0, 0),
];

struct Tape(PartBuilder);

impl Tape {
    fn new(states: &[State]) -> Tape {
        let mut tape = Tape::without_names(30, states);
        tape.put_names();
        let activity = [
            ("time", (NOON + 15) * 60_000),
            ("elapsed_ms", 300_000),
            ("database_oid", 5),
            ("database", tape.0.name("shop").unwrap()),
            ("oid", TABLE),
            ("tuples_returned", 10),
        ];
        tape.0.row("table_stats", &activity).unwrap();
        tape
    }

    /// A tape with a tick in this minute.
    fn without_names(minute: i64, states: &[State]) -> Tape {
        let mut tape = Tape(PartBuilder::new(Arc::new(catalog().with_runs())).unwrap());
        let tick = [
            ("tick", 1),
            ("slot_time", (NOON + minute) * 60_000),
            ("interval_ms", 1000),
            ("status", 1),
        ];
        tape.0.row("tick", &tick).unwrap();
        states.iter().for_each(|state| tape.put(state));
        tape
    }

    fn put_names(&mut self) {
        for (oid, name) in [(TABLE, "orders"), (USED, "orders_pkey")] {
            let names = ["public", name].map(|name| self.0.name(name).unwrap());
            let row = [
                ("database_oid", 5),
                ("oid", oid),
                ("schema", names[0]),
                ("name", names[1]),
            ];
            self.0.row("relation", &row).unwrap();
        }
    }

    fn put(&mut self, state: &State) {
        let time = (NOON + state.minute) * 60_000;
        let mut row = vec![("time", time), ("oid", state.oid)];
        if state.oid == 0 && state.scans != 0 {
            row.push(("known_since", (NOON + state.scans) * 60_000));
        }
        if state.oid != 0 {
            let catalog = catalog();
            let mut kinds = catalog.labels("relation_kind");
            let kind = kinds.find(|kind| kind.label == state.kind);
            row.extend([
                ("database_oid", 5),
                ("database", self.0.name("shop").unwrap()),
                ("kind", kind.map_or(0, |kind| kind.value)),
                ("table_oid", if state.oid == TABLE { 0 } else { TABLE }),
                ("bytes", state.bytes + 1),
                ("scans", state.scans),
                ("tuples_returned", 10 * state.scans),
                ("last_scan", if state.scans > 0 { time } else { 0 }),
            ]);
        }
        self.0.row("relation_state", &row).unwrap();
    }

    /// The values of some columns, a row a line, of a window in minutes after noon.
    fn ask(
        self,
        function: &str,
        columns: &[&str],
        window: (i64, i64),
        change: impl FnOnce(&mut Arguments),
    ) -> Vec<String> {
        ask_nodes(vec![self], function, columns, window, change)
    }
}

/// The same of the tapes of several nodes.
fn ask_nodes(
    tapes: Vec<Tape>,
    function: &str,
    columns: &[&str],
    window: (i64, i64),
    change: impl FnOnce(&mut Arguments),
) -> Vec<String> {
    let identity = |node: usize| Identity {
        node: node as u64 + 1,
        system_identifier: 77,
        ..Identity::default()
    };
    let tapes = tapes.into_iter().enumerate();
    let parts = tapes.map(|(node, tape)| tape.0.finish(identity(node)));
    let store = Snapshot::from_parts(parts.collect::<Vec<_>>());
    let catalog = catalog();
    let mut spec = Arguments::new(&catalog, (NOON + 60) * MINUTE);
    spec.since_us = Some((NOON + window.0) * MINUTE);
    spec.until_us = Some((NOON + window.1) * MINUTE);
    change(&mut spec);
    let mut answer = Answer::default();
    run(function, &spec, &store, &mut answer).unwrap();
    let place = |name: &&str| answer.place(name);
    let places: Vec<usize> = columns.iter().map(place).collect();
    let text = |row: &Vec<Value>| -> String {
        let values = places.iter().map(|place| shown(&row[*place]));
        values.collect::<Vec<_>>().join(" ")
    };
    answer.rows.iter().map(text).collect()
}

/// A value; a time in minutes after noon.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_string(),
        Value::Text(text) => text.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Time(us) => format!("+{}", us / MINUTE - NOON),
        other => panic!("{other:?}"),
    }
}

fn indexes(columns: &[&str], window: (i64, i64)) -> Vec<String> {
    Tape::new(&ROUNDS).ask("indexes_history", columns, window, |_| ())
}

#[test]
fn indexes_without_scans_come_first_the_larger_before_the_smaller() {
    let columns = ["key", "kind", "table_name", "database", "scans", "bytes"];
    let expected = [
        "5/16420 index public.orders shop 0 40000",
        "5/16430 unique index public.orders shop 0 8000",
        "public.orders_pkey primary key public.orders shop 5 20000",
    ];
    assert_eq!(indexes(&columns, (-5, 30)), expected);
}

#[test]
fn scans_and_growth_before_the_window_do_not_count() {
    let columns = [
        "oid",
        "scans",
        "tuples_returned",
        "growth_bytes",
        "last_scan",
    ];
    let both = ["16420 0 0 0 +0", "16430 0 0 0 null", "16410 5 50 10000 +20"];
    assert_eq!(indexes(&columns, (5, 30)), both);
    let last = ["16420 0 0 0 +0", "16430 0 0 0 null", "16410 3 30 8000 +20"];
    assert_eq!(indexes(&columns, (15, 30)), last);
    let second = ["16420 0 0 0 +0", "16430 0 0 0 null", "16410 2 20 2000 +10"];
    assert_eq!(indexes(&columns, (5, 15)), second);
}

#[test]
fn an_answer_says_when_it_is_known() {
    let columns = ["oid", "known_from", "known_until"];
    let expected = ["16420 +1 +21", "16430 +10 +21", "16410 +1 +21"];
    assert_eq!(indexes(&columns, (5, 30)), expected);
    let without_round = ["16420 +11 null", "16410 +11 null", "16430 +11 null"];
    assert_eq!(indexes(&columns, (12, 18)), without_round);
    assert!(indexes(&columns, (-10, 0)).is_empty());
}

#[test]
fn buckets_add_up_to_the_window() {
    let columns = ["period_start", "oid", "scans"];
    let found = Tape::new(&ROUNDS).ask("indexes_history", &columns, (5, 25), |spec| {
        spec.bucket_us = Some(10 * MINUTE);
        spec.n = Some(3);
    });
    let used: Vec<_> = found.iter().filter(|row| row.contains("16410")).collect();
    assert_eq!(used, ["+5 16410 2", "+10 16410 3", "+20 16410 0"]);
}

#[test]
fn a_reset_of_the_statistics_begins_at_zero() {
    let states = [
        state(0, USED, "index", 10_000, 100),
        state(10, USED, "index", 10_000, 4),
        state(11, 0, "", 0, 0),
    ];
    let found = Tape::new(&states).ask("indexes_history", &["scans"], (0, 30), |_| ());
    assert_eq!(found, ["4"]);
}

#[test]
fn a_dropped_index_has_no_row() {
    let dropped = [
        state(0, USED, "index", 10_000, 100),
        state(0, UNUSED, "index", 10_000, 0),
        state(1, 0, "", 0, 0),
        state(10, USED, "", 10_000, 100),
        state(11, 0, "", 0, 0),
    ];
    let of = |window| Tape::new(&dropped).ask("indexes_history", &["oid"], window, |_| ());
    assert_eq!(of((-5, 30)), ["16420"]);
    assert_eq!(of((-5, 5)), ["16410", "16420"]);
    let yesterday = [
        state(-1440, USED, "index", 10_000, 100),
        state(0, UNUSED, "index", 10_000, 0),
        state(1, 0, "", 0, 0),
    ];
    let found = Tape::new(&yesterday).ask("indexes_history", &["oid"], (-5, 30), |_| ());
    assert_eq!(found, ["16420"]);
}

#[test]
fn an_index_that_a_restarted_sampler_has_forgotten_is_known_until_the_restart() {
    let states = [
        state(0, USED, "index", 10_000, 100),
        state(0, UNUSED, "index", 10_000, 0),
        state(1, 0, "", 0, 0),
        state(10, USED, "index", 10_000, 103),
        // The sampler has started at minute 5, so its rounds say nothing of UNUSED.
        State {
            scans: 5,
            ..state(11, 0, "", 0, 0)
        },
    ];
    let columns = ["oid", "scans", "known_until"];
    let of = |window| Tape::new(&states).ask("indexes_history", &columns, window, |_| ());
    assert_eq!(of((-5, 30)), ["16420 0 +1", "16410 3 +11"]);
    assert_eq!(
        of((6, 30)),
        ["16410 3 +11"],
        "nothing is known of the other"
    );
}

#[test]
fn scans_of_several_nodes_add_up() {
    let standby = [
        state(0, USED, "primary key", 10_000, 5),
        state(1, 0, "", 0, 0),
        state(11, USED, "primary key", 10_000, 6),
        state(12, 0, "", 0, 0),
    ];
    let tapes = vec![Tape::new(&ROUNDS), Tape::new(&standby)];
    let columns = ["oid", "scans", "growth_bytes", "known_until"];
    let found = ask_nodes(tapes, "indexes_history", &columns, (5, 30), |spec| {
        spec.node = Some("all".to_string());
    });
    assert_eq!(found[2], "16410 6 10000 +12");
}

/// USED on two nodes: in the rounds until minute 21, then on another node from this minute on. Its
/// columns scans, growth_bytes, known_from and known_until.
fn two_nodes(from: i64) -> String {
    let later = [
        state(from, USED, "primary key", 21_000, 106),
        state(from, 0, "", 0, 0),
        state(41, USED, "primary key", 24_000, 110),
        state(42, 0, "", 0, 0),
    ];
    let mut second = Tape::new(&later);
    let tick = [
        ("tick", 2),
        ("slot_time", (NOON + 42) * 60_000),
        ("interval_ms", 1000),
        ("status", 1),
    ];
    second.0.row("tick", &tick).unwrap();
    let tapes = vec![Tape::new(&ROUNDS), second];
    let columns = ["oid", "scans", "growth_bytes", "known_from", "known_until"];
    let found = ask_nodes(tapes, "indexes_history", &columns, (5, 50), |spec| {
        spec.node = Some("all".to_string());
    });
    found[2].clone()
}

#[test]
fn what_nodes_know_one_after_the_other_is_known() {
    assert_eq!(two_nodes(21), "16410 9 13000 +1 +42");
}

#[test]
fn a_time_between_two_nodes_is_not_known() {
    assert_eq!(two_nodes(31), "16410 9 3000 +31 +42");
}

#[test]
fn orders_are_by_a_measure_and_others_are_refused() {
    let first = |order: &str| {
        let found = Tape::new(&ROUNDS).ask("indexes_history", &["oid"], (5, 30), |spec| {
            spec.order_by = Some(order.to_string());
            spec.n = Some(1);
        });
        found.join(" ")
    };
    assert_eq!(first("scans"), "16410");
    assert_eq!(first("growth_bytes"), "16410");
    assert_eq!(first("bytes"), "16420");
    let store = Snapshot::from_parts(vec![]);
    let catalog = catalog();
    let mut spec = Arguments::new(&catalog, 0);
    spec.order_by = Some("name".to_string());
    let error = run("indexes_history", &spec, &store, &mut Answer::default()).unwrap_err();
    assert_eq!(error.message, "invalid order_by \"name\"");
}

#[test]
fn a_role_that_sees_its_own_rows_sees_numbers() {
    let columns = ["key", "table_name"];
    let found = Tape::new(&ROUNDS).ask("indexes_history", &columns, (5, 30), |spec| {
        spec.owner = Some("app".to_string());
    });
    let expected = ["5/16420 5/16400", "5/16430 5/16400", "5/16410 5/16400"];
    assert_eq!(found, expected);
}

#[test]
fn a_name_stays_known_in_a_database_that_is_closed_for_long() {
    let mut month_before = Tape::without_names(-30 * 1440, &[]);
    month_before.put_names();
    let now = Tape::without_names(30, &ROUNDS);
    let columns = ["key", "table_name"];
    let found = ask_nodes(
        vec![month_before, now],
        "indexes_history",
        &columns,
        (5, 30),
        |_| (),
    );
    assert_eq!(found[2], "public.orders_pkey public.orders");
}

#[test]
fn a_table_has_its_kind_and_size() {
    let columns = ["key", "kind", "bytes", "growth_bytes"];
    let found = Tape::new(&ROUNDS).ask("tables_history", &columns, (5, 30), |spec| {
        spec.order_by = Some("growth_bytes".to_string());
    });
    assert_eq!(found, ["public.orders table 96000 16000"]);
}
