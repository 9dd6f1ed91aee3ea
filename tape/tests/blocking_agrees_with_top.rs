//! The seconds of `blocking` equal the seconds of lock waits in `top`, wherever a part ends, and
//! also for waits without a known blocker.
#![allow(clippy::unwrap_used, missing_docs)]

use proptest::prelude::*;
use std::sync::Arc;
use tacho_tape::query::Value;
use tacho_tape::testing::{Answer, Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const BEGIN_MS: i64 = 1_790_000_040_000;
/// Sessions 1 to 4 are independent; 5 is a parallel worker of 4.
const SESSIONS: i64 = 5;

fn catalog() -> Schema {
    tacho_tape::catalog::samples()
}

/// The blocker of a waiting session.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Blocker {
    /// The sampler did not look for it.
    Untold,
    Lost,
    Prepared(i64),
    Session(i64),
}

/// A session that has waited for `since_ms` at its tick; 0 = unknown.
#[derive(Clone, Copy, Debug)]
struct Wait {
    session: i64,
    blocker: Blocker,
    since_ms: i64,
}

#[derive(Clone, Debug)]
struct Tick {
    interval_ms: i64,
    /// Time from the begin of the slot in ms.
    taken_ms: i64,
    failed: bool,
    cut: bool,
    waits: Vec<Wait>,
}

fn wait() -> impl Strategy<Value = Wait> {
    let blocker = prop_oneof![
        3 => Just(Blocker::Untold),
        1 => Just(Blocker::Lost),
        1 => (700..702_i64).prop_map(Blocker::Prepared),
        4 => (1..=SESSIONS).prop_map(Blocker::Session),
    ];
    let since = prop_oneof![Just(0), 1..6000_i64];
    // The leader waits for its workers, not for locks, so its group has one head.
    let session = prop::sample::select(vec![1, 2, 3, 5_i64]);
    (session, blocker, since).prop_map(|(session, blocker, since_ms)| Wait {
        session,
        blocker,
        since_ms,
    })
}

