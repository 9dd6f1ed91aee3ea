//! Tables and indexes as the catalog of their database has them: kind, table, size, and counters
//! since their statistics began. The sampler records a row when something has changed and once a
//! day. A row without OID ends each round that has read all that the sampler knows.
//!
//! Example: an index has rows with 5 scans at 10:00 and 7 scans at 12:00, and rounds were at 10:00,
//! 11:00, 12:00 and 13:00. From 11:30 to 14:00 it had 2 scans: the row of 10:00 is its state at
//! 11:30. The scans are known from 11:00 to 13:00.
//!
//! After a restart the sampler does not know a table that did nothing since. Later rounds say nothing
//! about it, so its state is known until the last round before the restart.

use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::View;
use crate::query::rows::parse::Window;
use crate::query::rows::relations::Relation;
use crate::query::sums::table_sums::TableKey;
use crate::query::value::bucket::DAY;
use crate::query::value::error::QueryResult;
use crate::query::value::filter::Filter;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

const TABLE: &str = "relation_state";
/// Maximum age at the start of the window of a state that counts for it, µs. A state is recorded
/// once a day, and rounds are at most a day apart.
const BEFORE: i64 = 3 * DAY;
/// The counters, in the order of the catalog.
const COUNTERS: [&str; 3] = ["scans", "tuples_returned", "tuples_fetched"];

/// A table or index at a point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// When it was recorded, µs.
    pub time: i64,
    /// Kind of table or index; `None` if it was dropped.
    pub kind: Option<Arc<str>>,
    /// OID of the table that an index belongs to, 0 for a table.
    pub table_oid: i64,
    /// Size of its main fork.
    pub bytes: Option<i64>,
    /// Rows, as the last VACUUM or ANALYZE estimated them.
    pub rows: Option<i64>,
    /// The counters since its statistics began.
    counts: [i64; COUNTERS.len()],
    /// End of the transaction of the last scan in ms, 0 = none or not known.
    pub last_scan: i64,
}

/// The activity of a table or index in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// The state at the end of the window.
    pub last: &'a State,
    /// From when on `counts` and `growth` are counted: the last round before the window, or the first
    /// state in it.
    pub known_from: i64,
    /// Until when: the last round in the window. `None` if no round was complete since `known_from`.
    pub known_until: Option<i64>,
    /// Increase of each counter, also of nodes that end before `known_from`: scans, then rows or entries read, then rows fetched.
    pub counts: [i64; COUNTERS.len()],
    /// Increase of the size in bytes.
    pub growth: Option<i64>,
}

/// The end of a round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Round {
    /// µs.
    time: i64,
    /// The sampler may have forgotten states that are older than this, µs.
    known_since: i64,
}

impl Round {
    /// True if the round has read the table or index, and found it in this state. The first round of
    /// a day has a state of each one.
    fn knows(&self, state: &State) -> bool {
        let day = self.time - self.time.rem_euclid(DAY);
        state.time >= self.known_since.max(day)
    }
}

/// The states of one node, by time.
#[derive(Default)]
struct Node {
    states: HashMap<TableKey, Vec<State>>,
    /// Complete rounds, ascending.
    rounds: Vec<Round>,
}

/// The states of tables and indexes.
#[derive(Default)]
pub struct RelationStates {
    nodes: BTreeMap<u64, Node>,
}

impl RelationStates {
    /// Reads the states that count for a window. `databases` filters by name.
    pub fn read<'a>(
        parts: impl Iterator<Item = &'a Part>,
        window: Window,
        databases: Option<&Filter>,
        run: Run,
    ) -> QueryResult<RelationStates> {
        let begin = window.since.saturating_sub(BEFORE);
        let mut all = RelationStates::default();
        for part in parts {
            run.check_cancel()?;
            let times = begin..window.until.saturating_add(1);
            if run.damage.note_and_continue(may_have(part, &times))? == Some(true) {
                let node = all.nodes.entry(part.node()).or_default();
                let read = node.read_part(part, times, databases, run);
                run.damage.note_and_continue(read)?;
                part.release();
            }
        }
        run.damage.check()?;
        all.nodes.values_mut().for_each(Node::sort);
        Ok(all)
    }

    /// All tables and indexes with a state, each once.
    pub fn keys(&self) -> impl Iterator<Item = &TableKey> {
        let keys = self.nodes.values().flat_map(|node| node.states.keys());
        keys.collect::<HashSet<_>>().into_iter()
    }

    /// The activity of a table or index from `since` to `until`. A state at `since` is the state at
    /// the begin. `None` if nothing is known of it in the window, or if it was dropped.
    ///
    /// The counts of several nodes are added up; the state is the newest. If one node knows it from
    /// the round on that was the last of another, the times of both are known. No node has seen a time
    /// between them, so then only the time of the later node is known. Otherwise it is the time that
    /// all of them know.
    pub fn change(&self, key: &TableKey, since: i64, until: i64) -> Option<Change<'_>> {
        let changes = self.nodes.values();
        let changes = changes.filter_map(|node| node.change(key, since, until));
        let mut changes: Vec<Change> = changes.collect();
        changes.sort_by_key(|change| change.last.time);
        changes.into_iter().reduce(Change::with)
    }
}

