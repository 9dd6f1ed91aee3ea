//! `indexes_history`: size and use of indexes.

use super::common_columns::some_time;
use super::statements_history::too_many;
use super::tables_history::{name_of, names};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::parse::{MAX_ROWS, Window, buckets, limit, nodes};
use crate::query::rows::relations::{Relation, RelationNames};
use crate::query::sums::relation_states::{Change, RelationStates};
use crate::query::sums::table_sums::{TableKey, Tables};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::Filter;

row! {
    /// A row of `indexes_history`.
    IndexesHistoryRow of "indexes_history": FIELDS {
        period_start: Time,
        period_end: Time,
        key: Text,
        database: Text,
        database_oid: Int,
        oid: Int,
        kind: Text,
        table_name: Text,
        table_oid: Int,
        known_from: Time,
        known_until: Time,
        scans: Int,
        tuples_returned: Int,
        tuples_fetched: Int,
        last_scan: Time,
        bytes: Int,
        growth_bytes: Int,
        entries: Int,
    }
}

request! {
    /// Size and use of indexes: those that nothing has used first
    IndexesHistory of indexes_history: IndexesHistoryRow {
        node,
        since,
        until,
        bucket,
        n("Maximum number of indexes, or all", Some("10")),
        order_by("unused (fewest scans, then largest), scans, tuples_returned, tuples_fetched, bytes, or growth_bytes", Some("unused")),
        database,
    }
}

/// The order of the rows: the highest measure comes first, then the largest index.
type Measure = fn(&Change) -> i64;

const ORDERS: [(&str, Measure); 6] = [
    ("unused", |change| change.counts[0].saturating_neg()),
    ("scans", |change| change.counts[0]),
    ("tuples_returned", |change| change.counts[1]),
    ("tuples_fetched", |change| change.counts[2]),
    ("bytes", |change| change.last.bytes.unwrap_or(-1)),
    ("growth_bytes", |change| change.growth.unwrap_or(-i64::MAX)),
];

fn order(text: Option<&str>) -> QueryResult<Measure> {
    let name = text.unwrap_or("unused");
    match ORDERS.iter().find(|order| order.0 == name) {
        Some((_, measure)) => Ok(*measure),
        None => Err(
            QueryError::invalid(format!("invalid order_by \"{name}\"")).hint(format!(
                "Available orders are {}.",
                ORDERS.map(|order| order.0).join(", ")
            )),
        ),
    }
}

fn answer(asked: &IndexesHistory, run: Run, emit: Emit<IndexesHistoryRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let n = limit(asked.n)?;
    let measure = order(asked.order_by.as_deref())?;
    let buckets = match asked.bucket {
        None => Buckets::whole(window.since, window.until),
        Some(width) => buckets(run.context, window, width, MAX_ROWS)?,
    };
    let database = asked.database.as_deref();
    let tables = Tables {
        run,
        window,
        nodes: nodes(run, asked.node.as_deref())?,
        databases: database.map(|d| Filter::parse("database", d)).transpose()?,
    };
    let states = RelationStates::read(tables.parts(), window, tables.databases.as_ref(), run)?;
    let mut shown = ranked(&states, window, measure);
    shown.truncate(n);
    let rows = shown.len().saturating_mul(buckets.len());
    if rows > MAX_ROWS && buckets.len() > 1 {
        return Err(too_many(rows));
    }
    let names = names(&tables, wanted(&states, window, &shown))?;
    for bucket in 0..buckets.len() {
        let (begin, end) = buckets.clipped(bucket);
        for key in &shown {
            if let Some(change) = states.change(key, begin, end) {
                emit(row((begin, end), key, &change, &names))?;
            }
        }
    }
    Ok(())
}

/// The indexes at the end of the window, the highest measure first. Among equals the larger is first,
/// then the key decides.
fn ranked(states: &RelationStates, window: Window, measure: Measure) -> Vec<&TableKey> {
    let mut ranked: Vec<_> = states
        .keys()
        .filter_map(|key| {
            let change = states.change(key, window.since, window.until)?;
            let bytes = change.last.bytes.unwrap_or(-1);
            (change.last.table_oid != 0).then(|| ((measure(&change).saturating_neg(), -bytes), key))
        })
        .collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, key)| key).collect()
}

/// The indexes and their tables.
fn wanted(states: &RelationStates, window: Window, shown: &[&TableKey]) -> Vec<Relation> {
    let of = |key: &&TableKey| {
        let change = states.change(key, window.since, window.until);
        let table = change.map(|change| table_of(key, &change));
        [Some(key.relation), table]
    };
    shown.iter().flat_map(of).flatten().collect()
}

fn table_of(key: &TableKey, change: &Change) -> Relation {
    Relation {
        database: key.relation.database,
        oid: change.last.table_oid,
    }
}

fn row(
    (begin, end): (i64, i64),
    key: &TableKey,
    change: &Change,
    names: &RelationNames,
) -> IndexesHistoryRow {
    let [scans, tuples_returned, tuples_fetched] = change.counts.map(Some);
    IndexesHistoryRow {
        period_start: Some(begin),
        period_end: Some(end),
        key: Some(name_of(names, key.relation).into()),
        database: key.database.as_deref().map(Into::into),
        database_oid: Some(key.relation.database),
        oid: Some(key.relation.oid),
        kind: change.last.kind.clone(),
        table_name: Some(name_of(names, table_of(key, change)).into()),
        table_oid: Some(change.last.table_oid),
        known_from: Some(change.known_from),
        known_until: change.known_until,
        scans,
        tuples_returned,
        tuples_fetched,
        last_scan: some_time(change.last.last_scan, 1000),
        bytes: change.last.bytes,
        growth_bytes: change.growth,
        entries: change.last.rows,
    }
}
