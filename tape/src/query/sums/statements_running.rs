//! The statements that run at the end of each bucket. The statistics count an execution when it
//! ends; until then only the samples show it. Samples have the sessions that are active at the last
//! tick of the bucket, and the start of their query.

use super::statement_sums::EntryKey;
use crate::fast::FastMap;
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::format::table::Column;
use crate::query::ask::context::Run;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::{View, field};
use crate::query::rows::parse::nodes;
use crate::query::rows::runs::Runs;
use crate::query::rows::ticks::{NONE, Observed, Ticks};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Maximum number of buckets for which running statements are read: the end of each bucket may lie
/// in another group of samples, which takes 3 ms to read.
const MOST_BUCKETS: usize = 3_000;

/// Executions that have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunningExecutions {
    /// Number of executions.
    pub count: i64,
    /// Time that the executions have run so far, in ms.
    pub time_ms: i64,
}

impl RunningExecutions {
    /// Adds `other`.
    pub fn add(&mut self, other: RunningExecutions) {
        self.count += other.count;
        self.time_ms = self.time_ms.saturating_add(other.time_ms);
    }
}

/// The running executions at the end of each bucket.
#[derive(Default)]
pub struct Running {
    /// The running executions of a statement at the end of a bucket. The keys are the number of the
    /// statement and the index of the bucket.
    executions: HashMap<(u32, u32), RunningExecutions>,
    /// Number of each statement.
    numbers: HashMap<EntryKey, u32>,
    /// For each bucket: true if it has an observed tick.
    pub observed: Vec<bool>,
}

impl Running {
    /// The longest time so far of each statement over all buckets, in ms.
    pub fn longest_ms(&self) -> HashMap<&EntryKey, i64> {
        let mut longest = vec![0; self.numbers.len()];
        for ((number, _), executions) in &self.executions {
            let known = &mut longest[*number as usize];
            *known = executions.time_ms.max(*known);
        }
        let of = |(key, number): (_, &u32)| (key, longest[*number as usize]);
        self.numbers.iter().map(of).collect()
    }

    /// The executions by line of the answer and bucket.
    pub fn by_line(
        &self,
        line: impl Fn(&EntryKey) -> u32,
    ) -> HashMap<(u32, u32), RunningExecutions> {
        let mut line_of = vec![0; self.numbers.len()];
        for (key, number) in &self.numbers {
            line_of[*number as usize] = line(key);
        }
        let mut lines: HashMap<(u32, u32), RunningExecutions> = HashMap::new();
        for ((number, bucket), executions) in &self.executions {
            let place = (line_of[*number as usize], *bucket);
            lines.entry(place).or_default().add(*executions);
        }
        lines
    }

    fn number(&mut self, key: EntryKey) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(key).or_insert(next)
    }
}

/// Reads the running executions of the statements that `wanted` accepts.
pub fn read(
    run: Run,
    node: Option<&str>,
    buckets: &Buckets,
    wanted: impl Fn(&EntryKey) -> bool,
) -> QueryResult<Running> {
    let reading = Reading {
        run,
        buckets,
        wanted,
    };
    let mut running = Running {
        observed: vec![false; buckets.len()],
        ..Running::default()
    };
    if buckets.len() > MOST_BUCKETS {
        return Ok(running);
    }
    let nodes = nodes(run, node)?;
    match node {
        // Nodes that recorded at the same time: each has a last tick of its own.
        Some("all") => nodes
            .iter()
            .try_for_each(|node| reading.nodes(&[*node], &mut running))?,
        _ => reading.nodes(&nodes, &mut running)?,
    }
    run.damage.check()?;
    Ok(running)
}

struct Reading<'a, W> {
    run: Run<'a>,
    buckets: &'a Buckets,
    wanted: W,
}

