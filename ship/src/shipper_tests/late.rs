//! Rows that arrive after the end of their hour.

use super::{BEGIN_MS, NODE, directory, number, rows, settings};
use crate::hours::HOUR_MS;
use crate::shipper::Shipper;
use parquet::record::Field as Cell;
use std::ops::Range;
use std::sync::Arc;
use tacho_tape::testing::stats_schema;
use tacho_tape::{Identity, Part, PartBuilder, Snapshot};

const MINUTE_MS: i64 = 60_000;

/// Minutes of a part, and its passes as in [`part`].
pub type Recorded<'a> = (Range<i64>, &'a [(i64, i64)]);

pub fn minute(number: i64) -> i64 {
    BEGIN_MS + number * MINUTE_MS
}

/// A part with a tick per minute. `passes` has the minute of each pass and the
/// number of minutes since the previous one; a pass counts one call per minute.
fn part(minutes: Range<i64>, passes: &[(i64, i64)]) -> Part {
    builder(minutes, passes).finish(identity())
}

pub fn identity() -> Identity {
    Identity {
        node: NODE,
        ..Identity::default()
    }
}

pub fn builder(minutes: Range<i64>, passes: &[(i64, i64)]) -> PartBuilder {
    let mut b = PartBuilder::new(Arc::new(stats_schema())).unwrap();
    for at in minutes {
        let tick = [("tick", at), ("slot_time", minute(at))];
        let others = [("interval_ms", MINUTE_MS), ("status", 1)];
        b.row("tick", &[&tick[..], &others].concat()).unwrap();
    }
    let entry = [("query_id", 77), ("toplevel", 1)];
    let entry = b.intern("entry", &entry).unwrap();
    for (at, minutes) in passes {
        let pass = [("time", minute(*at)), ("elapsed_ms", minutes * MINUTE_MS)];
        let own = [("entry", entry), ("calls", *minutes)];
        b.row("statement_stats", &[&pass[..], &own].concat())
            .unwrap();
        b.row("statement_stats", &pass).unwrap();
    }
    b
}

#[test]
fn a_late_pass_over_the_statistics_is_shipped_once_with_its_hour() {
    let root = tempfile::tempdir().unwrap();
    let place = directory(root.path());
    let mut shipper = Shipper::new(&place, settings("shop"));
    let mut look = |parts: &[Recorded], now| {
        let parts = parts
            .iter()
            .map(|(minutes, passes)| part(minutes.clone(), passes));
        let tape = Snapshot::from_parts(parts);
        let done = shipper
            .ship_due_hours(&tape, minute(now), &|| true)
            .unwrap();
        let counted = rows(root.path(), "statements");
        let counted = counted.iter().filter(|row| row["toplevel"] != Cell::Null);
        let counted: Vec<(i64, i64)> = counted
            .map(|row| (number(row, "hour"), number(row, "calls")))
            .collect();
        (done.hours, counted)
    };
    let first = BEGIN_MS * 1_000;
    // A pass every 13 minutes: the pass at minute 65 covers the time from minute
    // 52 on.
    let whole = (0..60, &[(13, 13), (26, 13), (39, 13), (52, 13)][..]);
    let behind = (60..63, &[][..]);
    assert_eq!(look(&[whole.clone(), behind.clone()], 64), (0, vec![]));
    let late = (63..70, &[(65, 13)][..]);
    let parts = [whole, behind, late];
    assert_eq!(look(&parts, 70), (1, vec![(first, 13); 5]));
    assert_eq!(look(&parts, 119), (0, vec![(first, 13); 5]));
    // No pass since minute 65: a later one may cover the time from then on.
    assert_eq!(look(&parts, 179), (0, vec![(first, 13); 5]));
    let [whole, behind, late] = parts;
    let parts = [whole, behind, late, (126..128, &[(126, 61)][..])];
    let second = (BEGIN_MS + HOUR_MS) * 1_000;
    let mut all = vec![(first, 13); 5];
    all.push((second, 61));
    assert_eq!(look(&parts, 128), (1, all.clone()));
    assert_eq!(look(&parts, 400), (1, all.clone()));
    assert_eq!(look(&parts, 401), (0, all));
}

#[test]
fn without_statistics_an_hour_waits_as_long_as_the_longest_pass_may_take() {
    let root = tempfile::tempdir().unwrap();
    let place = directory(root.path());
    let mut shipper = Shipper::new(&place, settings("shop"));
    let tape = Snapshot::from_parts([part(0..90, &[])]);
    let mut look = |now| {
        shipper
            .ship_due_hours(&tape, minute(now), &|| true)
            .unwrap()
            .hours
    };
    assert_eq!([60, 119, 120, 121].map(&mut look), [0, 0, 1, 0]);
}

#[test]
fn a_pass_without_its_end_settles_nothing() {
    let mut b = PartBuilder::new(Arc::new(stats_schema())).unwrap();
    for at in 0..65 {
        let tick = [("tick", at), ("slot_time", minute(at))];
        b.row("tick", &tick).unwrap();
    }
    let entry = b.intern("entry", &[("query_id", 77)]).unwrap();
    let row = [("time", minute(62)), ("elapsed_ms", MINUTE_MS)];
    b.row("statement_stats", &[&row[..], &[("entry", entry)]].concat())
        .unwrap();
    let tape = Snapshot::from_parts([b.finish(identity())]);
    let root = tempfile::tempdir().unwrap();
    let place = directory(root.path());
    let mut shipper = Shipper::new(&place, settings("shop"));
    let mut look = |now| {
        shipper
            .ship_due_hours(&tape, minute(now), &|| true)
            .unwrap()
            .hours
    };
    assert_eq!([66, 119, 120].map(&mut look), [0, 0, 1]);
}

#[test]
fn history_removed_before_shipping_is_reported_once_with_its_hour() {
    let root = tempfile::tempdir().unwrap();
    let place = directory(root.path());
    let mut shipper = Shipper::new(&place, settings("shop"));
    let mut b = builder(0..61, &[]);
    for detail in ["a.retention_size", "a.retention_unshipped, not shipped yet"] {
        let detail = format!("2 files of 7 bytes: the history exceeded {detail}");
        let detail = b.name(&detail).unwrap();
        let kind = stats_schema().value("marker", "history removed").unwrap();
        let times = [("since", minute(-120)), ("until", minute(-90))];
        let marker = [("time", minute(5)), ("kind", kind), ("detail", detail)];
        b.row("marker", &[&marker[..], &times].concat()).unwrap();
    }
    let tape = Snapshot::from_parts([b.finish(identity())]);
    let done = shipper
        .ship_due_hours(&tape, minute(240), &|| true)
        .unwrap();
    let told = "history of 2026-10-15 18:00:00Z to 2026-10-15 18:30:00Z was removed: 2 files of 7 bytes: the history exceeded a.retention_unshipped, not shipped yet";
    assert_eq!(done.lost, [told]);
    let again = shipper
        .ship_due_hours(&tape, minute(240), &|| true)
        .unwrap();
    assert_eq!(again.lost, Vec::<String>::new());
}
