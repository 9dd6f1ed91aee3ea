//! Answers of a server whose history two nodes recorded, one after the other.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::{Context, Numeric, StatementsHistory};
use tacho_tape::{Identity, Part, PartBuilder, Snapshot};

const HOUR: i64 = 60;
const MINUTE_US: i64 = 60_000_000;

/// A node that counted 60 calls a minute in these minutes.
fn node(id: u64, minutes: std::ops::Range<i64>) -> Part {
    let catalog = tacho_tape::catalog::schema();
    let mut tape = PartBuilder::new(Arc::new(catalog.with_runs())).unwrap();
    let entry = [("query_id", 7), ("toplevel", 1)];
    let entry = tape.intern("entry", &entry).unwrap();
    for minute in minutes {
        let time_ms = (minute + 1) * 60_000;
        let tick = [
            ("tick", minute + 1),
            ("slot_time", time_ms - 1),
            ("interval_ms", 1000),
            ("status", 1),
        ];
        tape.row("tick", &tick).unwrap();
        let interval = [("time", time_ms), ("elapsed_ms", 60_000)];
        let calls = [("entry", entry), ("calls", 60), ("total_exec_time", 600)];
        tape.row("statement_stats", &[&interval[..], &calls].concat())
            .unwrap();
        tape.row("statement_stats", &interval).unwrap();
    }
    tape.finish(Identity {
        node: id,
        system_identifier: 77,
        ..Identity::default()
    })
}

/// Calls a second and coverage in percent of a day, in units of 10⁻⁴.
fn day(nodes: Vec<Part>, of: Option<&str>) -> (Option<Numeric>, Option<Numeric>) {
    let store = Snapshot::from_parts(nodes);
    let catalog = tacho_tape::catalog::schema();
    let request = StatementsHistory {
        node: of.map(str::to_string),
        since: Some(0),
        until: Some(24 * HOUR * MINUTE_US),
        bucket: Some(24 * HOUR * MINUTE_US),
        ..StatementsHistory::default()
    };
    let context = Context::new(&catalog, 24 * HOUR * MINUTE_US);
    let rows = store.statements_history(&request, &context).unwrap().rows;
    (rows[0].calls_per_second, rows[0].coverage_pct)
}

#[test]
fn times_of_nodes_in_turn_add_up() {
    let nodes = || vec![node(1, 0..10 * HOUR), node(2, 10 * HOUR..18 * HOUR)];
    let expected = (Some(Numeric(10_000)), Some(Numeric(750_000)));
    assert_eq!(day(nodes(), None), expected);
    assert_eq!(day(nodes(), Some("all")), expected);
}

#[test]
fn of_nodes_at_once_the_longest_counts() {
    let nodes = vec![node(1, 0..12 * HOUR), node(2, 0..6 * HOUR)];
    let expected = (Some(Numeric(15_000)), Some(Numeric(500_000)));
    assert_eq!(day(nodes, Some("all")), expected);
}
