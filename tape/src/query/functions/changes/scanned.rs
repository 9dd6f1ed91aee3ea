//! Finds tables whose scans read many more rows than in the normal window. They show that an index is
//! gone or not used, also on a standby, which has no marker of the DROP INDEX.

use super::effects::{Change, Effect};
use super::windows::Windows;
use super::words::length;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::functions::tables_history::names;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::rows::parse::{Window, nodes};
use crate::query::rows::relations::Relation;
use crate::query::sums::intervals::may_have;
use crate::query::sums::table_sums::{TABLE, TableKey, Tables};
use crate::query::value::error::QueryResult;
use std::collections::BTreeMap;

/// Scans that read at least this many rows in a record can be a cause.
const ROWS: i64 = 10_000;
/// Rows a second must be this many times as many as in each record of the normal window.
const TIMES: i64 = 10;

/// A table whose scans read many more rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Name with its schema.
    pub table: String,
    pub database: Option<String>,
    /// The first record with unusually many rows.
    pub first: Record,
    /// The time from which rows may have been more, in µs since 1970.
    pub since: i64,
    /// The record of the normal window with most rows a second.
    pub most: Record,
}

/// The increases of a table between two times, in µs since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub since: i64,
    pub until: i64,
    pub scans: i64,
    pub rows: i64,
}

impl Record {
    /// Rows a second are at least `times` as many as in another record.
    fn is_times(&self, times: i64, other: &Record) -> bool {
        let product = |rows: i64, us: i64| i128::from(rows) * i128::from(us);
        let [own, others] = [self, other].map(|record| record.until - record.since);
        product(self.rows, others) >= i128::from(times) * product(other.rows, own)
    }
}

impl Scanned {
    pub fn sentence(&self) -> String {
        let per_second = |record: &Record| {
            let us = (record.until - record.since).max(1);
            i128::from(record.rows) * 1_000_000 / i128::from(us)
        };
        format!(
            "scans of {} read {} rows a second instead of {} at most, {} scans in {}",
            self.table,
            per_second(&self.first),
            per_second(&self.most),
            self.first.scans,
            length(self.first.until - self.first.since)
        )
    }
}

/// True if scans of a table can be the reason of the effect.
pub fn is_wanted(effect: &Effect) -> bool {
    let is_other = effect.change == Change::OtherPlan;
    effect.is_notable && effect.change.is_slower() && (is_other || effect.reads_more())
}

/// The tables of effects whose scans read many more rows, in order of time.
pub fn scanned(
    run: Run,
    node: Option<&str>,
    windows: &Windows,
    effects: &[Effect],
) -> QueryResult<Vec<Scanned>> {
    if !effects.iter().any(is_wanted) {
        return Ok(Vec::new());
    }
    let tables = Tables {
        run,
        window: Window {
            since: windows.before.since.min(windows.may_begin()),
            until: windows.after.until,
        },
        nodes: nodes(run, node)?,
        databases: None,
    };
    let mut found: Vec<(TableKey, (Record, i64, Record))> = Vec::new();
    let Records { tables: all, rest } = records(&tables, windows)?;
    for (key, mut records) in all {
        records.sort_by_key(|record| record.until);
        let most = most(&records, &rest, windows);
        found.extend(unusual(&records, &most, windows).map(|unusual| (key, unusual)));
    }
    let names = names(&tables, found.iter().map(|(key, ..)| key.relation))?;
    let named = found.into_iter().filter_map(|(key, (first, since, most))| {
        Some(Scanned {
            table: names.get(key.relation)?.to_string(),
            database: key.database,
            first,
            since,
            most,
        })
    });
    let mut all: Vec<Scanned> = named.collect();
    all.sort_by(|a, b| (a.since, &a.table).cmp(&(b.since, &b.table)));
    Ok(all)
}

/// True if a record ends in the normal window.
fn is_normal(record: &Record, windows: &Windows) -> bool {
    record.until <= windows.before.until
}

