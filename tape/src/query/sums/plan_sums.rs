//! Adds up the cost of each plan of a statement, for each interval of its record. While
//! a statement has only one plan, the plan has no rows of its own. So the executions of
//! an interval are the rows of its plans, and the rest of the statement's row. The rest
//! belongs to the plan that the statement had alone.
//!
//! Example: the statement has 60, 60 and 60 calls in three minutes. In the third
//! minute, plan A has 10 calls and plan B has 50, and A's row has the mark `was_alone`.
//! So A has 60, 60 and 10 calls.

use super::intervals::middle_us;
use super::statement_sums::{EntryKey, Stats};
use crate::format::part::Part;
use crate::format::schema::{PLAN_STATS, STATS};
use crate::query::rows::parse::nodes;
use crate::query::value::error::QueryResult;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Columns of both `statement_stats` and `plan_stats`, in the order of [`Cost`]. `plan_stats`
/// has one column of CPU time, and `statement_stats` has two ([`CPU`]).
const COLUMNS: [&str; 6] = [
    "calls",
    "total_exec_time",
    "rows",
    "shared_blks_hit",
    "shared_blks_read",
    "temp_blks_written",
];

const CPU: [&str; 2] = ["user_time", "system_time"];

/// Sums of counters. A sum that would overflow stays at the largest number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Executions.
    pub calls: i64,
    /// Time of all executions, in units of 10 µs.
    pub time: i64,
    /// Rows retrieved or affected.
    pub rows: i64,
    /// Shared blocks found in the cache.
    pub hit: i64,
    /// Shared blocks read.
    pub read: i64,
    /// Temporary blocks written.
    pub temp_written: i64,
    /// CPU time in user and system mode, in units of 10 µs.
    pub cpu: i64,
}

impl Cost {
    fn of(values: [i64; 7]) -> Cost {
        let [calls, time, rows, hit, read, temp_written, cpu] = values;
        Cost {
            calls,
            time,
            rows,
            hit,
            read,
            temp_written,
            cpu,
        }
    }

    fn with(self, other: Cost, join: impl Fn(i64, i64) -> i64) -> Cost {
        Cost {
            calls: join(self.calls, other.calls),
            time: join(self.time, other.time),
            rows: join(self.rows, other.rows),
            hit: join(self.hit, other.hit),
            read: join(self.read, other.read),
            temp_written: join(self.temp_written, other.temp_written),
            cpu: join(self.cpu, other.cpu),
        }
    }

    /// Adds another cost.
    pub fn add(&mut self, other: Cost) {
        *self = self.with(other, i64::saturating_add);
    }

    /// Sum of the costs of these uses.
    pub fn of_uses<'u>(uses: impl IntoIterator<Item = &'u Use>) -> Cost {
        let mut sum = Cost::default();
        uses.into_iter().for_each(|one| sum.add(one.cost));
        sum
    }

    /// The cost minus a part of it; no counter is less than 0.
    fn without(self, part: Cost) -> Cost {
        self.with(part, |all, part| all.saturating_sub(part).max(0))
    }
}

/// The plan that executions had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Plan {
    /// The plan with this id. Its executions were counted for it, or the statement had
    /// no other plan.
    Counted(i64),
    /// The plan with this id. The samples of the interval show it and no other plan.
    Sampled(i64),
    /// Several plans whose ids were dropped to make room for others, or executions that
    /// began before the server counted plans.
    Others,
    /// One plan, whose id is in no sample.
    NotSampled,
    /// One plan at a time; the samples show several plans.
    SampledSeveral,
}

impl Plan {
    /// The id of the plan, if it is known.
    pub fn id(self) -> Option<i64> {
        match self {
            Plan::Counted(id) | Plan::Sampled(id) => Some(id),
            _ => None,
        }
    }
}

/// The executions of a statement by one plan in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The plan.
    pub plan: Plan,
    /// Start of the plan's first counted execution, in µs since 1970.
    pub since_us: Option<i64>,
    /// Time of the longest execution in units of 10 µs; `None` if it was not recorded.
    pub longest: Option<i64>,
    /// Cost of the executions.
    pub cost: Cost,
}

/// The time that one row of a statement covers, and its executions by plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Begin of the interval, µs since 1970.
    pub begin_us: i64,
    /// End of the interval, µs since 1970.
    pub end_us: i64,
    /// Executions by plan.
    pub uses: Vec<Use>,
    /// Executions of the statement by bucket of its histogram, without empty buckets. Empty if the
    /// counters of [`Stats`] have no buckets.
    pub durations: Vec<(usize, i64)>,
}

