//! The load of both windows by the keys of each dimension, and the loads of the queries that grew by
//! a second dimension. `loads_read.rs` reads them.

use super::exact::{apportioned, percentages};
use super::loads_read::{Reader, Sums};
use super::windows::Windows;
use crate::fast::FastMap;
use crate::query::ask::context::Run;
use crate::query::functions::common_columns::key_text;
use crate::query::rows::integers::{Id, NULL};
use crate::query::rows::parse::{Samples, Window};
use crate::query::rows::register::Register;
use crate::query::rows::tags;
use crate::query::rows::ticks::Coverage;
use crate::query::value::error::QueryResult;
use crate::query::value::filter;
use crate::query::value::vocabulary as pg;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Dimensions by which the answer splits the difference, in its order. The keys of tags follow.
pub const DIMENSIONS: [&str; 7] = [
    pg::QUERY_ID,
    pg::WAIT_EVENT,
    pg::ROOT_BLOCKER,
    "application",
    pg::USERNAME,
    "client_addr",
    "database",
];
/// Positions of some of them.
const BY_QUERY: usize = 0;
const BY_WAIT: usize = 1;
const BY_HEAD: usize = 2;
/// The dimensions before this one have totals.
pub const WITH_TOTALS: usize = BY_HEAD;
/// Maximum number of effects: the queries whose load changed most.
pub const EFFECTS: usize = 20;
/// Key of sessions that wait for no other.
const NOT_BLOCKED: &str = "(not blocked)";

/// A second dimension, which splits the load of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    Wait,
    /// The head of the queue in which the query waited.
    Head,
    Plan,
    /// The role that runs the query.
    User,
    Database,
}

impl By {
    pub fn dimension(self) -> &'static str {
        match self {
            By::Wait => pg::WAIT_EVENT,
            By::Head => pg::ROOT_BLOCKER,
            By::Plan => "plan_id",
            By::User => pg::USERNAME,
            By::Database => "database",
        }
    }
}

/// The loads of the two windows, `before` first.
pub struct Loads {
    pub register: Register,
    /// The dimensions by which the answer splits the difference, in its order.
    pub dimensions: Vec<String>,
    /// The keys of each of these dimensions.
    keys: Vec<Vec<KeySums>>,
    /// Sums of each query that grew, by the keys of a second dimension, in ms before and after.
    of_queries: FastMap<(By, Id), FastMap<Id, [i64; 2]>>,
    sides: [Side; 2],
}

/// A key, and the sums of its weights in both windows, in ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeySums {
    id: Id,
    ms: [i64; 2],
}

/// A window and its observed time.
pub struct Side {
    pub window: Window,
    pub total: Coverage,
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
    /// Reads both windows. `by_database` adds the loads of queries by database, which only rules about
    /// settings of a database need.
    pub fn read(
        run: Run,
        samples: Samples,
        windows: &Windows,
        by_database: bool,
    ) -> QueryResult<Loads> {
        let register = Register::default();
        let readers = [windows.before, windows.after].map(|window| Reader {
            run,
            samples,
            window,
            register: &register,
        });
        let [before, after] = readers.map(|reader| reader.totals());
        let [(before, before_sums), (after, after_sums)] = [before?, after?];
        let mut loads = Loads {
            keys: joined(before_sums, after_sums),
            of_queries: FastMap::default(),
            sides: [before, after],
            dimensions: DIMENSIONS.map(str::to_string).to_vec(),
            register: register.clone(),
        };
        loads.read_samples(&readers, by_database)?;
        Ok(loads)
    }

    /// Adds what samples have and totals have not.
    fn read_samples(&mut self, readers: &[Reader; 2], by_database: bool) -> QueryResult<()> {
        let has_tags = readers[0].has_tags()? || readers[1].has_tags()?;
        let mut names = DIMENSIONS[WITH_TOTALS..].to_vec();
        names.extend(has_tags.then_some(pg::TAGS));
        let mut by = vec![By::Wait, By::Head, By::Plan, By::User];
        by.extend(by_database.then_some(By::Database));
        let (lines, _) = self.changed(BY_QUERY, EFFECTS);
        let grew = lines.iter().filter(|key| self.change(key.ms) > 0);
        let grew: Vec<Id> = grew.map(|key| key.id).collect();
        let samples = |reader: &Reader| reader.samples(&names, &grew, &by);
        let [before, after] = readers.each_ref().map(samples);
        let [(before, before_pairs), (after, after_pairs)] = [before?, after?];
        for (side, pairs) in [before_pairs, after_pairs].into_iter().enumerate() {
            for (by, pairs) in by.iter().zip(pairs) {
                for ((query, key), ms) in pairs {
                    let keys = self.of_queries.entry((*by, query)).or_default();
                    keys.entry(key).or_default()[side] = ms;
                }
            }
        }
        self.keys.extend(joined(before, after));
        if has_tags {
            self.split_by_tags();
        }
        Ok(())
    }

