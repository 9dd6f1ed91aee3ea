//! Finds when a statement turned from one plan to another. Consecutive intervals with the same plan
//! form a stretch; stretches with too few calls are left out. A turn lies between two stretches
//! with different plans.
//!
//! Example: the plans in six minutes are A, A, A and B, B, B, B, each minute with 50 calls. The
//! stretches are A (two minutes), both (one minute) and B (three minutes). The turn lies in the
//! third minute, which counts for both sides.

use super::plan_sums::{Cost, Interval, Use};
use std::collections::HashMap;

/// Each side of a turn must have at least this many calls, or executions of `TIME` in all.
const CALLS: i64 = 20;
/// 30 s in units of 10 µs.
const TIME: i64 = 30 * 100_000;
/// An interval belongs to a plan that has at least this percentage of its calls.
const SHARE: i128 = 90;
/// If a plan has this many stretches, the plans alternate, and there is no turn.
const ALTERNATES: usize = 3;

/// The executions by a plan before or after a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Id of the plan.
    pub plan_id: i64,
    /// Cost of the executions.
    pub cost: Cost,
}

/// A turn of a statement from one plan to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Time of the first execution by the new plan, in µs since 1970. If only an interval is known,
    /// its start.
    pub at_us: i64,
    /// Length of that interval in µs; `None` if the time is exact.
    pub grain_us: Option<i64>,
    /// Executions by the old plan, since the turn before.
    pub before: Side,
    /// Executions by the new plan, until the next turn.
    pub after: Side,
}

/// Consecutive intervals that belong to one plan; `plan_id` is `None` if no plan has nearly all
/// their calls.
struct Stretch<'i> {
    plan_id: Option<i64>,
    intervals: &'i [Interval],
}

impl Stretch<'_> {
    /// Cost of the executions by one plan.
    fn cost(&self, plan_id: i64) -> Cost {
        Cost::of_uses(self.intervals.iter().flat_map(|i| i.uses_of(plan_id)))
    }
}

fn is_enough(cost: &Cost) -> bool {
    cost.calls >= CALLS || cost.time >= TIME
}

/// The plan that has at least [`SHARE`] percent of an interval's calls.
fn plan_of(interval: &Interval) -> Option<i64> {
    let calls = |uses: &mut dyn Iterator<Item = &Use>| -> i128 {
        uses.map(|one| i128::from(one.cost.calls)).sum()
    };
    let all = calls(&mut interval.uses.iter());
    let mut ids = interval.uses.iter().filter_map(|one| one.plan.id());
    ids.find(|id| calls(&mut interval.uses_of(*id)) * 100 >= all * SHARE)
}

/// The time between two turns, in which a statement had one plan.
struct Part<'i> {
    plan_id: i64,
    cost: Cost,
    /// The stretches after it that belong to no plan, or have too few calls.
    between: Vec<&'i [Interval]>,
    /// Intervals of the part's first stretch.
    first: &'i [Interval],
    /// The last interval of its last stretch.
    last: Option<&'i Interval>,
}

/// The turns of a statement, from its intervals in their order.
pub fn turns(intervals: &[Interval]) -> Vec<Turn> {
    let mut parts: Vec<Part> = Vec::new();
    for intervals in intervals.chunk_by(|a, b| plan_of(a) == plan_of(b)) {
        let plan_id = intervals.first().and_then(plan_of);
        let stretch = Stretch { plan_id, intervals };
        add(&mut parts, &stretch);
    }
    if alternates(&parts) {
        return Vec::new();
    }
    let pairs = parts.windows(2);
    pairs.map(|pair| turn(&pair[0], &pair[1])).collect()
}

/// Adds a stretch to the last part if it has the same plan, otherwise as a new part.
fn add<'i>(parts: &mut Vec<Part<'i>>, stretch: &Stretch<'i>) {
    let Some(plan_id) = stretch.plan_id else {
        if let Some(last) = parts.last_mut() {
            last.between.push(stretch.intervals);
        }
        return;
    };
    let cost = stretch.cost(plan_id);
    if let Some(last) = parts.last_mut()
        && last.plan_id == plan_id
    {
        last.cost.add(cost);
        last.between.clear();
        last.last = stretch.intervals.last();
        return;
    }
    if is_enough(&cost) {
        parts.push(Part {
            plan_id,
            cost,
            between: Vec::new(),
            first: stretch.intervals,
            last: stretch.intervals.last(),
        });
    } else if let Some(last) = parts.last_mut() {
        last.between.push(stretch.intervals);
    }
}

fn alternates(parts: &[Part]) -> bool {
    let mut stretches: HashMap<i64, usize> = HashMap::new();
    for part in parts {
        *stretches.entry(part.plan_id).or_default() += 1;
    }
    stretches.values().any(|n| *n >= ALTERNATES)
}

/// The turn between two parts. The intervals between them count for both.
fn turn(old: &Part, new: &Part) -> Turn {
    let between = || old.between.iter().flat_map(|intervals| intervals.iter());
    let side = |part: &Part| {
        let mut cost = part.cost;
        cost.add(Cost::of_uses(
            between().flat_map(|i| i.uses_of(part.plan_id)),
        ));
        Side {
            plan_id: part.plan_id,
            cost,
        }
    };
    let mut found = between()
        .chain(new.first)
        .filter_map(|interval| Some((interval, interval.uses_of(new.plan_id).next()?)));
    let (at_us, grain_us) = found.next().map_or((0, None), |(interval, one)| {
        // The first executions by a slow plan may be a small share of the old plan's last interval.
        let begin_us = old.last.map_or(interval.begin_us, |last| last.begin_us);
        let within = |at: &i64| (begin_us..interval.end_us).contains(at);
        match one.since_us.filter(within) {
            Some(at) => (at, None),
            None => (interval.begin_us, Some(interval.end_us - interval.begin_us)),
        }
    });
    Turn {
        at_us,
        grain_us,
        before: side(old),
        after: side(new),
    }
}
