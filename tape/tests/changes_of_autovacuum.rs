//! `changes` names an autovacuum worker beside which queries were slower.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "support/seconds.rs"]
#[allow(dead_code)]
mod seconds;

use seconds::{SECOND, Tape, ask, cause, causes, slower_from_300, window};
use std::ops::Range;
use tacho_tape::query::ChangesRow;

/// Wait events of a worker.
const READS: (&str, &str) = ("IO", "DataFileRead");
const PAUSES: (&str, &str) = ("Timeout", "VacuumDelay");

/// Rule, table and second of a cause.
type Cause = (String, String, i64);

/// From second 300 on a query of orders waits for reads. `more` adds workers.
fn slower_query(wait: (&str, &str), more: impl FnOnce(&mut Tape)) -> Vec<ChangesRow> {
    let mut tape = Tape::new(600);
    let select = tape.query(7, "select * from app.orders where customer = $1");
    let wait = tape.wait(wait.0, wait.1);
    slower_from_300(&mut tape, select, wait);
    more(&mut tape);
    ask(&tape.finish(), &window(200, 600), 600)
}

/// A worker with this process id runs a command at each tick of these seconds. It began 400 ms
/// before the first tick.
fn worker(tape: &mut Tape, pid: i64, command: &str, seconds: Range<i64>, wait: (&str, &str)) {
    let category = tape.schema.value("category", "maintenance").unwrap();
    let session = [
        ("pid", pid),
        ("category", category),
        ("backend_type", tape.name("autovacuum worker")),
        ("database", tape.name("shop")),
    ];
    let session = tape.builder.intern("session", &session).unwrap();
    let text = format!("autovacuum: {command}");
    let key = 1_000 + pid;
    let row = [("text_key", key), ("encoding", 6)];
    let bytes = [("bytes", text.as_bytes())];
    tape.builder.row_bytes("text", &row, &bytes).unwrap();
    let statement = tape
        .builder
        .intern("statement", &[("text_key", key)])
        .unwrap();
    let wait = tape.wait(wait.0, wait.1);
    let values = [
        ("statement", statement),
        ("wait", wait),
        ("query_start", seconds.start * 1000 - 400),
    ];
    tape.seen(session, seconds, 1, &values);
}

fn none() -> [Cause; 0] {
    []
}

#[test]
fn a_worker_on_the_table_of_a_slower_query_is_its_cause() {
    let rows = slower_query(READS, |tape| {
        worker(tape, 51, "VACUUM ANALYZE app.orders", 300..600, PAUSES);
        // Nearer is a gentle worker on a table that the query does not mention.
        worker(tape, 52, "VACUUM app.items", 300..600, PAUSES);
        tape.changed(299, "ALTER TABLE", "table", "app.news", "");
        // Workers that began after the effect.
        worker(tape, 53, "ANALYZE app.orders", 330..600, READS);
        worker(tape, 54, "VACUUM app.lines", 330..600, READS);
    });
    assert_eq!(causes(&rows), [cause("autovacuum", "app.orders", 299)]);
    let first = &rows[0];
    assert_eq!(first.dimension.as_deref(), Some("autovacuum"));
    assert_eq!(first.database.as_deref(), Some("shop"));
    assert_eq!(first.started, Some(299_600_000));
    assert_eq!(first.ended, Some(600 * SECOND));
    assert_eq!(
        first.explanation.as_deref(),
        Some(
            "autovacuum ran VACUUM ANALYZE of app.orders for 5 min, when query 7 got more load, \
             from 0.08 to 2.27 sessions"
        )
    );
    assert_eq!(
        first.next.as_deref(),
        Some(
            "tacho sessions --scope all --pid=51 --since 1970-01-01T00:04:59Z \
             --until 1970-01-01T00:10:00Z"
        )
    );
}

