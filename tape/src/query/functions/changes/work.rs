//! Statements that change many rows of a table, or its statistics: the plans of other
//! queries follow from both.

use super::series::{Level, Series};
use super::windows::{Windows, width};
use crate::query::ask::context::Run;
use crate::query::functions::statements_history;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::parse::{MAX_BUCKETS, Samples, Window, nodes};
use crate::query::rows::scan::Scan;
use crate::query::rows::text::{TextKey, Texts};
use crate::query::sums::statement_sums::{Stats, SumsByEntry, counters};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;
use std::collections::HashMap;
use std::sync::Arc;

/// A statement changed many rows from this number on.
const ROWS: i64 = 10_000;
/// It is no habit if it changed at most a tenth of them before.
const HABIT: i64 = 10;
/// Work by hand is not called more often.
const CALLS: i64 = 20;
/// A statement is recorded up to this long after its end.
const RECORDED_LATE: i64 = 60_000_000;

/// A statement that did much at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub query_id: i64,
    pub text: Arc<str>,
    /// The table it changes; none: all of the database.
    pub table: Option<String>,
    /// Rows that it changed; none for ANALYZE and VACUUM.
    pub rows: Option<i64>,
    /// When it was seen first, µs.
    pub time: i64,
}

impl Work {
    pub fn sentence(&self) -> String {
        let table = self.table.as_deref().unwrap_or("all tables");
        let command = self.text.split_whitespace().next().unwrap_or_default();
        let command = command.to_uppercase();
        match self.rows {
            Some(rows) => format!("{command} of {rows} rows of {table}"),
            None => format!("{command} of {table}"),
        }
    }
}

/// Rows and calls of a statement, and when most rows were recorded.
struct Counted {
    rows: i64,
    before: i64,
    calls: i64,
    at: Window,
}

/// The works between the begin of what was normal and the end of the window.
pub fn works(run: Run, node: Option<&str>, windows: &Windows) -> QueryResult<Vec<Work>> {
    let earliest = windows.may_begin().saturating_sub(windows.after.length());
    let window = Window {
        since: windows.before.since.clamp(earliest, windows.after.since),
        until: windows.after.until,
    };
    let counted = counted(run, node, window, windows)?;
    let texts = texts(run, node, window, counted.keys().copied())?;
    let mut works = Vec::new();
    for (query_id, counted) in counted {
        let Some(text) = texts.get(TextKey::Query(query_id), None) else {
            continue;
        };
        let Some((table, changes_rows)) = target(&text) else {
            continue;
        };
        let is_much = counted.rows >= ROWS && counted.before * HABIT <= counted.rows;
        if changes_rows && !is_much {
            continue;
        }
        works.push(Work {
            time: seen(run, node, query_id, window, counted.at)?,
            query_id,
            text,
            table,
            rows: changes_rows.then_some(counted.rows),
        });
    }
    works.sort_by_key(|work| (work.time, work.query_id));
    Ok(works)
}

/// Statements that may be works, by query id.
fn counted(
    run: Run,
    node: Option<&str>,
    window: Window,
    windows: &Windows,
) -> QueryResult<HashMap<i64, Counted>> {
    let mut all = counters(run.catalog);
    all.retain(|counter| counter.name == "rows" || counter.name == "calls");
    let [rows, calls] = ["rows", "calls"].map(|name| all.iter().position(|c| c.name == name));
    let (Some(rows), Some(calls)) = (rows, calls) else {
        return Ok(HashMap::new());
    };
    let none = &None;
    let stats = Stats {
        window,
        counters: all,
        filters: statements_history::filters(run, ["a", "b", "c", "d"].map(|name| (name, none)))?,
        decode: run.decode,
        damage: run.damage,
        cancel: run.cancel,
    };
    let buckets = Buckets::new(window.since, window.until, width(window), None, MAX_BUCKETS)?;
    let mut queries: HashMap<Option<i64>, u32> = HashMap::new();
    let found: SumsByEntry = statements_history::scan(run, node, &stats, &buckets, |key| {
        let next = queries.len() as u32;
        *queries.entry(key.query_id).or_insert(next)
    })?;
    let ids: HashMap<u32, i64> = queries
        .iter()
        .filter_map(|(id, at)| Some((*at, (*id)?)))
        .collect();
    let mut cells: Vec<(&(u32, u32), &crate::query::sums::statement_sums::Sums)> =
        found.sums.iter().collect();
    cells.sort_by_key(|(key, _)| **key);
    let mut all: HashMap<i64, (Counted, i64)> = HashMap::new();
    for ((number, bucket), sums) in cells {
        let Some(id) = ids.get(number) else {
            continue;
        };
        let (since, until) = buckets.clipped(*bucket as usize);
        let at = Window { since, until };
        let (own, most) = all.entry(*id).or_insert((
            Counted {
                rows: 0,
                before: 0,
                calls: 0,
                at,
            },
            0,
        ));
        own.rows += sums.0[rows];
        own.calls += sums.0[calls];
        if until <= windows.before.until {
            own.before += sums.0[rows];
        }
        if sums.0[rows] > *most {
            (*most, own.at) = (sums.0[rows], at);
        }
    }
    let may_be = all.into_iter().map(|(id, (counted, _))| (id, counted));
    Ok(may_be
        .filter(|(_, c)| c.rows >= ROWS || c.calls <= CALLS)
        .collect())
}

