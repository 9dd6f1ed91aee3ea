//! The load of both windows by the keys of each dimension.

use super::exact::{apportioned, percentages};
use super::windows::Windows;
use crate::query::ask::context::Run;
use crate::query::functions::common_columns::key_text;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::{Id, Key, NULL};
use crate::query::rows::parse::{Samples, Window};
use crate::query::rows::register::Register;
use crate::query::rows::scan::Scan;
use crate::query::rows::tags;
use crate::query::rows::ticks::Coverage;
use crate::query::value::error::QueryResult;
use crate::query::value::filter;
use crate::query::value::vocabulary as pg;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Dimensions by which the answer splits the difference, in its order. The keys of tags follow.
const DIMENSIONS: [&str; 7] = [
    pg::QUERY_ID,
    pg::WAIT_EVENT,
    pg::ROOT_BLOCKER,
    "application",
    pg::USERNAME,
    "client_addr",
    "database",
];
/// The second dimensions that split the load of each query. The last one is read only if a
/// setting of a database changed.
const OF_QUERIES: [&str; 5] = [
    pg::WAIT_EVENT,
    pg::ROOT_BLOCKER,
    "plan_id",
    pg::USERNAME,
    "database",
];
/// Key of sessions that wait for no other.
const NOT_BLOCKED: &str = "(not blocked)";

/// Sum of the weights of each key's samples, in ms.
type Sums = HashMap<Key, i64>;

/// The loads of the two windows, `before` first.
pub struct Loads {
    pub register: Register,
    /// The dimensions by which the answer splits the difference, in its order.
    pub dimensions: Vec<String>,
    sides: [Side; 2],
}

struct Side {
    window: Window,
    total: Coverage,
    /// The sums by each of the dimensions.
    by_dimension: Vec<Sums>,
    of_queries: Vec<Sums>,
}

/// A key in both windows. Loads are in ten-thousandths of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The key as text.
    pub key: Arc<str>,
    /// `None` for the line `(other)`.
    pub id: Option<Id>,
    pub before: i128,
    pub after: i128,
    /// Percentage of the whole difference, in ten-thousandths; `None` if the whole
    /// difference is zero.
    pub pct: Option<i128>,
}

impl Line {
    pub fn difference(&self) -> i128 {
        self.after - self.before
    }
}

impl Loads {
    /// Reads both windows, each in one scan. `by_database` adds the load of each query by database,
    /// which no other rule needs.
    pub fn read(
        run: Run,
        samples: Samples,
        windows: &Windows,
        by_database: bool,
    ) -> QueryResult<Loads> {
        let register = Register::default();
        let seconds = OF_QUERIES.len() - usize::from(!by_database);
        let seconds = &OF_QUERIES[..seconds];
        let both = [windows.before, windows.after];
        let mut scans = Vec::new();
        for window in both {
            let mut scan = Scan::new(run, samples, window)?;
            scan.register = register.clone();
            scans.push(scan);
        }
        let has_tags = has_tags(&scans[0])? || has_tags(&scans[1])?;
        let side = |at: usize| Side::read(&scans[at], seconds, has_tags);
        let mut loads = Loads {
            sides: [side(0)?, side(1)?],
            dimensions: DIMENSIONS.map(str::to_string).to_vec(),
            register,
        };
        if has_tags {
            loads.split_by_tags();
        }
        Ok(loads)
    }

    /// Replaces the dimension of all tags by one for each key that occurs, in alphabetical order.
    fn split_by_tags(&mut self) {
        let register = &self.register;
        let tags = |side: &mut Side| side.by_dimension.pop().unwrap_or_default();
        let sides = self.sides.each_mut().map(tags).map(|sums| {
            let named = sums.into_iter();
            let named = named.map(|(key, sum)| (register.text(key.0), sum));
            named.collect::<Vec<(Option<String>, i64)>>()
        });
        let all = sides.iter().flatten().filter_map(|one| one.0.as_deref());
        let names: BTreeSet<&str> = all.flat_map(tags::keys_in).collect();
        for name in names {
            for (side, sums) in self.sides.iter_mut().zip(&sides) {
                side.by_dimension.push(by_tag(register, sums, name));
            }
            self.dimensions.push(format!("{}{name}", pg::TAG));
        }
    }

    pub fn observed_ms(&self) -> [i64; 2] {
        self.sides.each_ref().map(|side| side.total.observed_ms)
    }

