//! `plan` on trees that are made by hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::{Field, QueryError, QueryResult, Sink, Value};
use tacho_tape::testing::{Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const MINUTE_MS: i64 = 60_000;
const PLAN: i64 = 77;
/// A sequential scan of t.
const TREE: &[u8] = &[1, 0, 0, 9, 0, 0, 0, 1, 4, 0, 50, 1, 1, b't', 0];

fn catalog() -> Schema {
    tacho_tape::catalog::schema()
}

/// Number of rows, and the notices.
#[derive(Default)]
struct Answer {
    rows: usize,
    notices: Vec<String>,
}

impl Sink for Answer {
    fn begin(&mut self, _fields: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, _values: Vec<Value>) -> QueryResult<()> {
        self.rows += 1;
        Ok(())
    }

    fn notice(&mut self, notice: QueryError) {
        let hint = notice.hint.unwrap_or_default();
        self.notices.push(format!("{} {hint}", notice.message));
    }
}

/// Asks for the plan of a history with these trees, each of a query.
fn ask(trees: &[(i64, &[u8])], filters: &[(&str, &str)]) -> Answer {
    let mut tape = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
    let tick = [
        ("tick", 1),
        ("slot_time", MINUTE_MS),
        ("interval_ms", 1000),
        ("status", 1),
    ];
    tape.row("tick", &tick).unwrap();
    for (query_id, tree) in trees {
        let row = [
            ("time", MINUTE_MS),
            ("plan_id", PLAN),
            ("query_id", *query_id),
            ("encoding", 6),
        ];
        tape.row_bytes("plan_tree", &row, &[("tree", tree)])
            .unwrap();
    }
    let store = Snapshot::from_parts([tape.finish(Identity::default())]);
    let catalog = catalog();
    let mut spec = Arguments::new(&catalog, 2 * MINUTE_MS * 1000);
    spec.filters = [("plan_id", "77")]
        .iter()
        .chain(filters)
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let mut answer = Answer::default();
    run("plan", &spec, &store, &mut answer).unwrap();
    answer
}

#[test]
fn a_tree_that_cannot_be_read_is_the_reason_and_no_filter_is() {
    let damaged = &TREE[..TREE.len() - 1];
    let why = "plan 77 has no tree in the history: its tree of 1970-01-01 00:01:00+00 cannot be read: it is damaged, or of a later version";
    let hint = "The next execution on another day records it once more.";
    let expected = [format!("{why} {hint}")];
    assert_eq!(ask(&[(5, damaged)], &[]).notices, expected);
    assert_eq!(ask(&[(5, damaged)], &[("query_id", "5")]).notices, expected);
    let of_another = "plan 77 has no tree in the history: it has one of another query, database or role than you ask for Ask without query_id, database and username.";
    assert_eq!(
        ask(&[(5, damaged)], &[("query_id", "6")]).notices,
        [of_another]
    );
    assert_eq!(
        ask(&[(5, TREE)], &[("query_id", "6")]).notices,
        [of_another]
    );
    let both = ask(&[(5, damaged), (6, TREE)], &[]);
    assert_eq!((both.rows, both.notices), (1, vec![]));
}