#[test]
fn a_worker_that_pauses_little_is_a_cause_for_queries_of_other_tables() {
    let command = "VACUUM app.lines (to prevent wraparound)";
    let rows = slower_query(("LWLock", "WALWrite"), |tape| {
        worker(tape, 51, command, 300..600, READS);
    });
    assert_eq!(causes(&rows), [cause("autovacuum", "app.lines", 299)]);
    let text = rows[0].explanation.as_deref().unwrap();
    assert!(
        text.starts_with("autovacuum ran VACUUM of app.lines to prevent wraparound for 5 min, "),
        "{text}"
    );
    let gentle = slower_query(READS, |tape| worker(tape, 51, command, 300..600, PAUSES));
    assert_eq!(causes(&gentle), none());
    let queued = slower_query(READS, |tape| {
        worker(tape, 51, command, 300..600, ("Lock", "relation"));
    });
    assert_eq!(causes(&queued), none());
}

#[test]
fn a_worker_that_ran_in_the_normal_window_too_is_no_cause() {
    let with_normal = |seconds: Range<i64>, table: &str| {
        causes(&slower_query(READS, |tape| {
            worker(tape, 51, "VACUUM app.orders", 300..600, READS);
            worker(tape, 50, &format!("VACUUM ANALYZE {table}"), seconds, READS);
        }))
    };
    let named = [cause("autovacuum", "app.orders", 299)];
    // The normal window has the seconds before 200.
    assert_eq!(with_normal(20..95, "app.orders"), named);
    assert_eq!(with_normal(20..96, "app.orders"), none());
    assert_eq!(with_normal(20..96, "app.lines"), named);
    // A worker ran for a long time before the query was slower.
    let rows = slower_query(READS, |tape| {
        worker(tape, 51, "VACUUM app.orders", 0..600, READS);
    });
    assert_eq!(causes(&rows), none());
}

#[test]
fn a_worker_is_a_cause_for_the_time_in_which_it_ran() {
    let ran = |seconds: Range<i64>| {
        let worker = |tape: &mut Tape| worker(tape, 51, "VACUUM app.orders", seconds, READS);
        causes(&slower_query(READS, worker))
    };
    assert_eq!(ran(300..450), [cause("autovacuum", "app.orders", 299)]);
    // The query was slower for most of the time without the worker.
    assert_eq!(ran(300..449), none());
    // A short worker began with the effect.
    assert_eq!(ran(300..301), none());
}

#[test]
fn waits_that_a_worker_does_not_make_are_not_its_doing() {
    let vacuum = |tape: &mut Tape| worker(tape, 51, "VACUUM app.orders", 300..600, READS);
    for wait in [
        ("Timeout", "PgSleep"),
        ("IPC", "SyncRep"),
        ("Lock", "tuple"),
        ("IO", "BufFileRead"),
    ] {
        assert_eq!(causes(&slower_query(wait, vacuum)), none(), "{wait:?}");
    }
    for wait in [
        ("IO", "DataFileWrite"),
        ("IO", "WALSync"),
        ("BufferPin", "BufferPin"),
    ] {
        assert_eq!(causes(&slower_query(wait, vacuum)).len(), 1, "{wait:?}");
    }
    let counted = |blocks: i64| {
        causes(&slower_query(READS, |tape| {
            vacuum(tape);
            tape.counted(7, 1..6, [600, 1, 10]);
            tape.counted(7, 6..11, [600, 100, blocks]);
        }))
    };
    assert_eq!(counted(10), [cause("autovacuum", "app.orders", 299)]);
    // A call reads more rows than before, which no worker makes it do.
    assert_eq!(counted(40), none());
}

#[test]
fn a_dropped_index_explains_a_query_better_than_a_worker() {
    let rows = slower_query(READS, |tape| {
        worker(tape, 51, "VACUUM app.orders", 300..600, READS);
        tape.changed(298, "DROP INDEX", "index", "app.a", "on app.orders");
    });
    let expected = [
        cause("index dropped", "app.a", 298),
        cause("autovacuum", "app.orders", 299),
    ];
    assert_eq!(causes(&rows), expected);
    let text = rows[1].explanation.as_deref().unwrap();
    assert!(text.ends_with("; something else fits better"), "{text}");
}