/// The record of the normal window with most rows a second. While the table is not among the
/// busiest, its rows are part of the row of all other tables: it read at most as many.
fn most(records: &[Record], rest: &BTreeMap<i64, Record>, windows: &Windows) -> Record {
    let is_own = |until: i64| {
        records
            .binary_search_by_key(&until, |own| own.until)
            .is_ok()
    };
    let rest = rest.values().filter(|record| !is_own(record.until));
    let mut most = Record {
        until: 1,
        ..Record::default()
    };
    for record in records.iter().chain(rest) {
        if is_normal(record, windows) && record.is_times(1, &most) {
            most = *record;
        }
    }
    most
}

/// The first record with unusually many rows, the time from which rows may have been more, and the
/// given record of the normal window.
fn unusual(records: &[Record], most: &Record, windows: &Windows) -> Option<(Record, i64, Record)> {
    let later = records.iter().filter(|record| !is_normal(record, windows));
    let later: Vec<&Record> = later.collect();
    let is_unusual = |record: &&Record| record.rows >= ROWS && record.is_times(TIMES, most);
    let place = later.iter().position(is_unusual)?;
    // The scans may have begun at the end of the record before.
    let before = later[..place].last();
    let before = before.filter(|record| record.is_times(2, most));
    let since = before.map_or(later[place].since, |record| record.since);
    Some((*later[place], since, *most))
}

/// The records of both windows.
#[derive(Default)]
struct Records {
    tables: BTreeMap<TableKey, Vec<Record>>,
    /// The sums of all tables that are not among the busiest, by the end of the record.
    rest: BTreeMap<i64, Record>,
}

/// The records of each table and index in both windows, if the normal window has a complete one.
fn records(tables: &Tables, windows: &Windows) -> QueryResult<Records> {
    let mut all = Records::default();
    let mut has_normal = false;
    for part in tables.parts() {
        let run = tables.run;
        run.check_cancel()?;
        let found = has_records(part, windows);
        if run.damage.note_and_continue(found)? == Some(true) {
            let read = read(part, run, windows, &mut all);
            has_normal |= run.damage.note_and_continue(read)? == Some(true);
            part.release();
        }
    }
    tables.run.damage.check()?;
    Ok(if has_normal { all } else { Records::default() })
}

/// True if the part may have records of one of the windows.
fn has_records(part: &Part, windows: &Windows) -> QueryResult<bool> {
    let later = Window {
        since: windows.may_begin(),
        until: windows.after.until,
    };
    Ok(may_have(part, TABLE, windows.before)? || may_have(part, TABLE, later)?)
}

/// Adds the records of a part. True if one of them is complete and lies in the normal window.
fn read(part: &Part, run: Run, windows: &Windows, all: &mut Records) -> QueryResult<bool> {
    let view = View::new(part, run.decode);
    let column = |name: &str| part.ints(TABLE, name);
    let (time, elapsed) = (column("time")?, column("elapsed_ms")?);
    let (databases, oids) = (column("database_oid")?, column("oid")?);
    let (names, scans) = (column("database")?, column("scans")?);
    let rows = column("tuples_returned")?;
    let mut has_normal = false;
    for row in 0..oids.len() {
        let until = time[row].saturating_mul(1000);
        let record = Record {
            since: until.saturating_sub(elapsed[row].saturating_mul(1000)),
            until,
            scans: scans[row],
            rows: rows[row],
        };
        let is_normal = record.since >= windows.before.since && until <= windows.before.until;
        let is_later = until > windows.may_begin() && record.since < windows.after.until;
        if !(is_normal || is_later) {
            continue;
        }
        if oids[row] == 0 {
            has_normal |= is_normal;
            all.rest.insert(until, record);
            continue;
        }
        if record.scans == 0 && !is_normal {
            continue;
        }
        let key = TableKey {
            database: view.name(Reference(names[row]))?,
            relation: Relation {
                database: databases[row],
                oid: oids[row],
            },
        };
        all.tables.entry(key).or_default().push(record);
    }
    Ok(has_normal)
}