    /// Observed percentage of each window, in ten-thousandths.
    pub fn coverage(&self) -> [Option<i128>; 2] {
        self.sides.each_ref().map(|side| {
            let percent = side.total.percent(side.window.length());
            percent.map(|percent| percent.round4())
        })
    }

    /// The whole load of the windows.
    pub fn whole(&self) -> [i128; 2] {
        self.sides.each_ref().map(|side| {
            let sums: i64 = side.by_dimension[0].values().sum();
            side.loads(&[sums])[0]
        })
    }

    /// The `n` keys of a dimension that changed most, and a line `(other)` for the
    /// rest. For each window the loads of the lines add up to the whole load; the
    /// shares add up to 100.
    pub fn lines(&self, dimension: usize, n: usize) -> Vec<Line> {
        let name = &self.dimensions[dimension];
        let mut keys = self.changed(dimension);
        let rest = keys.split_off(n.min(keys.len()));
        let sums = [0, 1].map(|side| {
            let of = |key: &Key| self.sides[side].sum(dimension, *key);
            let mut sums: Vec<i64> = keys.iter().map(of).collect();
            sums.extend((!rest.is_empty()).then(|| rest.iter().map(of).sum::<i64>()));
            self.sides[side].loads(&sums)
        });
        let other = (!rest.is_empty()).then_some(None);
        let ids = keys.iter().map(|key| Some(key.0)).chain(other);
        let differences: Vec<i128> = sums[1].iter().zip(&sums[0]).map(|(a, b)| a - b).collect();
        let shares = percentages(&differences);
        let line = |(at, id): (usize, Option<Id>)| Line {
            key: id.map_or(pg::OTHER.into(), |id| self.shown(name, id)),
            id,
            before: sums[0][at],
            after: sums[1][at],
            pct: shares.as_ref().map(|shares| shares[at]),
        };
        ids.enumerate().map(line).collect()
    }

    /// The keys of a dimension, the one that changed most first, ties by key.
    fn changed(&self, dimension: usize) -> Vec<Key> {
        let keys = |side: &Side| side.by_dimension[dimension].keys().copied().collect();
        let all: HashSet<Key> = self
            .sides
            .iter()
            .flat_map(|s| -> Vec<Key> { keys(s) })
            .collect();
        let ids = self.register.ids();
        let mut all: Vec<(i128, Key)> = all
            .into_iter()
            .map(|key| (self.change(dimension, key).abs(), key))
            .collect();
        all.sort_by(|a, b| (Reverse(a.0).cmp(&Reverse(b.0))).then(ids.compare(a.1.0, b.1.0)));
        all.into_iter().map(|(_, key)| key).collect()
    }

    /// The difference of a key without rounding: the sum of weights after times the
    /// observed ms before, minus the sum before times the observed ms after. The unit
    /// is the same for all keys, so it orders them.
    fn change(&self, dimension: usize, key: Key) -> i128 {
        let [before, after] = self.sides.each_ref();
        let den = |side: &Side| i128::from(side.total.observed_ms.max(1));
        i128::from(after.sum(dimension, key)) * den(before)
            - i128::from(before.sum(dimension, key)) * den(after)
    }

    fn shown(&self, dimension: &str, id: Id) -> Arc<str> {
        match key_text(&self.register, dimension, id) {
            Some(text) => text,
            None if dimension == pg::ROOT_BLOCKER => NOT_BLOCKED.into(),
            None => filter::NULL.into(),
        }
    }

    /// True if a session waited for another one in either window.
    pub fn is_blocked(&self) -> bool {
        let blocked = |side: &Side| side.by_dimension[2].keys().any(|key| key.0 != NULL);
        self.sides.iter().any(blocked)
    }

    /// The waits of a query, in ten-thousandths of a session before and after.
    pub fn waits(&self, query: Id) -> Vec<(String, [i128; 2])> {
        self.of_query(0, query)
    }

    /// The heads of the queues in which a query waited.
    pub fn heads(&self, query: Id) -> Vec<(String, [i128; 2])> {
        self.of_query(1, query)
    }

    /// Loads of the plans of a query. Samples without a plan id are left out.
    pub fn plans(&self, query: Id) -> Vec<(String, [i128; 2])> {
        self.of_query(2, query)
    }

    /// The roles that run a query.
    pub fn users(&self, query: Id) -> Vec<(String, [i128; 2])> {
        self.of_query(3, query)
    }

