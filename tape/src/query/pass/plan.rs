//! Decides how a window is read, before anything is read: the passes, and for each part whether
//! totals or samples answer and why. `read.rs` follows the plan, `--explain` prints it
//! (`explained.rs`).

use crate::fast::FastSet;
use crate::format::part::Part;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::register::Atom;
use crate::query::rows::scan::Scan;
use crate::query::sums::totals::{self, Totals};
use crate::query::sums::way::{NoTotalsReason, ReadFrom};
use crate::query::value::bucket::Buckets;

/// The passes over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// One pass: all keys get cells.
    One,
    /// One pass for a window of one bucket. All keys get the sum of their weights, but not the
    /// largest number of sessions in one tick.
    Sums,
    /// One pass with cells for keys that are known before. Other keys are left out.
    Known,
    /// Two passes. The first adds up all keys of the last group; in the second some keys get cells,
    /// and the others are added up together.
    Chosen,
    /// Two passes for two groups: all keys together, and one dimension. If only one file covers a
    /// bucket, the bucket is finished: for keys that were not chosen only sums are kept.
    Largest,
}

/// Limits the last groups to some keys of their first dimension. They have the same one.
pub struct Narrow {
    /// The first of these groups.
    pub from: usize,
    /// The keys that count.
    pub keys: FastSet<Atom>,
}

/// How one part is read.
pub struct Step<'a> {
    /// The part.
    pub part: &'a Part,
    /// The first of two passes reads this of the part: totals or samples. `None` if there is only
    /// one pass.
    pub first: Option<ReadFrom>,
    /// The last or only pass reads this of the part.
    pub last: ReadFrom,
}

/// How a window is read.
pub struct Plan<'a, 'q> {
    /// The buckets of the answer.
    pub buckets: Buckets,
    /// The groups of dimensions to add up by; each has at most two.
    pub groups: &'q [Vec<&'q Dimension>],
    /// The passes.
    pub passes: Passes,
    /// Limits the last groups; only for [`Passes::Sums`].
    pub narrow: Option<&'q Narrow>,
    /// The parts of the window, by node, in ascending order of ticks.
    pub steps: Vec<Step<'a>>,
}

impl<'a> Scan<'a> {
    /// Plans one pass with all keys of some groups.
    pub fn plan<'q>(&self, buckets: Buckets, groups: &'q [Vec<&'q Dimension>]) -> Plan<'a, 'q> {
        self.planned(buckets, groups, Passes::One, None)
    }

    /// Plans one pass that adds up the weights in the whole window by all keys of some groups.
    pub fn plan_weights<'q>(&self, groups: &'q [Vec<&'q Dimension>]) -> Plan<'a, 'q> {
        let plan = self.plan(self.whole(), groups);
        Plan {
            passes: Passes::Sums,
            ..plan
        }
    }

    /// Plans one pass that gives cells to some keys of a group. Totals answer for keys that are among
    /// the largest of their file.
    pub fn plan_known<'q>(
        &self,
        buckets: Buckets,
        groups: &'q [Vec<&'q Dimension>],
    ) -> Plan<'a, 'q> {
        self.planned(buckets, groups, Passes::Known, None)
    }

    /// Plans cells for the keys of the last group that have the largest sums. If cells of all keys
    /// might cost more than a first pass, a first pass finds these keys.
    pub fn plan_chosen<'q>(
        &self,
        buckets: Buckets,
        groups: &'q [Vec<&'q Dimension>],
    ) -> Plan<'a, 'q> {
        let passes = match groups.last().map(Vec::as_slice) {
            Some([one]) if !self.may_have_many(one) => Passes::One,
            _ => Passes::Chosen,
        };
        self.planned(buckets, groups, passes, None)
    }

    /// Plans for all keys together and the largest keys of a dimension. `None` unless totals by
    /// group rank the keys for most of the window, so that they are found without its samples.
    /// `groups` are the empty group and the dimension.
    pub fn plan_largest<'q>(
        &self,
        buckets: &Buckets,
        groups: &'q [Vec<&'q Dimension>],
    ) -> Option<Plan<'a, 'q>> {
        let dimension = groups.last()?.first()?;
        if !totals::is_by_group(dimension) {
            return None;
        }
        let ranks = self.ways(&self.whole(), last_group(groups), Passes::One, false);
        let answered = ranks.iter().filter(|way| way.is_by_totals()).count();
        (2 * answered > ranks.len())
            .then(|| self.planned(buckets.clone(), groups, Passes::Largest, Some(ranks)))
    }

    fn planned<'q>(
        &self,
        buckets: Buckets,
        groups: &'q [Vec<&'q Dimension>],
        passes: Passes,
        ranks: Option<Vec<ReadFrom>>,
    ) -> Plan<'a, 'q> {
        let is_chosen = passes != Passes::One;
        let ways = self.ways(&buckets, groups, passes, is_chosen);
        let rank = || self.ways(&self.whole(), last_group(groups), Passes::One, false);
        let has_first = is_chosen && passes != Passes::Known;
        let ranks = has_first.then(|| ranks.unwrap_or_else(rank));
        let steps = self.parts.iter().zip(ways).enumerate();
        let steps = steps.map(|(at, (part, last))| Step {
            part,
            first: ranks.as_ref().map(|ranks| ranks[at]),
            last,
        });
        Plan {
            buckets,
            groups,
            passes,
            narrow: None,
            steps: steps.collect(),
        }
    }

    /// How a pass reads each part.
    fn ways(
        &self,
        buckets: &Buckets,
        groups: &[Vec<&Dimension>],
        passes: Passes,
        is_chosen: bool,
    ) -> Vec<ReadFrom> {
        let never = match passes {
            _ if !self.run.totals => Some(NoTotalsReason::Off),
            _ if !self.selection.is_load() => Some(NoTotalsReason::Selection),
            Passes::Chosen => Some(NoTotalsReason::Rest),
            _ => None,
        };
        let totals = Totals::new(buckets, groups);
        let way = |part: &&Part| match never {
            Some(why) => ReadFrom::Samples(why),
            None => totals.way(part, is_chosen),
        };
        self.parts.iter().map(way).collect()
    }

    /// True if the dimension may have too many keys for one pass: cells of all keys would cost more
    /// than a first pass.
    pub fn may_have_many(&self, dimension: &Dimension) -> bool {
        let rows = self.parts.iter().map(|part| dimension.rows(part));
        rows.max().is_some_and(|rows| rows > self.run.few_keys)
    }
}

/// The last group, whose keys are chosen.
pub fn last_group<'g, 'd>(groups: &'g [Vec<&'d Dimension>]) -> &'g [Vec<&'d Dimension>] {
    &groups[groups.len().saturating_sub(1)..]
}
