//! Effects: the queries with the largest differences in load. For each: how the query
//! changed, what it waited for, and when the change began.

use super::costs::{Cost, Costs};
use super::habits::note_habits;
use super::loads::{By, EFFECTS, Line, Loads};
use super::names::Names;
use super::series::{Level, Series};
use super::windows::{Windows, width};
use crate::fast::FastMap;
use crate::query::ask::context::Run;
use crate::query::functions::common_columns::{query_text, query_texts};
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::Id;
use crate::query::rows::parse::{Samples, Window};
use crate::query::rows::scan::Scan;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;
use std::sync::Arc;

/// An effect is notable if the query's load grew enough. Three limits hold: 1/20 of the growth of
/// all queries (`SHARE`), 0.02 sessions (`LEAST`, in ten-thousandths), and 1/10 of the load before
/// (`GROWTH`). Only notable effects get a cause.
const SHARE: i128 = 20;
const LEAST: i128 = 200;
const GROWTH: i128 = 10;

/// How the load of a query changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The query did not run in the normal window.
    New,
    /// The query is called more often.
    MoreCalls,
    /// A call takes longer.
    Slower,
    /// A call takes longer, and it has another plan.
    OtherPlan,
    /// The query has more load; its calls were not recorded.
    More,
    /// The query has less load.
    Less,
    /// The query did not run in the compared window.
    Gone,
    Same,
}

impl Change {
    pub fn name(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::MoreCalls => "more calls",
            Change::Slower => "slower",
            Change::OtherPlan => "other plan",
            Change::More => "more",
            Change::Less => "less",
            Change::Gone => "gone",
            Change::Same => "same",
        }
    }

    /// The change of a key of any dimension, judged by its load alone.
    pub fn of_load(line: &Line) -> Change {
        match (line.before, line.after, line.difference()) {
            (0, 1.., _) => Change::New,
            (1.., 0, _) => Change::Gone,
            (_, _, 1..) => Change::More,
            (_, _, ..=-1) => Change::Less,
            _ => Change::Same,
        }
    }

    /// True if a call takes longer. This includes `More`, where the calls are not
    /// known.
    pub fn is_slower(self) -> bool {
        matches!(self, Change::Slower | Change::OtherPlan | Change::More)
    }
}

/// A group of wait events with one reason, which rules look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Locks of other sessions.
    Locks,
    /// Temporary files.
    TemporaryFiles,
    /// Reading blocks that are not in the cache.
    Reads,
    /// Write-ahead log and synchronous replicas.
    Commit,
    /// Synchronous replicas alone.
    Replicas,
    /// The session could run, but other processes have the CPUs.
    Runnable,
    /// Blocks, their buffers, and the write-ahead log, which autovacuum workers use, too.
    Blocks,
}

impl Mechanism {
    fn has(self, wait: &str) -> bool {
        let begins = |with: &[&str]| with.iter().any(|begin| wait.starts_with(begin));
        match self {
            Mechanism::Locks => begins(&["Lock:"]),
            Mechanism::TemporaryFiles => begins(&["IO:BufFile"]),
            Mechanism::Reads => begins(&["IO:DataFileRead", "IO:DataFilePrefetch"]),
            Mechanism::Commit => begins(&["IO:WAL", "IO:Wal", "LWLock:WAL", "IPC:SyncRep"]),
            Mechanism::Replicas => begins(&["IPC:SyncRep"]),
            Mechanism::Runnable => begins(&["CPU:runnable"]),
            Mechanism::Blocks => begins(&[
                "IO:Aio",
                "IO:DataFile",
                "IO:WAL",
                "IO:Wal",
                "IPC:Buffer",
                "LWLock:Buffer",
                "LWLock:WAL",
                "Buffer:",
                "BufferPin:",
            ]),
        }
    }
}

/// A query and its change.
#[derive(Clone, Debug)]
pub struct Effect {
    pub line: Line,
    pub query_id: Option<i64>,
    pub text: Option<Arc<str>>,
    pub names: Names,
    pub change: Change,
    /// Loads before and after by wait event. This and the loads below are empty if the query did not
    /// grow.
    pub waits: Vec<(String, [i128; 2])>,
    /// Loads before and after of the sessions that wait behind a head of a lock queue,
    /// by that head.
    pub heads: Vec<(String, [i128; 2])>,
    /// Loads before and after by the role that runs the query.
    pub users: Vec<(String, [i128; 2])>,
    /// Loads before and after by database; empty unless a setting of a database changed.
    pub databases: Vec<(String, [i128; 2])>,
    /// True if the plan with the largest load now also had load in the normal window.
    pub keeps_plan: bool,
    /// Counters before and after, and the time in ms for which they were recorded.
    pub costs: [Option<Cost>; 2],
    pub recorded_ms: [i64; 2],
    /// Begin and end of the time in which the load exceeded the middle between its
    /// loads before and after, in µs since 1970.
    pub stretch: Option<(i64, i64)>,
    /// True if the growth is large enough to look for a cause.
    pub is_notable: bool,
    /// If the query had at least half of this load at the same time of day some days
    /// before: that number of days (1 or 7).
    pub usual_since_days: Option<i64>,
}