impl Interval {
    /// True if this use has all calls of the interval.
    pub fn has_only(&self, one: &Use) -> bool {
        one.cost.calls > 0 && one.cost.calls == Cost::of_uses(&self.uses).calls
    }

    /// True if there are executions of a plan without a known id, although the
    /// statement had only one plan.
    pub fn lacks_plan(&self) -> bool {
        self.uses.iter().any(|one| one.plan == Plan::NotSampled)
    }

    /// The executions by the plan with this id.
    pub fn uses_of(&self, plan_id: i64) -> impl Iterator<Item = &Use> {
        let uses = self.uses.iter();
        uses.filter(move |one| one.plan.id() == Some(plan_id))
    }
}

/// The statements to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All that the filters accept.
    All,
    /// Statements with several plans. A statement has counters by plan from its second plan on:
    /// rows of plans in the window prove it. Several plan ids among its samples prove it, too. The
    /// search for them reads whole files and includes samples outside the window.
    Several,
}

/// The intervals of each statement in order of time, by server and statement. With
/// `node` = `all` each node is a server of its own, because its plan ids mean nothing
/// to the others.
pub type Histories = HashMap<(usize, EntryKey), Vec<Interval>>;

/// Reads the intervals whose middles lie in the window.
pub fn read(stats: &Stats, node: Option<&str>, which: Which) -> QueryResult<Histories> {
    let run = stats.run;
    let mut all = Histories::new();
    let mut nodes = nodes(run, node)?;
    nodes.reverse();
    let several = node == Some("all");
    let servers: Vec<Vec<u64>> = match several {
        true => nodes.into_iter().map(|node| vec![node]).collect(),
        false => vec![nodes],
    };
    for (server, nodes) in servers.iter().enumerate() {
        let parts = nodes.iter().flat_map(|node| run.store.parts(*node));
        let parts: Vec<&Part> = parts.collect();
        let mut reading = Reading {
            stats,
            which,
            alone: HashMap::new(),
            sampled: HashMap::new(),
            found: HashMap::new(),
        };
        reading.each(&parts, Reading::find_several)?;
        reading.each(&parts, Reading::add_part)?;
        let found = reading.found.into_iter();
        all.extend(found.map(|(key, intervals)| ((server, key), intervals)));
    }
    run.damage.check()?;
    Ok(all)
}

/// A plan that was the only one of a statement, from its first execution until another
/// plan was executed. It owns the intervals without rows of plans up to its last row:
/// later it may have lost its place to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Alone {
    plan_id: i64,
    since_us: i64,
    /// Time of the plan's last row in `plan_stats`, in µs.
    until_us: i64,
}

/// A row of a statement's entry in `statement_stats`, with the rows of its plans.
#[derive(Clone, Debug, Default)]
struct Row {
    elapsed_ms: i64,
    cost: Cost,
    uses: Vec<Use>,
    durations: Vec<(usize, i64)>,
}

struct Reading<'a> {
    stats: &'a Stats<'a>,
    which: Which,
    /// For each statement with rows of plans: the plans that it had alone.
    alone: HashMap<EntryKey, Vec<Alone>>,
    /// The plan id of each query in the samples; `None` if the query has several.
    sampled: HashMap<i64, Option<i64>>,
    found: HashMap<EntryKey, Vec<Interval>>,
}

/// Columns of `plan_stats`.
struct PlanColumns {
    time: crate::format::table::Column,
    entry: crate::format::table::Column,
    plan_id: crate::format::table::Column,
    since: crate::format::table::Column,
    was_alone: crate::format::table::Column,
}

impl PlanColumns {
    fn read(part: &Part) -> QueryResult<PlanColumns> {
        let column = |name: &str| part.ints(PLAN_STATS, name);
        Ok(PlanColumns {
            time: column("time")?,
            entry: column("entry")?,
            plan_id: column("plan_id")?,
            since: column("plan_since")?,
            was_alone: column("was_alone")?,
        })
    }

    /// Start of a plan's first counted execution, µs since 1970; `None` if it is
    /// unknown.
    fn since_us(&self, row: usize) -> Option<i64> {
        Some(self.since[row])
            .filter(|ms| *ms != 0)
            .map(|ms| ms.saturating_mul(1000))
    }
}

impl<'a> Reading<'a> {
    fn each(
        &mut self,
        parts: &[&Part],
        read: impl Fn(&mut Self, &Part) -> QueryResult<()>,
    ) -> QueryResult<()> {
        let damage = self.stats.run.damage;
        for part in parts {
            self.stats.run.check_cancel()?;
            if damage.note_and_continue(self.stats.overlaps(part))? == Some(true) {
                let done = read(self, part);
                damage.note_and_continue(done)?;
                part.release();
            }
        }
        Ok(())
    }

