//! When a statement turned from one plan to another. Its intervals become stretches
//! with one plan; a stretch that has too little is left out. Between two stretches
//! with different plans lies a turn.
//!
//! Example: plans by minute are A A AB B B B, each with 50 calls. The stretches are
//! A, both, B; the turn lies in the third minute, which counts for both sides.

use super::plan_sums::{Cost, Interval, Use};
use std::collections::HashMap;

/// A side of a turn has at least this many calls, or this much time.
const CALLS: i64 = 20;
/// In 10 µs: 30 s.
const TIME: i64 = 30 * 100_000;
/// An interval is of the plan that has this share of its calls, in percent.
const SHARE: i128 = 90;
/// A plan with this many stretches alternates with others, which is no turn.
const ALTERNATES: usize = 3;

/// The executions by a plan before or after a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Id of the plan.
    pub plan_id: i64,
    /// What they cost.
    pub cost: Cost,
}

/// From one plan to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When the new plan was executed first, µs: at the time, or in the `grain_us` from then.
    pub at_us: i64,
    /// `None` = the time is exact.
    pub grain_us: Option<i64>,
    /// Executions by the old plan, since the turn before.
    pub before: Side,
    /// Executions by the new one, until the next turn.
    pub after: Side,
}

/// Intervals in a row that have one plan, or none that has nearly all calls.
struct Stretch<'i> {
    plan_id: Option<i64>,
    intervals: &'i [Interval],
}

impl Stretch<'_> {
    /// The executions by a plan.
    fn cost(&self, plan_id: i64) -> Cost {
        Cost::of_uses(self.intervals.iter().flat_map(|i| i.uses_of(plan_id)))
    }
}

fn is_enough(cost: &Cost) -> bool {
    cost.calls >= CALLS || cost.time >= TIME
}

/// The plan that has nearly all calls of an interval.
fn plan_of(interval: &Interval) -> Option<i64> {
    let calls = |uses: &mut dyn Iterator<Item = &Use>| -> i128 {
        uses.map(|one| i128::from(one.cost.calls)).sum()
    };
    let all = calls(&mut interval.uses.iter());
    let mut ids = interval.uses.iter().filter_map(|one| one.plan.id());
    ids.find(|id| calls(&mut interval.uses_of(*id)) * 100 >= all * SHARE)
}

/// A time in which a statement had one plan, from the turn before on.
struct Part<'i> {
    plan_id: i64,
    cost: Cost,
    /// Intervals without one plan, after it.
    between: Vec<&'i [Interval]>,
    /// Its first stretch.
    first: &'i [Interval],
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

/// Adds a stretch to the last part with its plan, or begins another.
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
        return;
    }
    if is_enough(&cost) {
        parts.push(Part {
            plan_id,
            cost,
            between: Vec::new(),
            first: stretch.intervals,
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
        let within = |at: &i64| (interval.begin_us..interval.end_us).contains(at);
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