impl Effect {
    /// How much more load of the query is waits of this kind, in ten-thousandths of a
    /// session.
    pub fn part(&self, mechanism: Mechanism) -> i128 {
        let waits = self.waits.iter().filter(|(wait, _)| mechanism.has(wait));
        waits.map(|(_, [before, after])| after - before).sum()
    }

    /// True if such waits are at least `percent` of the query's difference.
    pub fn is_by(&self, mechanism: Mechanism, percent: i128) -> bool {
        self.part(mechanism) * 100 >= self.line.difference() * percent
    }

    /// True if at least half of the query's difference is waits for locks.
    pub fn waits_for_locks(&self) -> bool {
        self.is_by(Mechanism::Locks, 50)
    }

    /// Number of temporary blocks that a call writes, before and after.
    pub fn temp_blocks_a_call(&self) -> [Option<Level>; 2] {
        self.costs.map(|cost| per_call(cost?, |c| c.temp_blocks))
    }

    /// True if a call reads at least 1.5 times as many blocks as before.
    pub fn reads_more(&self) -> bool {
        let [before, after] = self.costs.map(|cost| per_call(cost?, |c| c.blocks));
        before
            .zip(after)
            .is_some_and(|(before, after)| 2 * after.num * before.den >= 3 * before.num * after.den)
    }

    /// True if ten calls or more fall into a time of `us` µs, at the rate of calls
    /// before. If a change was made that long before the effect, these calls had seen
    /// it and were not slow, so it is not the cause.
    pub fn was_called_in(&self, us: i64) -> bool {
        let calls = self.calls_a_second()[0];
        calls.is_some_and(|calls| calls.num * i128::from(us) >= calls.den * 10 * i128::from(SECOND))
    }

    /// Mean time in µs between two samples of the query in the compared window, at one
    /// tick a second.
    pub fn us_a_sample(&self) -> i64 {
        let us = i128::from(SECOND) * 10_000 / self.line.after.max(1);
        i64::try_from(us).unwrap_or(i64::MAX / 10)
    }

    /// True for DELETE and UPDATE, which may have to check the references of other
    /// tables.
    pub fn changes_rows(&self) -> bool {
        let text = self.text.as_deref().unwrap_or_default();
        let first = text.split_whitespace().next().unwrap_or_default();
        ["delete", "update"].contains(&first.to_lowercase().as_str())
    }

    /// True if this role has the largest share of the query's load now.
    pub fn is_of(&self, role: &str) -> bool {
        has_most(&self.users, role)
    }

    /// True if the query has the largest share of its load now in this database.
    pub fn is_in(&self, database: &str) -> bool {
        has_most(&self.databases, database)
    }

    /// Mean time of a call in ms, before and after.
    pub fn ms_a_call(&self) -> [Option<Level>; 2] {
        let time = self.costs.map(|cost| per_call(cost?, |c| c.time));
        time.map(|time| {
            time.map(|time| Level {
                den: time.den * 100,
                ..time
            })
        })
    }

    /// Calls per second, before and after.
    pub fn calls_a_second(&self) -> [Option<Level>; 2] {
        [0, 1].map(|side| {
            let calls = i128::from(self.costs[side]?.calls) * 1000;
            let den = i128::from(self.recorded_ms[side]);
            (den > 0).then_some(Level { num: calls, den })
        })
    }
}

fn per_call(cost: Cost, of: fn(&Cost) -> i64) -> Option<Level> {
    let den = i128::from(cost.calls);
    let num = i128::from(of(&cost));
    (den > 0).then_some(Level { num, den })
}