impl<'a> Change<'a> {
    /// This activity and that on another node.
    fn with(self, other: Change<'a>) -> Change<'a> {
        let (newest, older) = match self.last.time >= other.last.time {
            true => (self, other),
            false => (other, self),
        };
        let mut counts = newest.counts;
        for (sum, count) in counts.iter_mut().zip(older.counts) {
            *sum = sum.saturating_add(count);
        }
        let older_until = older.known_until.unwrap_or(older.known_from);
        if older_until < newest.known_from {
            return Change { counts, ..newest };
        }
        if older_until == newest.known_from {
            let growths = [newest.growth, older.growth].into_iter().flatten();
            return Change {
                known_from: older.known_from,
                known_until: newest.known_until.or(older.known_until),
                counts,
                growth: growths.reduce(i64::saturating_add),
                ..newest
            };
        }
        let known_from = newest.known_from.max(older.known_from);
        let until = newest.known_until.zip(older.known_until);
        Change {
            known_from,
            known_until: until
                .map(|(a, b)| a.min(b))
                .filter(|until| *until > known_from),
            counts,
            ..newest
        }
    }
}

impl Node {
    fn sort(&mut self) {
        self.rounds.sort_unstable();
        for states in self.states.values_mut() {
            states.sort_by_key(|state| state.time);
        }
    }

    fn read_part(
        &mut self,
        part: &Part,
        times: Range<i64>,
        databases: Option<&Filter>,
        run: Run,
    ) -> QueryResult<()> {
        let view = View::new(part, run.decode);
        let column = |name: &&str| part.ints(TABLE, name);
        let number = |name: &str| part.ints(TABLE, name);
        let (time, oids, kinds) = (number("time")?, number("oid")?, number("kind")?);
        let (base, names) = (number("database_oid")?, number("database")?);
        let (tables, bytes, rows) = (number("table_oid")?, number("bytes")?, number("rows")?);
        let (last_scan, known_since) = (number("last_scan")?, number("known_since")?);
        let counters = COUNTERS.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        for row in 0..oids.len() {
            let at = time[row].saturating_mul(1000);
            if !times.contains(&at) {
                continue;
            }
            if oids[row] == 0 {
                self.rounds.push(Round {
                    time: at,
                    known_since: known_since[row].saturating_mul(1000),
                });
                continue;
            }
            let database = view.name(Reference(names[row]))?;
            if databases.is_some_and(|filter| !filter.accepts(database.as_deref())) {
                continue;
            }
            let relation = Relation {
                database: base[row],
                oid: oids[row],
            };
            let state = State {
                time: at,
                kind: view.key(TABLE, "kind", kinds[row])?.map(Into::into),
                table_oid: tables[row],
                bytes: known(bytes[row]),
                rows: known(rows[row]),
                counts: std::array::from_fn(|place| counters[place][row]),
                last_scan: last_scan[row],
            };
            self.states
                .entry(TableKey { database, relation })
                .or_default()
                .push(state);
        }
        Ok(())
    }

    /// The rounds until `until`.
    fn rounds(&self, until: i64) -> &[Round] {
        &self.rounds[..self.rounds.partition_point(|round| round.time <= until)]
    }

    /// The time of the last round until `until` that knows the state.
    fn read_at(&self, state: &State, until: i64) -> Option<i64> {
        let mut newest_first = self.rounds(until).iter().rev();
        newest_first
            .find(|round| round.knows(state))
            .map(|round| round.time)
    }

    fn change(&self, key: &TableKey, since: i64, until: i64) -> Option<Change<'_>> {
        let states = self.states.get(key)?;
        let until_then = |time: i64| states.partition_point(|state| state.time <= time);
        let end = until_then(until);
        let last = states[..end].last()?;
        last.kind.as_ref()?;
        let round = self.read_at(last, until)?;
        if round < self.rounds(until).last()?.time && round <= since {
            return None;
        }
        let first = until_then(since).saturating_sub(1);
        let counted = states.get(first..end).unwrap_or_default();
        let mut counts = [0; COUNTERS.len()];
        for pair in counted.windows(2) {
            add_increases(&mut counts, &pair[0].counts, &pair[1].counts);
        }
        let sizes = || counted.iter().filter_map(|state| state.bytes);
        let first = counted.first().unwrap_or(last);
        let known_from = first
            .time
            .max(self.read_at(first, since).unwrap_or(first.time));
        Some(Change {
            last,
            known_from,
            known_until: Some(round).filter(|round| *round > known_from),
            counts,
            growth: sizes()
                .next_back()
                .zip(sizes().next())
                .map(|(to, from)| to - from),
        })
    }
}

/// True if the part may have states of these times, in µs.
fn may_have(part: &Part, times: &Range<i64>) -> QueryResult<bool> {
    let range = part.range(TABLE, "time")?;
    Ok(range.is_some_and(|(first, last)| {
        first.saturating_mul(1000) < times.end && last.saturating_mul(1000) >= times.start
    }))
}

/// A number that is stored plus one; 0 = not known.
fn known(stored: i64) -> Option<i64> {
    (stored > 0).then(|| stored - 1)
}

/// Adds the increases between two states. If a counter is less than it was, the statistics were
/// reset, and all of its counters began at zero.
fn add_increases(sums: &mut [i64], before: &[i64], now: &[i64]) {
    let was_reset = now.iter().zip(before).any(|(now, before)| now < before);
    for ((sum, now), before) in sums.iter_mut().zip(now).zip(before) {
        let increase = if was_reset {
            *now
        } else {
            now.saturating_sub(*before)
        };
        *sum = sum.saturating_add(increase);
    }
}