    /// The statements of a part by reference; `None` if the filters refuse one.
    fn keys(&self, part: &Part) -> QueryResult<Vec<Option<EntryKey>>> {
        let mut keys = Vec::new();
        let numbers = self.stats.entries(part, &mut |key| {
            keys.push(key);
            keys.len() as u32 - 1
        })?;
        let key = |number: Option<u32>| number.map(|n| keys[n as usize].clone());
        Ok(numbers.into_iter().map(key).collect())
    }

    /// Notes which statements have several plans, and the plan that each of them had
    /// alone.
    fn find_several(&mut self, part: &Part) -> QueryResult<()> {
        if self.which == Which::Several {
            self.find_sampled(part)?;
        }
        match part.rows(PLAN_STATS) {
            0 => Ok(()),
            _ => self.find_alone(part),
        }
    }

    fn find_sampled(&mut self, part: &Part) -> QueryResult<()> {
        let query_id = part.ints("statement", "query_id")?;
        let plan_id = part.ints("statement", "plan_id")?;
        for (&query_id, &plan_id) in query_id.iter().zip(plan_id.iter()) {
            if query_id == 0 || plan_id == 0 {
                continue;
            }
            let known = self.sampled.entry(query_id).or_insert(Some(plan_id));
            *known = known.filter(|known| *known == plan_id);
        }
        Ok(())
    }

    fn had_several(&self, key: &EntryKey) -> bool {
        let sampled = key.query_id.and_then(|id| self.sampled.get(&id));
        sampled == Some(&None) || self.alone.contains_key(key)
    }

    fn find_alone(&mut self, part: &Part) -> QueryResult<()> {
        let keys = self.keys(part)?;
        let columns = PlanColumns::read(part)?;
        for row in 0..columns.entry.len() {
            let Some(key) = get(&keys, columns.entry[row]) else {
                continue;
            };
            let alone = self.alone.entry(key.clone()).or_default();
            let Some(since_us) = columns
                .since_us(row)
                .filter(|_| columns.was_alone[row] != 0)
            else {
                continue;
            };
            let own = Alone {
                plan_id: columns.plan_id[row],
                since_us,
                until_us: columns.time[row].saturating_mul(1000),
            };
            let known = alone
                .iter_mut()
                .find(|a| (a.plan_id, a.since_us) == (own.plan_id, since_us));
            match known {
                Some(known) => known.until_us = known.until_us.max(own.until_us),
                None => alone.push(own),
            }
        }
        Ok(())
    }

    /// Adds the intervals of a part.
    fn add_part(&mut self, part: &Part) -> QueryResult<()> {
        let mut keys = self.keys(part)?;
        if self.which == Which::Several {
            keys.iter_mut()
                .for_each(|key| *key = key.take().filter(|key| self.had_several(key)));
        }
        if keys.iter().all(Option::is_none) {
            return Ok(());
        }
        let mut rows = self.rows(part, &keys)?;
        add_plans(part, &mut rows)?;
        for (entry, rows) in rows {
            let Some(key) = get(&keys, entry) else {
                continue;
            };
            for (time, row) in rows {
                self.add_row(key, time, row);
            }
        }
        Ok(())
    }

    /// Rows of the wanted entries, by the entry's reference and the row's time.
    fn rows(
        &self,
        part: &Part,
        keys: &[Option<EntryKey>],
    ) -> QueryResult<BTreeMap<i64, BTreeMap<i64, Row>>> {
        let entry = part.ints(STATS, "entry")?;
        let time = part.ints(STATS, "time")?;
        let elapsed = part.ints(STATS, "elapsed_ms")?;
        let wanted: Vec<usize> = (0..entry.len())
            .filter(|row| get(keys, entry[*row]).is_some())
            .collect();
        let costs = costs(part, STATS, &wanted)?;
        let durations = self.durations(part, &wanted)?;
        let mut rows: BTreeMap<i64, BTreeMap<i64, Row>> = BTreeMap::new();
        for ((&row, cost), durations) in wanted.iter().zip(costs).zip(durations) {
            let own = rows.entry(entry[row]).or_default();
            let own = own.entry(time[row]).or_default();
            own.elapsed_ms = own.elapsed_ms.max(elapsed[row]);
            own.cost.add(cost);
            own.durations.extend(durations);
        }
        Ok(rows)
    }

    /// Executions of some rows of a part by bucket.
    fn durations(&self, part: &Part, rows: &[usize]) -> QueryResult<Vec<Vec<(usize, i64)>>> {
        let mut durations = vec![Vec::new(); rows.len()];
        for (bucket, name) in self.stats.counters.buckets() {
            self.stats.run.check_cancel()?;
            let counts = part.ints(STATS, name)?;
            for (own, &row) in durations.iter_mut().zip(rows) {
                if counts[row] > 0 {
                    own.push((bucket, counts[row]));
                }
            }
        }
        Ok(durations)
    }

