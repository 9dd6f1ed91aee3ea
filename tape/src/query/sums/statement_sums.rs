//! Adds up the counters of statements by entry and bucket. A row has the counts of an entry in the
//! `elapsed_ms` before `time`. The whole row counts in the bucket with the middle of this interval.
//! A row without an entry means that the interval was recorded completely.

use super::counters::{Counters, Sums};
use super::intervals::{Recorded, may_have, middle_us, record};
use crate::error::Result;
use crate::format::part::Part;
use crate::format::schema::{SINCE_CALL, STATS};
use crate::query::ask::context::Run;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::rows::parse::Window;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::filter::Filter;
use std::collections::{HashMap, HashSet};

/// Identifies a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryKey {
    /// Query id; `None` for the sum of evicted entries.
    pub query_id: Option<i64>,
    /// Name of the database.
    pub database: Option<String>,
    /// Name of the role.
    pub username: Option<String>,
    /// True if executed as a top-level statement.
    pub toplevel: bool,
}

impl EntryKey {
    /// A column's value as text, for filters.
    fn text(&self, column: &str) -> Option<String> {
        match column {
            "query_id" => self.query_id.map(|id| id.to_string()),
            "database" => self.database.clone(),
            "username" => self.username.clone(),
            _ => Some(self.toplevel.to_string()),
        }
    }
}

/// Filters by column.
pub type Filters = Vec<(String, Filter)>;

/// Adds up the rows of parts.
pub struct Stats<'a> {
    /// The attempt to answer.
    pub run: Run<'a>,
    /// The window, half-open.
    pub window: Window,
    /// The counters to add up.
    pub counters: Counters<'a>,
    /// Filters of entries.
    pub filters: Filters,
}

/// Sums by key and bucket, and the recorded time of each bucket.
#[derive(Default)]
pub struct SumsByEntry {
    /// The sums of a key in a bucket. The keys of the map are the number of the key and the index
    /// of the bucket.
    pub sums: HashMap<(u32, u32), Sums>,
    /// The recorded time of each bucket.
    pub recorded: Vec<Recorded>,
}

impl Stats<'_> {
    /// Adds up the rows of one node's parts. `number` maps an entry to the number for its sums.
    pub fn sums<'p>(
        &self,
        parts: impl IntoIterator<Item = &'p Part>,
        buckets: &Buckets,
        mut number: impl FnMut(EntryKey) -> u32,
    ) -> QueryResult<SumsByEntry> {
        let mut found = SumsByEntry {
            recorded: vec![Recorded::default(); buckets.len()],
            ..SumsByEntry::default()
        };
        for part in parts {
            self.run.check_cancel()?;
            if self.run.damage.note_and_continue(self.overlaps(part))? == Some(true) {
                let added = self.add_part(part, buckets, &mut number, &mut found);
                self.run.damage.note_and_continue(added)?;
                part.release();
            }
        }
        self.run.damage.check()?;
        Ok(found)
    }

    /// True if the filters accept a statement.
    pub fn wants(&self, key: &EntryKey) -> bool {
        let accepts =
            |(column, filter): &(String, Filter)| filter.accepts(key.text(column).as_deref());
        self.filters.iter().all(accepts)
    }

    /// True if the part may have rows of the window.
    pub(super) fn overlaps(&self, part: &Part) -> QueryResult<bool> {
        may_have(part, STATS, self.window)
    }

    /// Number of each entry by reference; `None` if the filters refuse it.
    pub(super) fn entries(
        &self,
        part: &Part,
        number: &mut impl FnMut(EntryKey) -> u32,
    ) -> QueryResult<Vec<Option<u32>>> {
        let view = View::new(part, self.run.decode);
        let column = |name: &str| part.ints("entry", name);
        let (query_id, toplevel) = (column("query_id")?, column("toplevel")?);
        let (database, username) = (column("database")?, column("username")?);
        let mut numbers = vec![None];
        for row in 0..query_id.len() {
            let key = EntryKey {
                query_id: Some(query_id[row]).filter(|id| *id != 0),
                database: view.name(Reference(database[row]))?,
                username: view.name(Reference(username[row]))?,
                toplevel: toplevel[row] != 0,
            };
            numbers.push(self.wants(&key).then(|| number(key)));
        }
        Ok(numbers)
    }

    fn add_part(
        &self,
        part: &Part,
        buckets: &Buckets,
        number: &mut impl FnMut(EntryKey) -> u32,
        found: &mut SumsByEntry,
    ) -> QueryResult<()> {
        let (time, elapsed) = (part.ints(STATS, "time")?, part.ints(STATS, "elapsed_ms")?);
        let entry = part.ints(STATS, "entry")?;
        let entries = self.entries(part, number)?;
        let mut cells: Vec<((u32, u32), Sums)> = Vec::new();
        let mut known: HashMap<(u32, u32), usize> = HashMap::new();
        let mut rows: Vec<(usize, usize)> = Vec::new();
        for row in 0..time.len() {
            if entry[row] == 0 {
                record(buckets, time[row], elapsed[row], &mut found.recorded);
                continue;
            }
            let index = usize::try_from(entry[row]).unwrap_or(usize::MAX);
            let Some(number) = entries.get(index).copied().flatten() else {
                continue;
            };
            let Some(bucket) = buckets.index(middle_us(time[row], elapsed[row])) else {
                continue;
            };
            let key = (number, bucket as u32);
            let cell = *known.entry(key).or_insert_with(|| {
                cells.push((key, self.counters.zeros()));
                cells.len() - 1
            });
            rows.push((row, cell));
        }
        for (c, counter) in self.counters.list().iter().enumerate() {
            self.run.check_cancel()?;
            if part.range(STATS, counter.name)? == Some((0, 0)) {
                continue;
            }
            let values = part.ints(STATS, counter.name)?;
            for &(row, cell) in &rows {
                let sum = &mut cells[cell].1.counts[c];
                *sum = sum.saturating_add(values[row]);
            }
        }
        if self.counters.has_last_call() {
            let calls = last_calls(part, &time, &entry)?;
            for &(row, cell) in rows.iter().filter(|_| !calls.is_empty()) {
                let last = &mut cells[cell].1.last_call_ms;
                *last = (*last).max(calls[row]);
            }
        }
        for (key, sums) in cells {
            let total = found.sums.entry(key);
            total.or_insert_with(|| self.counters.zeros()).add(&sums);
        }
        Ok(())
    }
}

/// The time of the last call of each row, in ms since 1970; empty if the part knows none.
///
/// A sealed file has it in the last row of each entry. Earlier rows of the entry have a call in
/// their interval, and another one soon after: its end is taken as the time.
fn last_calls(part: &Part, time: &[i64], entry: &[i64]) -> Result<Vec<Option<i64>>> {
    if part.range(STATS, SINCE_CALL)? == Some((0, 0)) {
        return Ok(Vec::new());
    }
    let since = part.ints(STATS, SINCE_CALL)?;
    let with = |row: &usize| since[*row] > 0;
    let known: HashSet<i64> = (0..time.len()).filter(with).map(|row| entry[row]).collect();
    let call = |row: usize| match since[row] {
        0 => Some(time[row]).filter(|_| known.contains(&entry[row])),
        since => Some(time[row].saturating_sub(since).saturating_add(1)),
    };
    Ok((0..time.len()).map(call).collect())
}
