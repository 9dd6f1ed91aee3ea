//! The counters of statements in a window, by query id.

use crate::query::ask::context::Run;
use crate::query::functions::statements_history;
use crate::query::rows::parse::Window;
use crate::query::sums::counters::{Counters, Named};
use crate::query::sums::statement_sums::Stats;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use std::collections::HashMap;

/// Counters of a query. Times are in units of 10 µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub calls: i64,
    pub time: i64,
    pub temp_blocks: i64,
    pub rows: i64,
    pub errors: i64,
    /// Shared blocks, found in the cache or read.
    pub blocks: i64,
}

/// The counters that a [`Cost`] has.
const COUNTERS: [Named; 7] = [
    Named::Calls,
    Named::Time,
    Named::TempWrites,
    Named::Rows,
    Named::Errors,
    Named::Hits,
    Named::Reads,
];

/// The costs of a window.
#[derive(Debug, Default)]
pub struct Costs {
    by_query: HashMap<i64, Cost>,
    /// Time in ms for which statistics were recorded; 0 = none.
    pub elapsed_ms: i64,
}

impl Costs {
    /// Adds up the counters of statements in all databases and of all roles.
    pub fn read(run: Run, node: Option<&str>, window: Window) -> QueryResult<Costs> {
        let counters = Counters::of(run.catalog).only(|c| c.is_any_of(&COUNTERS));
        let stats = Stats {
            run,
            window,
            counters,
            filters: statements_history::filters(
                run,
                [("", &None), ("", &None), ("", &None), ("", &None)],
            )?,
        };
        let whole = Buckets::whole(window.since, window.until);
        let mut queries: HashMap<Option<i64>, u32> = HashMap::new();
        let found = statements_history::scan(&stats, node, &whole, |key| {
            let next = queries.len() as u32;
            *queries.entry(key.query_id).or_insert(next)
        })?;
        let cost = |number: u32| {
            let sums = found.sums.get(&(number, 0));
            let sum = |named| sums.map_or(0, |sums| stats.counters.sum(sums, named));
            Cost {
                calls: sum(Named::Calls),
                time: sum(Named::Time),
                temp_blocks: sum(Named::TempWrites),
                rows: sum(Named::Rows),
                errors: sum(Named::Errors),
                blocks: sum(Named::Hits) + sum(Named::Reads),
            }
        };
        let known = queries.iter().filter_map(|(id, at)| Some(((*id)?, *at)));
        Ok(Costs {
            by_query: known.map(|(id, at)| (id, cost(at))).collect(),
            elapsed_ms: found.recorded.first().map_or(0, |r| r.elapsed_ms),
        })
    }

    /// The cost of a query: zeros if it has no row, because idle queries have
    /// none. `None` if no statistics were recorded.
    pub fn of(&self, query: i64) -> Option<Cost> {
        let cost = self.by_query.get(&query).copied().unwrap_or_default();
        (self.elapsed_ms > 0).then_some(cost)
    }
}