fn texts(
    run: Run,
    node: Option<&str>,
    window: Window,
    queries: impl Iterator<Item = i64>,
) -> QueryResult<Texts> {
    let nodes = nodes(run, node)?;
    let parts = nodes.iter().flat_map(|node| run.store.parts(*node));
    let (near, far): (Vec<_>, Vec<_>) = parts.partition(|part| window.overlaps(part));
    Texts::find(
        queries.map(TextKey::Query),
        near,
        far.into_iter().rev(),
        run,
    )
}

/// The first sample of a statement around the time it was recorded, else that time.
fn seen(run: Run, node: Option<&str>, query: i64, window: Window, at: Window) -> QueryResult<i64> {
    let filters = [(pg::QUERY_ID.to_string(), format!("\"{query}\""))];
    let samples = Samples {
        node,
        filters: &filters,
        ..Samples::default()
    };
    let since = at.since.saturating_sub(RECORDED_LATE).max(window.since);
    let around = Window { since, ..at };
    let scan = Scan::new(run, samples, around)?;
    let dimension = Dimension::find(run.catalog, "dimension", pg::QUERY_ID)?;
    let series = Series::of_keys(&scan, 1_000_000, &dimension)?
        .into_values()
        .next();
    let none = Level { num: 0, den: 1 };
    let first = series.and_then(|series| series.excess(none));
    Ok(first.map_or(at.since, |(since, _)| since))
}

/// The table that a statement changes, and whether it changes rows: else it changes
/// statistics. `None` for other statements.
fn target(text: &str) -> Option<(Option<String>, bool)> {
    let words = text.split(|c: char| c.is_whitespace() || c == '(' || c == ';');
    let mut words = words.filter(|word| !word.is_empty()).map(str::to_lowercase);
    let (skipped, changes_rows): (&[&str], bool) = match words.next()?.as_str() {
        "insert" | "merge" => (&["into"], true),
        "update" => (&["only"], true),
        "delete" => (&["from", "only"], true),
        "copy" => (&[], true),
        "analyze" | "analyse" | "vacuum" => (&["verbose", "analyze", "full", "freeze"], false),
        _ => return None,
    };
    let table = words.find(|word| !skipped.contains(&word.as_str()));
    match (&table, changes_rows) {
        (None, true) => None,
        _ => Some((
            table.map(|table| table.trim_matches('"').to_string()),
            changes_rows,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_changes_rows_or_statistics_of_a_table() {
        let of = |text: &str| target(text).map(|(table, rows)| (table.unwrap_or_default(), rows));
        let is = |table: &str, rows| Some((table.to_string(), rows));
        assert_eq!(
            of("INSERT INTO app.orders(id) VALUES ($1)"),
            is("app.orders", true)
        );
        assert_eq!(of("update only orders set n = $1"), is("orders", true));
        assert_eq!(
            of("DELETE\n FROM \"orders\" WHERE id < $1"),
            is("orders", true)
        );
        assert_eq!(of("copy orders (id) from stdin"), is("orders", true));
        assert_eq!(of("vacuum analyze orders"), is("orders", false));
        assert_eq!(of("ANALYZE"), is("", false));
        assert_eq!(of("select * from orders"), None);
        assert_eq!(of("delete"), None);
    }
}
