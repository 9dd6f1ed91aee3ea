//! The types of plans, generic or custom, in their recorded trees.

use super::trees::Trees;
use crate::format::part::Part;
use crate::query::ask::context::Run;
use crate::query::rows::parse::{Window, nodes};
use crate::query::sums::statement_sums::EntryKey;
use crate::query::value::bucket::DAY;
use crate::query::value::error::QueryResult;
use std::collections::BTreeMap;

/// The plans whose types are wanted, and the types that were found.
struct Wanted<'k> {
    window: Window,
    plans: &'k [(&'k EntryKey, i64)],
    /// Indexes of `plans` by plan id.
    by_id: BTreeMap<i64, Vec<usize>>,
    /// The time of the tree in ms since 1970, and its type.
    found: Vec<Option<(i64, &'static str)>>,
}

/// The type of each plan by the last tree of its statement that has one. A tree is recorded at the
/// first execution of a day, so trees of the two days before the window count, too.
pub(in crate::query::functions) fn of_plans(
    run: Run,
    node: Option<&str>,
    window: Window,
    plans: &[(&EntryKey, i64)],
) -> QueryResult<Vec<Option<&'static str>>> {
    let mut by_id: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
    for (index, (_, plan_id)) in plans.iter().enumerate() {
        by_id.entry(*plan_id).or_default().push(index);
    }
    let mut wanted = Wanted {
        window: Window {
            since: window.since.saturating_sub(2 * DAY),
            ..window
        },
        plans,
        by_id,
        found: vec![None; plans.len()],
    };
    for node in nodes(run, node)? {
        for part in run.store.parts(node) {
            run.check_cancel()?;
            let read = wanted.look(run, part);
            run.damage.leave_out_part(part, read)?;
        }
    }
    let found = wanted.found.into_iter();
    Ok(found.map(|found| found.map(|(_, name)| name)).collect())
}

impl Wanted<'_> {
    fn look(&mut self, run: Run, part: &Part) -> QueryResult<()> {
        if part.rows("plan_tree") == 0 || !self.window.overlaps(part) {
            return Ok(());
        }
        let trees = Trees::of(run, part)?;
        for (row, plan_id) in trees.rows() {
            if let Some(indexes) = self.by_id.get(&plan_id) {
                for index in indexes {
                    take(
                        &mut self.found[*index],
                        self.plans[*index].0,
                        &trees,
                        row,
                        self.window,
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Takes the type of a row's tree if the tree is of the statement and later than the one before.
fn take(
    found: &mut Option<(i64, &'static str)>,
    key: &EntryKey,
    trees: &Trees,
    row: usize,
    window: Window,
) -> QueryResult<()> {
    let time_ms = trees.time_ms(row)?;
    let is_in_window = (window.since..window.until).contains(&(time_ms.saturating_mul(1000)));
    let is_later = found.is_none_or(|(known, _)| known <= time_ms);
    if !(is_in_window && is_later && trees.executed(row)?.is_by(key)) {
        return Ok(());
    }
    if let Some(name) = trees.plan_type(row)? {
        *found = Some((time_ms, name));
    }
    Ok(())
}
