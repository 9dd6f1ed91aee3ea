//! `changes`: names the difference to a normal time, and its causes.
//!
//! - `windows.rs`: the window asked for, and the one that was normal
//! - `loads.rs`, `loads_read.rs`: the load of both by the keys of each dimension
//! - `exact.rs`: figures that add up
//! - `series.rs`: when a load began to differ
//! - `costs.rs`: counters of statements in a window
//! - `effects.rs`: the queries that did most to the difference
//! - `habits.rs`: queries that have their load at this time on other days too
//! - `names.rs`: the names that a query mentions
//! - `candidates.rs`: possible causes: changes, holders of locks, clients
//! - `work.rs`: statements that change many rows, or statistics
//! - `planned.rs`: inputs of the planner that differ between two plans
//! - `scanned.rs`: tables whose scans read many more rows
//! - `autovacuum.rs`: autovacuum workers that ran beside slower queries
//! - `connections.rs`: the number of connected clients
//! - `host.rs`, `replicas.rs`, `snapshots.rs`: CPUs that others take, replicas that confirm
//!   nothing, sessions that hold back vacuum
//! - `rules.rs`: from which candidate an effect can follow
//! - `causes.rs`: each effect takes its best candidate
//! - `missing.rs`: parts of the history that were not recorded
//! - `words.rs`, `rows.rs`: sentences and rows

mod autovacuum;
mod candidates;
mod causes;
mod connections;
mod costs;
mod effects;
mod exact;
mod habits;
mod host;
mod loads;
mod loads_read;
mod missing;
mod names;
mod planned;
mod replicas;
mod rows;
mod rules;
#[cfg(test)]
mod rules_tests;
mod scanned;
mod series;
mod snapshots;
mod windows;
mod words;
mod work;

pub use rules::{Described, RULES};

use crate::format::part::{Hold, Part};
use crate::format::schema::RUN;
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::{Numeric, row};
use crate::query::rows::parse::{Samples, limit};
use crate::query::rows::scan::Scan;
use crate::query::value::bucket::DAY;
use crate::query::value::error::QueryResult;

/// Longest window whose causes the report and the page show, in µs: `changes` reads all samples of the
/// window and of an earlier one. The page limits changes of plans and alarms by it too.
pub const LONGEST_WITH_CAUSES: i64 = 7 * DAY;

row! {
    /// A row of `changes`.
    ChangesRow of "changes": FIELDS {
        rank: Int,
        kind: Text,
        rule: Text,
        dimension: Text,
        key: Text,
        query_text: Text,
        started: Time,
        ended: Time,
        before: Numeric,
        after: Numeric,
        difference: Numeric,
        pct: Numeric,
        unit: Text,
        explains: Text,
        database: Text,
        username: Text,
        application: Text,
        client_addr: Text,
        explanation: Text,
        next: Text,
        period_start: Time,
        period_end: Time,
        before_start: Time,
        before_end: Time,
        coverage_pct: Numeric,
        before_coverage_pct: Numeric,
    }
}

impl ChangesRow {
    /// True if the normal window was recorded. If it was not, all load looks like more than before.
    pub fn has_normal_window(&self) -> bool {
        self.before_coverage_pct > Some(Numeric(0))
    }
}

request! {
    /// What changed: causes beside the effects that they can explain
    Changes of changes: ChangesRow {
        node,
        at("Point in time, such as 03:12: half an hour around it", None),
        since,
        until,
        before_since,
        before_until,
        n("Maximum number of causes, and of keys of a dimension, or all", Some("5")),
    }
}

/// Several passes read the same columns. They are decoded once if the windows have at most this many
/// runs, so decoded columns take about 50 MB.
const HELD_RUNS: usize = 600_000;

/// Keeps the decoded columns of the windows.
fn hold(run: Run, samples: Samples, windows: &windows::Windows) -> QueryResult<Vec<Hold>> {
    let mut parts: Vec<&Part> = Vec::new();
    for window in windows.pieces() {
        parts.extend(Scan::new(run, samples, window)?.parts);
    }
    let runs: usize = parts.iter().map(|part| part.rows(RUN)).sum();
    let held = parts.iter().filter(|_| runs <= HELD_RUNS);
    Ok(held.map(|part| part.hold()).collect())
}

fn answer(asked: &Changes, run: Run, emit: Emit<ChangesRow>) -> QueryResult<()> {
    let n = limit(asked.n)?;
    let samples = Samples {
        node: asked.node.as_deref(),
        ..Samples::default()
    };
    let windows = windows::Windows::of(asked, run, samples)?;
    let _held = hold(run, samples, &windows)?;
    let node = asked.node.as_deref();
    let events = candidates::events(run, node, &windows)?;
    let by_database = candidates::has_setting_of_database(&events);
    let loads = loads::Loads::read(run, samples, &windows, by_database)?;
    if loads.observed_ms() == [0, 0] {
        return Ok(());
    }
    let effects = effects::effects(run, samples, &windows, &loads)?;
    let connections = connections::Connections::read(run, samples, &windows)?;
    let measured = (&loads, &connections);
    let candidates = candidates::candidates(run, samples, &windows, measured, &effects, events)?;
    let causes = causes::causes(&effects, &candidates);
    let missing = missing::missing(run, node, &windows, &loads)?;
    let found = rows::Found {
        windows: &windows,
        loads: &loads,
        connections: &connections,
        effects: &effects,
        causes: &causes,
        candidates: &candidates,
        missing: &missing,
    };
    found.rows(n, emit)
}
