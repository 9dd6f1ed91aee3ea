//! Adds up the errors of statements by SQLSTATE and bucket. A row has the errors of a statement with
//! one SQLSTATE in the `elapsed_ms` before `time`. It counts in the bucket with the middle of this
//! interval. Rows without an entry are errors that the server could not tell apart.

use super::intervals::{Nodes, Recorded, may_have, middle_us};
use super::statement_sums::{EntryKey, Stats};
use crate::format::part::Part;
use crate::format::schema::ERROR_STATS;
use crate::query::rows::parse::nodes;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::filter::Filter;
use crate::query::value::sqlstate;
use std::collections::HashMap;

/// A statement and the SQLSTATE of its errors. Errors that found no room have neither.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorKey {
    /// The code; `None` if it is not known.
    pub sqlstate: Option<String>,
    /// The statement; `None` for others and for errors that found no room.
    pub entry: Option<EntryKey>,
}

/// The errors of a question.
pub struct Errors<'a> {
    /// The statements.
    pub stats: Stats<'a>,
    /// Filter of codes and classes.
    pub sqlstates: Option<Filter>,
}

/// Numbers of errors by line and bucket, and what was recorded.
pub struct ErrorSums {
    /// Number of errors. A key is the number of a line and the index of a bucket.
    pub errors: HashMap<(u32, u32), i64>,
    /// The recorded time of each bucket.
    pub recorded: Vec<Recorded>,
}

/// True if a filter accepts a code, or its class: `23` accepts 23505.
fn accepts(filter: &Filter, code: Option<&str>) -> bool {
    let class = code.map(sqlstate::class);
    match filter.any.is_empty() {
        true => filter.accepts(code) && filter.accepts(class),
        false => filter.accepts(code) || filter.accepts(class),
    }
}

impl Errors<'_> {
    /// Adds up the rows of a node. `number` maps what failed to the number of its line.
    pub fn sums(
        &self,
        node: Option<&str>,
        buckets: &Buckets,
        mut number: impl FnMut(ErrorKey) -> u32,
    ) -> QueryResult<ErrorSums> {
        let run = self.stats.run;
        let mut all = ErrorSums {
            errors: HashMap::new(),
            recorded: vec![Recorded::default(); buckets.len()],
        };
        let nodes = nodes(run, node)?;
        let together = Nodes::of(run.store, &nodes);
        for node in nodes {
            let passes = self
                .stats
                .sums(run.store.parts(node), buckets, &mut |_| 0)?;
            together.add(&mut all.recorded, passes.recorded);
            for part in run.store.parts(node) {
                run.check_cancel()?;
                let may = may_have(part, ERROR_STATS, self.stats.window);
                if run.damage.note_and_continue(may)? == Some(true) {
                    let added = self.add_part(part, buckets, &mut number, &mut all.errors);
                    run.damage.note_and_continue(added)?;
                    part.release();
                }
            }
        }
        run.damage.check()?;
        Ok(all)
    }

    fn add_part(
        &self,
        part: &Part,
        buckets: &Buckets,
        number: &mut impl FnMut(ErrorKey) -> u32,
        errors: &mut HashMap<(u32, u32), i64>,
    ) -> QueryResult<()> {
        let column = |name: &str| part.ints(ERROR_STATS, name);
        let (time, elapsed) = (column("time")?, column("elapsed_ms")?);
        let (entry, code, count) = (column("entry")?, column("sqlstate")?, column("errors")?);
        let mut keys: Vec<Option<EntryKey>> = vec![None];
        let known = self.stats.entries(part, &mut |key| {
            keys.push(Some(key));
            keys.len() as u32 - 1
        })?;
        for row in 0..time.len() {
            let Some(bucket) = buckets.index(middle_us(time[row], elapsed[row])) else {
                continue;
            };
            let index = usize::try_from(entry[row]).unwrap_or(usize::MAX);
            let own = match (entry[row], known.get(index).copied().flatten()) {
                (0, _) if self.stats.filters.is_empty() => None,
                (_, Some(own)) => keys[own as usize].clone(),
                _ => continue,
            };
            let sqlstate = (code[row] != 0).then(|| sqlstate::text(code[row]));
            let wanted = |filter: &Filter| accepts(filter, sqlstate.as_deref());
            if self.sqlstates.as_ref().is_none_or(wanted) {
                let key = ErrorKey {
                    sqlstate,
                    entry: own,
                };
                let sum = errors.entry((number(key), bucket as u32)).or_default();
                *sum = sum.saturating_add(count[row]);
            }
        }
        Ok(())
    }
}