impl<W: Fn(&EntryKey) -> bool> Reading<'_, W> {
    /// Reads nodes that recorded one after the other. The newest part with ticks of a bucket has
    /// the bucket's last tick.
    fn nodes(&self, nodes: &[u64], running: &mut Running) -> QueryResult<()> {
        let parts = nodes.iter().flat_map(|node| self.run.store.parts(*node));
        let mut parts: Vec<&Part> = parts
            .filter(|part| part.min_ms() <= part.max_ms())
            .collect();
        parts.sort_by_key(|part| Reverse(part.max_ms()));
        let mut seen = vec![false; self.buckets.len()];
        for part in parts {
            self.run.check_cancel()?;
            if self.is_seen(part, &seen) {
                continue;
            }
            let added = self.add_part(part, &mut seen, running);
            self.run.damage.note_and_continue(added)?;
            part.release();
        }
        for (observed, seen) in running.observed.iter_mut().zip(seen) {
            *observed |= seen;
        }
        Ok(())
    }

    /// True if the last tick of every bucket that the part meets is known.
    fn is_seen(&self, part: &Part, seen: &[bool]) -> bool {
        let (since, until) = (self.buckets.since(), self.buckets.until());
        let first = part.min_ms().saturating_mul(1000).max(since);
        let last = part.max_ms().saturating_mul(1000).min(until - 1);
        match (self.buckets.index(first), self.buckets.index(last)) {
            (Some(first), Some(last)) if first <= last => seen[first..=last].iter().all(|s| *s),
            _ => true,
        }
    }

    fn add_part(&self, part: &Part, seen: &mut [bool], running: &mut Running) -> QueryResult<()> {
        let ticks = Ticks::read(part, self.buckets, &mut Observed::default())?;
        let found = rows_at(part, &ticks, &ends(&ticks, seen))?;
        if found.is_empty() {
            return Ok(());
        }
        let view = View::new(part, self.run.decode);
        let columns = Columns::read(&view, self.run)?;
        let active = part.schema().value(pg::STATE, pg::ACTIVE);
        let mut numbers: FastMap<[i64; 3], Option<u32>> = FastMap::default();
        for (row, tick) in found {
            let query_id = field(&columns.query_id, Reference(columns.statement[row]));
            let session = columns.session[row];
            let is_worker = field(&columns.leader, Reference(session)) != 0;
            if query_id == 0 || is_worker || Some(columns.state[row]) != active {
                continue;
            }
            let names = [&columns.database, &columns.username];
            let [database, username] = names.map(|column| field(column, Reference(session)));
            let number = match numbers.entry([query_id, database, username]) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let key = EntryKey {
                        query_id: Some(query_id),
                        database: view.name(Reference(database))?,
                        username: view.name(Reference(username))?,
                        toplevel: true,
                    };
                    let wanted = (self.wanted)(&key);
                    *new.insert(wanted.then(|| running.number(key)))
                }
            };
            let Some(number) = number else {
                continue;
            };
            let one = RunningExecutions {
                count: 1,
                time_ms: time_ms(ticks.slot_ms[tick], columns.start[row]),
            };
            let place = (number, ticks.bucket[tick]);
            running.executions.entry(place).or_default().add(one);
        }
        Ok(())
    }
}

/// The columns of a part that show which session executes which statement.
struct Columns {
    /// Columns of `run`.
    session: Column,
    statement: Column,
    state: Column,
    start: Column,
    /// Columns of dictionaries.
    query_id: Column,
    leader: Column,
    database: Column,
    username: Column,
}

impl Columns {
    fn read(view: &View, run: Run) -> QueryResult<Columns> {
        let column = |table: &str, name: &str| {
            run.check_cancel()?;
            QueryResult::Ok(view.part.ints(table, name)?)
        };
        Ok(Columns {
            session: column(RUN, "session")?,
            statement: column(RUN, "statement")?,
            state: column(RUN, pg::STATE)?,
            start: column(RUN, "query_start")?,
            query_id: column("statement", pg::QUERY_ID)?,
            leader: column("session", pg::LEADER)?,
            database: column("session", "database")?,
            username: column("session", pg::USERNAME)?,
        })
    }
}

/// The rows of `run` that cover the ticks `at`, each with the row of its tick.
fn rows_at(part: &Part, ticks: &Ticks, at: &[u32]) -> QueryResult<Vec<(usize, usize)>> {
    let mut found = Vec::new();
    if at.is_empty() {
        return Ok(found);
    }
    let mut row = 0;
    Runs::whole(part)?.for_each(None, |first, length| {
        let (begin, end) = ticks.range(first, length);
        let from = at.partition_point(|tick| *tick < begin);
        let held = at[from..].iter().take_while(|tick| **tick < end);
        found.extend(held.map(|tick| (row, *tick as usize)));
        row += 1;
    });
    Ok(found)
}

/// The rows of the last tick of each bucket that was not seen before, in ascending order.
fn ends(ticks: &Ticks, seen: &mut [bool]) -> Vec<u32> {
    let mut last: Vec<(u32, u32)> = Vec::new();
    for (row, &bucket) in ticks.bucket.iter().enumerate() {
        let row = row as u32;
        match last.last_mut() {
            Some(end) if end.0 == bucket => end.1 = row,
            _ if bucket == NONE => (),
            _ => last.push((bucket, row)),
        }
    }
    last.sort_by_key(|(_, row)| Reverse(*row));
    let new = |(bucket, _): &(u32, u32)| !std::mem::replace(&mut seen[*bucket as usize], true);
    let mut rows: Vec<u32> = last.into_iter().filter(new).map(|end| end.1).collect();
    rows.sort_unstable();
    rows
}

/// Time in ms that a query had run at a tick; 0 if its start is unknown. A query may begin within
/// the slot of the tick, after the slot time.
fn time_ms(slot_ms: i64, start_ms: i64) -> i64 {
    match start_ms {
        0 => 0,
        start => slot_ms.saturating_sub(start).max(0),
    }
}
