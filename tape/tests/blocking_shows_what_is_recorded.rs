//! `blocking` on recorded edges: prepared transactions, lost holders, several holders, parallel
//! workers, and the rights of a role.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use tacho_tape::query::Value;
use tacho_tape::testing::{Answer, Arguments, run};
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

const SECOND: i64 = 1_000_000;
const LOCKTYPE_RELATION: i64 = 1;
const SHARE: i64 = 5;

fn catalog() -> Schema {
    tacho_tape::catalog::samples()
}

struct History {
    builder: PartBuilder,
}

impl History {
    fn new(ticks: i64) -> History {
        let mut builder = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
        for tick in 1..=ticks {
            let values = [
                ("tick", tick),
                ("slot_time", tick * 1000),
                ("interval_ms", 1000),
                ("status", 1),
            ];
            builder.row("tick", &values).unwrap();
        }
        History { builder }
    }

    fn session(&mut self, pid: i64, user: &str, leader: i64) -> i64 {
        let username = self.builder.name(user).unwrap();
        let values = [
            ("pid", pid),
            ("backend_start", pid * 10),
            ("username", username),
            ("leader", leader),
        ];
        self.builder.intern("session", &values).unwrap()
    }

    fn wait(&mut self, tick: i64, waiter: i64, blocker: &[(&str, i64)]) {
        let mut values = vec![
            ("at", tick),
            ("waiter", waiter),
            ("hard", 1),
            ("locktype", LOCKTYPE_RELATION),
            ("lock_database", 5),
            ("field1", 777),
            ("modes_held", 1 << SHARE),
            ("mode_requested", 8),
            ("wait_start", 500),
        ];
        values.extend(blocker);
        self.builder.row("lock", &values).unwrap();
    }

    /// The name of the locked relation is seen.
    fn name_relation(&mut self, database: i64, schema: Option<&str>, name: &str) {
        let schema = schema.map(|schema| self.builder.name(schema).unwrap());
        let values = [
            ("database_oid", database),
            ("oid", 777),
            ("schema", schema.unwrap_or(0)),
            ("name", self.builder.name(name).unwrap()),
        ];
        self.builder.row("relation", &values).unwrap();
    }

    fn heads(self, owner: Option<&str>) -> Vec<[Value; 6]> {
        self.rows(owner, None)
    }

    /// The tree of a tick.
    fn tree(self, tick: i64) -> Vec<String> {
        let rows = self.rows(None, Some(tick * SECOND));
        let text = |row: &[Value; 6]| match &row[0] {
            Value::Text(text) => text.to_string(),
            other => panic!("{other:?}"),
        };
        rows.iter().map(text).collect()
    }

    fn rows(self, owner: Option<&str>, at: Option<i64>) -> Vec<[Value; 6]> {
        let identity = Identity {
            node: 7,
            ..Identity::default()
        };
        let store = Snapshot::from_parts(vec![self.builder.finish(identity)]);
        let catalog = catalog();
        let mut spec = Arguments::new(&catalog, 100 * SECOND);
        spec.since_us = at.is_none().then_some(0);
        spec.at_us = at;
        spec.owner = owner.map(str::to_string);
        let mut answer = Answer::default();
        run("blocking", &spec, &store, &mut answer).unwrap();
        answer.columns([
            "tree",
            "kind",
            "blocked_seconds",
            "waiters",
            "depth",
            "object",
        ])
    }
}

fn row(tree: &str, kind: &str, seconds: i128, waiters: i64, depth: i64) -> [Value; 6] {
    let text = |text: &str| Value::Text(text.into());
    [
        text(tree),
        text(kind),
        Value::Numeric(seconds * 10_000),
        Value::Int(waiters),
        Value::Int(depth),
        text("relation 5/777"),
    ]
}

#[test]
fn prepared_transactions_and_lost_holders_are_heads() {
    let mut history = History::new(3);
    let waiter = history.session(1, "u", 0);
    let gid = history.builder.name("stuck").unwrap();
    history.wait(1, waiter, &[("blocker_xid", 9), ("blocker_gid", gid)]);
    history.wait(2, waiter, &[("blocker_xid", 9), ("blocker_gid", gid)]);
    history.wait(3, waiter, &[]);
    let expected = [
        row("prepared 'stuck'", "prepared transaction", 2, 1, 1),
        row("(lost)", "lost", 1, 1, 1),
    ];
    assert_eq!(history.heads(None), expected);
}

#[test]
fn a_waiter_counts_at_each_of_its_holders() {
    let mut history = History::new(2);
    let waiter = history.session(1, "u", 0);
    let holders = [history.session(2, "u", 0), history.session(3, "u", 0)];
    for tick in 1..=2 {
        for holder in holders {
            history.wait(tick, waiter, &[("blocker", holder)]);
        }
    }
    let expected = [row("2", "session", 2, 1, 1), row("3", "session", 2, 1, 1)];
    assert_eq!(history.heads(None), expected);
}

#[test]
fn a_worker_stands_for_its_leader() {
    let mut history = History::new(1);
    let holder = history.session(1, "u", 0);
    let leader = history.session(2, "u", 0);
    let worker = history.session(3, "u", 2);
    let other = history.session(4, "u", 0);
    history.wait(1, worker, &[("blocker", holder)]);
    history.wait(1, other, &[("blocker", leader)]);
    assert_eq!(history.heads(None), [row("1", "session", 2, 2, 2)]);
}

#[test]
fn a_waiter_behind_a_parallel_query_stands_once_in_the_tree() {
    let mut history = History::new(1);
    let leader = history.session(2, "u", 0);
    let workers = [history.session(3, "u", 2), history.session(4, "u", 2)];
    let other = history.session(5, "u", 0);
    for holder in [leader, workers[0], workers[1]] {
        history.wait(1, other, &[("blocker", holder)]);
    }
    assert_eq!(history.tree(1), ["2", "  5"]);
}

#[test]
fn a_role_sees_only_its_own_waits() {
    let mut history = History::new(1);
    let holder = history.session(1, "boss", 0);
    let mine = history.session(2, "me", 0);
    let theirs = history.session(3, "them", 0);
    history.wait(1, mine, &[("blocker", holder)]);
    history.wait(1, theirs, &[("blocker", holder)]);
    assert_eq!(history.heads(Some("me")), [row("1", "session", 1, 1, 1)]);
}

#[test]
fn a_locked_relation_has_the_name_that_was_seen_last() {
    let object = |names: &[(i64, Option<&str>, &str)], owner: Option<&str>| {
        let mut history = History::new(1);
        let waiter = history.session(1, "u", 0);
        let holder = history.session(2, "u", 0);
        history.wait(1, waiter, &[("blocker", holder)]);
        for (database, schema, name) in names {
            history.name_relation(*database, *schema, name);
        }
        history.heads(owner)[0][5].clone()
    };
    let text = |text: &str| Value::Text(text.into());
    let renamed = [(5, Some("public"), "old"), (5, Some("public"), "orders")];
    assert_eq!(object(&renamed, None), text("relation public.orders"));
    assert_eq!(
        object(&[(5, None, "orders")], None),
        text("relation orders")
    );
    let elsewhere = [(6, Some("public"), "orders")];
    assert_eq!(object(&elsewhere, None), text("relation 5/777"));
    // A role that sees only its own rows does not see names.
    assert_eq!(object(&renamed, Some("u")), text("relation 5/777"));
}