    /// Replaces the dimension of all tags by one for each key that occurs, in alphabetical order.
    fn split_by_tags(&mut self) {
        let register = &self.register;
        let tagged = self.keys.pop().unwrap_or_default().into_iter();
        let tagged = tagged.map(|key| (register.text(key.id), key.ms));
        let tagged: Vec<(Option<String>, [i64; 2])> = tagged.collect();
        let all = tagged.iter().filter_map(|one| one.0.as_deref());
        let names: BTreeSet<&str> = all.flat_map(tags::keys_in).collect();
        for name in names {
            self.keys.push(by_tag(register, &tagged, name));
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
        let queries = &self.keys[BY_QUERY];
        [0, 1].map(|side| self.load(side, queries.iter().map(|key| key.ms[side]).sum()))
    }

    /// A sum of weights in ms as a load in ten-thousandths of a session, in one of the windows.
    fn load(&self, side: usize, ms: i64) -> i128 {
        self.sides[side].loads(&[ms])[0]
    }

    /// The `n` keys of a dimension that changed most, and a line `(other)` for the
    /// rest. For each window the loads of the lines add up to the whole load; the
    /// shares add up to 100.
    pub fn lines(&self, dimension: usize, n: usize) -> Vec<Line> {
        let name = &self.dimensions[dimension];
        let (keys, rest) = self.changed(dimension, n);
        let sums = [0, 1].map(|side| {
            let mut sums: Vec<i64> = keys.iter().map(|key| key.ms[side]).collect();
            sums.extend(rest.map(|rest| rest[side]));
            self.sides[side].loads(&sums)
        });
        let ids = keys.iter().map(|key| Some(key.id));
        let ids = ids.chain(rest.map(|_| None));
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

    /// The `n` keys of a dimension that changed most, ties by key. The sums of the others follow, if
    /// there are any.
    fn changed(&self, dimension: usize, n: usize) -> (Vec<KeySums>, Option<[i64; 2]>) {
        let all = self.keys[dimension].iter();
        let mut keys: Vec<(i128, KeySums)> =
            all.map(|key| (self.change(key.ms).abs(), *key)).collect();
        let ids = self.register.ids();
        let order = |a: &(i128, KeySums), b: &(i128, KeySums)| -> Ordering {
            let by_change = Reverse(a.0).cmp(&Reverse(b.0));
            by_change.then_with(|| ids.compare(a.1.id, b.1.id))
        };
        let n = n.min(keys.len());
        if 0 < n && n < keys.len() {
            keys.select_nth_unstable_by(n, order);
        }
        let rest = keys.split_off(n);
        keys.sort_unstable_by(order);
        let sum = |side: usize| rest.iter().map(|(_, key)| key.ms[side]).sum();
        let others = (!rest.is_empty()).then(|| [sum(0), sum(1)]);
        (keys.into_iter().map(|(_, key)| key).collect(), others)
    }

    /// A difference without rounding: the sum of weights after times the observed ms before, minus
    /// the sum before times the observed ms after. The unit is the same for all keys, so it orders
    /// them.
    fn change(&self, [before, after]: [i64; 2]) -> i128 {
        let observed = self.observed_ms().map(|ms| i128::from(ms.max(1)));
        i128::from(after) * observed[0] - i128::from(before) * observed[1]
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
        self.keys[BY_HEAD].iter().any(|key| key.id != NULL)
    }

    /// The load of all sessions with a wait event, before and after.
    pub fn of_wait(&self, wait: &str) -> [i128; 2] {
        let mut lines = self.lines(BY_WAIT, usize::MAX).into_iter();
        let line = lines.find(|line| &*line.key == wait);
        line.map_or([0, 0], |line| [line.before, line.after])
    }

    /// The loads of a query by the keys of a second dimension, in ten-thousandths of a session before
    /// and after, ordered by key. Samples without a key are left out. Empty for a query that did not
    /// grow, and for a dimension that was not read.
    pub fn of_query(&self, query: Id, by: By) -> Vec<(String, [i128; 2])> {
        let keys = self.of_queries.get(&(by, query)).into_iter().flatten();
        let mut keys: Vec<(Id, [i64; 2])> = keys.map(|(id, ms)| (*id, *ms)).collect();
        keys.retain(|(id, _)| *id != NULL);
        let ids = self.register.ids();
        keys.sort_unstable_by(|a, b| ids.compare(a.0, b.0));
        let load = |[before, after]: [i64; 2]| [self.load(0, before), self.load(1, after)];
        let named = keys.into_iter();
        named
            .filter_map(|(id, ms)| Some((ids.text(id)?, load(ms))))
            .collect()
    }
}

/// Joins the sums of both windows, for each dimension.
fn joined(before: Vec<Sums>, after: Vec<Sums>) -> Vec<Vec<KeySums>> {
    let both = before.into_iter().zip(after);
    let join = |(before, after): (Sums, Sums)| {
        let mut keys: FastMap<Id, [i64; 2]> = FastMap::default();
        for (id, ms) in before {
            keys.insert(id, [ms, 0]);
        }
        for (id, ms) in after {
            keys.entry(id).or_default()[1] = ms;
        }
        let keys = keys.into_iter();
        keys.map(|(id, ms)| KeySums { id, ms }).collect()
    };
    both.map(join).collect()
}

/// The sums of each value of a key, from the sums of all tags.
fn by_tag(register: &Register, tagged: &[(Option<String>, [i64; 2])], key: &str) -> Vec<KeySums> {
    let mut values: FastMap<Id, [i64; 2]> = FastMap::default();
    for (tags, ms) in tagged {
        let value = tags.as_deref().and_then(|tags| tags::value_of(tags, key));
        let atom = register.atom(value.as_deref());
        let id = register.ids().of(atom);
        let sums = values.entry(id).or_default();
        sums.iter_mut().zip(ms).for_each(|(sum, ms)| *sum += ms);
    }
    let values = values.into_iter();
    values.map(|(id, ms)| KeySums { id, ms }).collect()
}

impl Side {
    /// Converts sums in ms to loads in ten-thousandths of a session that add up. All
    /// are 0 if nothing was observed.
    fn loads(&self, sums: &[i64]) -> Vec<i128> {
        let sums: Vec<i128> = sums.iter().copied().map(i128::from).collect();
        apportioned(&sums, self.total.observed_ms.into(), 10_000)
    }
}
