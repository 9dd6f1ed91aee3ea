//! A sample as rows of the catalog.

use crate::batch::{Batch, Dictionary, Field};
use crate::clock::Due;
use crate::locks::Edge;
use crate::names::{Kind, Names};
use crate::sample::{Sample, Session, category};
use std::collections::{BTreeMap, HashMap};
use tacho_source::catalog;

/// Facts about a tick besides the sample.
pub struct Tick<'a> {
    pub due: Due,
    pub interval_ms: i64,
    pub max_connections: i64,
    pub vcpus_x100: i64,
    pub edges: &'a [Edge],
    /// Number of waiters whose blockers were not found.
    pub unresolved: i64,
}

fn label(enumeration: &str, label: &str) -> i64 {
    catalog::schema().value(enumeration, label).unwrap_or(0)
}

/// Adds all rows of a tick.
pub fn put(
    batch: &mut Batch,
    dictionary: &mut Dictionary,
    names: &Names,
    sample: &Sample,
    tick: &Tick<'_>,
) {
    put_tick(batch, sample, tick);
    let categories = sample.categories();
    let mut ids = HashMap::new();
    for (session, category) in sample.sessions.iter().zip(&categories) {
        ids.insert(
            session.pid,
            put_session(batch, dictionary, names, session, category),
        );
    }
    for session in &sample.sessions {
        put_sample(batch, dictionary, session, tick.edges, &ids);
    }
    for edge in tick.edges {
        put_lock(batch, dictionary, edge, &ids);
    }
    put_counts(batch, sample, &categories);
}

fn put_tick(batch: &mut Batch, sample: &Sample, tick: &Tick<'_>) {
    let (oldest, holder) = sample.oldest_xmin().unwrap_or((0, 0));
    let status = if tick.due.late { "late" } else { "ok" };
    let session = if oldest == 0 {
        0
    } else {
        label("xmin_holder", "session")
    };
    batch.add(
        "tick",
        &[
            ("tick", tick.due.tick),
            ("slot_time", tick.due.slot_ms),
            ("taken_at", sample.server_us / 1_000),
            ("interval_ms", tick.interval_ms),
            ("elapsed_ms", tick.due.elapsed_ms),
            ("status", label("tick_status", status)),
            ("connections", sample.clients()),
            ("max_connections", tick.max_connections),
            ("next_xid", sample.next_xid),
            ("oldest_xmin", oldest),
            ("oldest_xmin_holder", session),
            ("oldest_xmin_pid", holder),
            ("vcpus_x100", tick.vcpus_x100),
            ("in_recovery", sample.in_recovery.into()),
            ("rows_failed", sample.hidden),
            ("locks_unresolved", tick.unresolved),
        ],
    );
}

/// Adds a failed tick: no answer came, or the role could not see `hidden` sessions.
pub fn put_failed(
    batch: &mut Batch,
    dictionary: &mut Dictionary,
    due: &Due,
    interval_ms: i64,
    reason: &str,
    hidden: i64,
) {
    let reason = dictionary.name(batch, reason.as_bytes());
    let fields = [
        ("tick", due.tick),
        ("slot_time", due.slot_ms),
        ("taken_at", due.slot_ms),
        ("interval_ms", interval_ms),
        ("elapsed_ms", due.elapsed_ms),
        ("status", label("tick_status", "failed")),
        ("reason", reason),
        ("rows_failed", hidden),
    ];
    batch.add("tick", &fields);
}

fn put_session(
    batch: &mut Batch,
    dictionary: &mut Dictionary,
    names: &Names,
    session: &Session,
    category: &str,
) -> i64 {
    let mut name = |bytes: &[u8]| dictionary.name(batch, bytes);
    let fields: [Field; 11] = [
        ("pid", session.pid),
        ("backend_start", session.backend_start_us),
        ("backend_type", name(session.backend_type.as_bytes())),
        ("category", label("category", category)),
        ("database_oid", session.database.into()),
        (
            "database",
            name(names.get(Kind::Database, session.database)),
        ),
        ("user_oid", session.user.into()),
        ("username", name(names.get(Kind::Role, session.user))),
        ("application", name(&session.application)),
        ("client_addr", name(session.client_addr.as_bytes())),
        ("leader", session.leader),
    ];
    dictionary.entry(batch, "session", &fields)
}