fn tick() -> impl Strategy<Value = Tick> {
    let waits = prop::collection::vec(wait(), 0..5).prop_map(|mut waits| {
        waits.sort_by_key(|wait| wait.session);
        waits.dedup_by_key(|wait| wait.session);
        waits
    });
    let interval = prop_oneof![3 => Just(1000_i64), 1 => Just(250)];
    let flags = (prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    (interval, 0..250_i64, flags, waits).prop_map(|(interval_ms, taken_ms, flags, waits)| Tick {
        interval_ms,
        taken_ms,
        failed: flags.0,
        cut: flags.1,
        waits,
    })
}

/// Defines the sessions; returns the reference to the wait event.
fn define(builder: &mut PartBuilder) -> i64 {
    for pid in 1..=SESSIONS {
        let leader = if pid == 5 { 4 } else { 0 };
        let values = [
            ("pid", pid),
            ("backend_start", pid * 10),
            ("category", 1),
            ("leader", leader),
        ];
        assert_eq!(builder.intern("session", &values).unwrap(), pid);
    }
    let [class, event] = ["Lock", "relation"].map(|name| builder.name(name).unwrap());
    let wait = [
        ("number", 1),
        ("wait_event_type", class),
        ("wait_event", event),
    ];
    builder.intern("wait", &wait).unwrap()
}

fn add(builder: &mut PartBuilder, wait: i64, number: i64, slot_ms: i64, tick: &Tick) {
    let taken = slot_ms + tick.taken_ms;
    let values = [
        ("tick", number),
        ("slot_time", slot_ms),
        ("taken_at", taken),
        ("interval_ms", tick.interval_ms),
        ("status", if tick.failed { 3 } else { 1 }),
    ];
    builder.row("tick", &values).unwrap();
    for waiting in tick.waits.iter().filter(|_| !tick.failed) {
        let blocked_by = match waiting.blocker {
            Blocker::Session(session) => session,
            _ => 0,
        };
        let start = match waiting.since_ms {
            0 => 0,
            since => taken - since,
        };
        let sample = [
            ("wait", wait),
            ("state", 1),
            ("blocked_by", blocked_by),
            ("xact_start", start),
        ];
        let number_u = u64::try_from(number).unwrap();
        builder.sample(number_u, waiting.session, &sample).unwrap();
        let xid = match waiting.blocker {
            Blocker::Untold => continue,
            Blocker::Prepared(xid) => xid,
            _ => 0,
        };
        let lock = [
            ("at", number),
            ("waiter", waiting.session),
            ("blocker", blocked_by),
            ("blocker_xid", xid),
            ("hard", 1),
            ("locktype", 1),
            ("field1", waiting.session),
            ("mode_requested", 8),
            ("wait_start", start),
        ];
        builder.row("lock", &lock).unwrap();
    }
}

/// The tape, in one part or cut into several.
fn store(ticks: &[Tick], cut: bool) -> Snapshot {
    let schema = Arc::new(catalog().with_runs());
    let identity = || Identity {
        node: 7,
        ..Identity::default()
    };
    let mut parts = Vec::new();
    let new = || {
        let mut builder = PartBuilder::new(Arc::clone(&schema)).unwrap();
        let wait = define(&mut builder);
        (builder, wait)
    };
    let (mut builder, mut wait) = new();
    let mut slot_ms = BEGIN_MS;
    for (tick, number) in ticks.iter().zip(1..) {
        if cut && tick.cut && number > 1 {
            let (next, its_wait) = new();
            parts.push(std::mem::replace(&mut builder, next).finish(identity()));
            wait = its_wait;
        }
        add(&mut builder, wait, number, slot_ms, tick);
        slot_ms += tick.interval_ms;
    }
    parts.push(builder.finish(identity()));
    Snapshot::from_parts(parts)
}

fn ask(function: &str, store: &Snapshot, window: (i64, i64), dimension: Option<&str>) -> Answer {
    let catalog = catalog();
    let mut spec = Arguments::new(&catalog, (BEGIN_MS + 86_400_000) * 1000);
    spec.since_us = Some((BEGIN_MS + window.0) * 1000);
    spec.until_us = Some((BEGIN_MS + window.0 + window.1) * 1000);
    spec.dimension = dimension.map(str::to_string);
    spec.scope = dimension.map(|_| "all".to_string());
    spec.n = Some(1000);
    let mut answer = Answer::default();
    run(function, &spec, store, &mut answer).unwrap();
    answer
}

fn number(value: &Value) -> i128 {
    match value {
        Value::Numeric(number) => *number,
        other => panic!("{other:?}"),
    }
}

fn blocked_seconds(store: &Snapshot, window: (i64, i64)) -> i128 {
    let rows = ask("blocking", store, window, None).columns(["blocked_seconds"]);
    rows.iter().map(|row| number(&row[0])).sum()
}

fn lock_seconds(store: &Snapshot, window: (i64, i64)) -> i128 {
    let top = ask("top", store, window, Some("wait_event_type"));
    let rows = top.columns(["key", "backend_seconds"]);
    let lock = Value::Text("Lock".into());
    let lock = rows.iter().find(|row| row[0] == lock);
    lock.map_or(0, |row| number(&row[1]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn seconds_of_blocking_are_lock_seconds_of_top(
        ticks in prop::collection::vec(tick(), 1..30),
        window in (-2000..20_000_i64, 0..30_000_i64),
    ) {
        let (whole, cut) = (store(&ticks, false), store(&ticks, true));
        prop_assert_eq!(blocked_seconds(&whole, window), lock_seconds(&whole, window));
        let columns = ["tree", "blocked_seconds", "waiters", "depth", "first_seen", "last_seen"];
        let [whole, cut] = [whole, cut].map(|s| ask("blocking", &s, window, None).columns(columns));
        prop_assert_eq!(whole, cut);
    }
}

fn waits(waits: &[(i64, Blocker, i64)]) -> Tick {
    let wait = |(session, blocker, since_ms): &(i64, Blocker, i64)| Wait {
        session: *session,
        blocker: *blocker,
        since_ms: *since_ms,
    };
    Tick {
        interval_ms: 1000,
        taken_ms: 100,
        failed: false,
        cut: true,
        waits: waits.iter().map(wait).collect(),
    }
}

fn heads(ticks: &[Tick]) -> Vec<(String, i128)> {
    let answer = ask("blocking", &store(ticks, true), (0, 60_000), None);
    let rows = answer.columns(["tree", "blocked_seconds"]);
    let row = |row: &[Value; 2]| match &row[0] {
        Value::Text(tree) => (tree.to_string(), number(&row[1]) / 10_000),
        other => panic!("{other:?}"),
    };
    rows.iter().map(row).collect()
}

#[test]
fn the_first_tick_of_a_wait_counts_at_the_head_that_its_successor_tells() {
    let behind_2 = |since_ms| waits(&[(1, Blocker::Session(2), since_ms)]);
    let untold = waits(&[(1, Blocker::Untold, 0)]);
    let ticks = [untold.clone(), untold.clone(), behind_2(2000)];
    assert_eq!(heads(&ticks), [("2".to_string(), 3)]);
    // The wait began between the first and the second tick.
    let ticks = [untold.clone(), untold, behind_2(1999)];
    let expected = [("2".to_string(), 2), ("(unknown)".to_string(), 1)];
    assert_eq!(heads(&ticks), expected);
}

#[test]
fn short_waits_are_a_row_of_their_own() {
    let hot = waits(&[(1, Blocker::Untold, 0), (2, Blocker::Untold, 0)]);
    let ticks = [hot.clone(), waits(&[]), hot];
    assert_eq!(heads(&ticks), [("(unknown)".to_string(), 4)]);
}

#[test]
fn a_worker_waits_for_the_blocker_of_another_member() {
    let member = waits(&[(4, Blocker::Session(2), 1), (5, Blocker::Untold, 0)]);
    assert_eq!(heads(&[member]), [("2".to_string(), 2)]);
}

#[test]
fn no_wait_is_older_than_its_transaction() {
    let catalog = catalog();
    // The wait began 40 ms into the slot, and the tick was taken at 100 ms.
    let ticks = [waits(&[(1, Blocker::Session(2), 60)])];
    let mut spec = Arguments::new(&catalog, (BEGIN_MS + 86_400_000) * 1000);
    spec.at_us = Some((BEGIN_MS + 500) * 1000);
    let mut answer = Answer::default();
    let store = store(&ticks, false);
    run("blocking", &spec, &store, &mut answer).unwrap();
    let rows = answer.columns(["tree", "waited", "xact_age"]);
    let age = Value::Interval(60_000);
    let waiter = [Value::Text("  1".into()), age.clone(), age];
    assert_eq!(rows[1], waiter);
}
