//! `plans`: calls, time, rows and blocks of each plan of a statement in a window.

use super::common_columns::numeric;
use super::plan::types;
use super::statements_history::{statement_filters, text_of, texts};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::{Numeric, row};
use crate::query::rows::parse::{Window, limit};
use crate::query::sums::counters::Counters;
use crate::query::sums::executions::Histogram;
use crate::query::sums::plan_sums::{Cost, Histories, Interval, Plan, Use, Which, read};
use crate::query::sums::plans_seen::name_plans;
use crate::query::sums::statement_sums::{EntryKey, Stats};
use crate::query::value::error::QueryResult;
use crate::query::value::number::Ratio;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

row! {
    /// A row of `plans`.
    PlansRow of "plans": FIELDS {
        query_id: Id,
        plan_id: Id,
        database: Text,
        username: Text,
        toplevel: Bool,
        query_text: Text,
        first_seen: Time,
        last_seen: Time,
        calls: Int,
        total_exec_time: Numeric,
        pct: Numeric,
        mean_exec_time: Numeric,
        max_exec_time: Numeric,
        rows: Int,
        rows_per_call: Numeric,
        shared_blks_hit: Int,
        shared_blks_read: Int,
        temp_blks_written: Int,
        blocks_per_call: Numeric,
        source: Text,
        plan_type: Text,
        cpu_time: Numeric,
        p95_exec_time: Numeric,
    }
}

request! {
    /// Calls, time, rows and blocks of each plan of a statement
    Plans of plans: PlansRow {
        node,
        since,
        until,
        n("Most statements, or all", Some("10")),
        query_id,
        database,
        username,
        toplevel,
    }
}

/// The executions of a statement by a plan in the window.
#[derive(Clone, Debug)]
struct Line {
    /// True if counters have the plan's id.
    counted: bool,
    sampled: bool,
    first_us: i64,
    last_us: i64,
    /// Longest execution in units of 10 µs; `None` if it is unknown for some of them.
    longest: Option<i64>,
    cost: Cost,
    alone: Durations,
}

/// Executions by a plan in intervals in which the statement had no other plan. In other intervals the
/// histogram of the statement has executions by several plans, which it does not distinguish.
#[derive(Clone, Copy, Debug, Default)]
struct Durations {
    histogram: Histogram,
    /// Time of all executions, in units of 10 µs.
    time: i64,
}

impl Durations {
    fn of(interval: &Interval, one: &Use) -> Durations {
        let mut durations = Durations::default();
        if interval.has_only(one) {
            let buckets = interval.durations.iter();
            buckets.for_each(|&(bucket, count)| durations.histogram.add(bucket, count));
            durations.time = one.cost.time;
        }
        durations
    }

    fn add(&mut self, other: Durations) {
        let buckets = other.histogram.0.into_iter().enumerate();
        buckets.for_each(|(bucket, count)| self.histogram.add(bucket, count));
        self.time = self.time.saturating_add(other.time);
    }

    /// The duration in ms that 95 % of the executions did not exceed; `None` without executions.
    fn p95(&self) -> Option<Ratio> {
        self.histogram.percentile(self.time, 95)
    }
}

impl Line {
    fn of(interval: &Interval, one: &Use) -> Line {
        Line {
            counted: matches!(one.plan, Plan::Counted(_)),
            sampled: matches!(one.plan, Plan::Sampled(_)),
            first_us: one.since_us.unwrap_or(interval.begin_us),
            last_us: interval.end_us,
            longest: one.longest,
            cost: one.cost,
            alone: Durations::of(interval, one),
        }
    }

    fn add(&mut self, other: Line) {
        self.counted |= other.counted;
        self.sampled |= other.sampled;
        self.first_us = self.first_us.min(other.first_us);
        self.last_us = self.last_us.max(other.last_us);
        self.longest = self.longest.zip(other.longest).map(|(a, b)| a.max(b));
        self.cost.add(other.cost);
        self.alone.add(other.alone);
    }

    /// Source of the plan's id, or the reason why it is not known.
    fn source(&self, key: LineKey) -> &'static str {
        match (key, self.counted, self.sampled) {
            (LineKey::Id(_), true, true) => "counters, samples",
            (LineKey::Id(_), _, false) => "counters",
            (LineKey::Id(_), ..) => "samples",
            (LineKey::None(Plan::NotSampled), ..) => "not known: one plan, in no sample",
            (LineKey::None(Plan::SampledSeveral), ..) => {
                "not known: one plan at a time, several in samples"
            }
            _ => "not known: more than four plans, or counted before a start",
        }
    }
}

/// A plan with a known id, or the reason why the plan of some executions is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LineKey {
    Id(i64),
    None(Plan),
}

impl LineKey {
    fn of(plan: Plan) -> LineKey {
        plan.id().map_or(LineKey::None(plan), LineKey::Id)
    }

    fn id(self) -> Option<i64> {
        match self {
            LineKey::Id(id) => Some(id),
            LineKey::None(_) => None,
        }
    }
}

/// The lines of a statement.
type Lines = BTreeMap<LineKey, Line>;