fn put_sample(
    batch: &mut Batch,
    dictionary: &mut Dictionary,
    session: &Session,
    edges: &[Edge],
    ids: &HashMap<i64, i64>,
) {
    let wait = match session.wait_event.is_empty() {
        true => 0,
        false => {
            let kind = dictionary.name(batch, session.wait_type.as_bytes());
            let event = dictionary.name(batch, session.wait_event.as_bytes());
            dictionary.entry(
                batch,
                "wait",
                &[("wait_event_type", kind), ("wait_event", event)],
            )
        }
    };
    let statement = match (session.query_id, session.text_key) {
        (0, 0) => 0,
        (id, key) => dictionary.entry(batch, "statement", &[("query_id", id), ("text_key", key)]),
    };
    let is_active = ["active", "fastpath function call", ""].contains(&session.state.as_str());
    let cpu = if is_active && wait == 0 {
        label("cpu", "CPU*")
    } else {
        0
    };
    let blocker = edges.iter().find(|edge| edge.waiter == session.pid);
    let blocker = blocker.and_then(|edge| ids.get(&edge.blocker)).copied();
    let fields = [
        ("session", ids.get(&session.pid).copied().unwrap_or(0)),
        ("wait", wait),
        ("state", state(session)),
        ("cpu", cpu),
        ("marked", session.only_blocks.into()),
        ("statement", statement),
        ("query_start", session.query_start_ms),
        ("xact_start", session.xact_start_ms),
        ("state_change", session.state_change_ms),
        ("xmin", session.xmin),
        ("xid", session.xid),
        ("blocked_by", blocker.unwrap_or(0)),
    ];
    batch.add("sample", &fields);
}

fn state(session: &Session) -> i64 {
    match session.state.as_str() {
        "" if session.backend_type == "client backend" => label("state", "starting"),
        state => label("state", state),
    }
}

fn put_lock(batch: &mut Batch, dictionary: &mut Dictionary, edge: &Edge, ids: &HashMap<i64, i64>) {
    let id = |pid| ids.get(&pid).copied().unwrap_or(0);
    let fields = [
        ("waiter", id(edge.waiter)),
        ("blocker", id(edge.blocker)),
        ("blocker_xid", edge.prepared),
        ("blocker_gid", dictionary.name(batch, &edge.gid)),
        ("hard", edge.hard.into()),
        ("locktype", label("locktype", &edge.tag.locktype)),
        ("lock_database", edge.tag.database),
        ("field1", edge.tag.fields[0]),
        ("field2", edge.tag.fields[1]),
        ("field3", edge.tag.fields[2]),
        ("modes_held", edge.modes_held.into()),
        ("mode_requested", edge.mode_requested.into()),
        ("wait_start", edge.wait_start_ms),
    ];
    batch.add("lock", &fields);
}

fn put_counts(batch: &mut Batch, sample: &Sample, categories: &[&str]) {
    let mut counts: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    let active = sample
        .sessions
        .iter()
        .zip(categories)
        .filter(|s| !s.0.only_blocks);
    for (session, category) in active {
        *counts
            .entry((label("category", category), state(session)))
            .or_default() += 1;
    }
    for (backend_type, state, count) in &sample.idle {
        let category = label("category", category(backend_type, None));
        *counts.entry((category, label("state", state))).or_default() += count;
    }
    for ((category, state), backends) in counts {
        batch.add(
            "count",
            &[
                ("category", category),
                ("state", state),
                ("backends", backends),
            ],
        );
    }
}
