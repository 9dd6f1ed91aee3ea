//! The counters of statements in a window, by query id.

use crate::query::ask::context::Run;
use crate::query::functions::statements_history;
use crate::query::rows::parse::Window;
use crate::query::sums::statement_sums::{Stats, counters};
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
}

/// The counters that a [`Cost`] has, in its order.
const NAMES: [&str; 5] = [
    "calls",
    "total_exec_time",
    "temp_blks_written",
    "rows",
    "errors",
];

/// The costs of a window.
#[derive(Debug, Default)]
pub struct Costs {
    by_query: HashMap<i64, Cost>,
    /// How long was recorded; 0: nothing was.
    pub elapsed_ms: i64,
}

impl Costs {
    /// Adds up the counters of statements in all databases and of all roles.
    pub fn read(run: Run, node: Option<&str>, window: Window) -> QueryResult<Costs> {
        let mut all = counters(run.catalog);
        all.retain(|counter| NAMES.contains(&counter.name.as_str()));
        let stats = Stats {
            window,
            counters: all,
            filters: statements_history::filters(
                run,
                [("", &None), ("", &None), ("", &None), ("", &None)],
            )?,
            decode: run.decode,
            damage: run.damage,
            cancel: run.cancel,
        };
        let whole = Buckets::whole(window.since, window.until);
        let mut queries: HashMap<Option<i64>, u32> = HashMap::new();
        let found = statements_history::scan(run, node, &stats, &whole, |key| {
            let next = queries.len() as u32;
            *queries.entry(key.query_id).or_insert(next)
        })?;
        let place = |name: &str| stats.counters.iter().position(|c| c.name == name);
        let places = NAMES.map(place);
        let cost = |number: u32| {
            let sums = found.sums.get(&(number, 0));
            let [calls, time, temp_blocks, rows, errors] =
                places.map(|at| sums.and_then(|sums| Some(sums.0[at?])).unwrap_or(0));
            Cost {
                calls,
                time,
                temp_blocks,
                rows,
                errors,
            }
        };
        let known = queries.iter().filter_map(|(id, at)| Some(((*id)?, *at)));
        Ok(Costs {
            by_query: known.map(|(id, at)| (id, cost(at))).collect(),
            elapsed_ms: found.recorded.first().map_or(0, |r| r.elapsed_ms),
        })
    }

    /// The cost of a query; `None` where none was recorded.
    pub fn of(&self, query: i64) -> Option<Cost> {
        let cost = self.by_query.get(&query).copied().unwrap_or_default();
        (self.elapsed_ms > 0).then_some(cost)
    }
}
