//! `tables_history`: activity of tables and indexes.

use super::common_columns::{numeric, some_time};
use super::statements_history::too_many;
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::parse::{MAX_ROWS, Window, buckets, limit, nodes};
use crate::query::rows::relations::{Relation, RelationNames};
use crate::query::sums::relation_states::{Change, RelationStates};
use crate::query::sums::table_sums::{COUNTERS, Cell, TableKey, TableSums, Tables, WORK};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::Filter;
use crate::query::value::number::Ratio;
use crate::query::value::vocabulary as pg;
use std::cmp::Reverse;
use std::collections::HashMap;

row! {
    /// A row of `tables_history`.
    TablesHistoryRow of "tables_history": FIELDS {
        period_start: Time,
        period_end: Time,
        key: Text,
        database: Text,
        database_oid: Int,
        oid: Int,
        coverage_pct: Numeric,
        intervals: Int,
        work: Int,
        scans: Int,
        tuples_returned: Int,
        tuples_fetched: Int,
        tuples_inserted: Int,
        tuples_updated: Int,
        tuples_deleted: Int,
        tuples_hot_updated: Int,
        tuples_newpage_updated: Int,
        blks_read: Int,
        blks_hit: Int,
        vacuum_count: Int,
        autovacuum_count: Int,
        analyze_count: Int,
        autoanalyze_count: Int,
        live_tuples: Int,
        dead_tuples: Int,
        mod_since_analyze: Int,
        ins_since_vacuum: Int,
        last_vacuum: Time,
        last_autovacuum: Time,
        last_analyze: Time,
        last_autoanalyze: Time,
        last_scan: Time,
        kind: Text,
        bytes: Int,
        growth_bytes: Int,
    }
}

request! {
    /// Activity of tables and indexes: scans, rows, blocks, vacuums
    TablesHistory of tables_history: TablesHistoryRow {
        node,
        since,
        until,
        bucket,
        n("Maximum number of tables and indexes, or all", Some("10")),
        order_by("work (rows read and written, and blocks read), a counter, such as tuples_updated, bytes, or growth_bytes", Some("work")),
        database,
    }
}

/// The order of the rows: the highest value comes first.
enum Order {
    /// The sum of the counters at these places in [`COUNTERS`].
    Counters(Vec<usize>),
    /// The size at the end of the window.
    Bytes,
    /// The increase of the size.
    Growth,
}

fn order(text: Option<&str>) -> QueryResult<Order> {
    match text.unwrap_or("work") {
        "work" => Ok(Order::Counters(WORK.to_vec())),
        "bytes" => Ok(Order::Bytes),
        "growth_bytes" => Ok(Order::Growth),
        name => match COUNTERS.iter().position(|counter| *counter == name) {
            Some(place) => Ok(Order::Counters(vec![place])),
            None => Err(
                QueryError::invalid(format!("invalid order_by \"{name}\"")).hint(format!(
                    "Available orders are work, {}, bytes, growth_bytes.",
                    COUNTERS.join(", ")
                )),
            ),
        },
    }
}

fn answer(asked: &TablesHistory, run: Run, emit: Emit<TablesHistoryRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let n = limit(asked.n)?;
    let order = order(asked.order_by.as_deref())?;
    let whole = Buckets::whole(window.since, window.until);
    let buckets = match asked.bucket {
        None => whole.clone(),
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
    let mut shown = ranked(&tables, &whole, &order, &states)?;
    shown.truncate(n);
    let rows = (shown.len() + 1).saturating_mul(buckets.len());
    if rows > MAX_ROWS && buckets.len() > 1 {
        return Err(too_many(rows));
    }
    let lines: HashMap<TableKey, u32> = shown.iter().cloned().zip(0..).collect();
    let other = shown.len() as u32;
    let found = tables.sums(&buckets, |key| {
        key.and_then(|key| lines.get(&key).copied())
            .unwrap_or(other)
    })?;
    let answer = Answer {
        buckets: &buckets,
        found: &found,
        states: &states,
        names: names(&tables, shown.iter().map(|key| key.relation))?,
    };
    for bucket in 0..buckets.len() {
        for (number, key) in (0..).zip(shown.iter().map(Some).chain([None])) {
            if let Some(cell) = found.cells.get(&(number, bucket as u32)) {
                emit(answer.row(bucket, key, cell))?;
            }
        }
    }
    Ok(())
}

/// All tables and indexes, the largest first. Among equals the key decides.
fn ranked(
    tables: &Tables,
    whole: &Buckets,
    order: &Order,
    states: &RelationStates,
) -> QueryResult<Vec<TableKey>> {
    let mut numbers: HashMap<TableKey, u32> = HashMap::new();
    let found = tables.sums(whole, |key| match key {
        None => u32::MAX,
        Some(key) => {
            let next = numbers.len() as u32;
            *numbers.entry(key).or_insert(next)
        }
    })?;
    let change = |key: &TableKey| states.change(key, whole.since(), whole.until());
    let measure = |key: &TableKey, number: u32| match order {
        Order::Counters(places) => found
            .cells
            .get(&(number, 0))
            .map_or(0, |cell| cell.sum(places)),
        Order::Bytes => change(key)
            .and_then(|change| change.last.bytes)
            .map_or(-1, i128::from),
        Order::Growth => change(key)
            .and_then(|change| change.growth)
            .map_or(i128::MIN, i128::from),
    };
    let place = |(key, number)| (Reverse(measure(&key, number)), key);
    let mut ranked: Vec<(Reverse<i128>, TableKey)> = numbers.into_iter().map(place).collect();
    ranked.sort_unstable();
    Ok(ranked.into_iter().map(|(_, key)| key).collect())
}

/// The names of tables and indexes at the end of the window.
pub fn names(
    tables: &Tables,
    wanted: impl IntoIterator<Item = Relation>,
) -> QueryResult<RelationNames> {
    let parts: Vec<_> = tables.parts().collect();
    RelationNames::find(wanted, parts.into_iter().rev(), tables.run)
}

/// The name; the numbers of database and relation if the history has none.
pub fn name_of(names: &RelationNames, relation: Relation) -> String {
    let Relation { database, oid } = relation;
    let numbers = || format!("{database}/{oid}");
    names.get(relation).map_or_else(numbers, str::to_string)
}

struct Answer<'a> {
    buckets: &'a Buckets,
    found: &'a TableSums,
    states: &'a RelationStates,
    names: RelationNames,
}