/// The queries whose load changed most. Their lines equal the lines of the answer.
pub fn effects(
    run: Run,
    samples: Samples,
    windows: &Windows,
    loads: &Loads,
) -> QueryResult<Vec<Effect>> {
    let node = samples.node;
    let costs = [
        Costs::read(run, node, windows.before)?,
        Costs::read(run, node, windows.after)?,
    ];
    let lines = loads.lines(0, EFFECTS);
    let scan = Scan::new(run, samples, windows.after)?.registered(&loads.register);
    let texts = query_texts(&scan, lines.iter().filter_map(|line| line.id))?;
    let grew: i128 = lines.iter().map(|line| line.difference().max(0)).sum();
    let effect = |line: Line| -> Option<Effect> {
        let id = line.id?;
        let number = loads.register.text(id).and_then(|id| id.parse().ok());
        let text = query_text(&scan, &texts, id, None);
        let plans = loads.of_query(id, By::Plan);
        let mut effect = Effect {
            query_id: number,
            names: text.as_deref().map(Names::of).unwrap_or_default(),
            text,
            change: Change::of_load(&line),
            waits: loads.of_query(id, By::Wait),
            heads: loads.of_query(id, By::Head),
            users: loads.of_query(id, By::User),
            databases: loads.of_query(id, By::Database),
            keeps_plan: keeps_plan(&plans),
            costs: costs.each_ref().map(|costs| costs.of(number?)),
            recorded_ms: costs.each_ref().map(|costs| costs.elapsed_ms),
            stretch: None,
            is_notable: is_notable(&line, grew),
            usual_since_days: None,
            line,
        };
        effect.change = change(&effect, &plans);
        Some(effect)
    };
    let mut effects: Vec<Effect> = lines.into_iter().filter_map(effect).collect();
    note_habits(run, samples, windows, loads, &mut effects)?;
    date(run, samples, windows, loads, &mut effects)?;
    Ok(effects)
}

fn is_notable(line: &Line, grew: i128) -> bool {
    let more = line.difference();
    more >= LEAST && more * SHARE >= grew && more * GROWTH >= line.before
}

/// How a query changed. Its load grows if it is called more often, or if a call takes
/// longer; the larger of the two factors names the change. If the server has too few
/// CPUs, more calls also make each call longer, so both factors grow.
fn change(effect: &Effect, plans: &[(String, [i128; 2])]) -> Change {
    let of_load = Change::of_load(&effect.line);
    if !matches!(of_load, Change::New | Change::More) {
        return of_load;
    }
    let [Some(before), Some(after)] = effect.costs else {
        return of_load;
    };
    if before.calls == 0 && of_load == Change::New {
        return Change::New;
    }
    if before.calls == 0 || after.calls == 0 {
        return slower(plans);
    }
    let [before_ms, after_ms] = effect.recorded_ms.map(i128::from);
    // The load of a query is its calls per second times the time of a call. Cross
    // products compare the growth of the two factors without a division.
    let [calls, calls_before] = [after.calls, before.calls].map(i128::from);
    let [time, time_before] = [after.time, before.time].map(i128::from);
    let product = |factors: &[i128]| factors.iter().copied().fold(1, i128::saturating_mul);
    let by_calls = product(&[calls, calls, before_ms, time_before]);
    let by_time = product(&[time, calls_before, calls_before, after_ms]);
    let [load_before, load] = [effect.line.before, effect.line.after];
    // The counted time of a call does not include its commit, but the sampled load
    // does. So the calls must also be the larger factor of the sampled load: growth of
    // calls² > growth of load.
    let by_calls_of_load = product(&[calls, calls, before_ms, before_ms, load_before]);
    let by_load = product(&[calls_before, calls_before, after_ms, after_ms, load]);
    let is_sampled = load_before >= LEAST;
    if by_calls > by_time && (!is_sampled || by_calls_of_load > by_load) {
        Change::MoreCalls
    } else {
        slower(plans)
    }
}

/// True if the key has the largest load now.
fn has_most(loads: &[(String, [i128; 2])], key: &str) -> bool {
    let most = loads.iter().max_by_key(|(_, [_, after])| *after);
    most.is_some_and(|(found, _)| found == key)
}

/// True if the plan with the largest load now also had load before.
fn keeps_plan(plans: &[(String, [i128; 2])]) -> bool {
    let now = plans.iter().max_by_key(|(_, [_, after])| *after);
    now.is_some_and(|(_, [before, after])| *before > 0 && *after > 0)
}

/// `OtherPlan` if the plan with the largest load now had none before and another plan
/// had some; otherwise `Slower`.
fn slower(plans: &[(String, [i128; 2])]) -> Change {
    let had_plan = plans.iter().any(|(_, [before, _])| *before > 0);
    let now = plans.iter().max_by_key(|(_, [_, after])| *after);
    let is_other = now.is_some_and(|(_, [before, after])| *before == 0 && *after > 0);
    match had_plan && is_other {
        true => Change::OtherPlan,
        false => Change::Slower,
    }
}

