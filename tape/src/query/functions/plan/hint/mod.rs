//! The hint of pg_hint_plan that brings a recorded plan back, and what no hint says of it.
//!
//! Example: a hash join of `orders o` with the index of `customers c` gives
//! `/*+ Leading((o c)) HashJoin(o c) SeqScan(o) IndexScan(c customers_pkey)
//! Set(max_parallel_workers_per_gather 0) */`.

mod found;
mod names;
mod walk;

use self::found::Found;
use self::walk::Walk;
use super::tree::Tree;

/// The way back to a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::query::functions) struct Hint {
    /// The comment to put in front of the query; `None` if the plan has nothing to choose.
    pub(in crate::query::functions) text: Option<String>,
    /// Sentences about choices of the plan that the hint does not have.
    pub(in crate::query::functions) lacks: Vec<String>,
}

impl Hint {
    pub(super) fn of(tree: &Tree) -> Hint {
        let mut walk = Walk::of(tree);
        walk.query(0);
        let mut found: Found = walk.found;
        found.look_at_nodes(tree);
        Hint {
            text: found.text(),
            lacks: found.lacks(tree),
        }
    }

    /// The sentences, one a line.
    pub(in crate::query::functions) fn lacks(&self) -> Option<String> {
        (!self.lacks.is_empty()).then(|| self.lacks.join("\n"))
    }
}

#[cfg(test)]
mod tests;