/// Lines of each statement. A use without a call is a rest of rounding, such as 10 µs. Or it is CPU
/// time of parallel workers that ended an interval before the call. It adds to the line of its
/// plan. If the plan has no call in the window, its CPU time makes a line with 0 calls.
fn lines(histories: Histories) -> BTreeMap<EntryKey, Lines> {
    let mut statements: BTreeMap<EntryKey, Lines> = BTreeMap::new();
    for ((_, key), intervals) in histories {
        let lines = statements.entry(key).or_default();
        let uses = || {
            intervals
                .iter()
                .flat_map(|i| i.uses.iter().map(move |one| (i, one)))
        };
        for (interval, one) in uses().filter(|(_, one)| one.cost.calls > 0) {
            let line = Line::of(interval, one);
            match lines.get_mut(&LineKey::of(one.plan)) {
                Some(known) => known.add(line),
                None => drop(lines.insert(LineKey::of(one.plan), line)),
            }
        }
        for (interval, one) in uses().filter(|(_, one)| one.cost.calls == 0) {
            match lines.get_mut(&LineKey::of(one.plan)) {
                Some(known) => known.cost.add(one.cost),
                None if one.cost.cpu > 0 => {
                    let line = Line {
                        longest: None,
                        ..Line::of(interval, one)
                    };
                    lines.insert(LineKey::of(one.plan), line);
                }
                None => (),
            }
        }
    }
    statements
}

/// The intervals of the statements that filters accept, with the plans that samples show.
pub(super) fn histories(stats: &Stats, node: Option<&str>, which: Which) -> QueryResult<Histories> {
    let mut histories = read(stats, node, which)?;
    name_plans(stats.run, node, stats.window, &mut histories)?;
    Ok(histories)
}

fn answer(asked: &Plans, run: Run, emit: Emit<PlansRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let n = limit(asked.n)?;
    let node = asked.node.as_deref();
    let which = match asked.query_id {
        Some(_) => Which::All,
        None => Which::Several,
    };
    let stats = Stats {
        run,
        window,
        counters: Counters::of(run.catalog).only(|counter| counter.is_bucket()),
        filters: statement_filters!(asked, run)?,
    };
    let histories = histories(&stats, node, which)?;
    let called = |lines: &Lines| lines.values().filter(|line| line.cost.calls > 0).count();
    let is_shown = |lines: &Lines| which == Which::All || called(lines) > 1;
    let mut ranked: Vec<Ranked> = lines(histories)
        .into_iter()
        .filter(|(_, lines)| is_shown(lines))
        .map(|(key, lines)| (Reverse(time(&lines)), key, lines))
        .collect();
    ranked.sort_unstable_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    ranked.truncate(n);
    let keys: Vec<EntryKey> = ranked.iter().map(|(_, key, _)| key.clone()).collect();
    let texts = texts(run, node, window, &keys)?;
    run.check_cancel()?;
    let types = types_of(run, node, window, &ranked)?;
    for (Reverse(whole), key, lines) in &ranked {
        let text = text_of(&texts, key);
        let mut lines: Vec<_> = lines.iter().collect();
        lines.sort_by_key(|(key, line)| (key.id().is_none(), Reverse(line.cost.time), **key));
        for (plan, line) in lines {
            let known = plan.id().and_then(|id| types.get(&(key, id)));
            emit(PlansRow {
                plan_type: known.map(|name| Arc::from(*name)),
                ..row(key, text.clone(), *whole, (*plan, line))
            })?;
        }
    }
    Ok(())
}

/// The order, the key and the lines of a statement.
type Ranked = (Reverse<i128>, EntryKey, Lines);

/// The types of the plans that are known, by statement and plan id.
fn types_of<'k>(
    run: Run,
    node: Option<&str>,
    window: Window,
    ranked: &'k [Ranked],
) -> QueryResult<BTreeMap<(&'k EntryKey, i64), &'static str>> {
    let plans: Vec<(&EntryKey, i64)> = ranked
        .iter()
        .flat_map(|(_, key, lines)| lines.keys().filter_map(move |line| Some((key, line.id()?))))
        .collect();
    let found = types::of_plans(run, node, window, &plans)?;
    let known = plans.into_iter().zip(found);
    Ok(known
        .filter_map(|(plan, name)| Some((plan, name?)))
        .collect())
}

fn time(lines: &Lines) -> i128 {
    lines.values().map(|line| i128::from(line.cost.time)).sum()
}

/// A time in units of 10 µs as ms.
pub(super) fn ms(units: i64) -> Numeric {
    Numeric(i128::from(units) * 100)
}

/// Mean time of a call in ms.
pub(super) fn mean(cost: &Cost) -> Option<Ratio> {
    Ratio::new(cost.time.into(), i128::from(cost.calls) * 100)
}

/// A sum divided by the number of calls.
pub(super) fn per_call(sum: i128, cost: &Cost) -> Option<Numeric> {
    numeric(Ratio::new(sum, cost.calls.into()))
}

/// Number of shared blocks, found in the cache or read.
pub(super) fn blocks(cost: &Cost) -> i128 {
    i128::from(cost.hit) + i128::from(cost.read)
}

fn row(
    key: &EntryKey,
    query_text: Option<Arc<str>>,
    whole: i128,
    (plan, line): (LineKey, &Line),
) -> PlansRow {
    let cost = &line.cost;
    PlansRow {
        query_id: key.query_id,
        plan_id: plan.id(),
        database: key.database.as_deref().map(Arc::from),
        username: key.username.as_deref().map(Arc::from),
        toplevel: Some(key.toplevel),
        query_text,
        first_seen: Some(line.first_us),
        last_seen: Some(line.last_us),
        calls: Some(cost.calls),
        total_exec_time: Some(ms(cost.time)),
        pct: numeric(Ratio::new(i128::from(cost.time) * 100, whole)),
        mean_exec_time: numeric(mean(cost)),
        max_exec_time: line.longest.map(ms),
        rows: Some(cost.rows),
        rows_per_call: per_call(cost.rows.into(), cost),
        shared_blks_hit: Some(cost.hit),
        shared_blks_read: Some(cost.read),
        temp_blks_written: Some(cost.temp_written),
        blocks_per_call: per_call(blocks(cost), cost),
        source: Some(line.source(plan).into()),
        plan_type: None,
        cpu_time: Some(ms(cost.cpu)),
        p95_exec_time: numeric(line.alone.p95()),
    }
}