impl Answer<'_> {
    /// The row of a table or index; without a key, the row of all others.
    fn row(&self, bucket: usize, key: Option<&TableKey>, cell: &Cell) -> TablesHistoryRow {
        let (begin, end) = self.buckets.clipped(bucket);
        let covered = self.found.recorded[bucket].covered_us;
        let row = TablesHistoryRow {
            period_start: Some(begin),
            period_end: Some(end),
            coverage_pct: numeric(Ratio::new(i128::from(covered) * 100, (end - begin).into())),
            ..sums(cell)
        };
        match key {
            None => TablesHistoryRow {
                key: Some(pg::OTHER.into()),
                ..row
            },
            Some(key) => self.with_catalog(
                TablesHistoryRow {
                    key: Some(name_of(&self.names, key.relation).into()),
                    database: key.database.as_deref().map(Into::into),
                    database_oid: Some(key.relation.database),
                    oid: Some(key.relation.oid),
                    ..with_state(row, cell)
                },
                self.states.change(key, begin, end),
            ),
        }
    }

    /// Adds what the catalog of the database said.
    fn with_catalog(&self, row: TablesHistoryRow, change: Option<Change>) -> TablesHistoryRow {
        match change {
            None => row,
            Some(change) => TablesHistoryRow {
                kind: change.last.kind.clone(),
                bytes: change.last.bytes,
                growth_bytes: change.growth,
                ..row
            },
        }
    }
}

fn sums(cell: &Cell) -> TablesHistoryRow {
    let [
        scans,
        tuples_returned,
        tuples_fetched,
        tuples_inserted,
        tuples_updated,
        tuples_deleted,
        tuples_hot_updated,
        tuples_newpage_updated,
        blks_read,
        blks_hit,
        vacuum_count,
        autovacuum_count,
        analyze_count,
        autoanalyze_count,
    ] = cell.counts.map(Some);
    TablesHistoryRow {
        intervals: Some(cell.intervals),
        work: i64::try_from(cell.sum(&WORK)).ok(),
        scans,
        tuples_returned,
        tuples_fetched,
        tuples_inserted,
        tuples_updated,
        tuples_deleted,
        tuples_hot_updated,
        tuples_newpage_updated: tuples_newpage_updated.filter(|_| cell.knows_new_pages),
        blks_read,
        blks_hit,
        vacuum_count,
        autovacuum_count,
        analyze_count,
        autoanalyze_count,
        ..TablesHistoryRow::default()
    }
}

/// Adds what the table or index was like at the end of its last interval.
fn with_state(row: TablesHistoryRow, cell: &Cell) -> TablesHistoryRow {
    let [live, dead, modified, inserted, times @ ..] = cell.state;
    let [vacuum, autovacuum, analyze, autoanalyze, scan] = times.map(|ms| some_time(ms, 1000));
    TablesHistoryRow {
        live_tuples: Some(live),
        dead_tuples: Some(dead),
        mod_since_analyze: Some(modified),
        ins_since_vacuum: Some(inserted),
        last_vacuum: vacuum,
        last_autovacuum: autovacuum,
        last_analyze: analyze,
        last_autoanalyze: autoanalyze,
        last_scan: scan,
        ..row
    }
}
