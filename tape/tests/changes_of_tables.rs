//! `changes` finds tables that are scanned more.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "support/seconds.rs"]
#[allow(dead_code)]
mod seconds;

use seconds::{SECOND, Tape, ask, cause, causes, slower_from_300, window};
use tacho_tape::query::ChangesRow;

/// From second 300 on a query of two tables reads more blocks. Each minute has a record of the rows
/// that scans of three tables read: of orders `before`, then 60,000; of lines always 50,000; of items,
/// which the query does not mention, nothing, then 900,000. All other tables read `rest` rows. A table
/// that read nothing has no row.
fn table_scanned(before: i64, rest: i64, more: impl FnOnce(&mut Tape)) -> Vec<ChangesRow> {
    let mut tape = Tape::new(600);
    let select = tape.query(7, "select * from orders join app.lines using (id)");
    slower_from_300(&mut tape, select, 0);
    tape.counted(7, 1..6, [600, 1, 10]);
    tape.counted(7, 6..11, [600, 100, 400]);
    let (shop, app) = (tape.name("shop"), tape.name("app"));
    for (oid, name) in [(1, "orders"), (2, "lines"), (3, "items")] {
        let name = tape.name(name);
        let row = [
            ("database_oid", 5),
            ("oid", oid),
            ("schema", app),
            ("name", name),
        ];
        tape.builder.row("relation", &row).unwrap();
    }
    for minute in 1..=10 {
        let record = [("time", minute * 60_000), ("elapsed_ms", 60_000)];
        let is_late = minute > 5;
        let all = [[before, 60_000], [50_000, 50_000], [0, 900_000]];
        let rows = all.map(|rows| rows[usize::from(is_late)]);
        for (oid, rows) in (1..).zip(rows).filter(|(_, rows)| *rows > 0) {
            let row = [
                ("database_oid", 5),
                ("database", shop),
                ("oid", oid),
                ("scans", 6),
            ];
            let row = [&record[..], &row, &[("tuples_returned", rows)]].concat();
            tape.builder.row("table_stats", &row).unwrap();
        }
        let rest = [&record[..], &[("tuples_returned", rest)]].concat();
        tape.builder.row("table_stats", &rest).unwrap();
    }
    more(&mut tape);
    ask(&tape.finish(), &window(200, 600), 600)
}

#[test]
fn scans_of_a_table_explain_a_slower_query_that_nothing_else_explains() {
    let rows = table_scanned(100, 0, |tape| {
        tape.changed(200, "DROP INDEX", "index", "app.a", "on app.lines")
    });
    assert_eq!(causes(&rows), [cause("table scanned", "app.orders", 300)]);
    assert_eq!(rows[0].database.as_deref(), Some("shop"));
    assert_eq!(rows[0].ended, Some(360 * SECOND));
    assert_eq!(
        rows[0].explanation.as_deref(),
        Some(
            "scans of app.orders read 1000 rows a second instead of 1 at most, 6 scans in 1 min, \
             while query 7 got slower, from 0.08 to 2.27 sessions",
        )
    );
}

#[test]
fn a_table_that_was_not_among_the_busiest_read_at_most_the_rows_of_all_others() {
    let rows = table_scanned(0, 3_000, |_| {});
    assert_eq!(causes(&rows), [cause("table scanned", "app.orders", 300)]);
    let text = rows[0].explanation.as_deref().unwrap();
    assert!(
        text.contains("read 1000 rows a second instead of 50 at most"),
        "{text}"
    );
    assert_eq!(causes(&table_scanned(0, 12_000, |_| {})), []);
}

#[test]
fn scans_of_a_table_are_no_cause_beside_a_dropped_index() {
    let rows = table_scanned(100, 0, |tape| {
        tape.changed(299, "DROP INDEX", "index", "app.a", "on app.orders");
    });
    assert_eq!(causes(&rows), [cause("index dropped", "app.a", 299)]);
}
