//! Finds the plan of statements that had one plan at a time. Their counters do not have its id, but
//! the samples of their executions do.

use super::plan_sums::{Histories, Interval, Plan, lacking};
use super::statement_sums::EntryKey;
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::query::ask::context::Run;
use crate::query::rows::integers::Reference;
use crate::query::rows::keys::{View, field};
use crate::query::rows::parse::{Window, nodes};
use crate::query::rows::runs::Runs;
use crate::query::rows::ticks::{NONE, Observed, Ticks};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;
use std::collections::{BTreeSet, HashMap, HashSet};

/// A plan that a session executed at some ticks, and the times of the first and last one in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    plan_id: i64,
    first_us: i64,
    last_us: i64,
}

/// Query, database and role of a statement. Samples do not show whether it runs at the top level.
type Who = (i64, Option<String>, Option<String>);

fn who(key: &EntryKey) -> Option<Who> {
    Some((key.query_id?, key.database.clone(), key.username.clone()))
}

/// Replaces `NotSampled` by the plan that the samples show.
pub fn name_plans(
    run: Run,
    node: Option<&str>,
    window: Window,
    histories: &mut Histories,
) -> QueryResult<()> {
    let wanted: HashSet<Who> = lacking(histories).into_iter().filter_map(who).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let seen = read(run, node, window, &wanted)?;
    for ((_, key), intervals) in histories.iter_mut() {
        let own = who(key).and_then(|who| seen.get(&who));
        let own = own.map_or(&[][..], Vec::as_slice);
        for spell in intervals.chunk_by_mut(|a, b| a.lacks_plan() && b.lacks_plan()) {
            name_spell(spell, own);
        }
    }
    Ok(())
}

/// Finds the plan of consecutive intervals. An interval without samples gets the plan of the
/// samples before and after it, if both have the same one.
fn name_spell(spell: &mut [Interval], seen: &[Seen]) {
    let (Some(first), Some(last)) = (spell.first(), spell.last()) else {
        return;
    };
    // The last sample of an execution may be just before the interval in which it ended.
    let length_us = first.end_us.saturating_sub(first.begin_us);
    let begin_us = first.begin_us.saturating_sub(length_us);
    let end_us = last.end_us;
    let within = |s: &&Seen| s.first_us < end_us && s.last_us >= begin_us;
    let seen: Vec<Seen> = seen.iter().filter(within).copied().collect();
    for interval in spell {
        let plan = plan_of(interval, &seen);
        let uses = interval.uses.iter_mut();
        uses.filter(|one| one.plan == Plan::NotSampled)
            .for_each(|one| one.plan = plan);
    }
}

fn plan_of(interval: &Interval, seen: &[Seen]) -> Plan {
    let is_own = |s: &&Seen| s.first_us < interval.end_us && s.last_us >= interval.begin_us;
    let own: BTreeSet<i64> = seen.iter().filter(is_own).map(|s| s.plan_id).collect();
    let before = seen.iter().filter(|s| s.last_us < interval.begin_us);
    let before = before.max_by_key(|s| s.last_us).map(|s| s.plan_id);
    let after = seen.iter().filter(|s| s.first_us >= interval.end_us);
    let after = after.min_by_key(|s| s.first_us).map(|s| s.plan_id);
    match (own.len(), own.first(), before, after) {
        (1, Some(id), _, _) => Plan::Sampled(*id),
        (0, _, Some(id), None) | (0, _, None, Some(id)) => Plan::Sampled(id),
        (0, _, Some(id), Some(other)) if id == other => Plan::Sampled(id),
        (0, _, None, None) => Plan::NotSampled,
        _ => Plan::SampledSeveral,
    }
}

/// The plans that the samples of the window show, by statement.
fn read(
    run: Run,
    node: Option<&str>,
    window: Window,
    wanted: &HashSet<Who>,
) -> QueryResult<HashMap<Who, Vec<Seen>>> {
    let mut seen = HashMap::new();
    let buckets = Buckets::whole(window.since, window.until);
    let nodes = nodes(run, node)?;
    for part in nodes.iter().flat_map(|node| run.store.parts(*node)) {
        run.check_cancel()?;
        if !window.overlaps(part) {
            continue;
        }
        let added = add_part(run, part, &buckets, wanted, &mut seen);
        run.damage.note_and_continue(added)?;
        part.release();
    }
    run.damage.check()?;
    Ok(seen)
}

fn add_part(
    run: Run,
    part: &Part,
    buckets: &Buckets,
    wanted: &HashSet<Who>,
    seen: &mut HashMap<Who, Vec<Seen>>,
) -> QueryResult<()> {
    let column = |table: &str, name: &str| {
        run.check_cancel()?;
        QueryResult::Ok(part.ints(table, name)?)
    };
    let query_id = column("statement", pg::QUERY_ID)?;
    let plan_id = column("statement", "plan_id")?;
    let ids: HashSet<i64> = wanted.iter().map(|who| who.0).collect();
    let has = |row: usize| ids.contains(&query_id[row]) && plan_id[row] != 0;
    if !(0..query_id.len()).any(has) {
        return Ok(());
    }
    let statement = column(RUN, "statement")?;
    let session = column(RUN, "session")?;
    let database = column("session", "database")?;
    let username = column("session", pg::USERNAME)?;
    let view = View::new(part, run.decode);
    let ticks = Ticks::read(part, buckets, &mut Observed::default())?;
    let mut spans = Vec::new();
    Runs::whole(part)?.for_each(None, |first, length| spans.push(ticks.range(first, length)));
    for (row, (begin, end)) in spans.into_iter().enumerate() {
        let query_id = field(&query_id, Reference(statement[row]));
        let plan_id = field(&plan_id, Reference(statement[row]));
        if plan_id == 0 || !ids.contains(&query_id) {
            continue;
        }
        let mut within = (begin..end).filter(|tick| ticks.bucket[*tick as usize] != NONE);
        let Some(first) = within.next() else {
            continue;
        };
        let name = |column| view.name(Reference(field(column, Reference(session[row]))));
        let who = (query_id, name(&database)?, name(&username)?);
        if !wanted.contains(&who) {
            continue;
        }
        let time_us = |tick: u32| ticks.slot_ms[tick as usize].saturating_mul(1000);
        seen.entry(who).or_default().push(Seen {
            plan_id,
            first_us: time_us(first),
            last_us: time_us(within.next_back().unwrap_or(first)),
        });
    }
    Ok(())
}