    /// The databases in which a query runs; none if they were not read.
    pub fn databases(&self, query: Id) -> Vec<(String, [i128; 2])> {
        self.of_query(4, query)
    }

    /// The load of all sessions with a wait event, before and after.
    pub fn of_wait(&self, wait: &str) -> [i128; 2] {
        let mut lines = self.lines(1, usize::MAX).into_iter();
        let line = lines.find(|line| &*line.key == wait);
        line.map_or([0, 0], |line| [line.before, line.after])
    }

    /// Loads of a query before and after by the keys of dimension `OF_QUERIES[part]`,
    /// ordered by key. Samples without a key are left out.
    fn of_query(&self, part: usize, query: Id) -> Vec<(String, [i128; 2])> {
        let of = |side: &Side| -> Vec<Id> {
            let keys = side.of_queries.get(part).into_iter().flat_map(Sums::keys);
            keys.filter(|key| key.0 == query && key.1 != NULL)
                .map(|key| key.1)
                .collect()
        };
        let mut keys: Vec<Id> = self.sides.iter().flat_map(of).collect();
        let ids = self.register.ids();
        keys.sort_unstable_by(|a, b| ids.compare(*a, *b));
        keys.dedup();
        let loads = |key: Id| {
            self.sides.each_ref().map(|side| {
                let sums = side.of_queries.get(part);
                let sum = sums.and_then(|sums| sums.get(&(query, key)));
                side.loads(&[sum.copied().unwrap_or(0)])[0]
            })
        };
        let named = keys.into_iter();
        named
            .filter_map(|key| Some((ids.text(key)?, loads(key))))
            .collect()
    }
}

/// True if a statement of the parts has tags. A plan is made without reading, so it has no tags.
fn has_tags(scan: &Scan) -> QueryResult<bool> {
    if scan.run.explained.is_some() {
        return Ok(false);
    }
    for part in &scan.parts {
        scan.check_cancel()?;
        let range = part.range(tags::STATEMENT, pg::TAGS);
        let range = scan
            .run
            .damage
            .note_and_continue(range.map_err(Into::into))?;
        if range.flatten().is_some_and(|(_, most)| most > 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The sums of each value of a key, from the sums of all tags.
fn by_tag(register: &Register, sums: &[(Option<String>, i64)], key: &str) -> Sums {
    let mut values = Sums::new();
    for (tags, sum) in sums {
        let value = tags.as_deref().and_then(|tags| tags::value_of(tags, key));
        let atom = register.atom(value.as_deref());
        let id = register.ids().of(atom);
        *values.entry((id, NULL)).or_default() += sum;
    }
    values
}

impl Side {
    /// Reads the window of a scan. With tags, the last of the dimensions is the one of all tags.
    fn read(scan: &Scan, seconds: &[&str], has_tags: bool) -> QueryResult<Side> {
        let find = |name: &&str| Dimension::find(scan.run.catalog, "dimension", name);
        let tags = has_tags.then_some(&pg::TAGS);
        let single = DIMENSIONS.iter().chain(tags).map(find);
        let single: Vec<Dimension> = single.collect::<QueryResult<_>>()?;
        let second: Vec<Dimension> = seconds.iter().map(find).collect::<QueryResult<_>>()?;
        let groups = single.iter().map(|one| vec![one]);
        let pairs = second.iter().map(|second| vec![&single[0], second]);
        let groups: Vec<Vec<&Dimension>> = groups.chain(pairs).collect();
        let mut scanned = scan.weights(&groups)?;
        let total = scanned.observed.total();
        let cubes = std::mem::take(&mut scanned.cubes).into_iter();
        let sums = cubes.map(|cube| {
            let keys = cube.into_cells();
            keys.map(|(key, cells)| (key, cells.sum_ms())).collect()
        });
        let mut by_dimension: Vec<Sums> = sums.collect();
        let of_queries = by_dimension.split_off(single.len());
        Ok(Side {
            window: scan.window(),
            total,
            by_dimension,
            of_queries,
        })
    }

    fn sum(&self, dimension: usize, key: Key) -> i64 {
        self.by_dimension[dimension].get(&key).copied().unwrap_or(0)
    }

    /// Converts sums in ms to loads in ten-thousandths of a session that add up. All
    /// are 0 if nothing was observed.
    fn loads(&self, sums: &[i64]) -> Vec<i128> {
        let sums: Vec<i128> = sums.iter().copied().map(i128::from).collect();
        apportioned(&sums, self.total.observed_ms.into(), 10_000)
    }
}