    fn add_row(&mut self, key: &EntryKey, time_ms: i64, mut row: Row) {
        let middle = middle_us(time_ms, row.elapsed_ms);
        if middle < self.stats.window.since || middle >= self.stats.window.until {
            return;
        }
        let end_us = time_ms.saturating_mul(1000);
        let begin_us = end_us.saturating_sub(row.elapsed_ms.saturating_mul(1000));
        let left = row.cost.without(Cost::of_uses(&row.uses));
        // Parallel workers of a plan without rows may end before the interval of the call.
        if left.calls > 0 || (left.cpu > 0 && row.uses.is_empty()) {
            row.uses.push(self.alone_in(key, begin_us, end_us, left));
        }
        if row.uses.is_empty() {
            return;
        }
        let intervals = self.found.entry(key.clone()).or_default();
        intervals.push(Interval {
            begin_us,
            end_us,
            uses: row.uses,
            durations: row.durations,
        });
    }

    /// Assigns the rest of a statement's row to the plan that it had alone. In the interval in
    /// which that plan was first executed, the rest may be of an earlier plan. There the plan is
    /// known only if the statement has no earlier interval.
    fn alone_in(&self, key: &EntryKey, begin_us: i64, end_us: i64, cost: Cost) -> Use {
        let is_new = !self.found.contains_key(key);
        let alone = self.alone.get(key).into_iter().flatten();
        let alone = alone
            .filter(|a| a.since_us < end_us && begin_us < a.until_us)
            .max_by_key(|a| a.since_us)
            .filter(|a| is_new || a.since_us <= begin_us);
        Use {
            plan: alone.map_or(Plan::NotSampled, |a| Plan::Counted(a.plan_id)),
            since_us: alone.map(|a| a.since_us),
            longest: None,
            cost,
        }
    }
}

/// The statement of a reference.
fn get(keys: &[Option<EntryKey>], reference: i64) -> Option<&EntryKey> {
    let index = usize::try_from(reference).ok()?;
    keys.get(index)?.as_ref()
}

/// The counters of some rows of a table.
fn costs(part: &Part, table: &str, rows: &[usize]) -> QueryResult<Vec<Cost>> {
    let mut values = vec![[0_i64; 7]; rows.len()];
    let cpu: &[&str] = if table == STATS { &CPU } else { &["cpu_time"] };
    let cpu = cpu.iter().map(|name| (COLUMNS.len(), *name));
    for (c, name) in COLUMNS.iter().copied().enumerate().chain(cpu) {
        let column = part.ints(table, name)?;
        for (value, &row) in values.iter_mut().zip(rows) {
            value[c] = value[c].saturating_add(column[row]);
        }
    }
    Ok(values.into_iter().map(Cost::of).collect())
}

/// Adds the rows of plans to the rows of their entries. In thinned files both kinds of
/// rows are sums over longer intervals: a plan's row belongs to the first row of its
/// entry at or after its own time.
fn add_plans(part: &Part, rows: &mut BTreeMap<i64, BTreeMap<i64, Row>>) -> QueryResult<()> {
    if part.rows(PLAN_STATS) == 0 {
        return Ok(());
    }
    let columns = PlanColumns::read(part)?;
    let wanted: Vec<usize> = (0..columns.entry.len())
        .filter(|row| rows.contains_key(&columns.entry[*row]))
        .collect();
    let costs = costs(part, PLAN_STATS, &wanted)?;
    let longest = part.ints(PLAN_STATS, "max_exec_time")?;
    for (&row, cost) in wanted.iter().zip(costs) {
        // A row without executions only says which plan the statement had alone.
        let own = rows
            .get_mut(&columns.entry[row])
            .filter(|_| cost != Cost::default());
        let Some((_, own)) = own.and_then(|own| own.range_mut(columns.time[row]..).next()) else {
            continue;
        };
        own.uses.push(Use {
            plan: match columns.plan_id[row] {
                0 => Plan::Others,
                id => Plan::Counted(id),
            },
            since_us: columns.since_us(row),
            longest: Some(longest[row]).filter(|longest| *longest > 0),
            cost,
        });
    }
    Ok(())
}

/// Statements with executions of a plan without a known id.
pub fn lacking(histories: &Histories) -> HashSet<&EntryKey> {
    let all = histories.iter();
    all.filter(|(_, intervals)| intervals.iter().any(Interval::lacks_plan))
        .map(|((_, key), _)| key)
        .collect()
}
