//! The choice of nodes and parts that are shipped.

use super::late::{builder, identity, minute};
use super::{directory, number, rows, settings, text};
use crate::shipper::Shipper;
use parquet::record::Field as Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use tacho_tape::files::node::Recorded;
use tacho_tape::format::sealed_write::FrameRange;
use tacho_tape::testing::memory::MemoryStorage;
use tacho_tape::testing::stats_schema;
use tacho_tape::write::seal::write_sealed;
use tacho_tape::{Identity, PartBuilder, Snapshot};

#[test]
fn every_node_is_shipped_except_nodes_of_other_servers() {
    let (root, storage) = (tempfile::tempdir().unwrap(), MemoryStorage::new());
    // An upgrade, two recorders at the same time, and a copied history.
    let nodes = [(7, 70, 0), (8, 80, 60), (9, 80, 60), (10, 80, 60)];
    for (file, (node, system_identifier, first)) in (1..).zip(nodes) {
        let own = Identity {
            node,
            system_identifier,
            ..Identity::default()
        };
        let frames = FrameRange::default();
        write_sealed(&storage, file, builder(first..first + 60, &[]), own, frames).unwrap();
    }
    let mut recorded = Recorded {
        node: 9,
        other_servers: vec![10],
        ..Recorded::default()
    };
    storage.put("node", recorded.text().as_bytes());
    let place = directory(root.path());
    let look = || {
        let tape = Snapshot::open_storage(&storage).unwrap();
        Shipper::new(&place, settings("shop")).ship_due_hours(&tape, minute(300), &|| true)
    };
    let done = look().unwrap();
    let wanted = "node 000000000000000a was skipped: its history was copied from another server";
    assert_eq!(
        (done.hours, &done.left_out[..]),
        (3, &[wanted.to_string()][..])
    );
    let shipped = rows(root.path(), "ticks");
    let of: BTreeSet<String> = shipped.iter().filter_map(|row| text(row, "node")).collect();
    let wanted = [7, 8, 9].map(|node| format!("{node:016x}"));
    assert_eq!(of, BTreeSet::from(wanted));
    recorded.other_servers.clear();
    let damaged = recorded.text().replace("crc", "CRC");
    storage.put("node", damaged.as_bytes());
    let error = look().unwrap_err();
    assert!(
        error.contains("nodes whose histories were copied from other servers"),
        "{error}"
    );
}

#[test]
fn an_hour_has_the_texts_of_its_own_queries() {
    let mut b = PartBuilder::new(Arc::new(stats_schema())).unwrap();
    let session = b.intern("session", &[("pid", 1), ("category", 1)]).unwrap();
    for at in 0..120 {
        let tick = [("tick", at), ("slot_time", minute(at)), ("status", 1)];
        b.row("tick", &tick).unwrap();
        let statement = b.intern("statement", &[("query_id", 1 + at / 60)]).unwrap();
        let values = [("state", 1), ("statement", statement)];
        b.sample(at as u64, session, &values).unwrap();
    }
    for id in [1, 2] {
        let text = [("query_id", id), ("encoding", 6)];
        let bytes = format!("select {id}");
        b.row_bytes("text", &text, &[("bytes", bytes.as_bytes())])
            .unwrap();
    }
    let tape = Snapshot::from_parts([b.finish(identity())]);
    let root = tempfile::tempdir().unwrap();
    let place = directory(root.path());
    let mut shipper = Shipper::new(&place, settings("shop"));
    assert_eq!(
        shipper
            .ship_due_hours(&tape, minute(300), &|| true)
            .unwrap()
            .hours,
        2
    );
    let texts = rows(root.path(), "texts");
    let texts = texts
        .iter()
        .map(|row| (number(row, "hour") / 1_000, number(row, "query_id")));
    assert_eq!(texts.collect::<Vec<_>>(), [(minute(0), 1), (minute(60), 2)]);
}

#[test]
fn starts_follow_from_the_ages_to_the_millisecond() {
    let mut b = PartBuilder::new(Arc::new(stats_schema())).unwrap();
    let session = b.intern("session", &[("pid", 1), ("category", 1)]).unwrap();
    // Each row has the three starts of a sample. A start may be later than its slot, earlier, long
    // ago, earlier than a start that usually precedes it, or unknown (0).
    let ms = |at: i64, ago: i64| minute(at) - ago;
    let starts = [
        [ms(0, -7), ms(0, 13), ms(0, -7)],
        [ms(1, 1), ms(1, 1), ms(1, 0)],
        [ms(2, 1), ms(2, 600_000), ms(2, 2)],
        [0, ms(3, 20), ms(3, -3)],
        [ms(4, 0), 0, ms(4, 90_000)],
        [ms(5, 5), ms(5, 8), 0],
        [0, 0, 0],
    ];
    for (at, [query, xact, state]) in (0..).zip(starts) {
        let tick = [("tick", at), ("slot_time", minute(at)), ("status", 1)];
        b.row("tick", &tick).unwrap();
        let values = [
            ("query_start", query),
            ("xact_start", xact),
            ("state_change", state),
        ];
        let state = [("state", 1)];
        b.sample(at as u64, session, &[&state[..], &values].concat())
            .unwrap();
    }
    let root = tempfile::tempdir().unwrap();
    let place = directory(root.path());
    let tape = Snapshot::from_parts([b.finish(identity())]);
    let mut shipper = Shipper::new(&place, settings("shop"));
    assert_eq!(
        shipper
            .ship_due_hours(&tape, minute(300), &|| true)
            .unwrap()
            .hours,
        1
    );
    let found = rows(root.path(), "sample_runs");
    let found: Vec<[i64; 3]> = found
        .iter()
        .map(|row| {
            let [query, xact, state] = ["query_age_ms", "xact_before_ms", "state_after_ms"]
                .map(|column| (row[column] != Cell::Null).then(|| number(row, column)));
            let slot = number(row, "first_slot") / 1_000;
            let base = slot - query.unwrap_or(0);
            [
                query.map_or(0, |age| slot - age),
                xact.map_or(0, |before| base - before),
                state.map_or(0, |after| base + after),
            ]
        })
        .collect();
    assert_eq!(found, starts);
}

#[test]
fn locks_find_their_ticks_in_whatever_order_these_are_stored() {
    let mut b = PartBuilder::new(Arc::new(stats_schema())).unwrap();
    let sessions = [1, 2].map(|pid| b.intern("session", &[("pid", pid)]).unwrap());
    for at in (0..60).rev() {
        let tick = [("tick", at), ("slot_time", minute(at)), ("status", 1)];
        b.row("tick", &tick).unwrap();
        let lock = [("waiter", sessions[1]), ("blocker", sessions[0])];
        b.row("lock", &[&[("at", at)][..], &lock].concat()).unwrap();
    }
    let tape = Snapshot::from_parts([b.finish(identity())]);
    let root = tempfile::tempdir().unwrap();
    let place = directory(root.path());
    let mut shipper = Shipper::new(&place, settings("shop"));
    assert_eq!(
        shipper
            .ship_due_hours(&tape, minute(300), &|| true)
            .unwrap()
            .hours,
        1
    );
    let locks = rows(root.path(), "locks");
    let mut found: Vec<(i64, i64)> = locks
        .iter()
        .map(|row| (number(row, "tick"), number(row, "time") / 1_000))
        .collect();
    found.sort_unstable();
    let wanted: Vec<(i64, i64)> = (0..60).map(|at| (at, minute(at))).collect();
    assert_eq!(found, wanted);
}
