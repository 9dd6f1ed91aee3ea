//! Finds statements that changed many rows of a table, or its statistics. Both can
//! change the plans of other queries.

use super::effects::Effect;
use super::series::{Level, Series};
use super::windows::{Windows, width};
use crate::query::ask::context::Run;
use crate::query::functions::statements_history;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::parse::{MAX_BUCKETS, Samples, Window, nodes};
use crate::query::rows::register::Atom;
use crate::query::rows::scan::Scan;
use crate::query::rows::text::{TextKey, Texts};
use crate::query::sums::counters::{Counters, Named, Sums};
use crate::query::sums::statement_sums::{Stats, SumsByEntry};
use crate::query::value::bucket::{Buckets, SECOND};
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::vocabulary as pg;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// A statement that changed at least this many rows can be a cause.
const ROWS: i64 = 10_000;
/// Such a change is unusual if at most 1/10 of these rows were changed in the normal
/// window.
const HABIT: i64 = 10;
/// A command with at most this many calls counts as given by hand.
const CALLS: i64 = 20;
/// Maximum number of statements that become candidates. Statements with the most rows come first.
const MOST: usize = 100;
/// The counters of a statement are recorded up to this many µs after its end.
const RECORDED_LATE: i64 = 60_000_000;

/// A statement that changed many rows, or the statistics of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub query_id: i64,
    pub text: Arc<str>,
    /// The changed table; `None` = all tables of the database.
    pub table: Option<String>,
    /// Number of changed rows; `None` for ANALYZE and VACUUM.
    pub rows: Option<i64>,
    /// Time of the statement's first sample in µs since 1970; without a sample the time of its
    /// record.
    pub time: i64,
}

impl Work {
    /// True if the effect is a slower query that mentions the changed table.
    pub fn may_slow(&self, effect: &Effect) -> bool {
        let mentions = match &self.table {
            Some(table) => effect.names.mentions(table),
            None => self.rows.is_none(),
        };
        mentions && effect.query_id != Some(self.query_id) && effect.change.is_slower()
    }

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

/// Number of rows and calls of a statement, and the bucket with the most rows.
struct Counted {
    rows: i64,
    before: i64,
    calls: i64,
    at: Window,
}

/// The statements of this kind in both windows that a slower query can follow from. If the normal
/// window began long ago, the search begins later: one length of the window before the earliest
/// begin of an effect. A notice counts the statements beyond [`MOST`].
pub fn works(
    run: Run,
    node: Option<&str>,
    windows: &Windows,
    effects: &[Effect],
) -> QueryResult<Vec<Work>> {
    let earliest = windows.may_begin().saturating_sub(windows.after.length());
    let window = Window {
        since: windows.before.since.clamp(earliest, windows.after.since),
        until: windows.after.until,
    };
    let counted = counted(run, node, window, windows)?;
    let texts = texts(run, node, window, counted.keys().copied())?;
    let mut found = Vec::new();
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
        let work = Work {
            time: counted.at.since,
            query_id,
            text,
            table,
            rows: changes_rows.then_some(counted.rows),
        };
        if effects.iter().any(|effect| work.may_slow(effect)) {
            found.push((work, counted.at));
        }
    }
    found.sort_by_key(|(work, _)| (Reverse(work.rows), work.query_id));
    note_left_out(run, found.len());
    let mut works = Vec::new();
    for (mut work, at) in found.into_iter().take(MOST) {
        run.check_cancel()?;
        work.time = seen(run, node, work.query_id, window, at)?;
        works.push(work);
    }
    works.sort_by_key(|work| (work.time, work.query_id));
    Ok(works)
}

fn note_left_out(run: Run, found: usize) {
    if found > MOST {
        let message = format!(
            "{found} statements changed tables of slower queries; only {MOST} were considered"
        );
        let notice = QueryError::new("00000", message);
        run.damage
            .note_missing(notice.hint("Ask for a shorter window."));
    }
}

/// The counters of [`Counted`].
const COUNTERS: [Named; 2] = [Named::Rows, Named::Calls];

/// Counters of the statements that may be such work, by query id: with many rows or
/// few calls.
fn counted(
    run: Run,
    node: Option<&str>,
    window: Window,
    windows: &Windows,
) -> QueryResult<HashMap<i64, Counted>> {
    let all = Counters::of(run.catalog).only(|c| c.is_any_of(&COUNTERS));
    if !COUNTERS.iter().all(|named| all.has(*named)) {
        return Ok(HashMap::new());
    }
    let none = &None;
    let stats = Stats {
        run,
        window,
        counters: all,
        filters: statements_history::filters(run, ["a", "b", "c", "d"].map(|name| (name, none)))?,
    };
    let buckets = Buckets::new(window.since, window.until, width(window), None, MAX_BUCKETS)?;
    let mut queries: HashMap<Option<i64>, u32> = HashMap::new();
    let found: SumsByEntry = statements_history::scan(&stats, node, &buckets, |key| {
        let next = queries.len() as u32;
        *queries.entry(key.query_id).or_insert(next)
    })?;
    let ids: HashMap<u32, i64> = queries
        .iter()
        .filter_map(|(id, at)| Some((*at, (*id)?)))
        .collect();
    let mut cells: Vec<(&(u32, u32), &Sums)> = found.sums.iter().collect();
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
        let rows = stats.counters.sum(sums, Named::Rows);
        own.rows += rows;
        own.calls += stats.counters.calls(sums);
        if until <= windows.before.until {
            own.before += rows;
        }
        if rows > *most {
            (*most, own.at) = (rows, at);
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

/// Time in µs since 1970 of the statement's first sample around the bucket `at`, in which it was
/// recorded. Without a sample, the start of that bucket.
fn seen(run: Run, node: Option<&str>, query: i64, window: Window, at: Window) -> QueryResult<i64> {
    let samples = Samples {
        node,
        ..Samples::default()
    };
    let since = at.since.saturating_sub(RECORDED_LATE).max(window.since);
    let around = Window { since, ..at };
    let scan = Scan::new(run, samples, around)?;
    let dimension = Dimension::find(run.catalog, "dimension", pg::QUERY_ID)?;
    let key = scan.register.ids().of(Atom::Number(query));
    let mut series = Series::of_keys(&scan, SECOND, &dimension, [key])?;
    let series = series.remove(&key);
    let none = Level { num: 0, den: 1 };
    let first = series.and_then(|series| series.excess(none));
    Ok(first.map_or(at.since, |(since, _)| since))
}

/// The table that a statement changes, and true if it changes rows, false if it
/// changes statistics. `None` for other statements.
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