/// Finds when the change of each notable query began: first the bucket of the window,
/// then the second within that bucket and its neighbours.
fn date(
    run: Run,
    samples: Samples,
    windows: &Windows,
    loads: &Loads,
    effects: &mut [Effect],
) -> QueryResult<()> {
    let window = Window {
        since: windows.may_begin(),
        until: windows.after.until,
    };
    let width = width(windows.after);
    let mut notable: Vec<&mut Effect> = effects.iter_mut().filter(|e| e.is_notable).collect();
    if notable.is_empty() {
        return Ok(());
    }
    let query = Dimension::find(run.catalog, "dimension", pg::QUERY_ID)?;
    let series = |window: Window, width: i64, keys: &[Id]| {
        let scan = Scan::new(run, samples, window)?.registered(&loads.register);
        Series::of_keys(&scan, width, &query, keys.iter().copied())
    };
    let keys: Vec<Id> = notable.iter().filter_map(|effect| effect.line.id).collect();
    let all = series(window, width, &keys)?;
    for effect in &mut notable {
        let Some(key) = effect.line.id else {
            continue;
        };
        let excess = |series: &FastMap<Id, Series>, effect: &Effect| {
            series.get(&key).and_then(|s| s.excess(effect.level()))
        };
        effect.stretch = excess(&all, effect);
        if let (Some((since, until)), true) = (effect.stretch, width > SECOND) {
            let near = Window {
                since: since.saturating_sub(width).max(window.since),
                until: since.saturating_add(width).min(window.until),
            };
            let nearer = excess(&series(near, SECOND, &[key])?, effect);
            effect.stretch = Some((nearer.map_or(since, |near| near.0), until));
        }
    }
    Ok(())
}

impl Effect {
    /// The middle between the query's loads before and after.
    fn level(&self) -> Level {
        Level {
            num: self.line.before + self.line.after,
            den: 20_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(costs: [Option<Cost>; 2], loads: [i128; 2]) -> Effect {
        Effect {
            line: Line {
                key: "1".into(),
                id: Some(Id::new(1)),
                before: loads[0],
                after: loads[1],
                pct: None,
            },
            query_id: Some(1),
            text: None,
            names: Names::default(),
            change: Change::Same,
            waits: Vec::new(),
            heads: Vec::new(),
            users: Vec::new(),
            databases: Vec::new(),
            keeps_plan: false,
            costs,
            recorded_ms: [60_000, 60_000],
            stretch: None,
            is_notable: true,
            usual_since_days: None,
        }
    }

    fn cost(calls: i64, ms_each: i64) -> Option<Cost> {
        Some(Cost {
            calls,
            time: calls * ms_each * 100,
            ..Cost::default()
        })
    }

    #[test]
    fn the_larger_factor_says_how_a_query_changed() {
        let of = |costs, loads| change(&effect(costs, loads), &[]);
        assert_eq!(
            of([cost(60, 10), cost(66, 400)], [100, 4400]),
            Change::Slower
        );
        assert_eq!(
            of([cost(60, 10), cost(6000, 12)], [100, 12_000]),
            Change::MoreCalls
        );
        assert_eq!(
            of([cost(60, 10), cost(1200, 80)], [100, 16_000]),
            Change::MoreCalls
        );
        // There are as many calls as before, but their commits wait.
        assert_eq!(of([cost(60, 1), cost(63, 1)], [700, 1700]), Change::Slower);
        // Before, the query was so short that no sample saw it.
        assert_eq!(of([cost(60, 1), cost(60, 900)], [0, 9000]), Change::Slower);
        assert_eq!(of([cost(0, 0), cost(60, 900)], [0, 9000]), Change::New);
        // No call has ended in the compared window.
        assert_eq!(of([cost(60, 10), cost(0, 0)], [100, 9000]), Change::Slower);
        assert_eq!(of([None, None], [100, 9000]), Change::More);
        assert_eq!(of([None, None], [0, 9000]), Change::New);
        assert_eq!(of([cost(60, 10), cost(0, 0)], [100, 0]), Change::Gone);
        assert_eq!(of([cost(60, 10), cost(6, 10)], [100, 10]), Change::Less);
    }

    #[test]
    fn another_plan_is_one_that_had_no_load() {
        let plan = |id: &str, before, after| (id.to_string(), [before, after]);
        assert_eq!(
            slower(&[plan("a", 5, 0), plan("b", 0, 9)]),
            Change::OtherPlan
        );
        assert_eq!(slower(&[plan("a", 5, 9), plan("b", 0, 3)]), Change::Slower);
        // The plan of the query in the normal window is not known.
        assert_eq!(slower(&[plan("b", 0, 9)]), Change::Slower);
    }
}
