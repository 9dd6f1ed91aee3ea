//! Finds replicas that stopped confirming the write-ahead log.

use super::windows::{Windows, width};
use crate::query::ask::context::Run;
use crate::query::ask::request::Request;
use crate::query::functions::common_columns::collected;
use crate::query::functions::structs::{ServerHistory, ServerHistoryRow};
use crate::query::rows::parse::Window;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A replica is lost if it was behind or not connected in this many buckets up to the end of the
/// window.
const BUCKETS: i64 = 5;

/// A lost replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub name: Arc<str>,
    /// End of the last bucket in which the replica had flushed all of the log, in µs since 1970.
    pub since: i64,
}

/// The replicas that had flushed all of the log at some time, and have been behind or not connected
/// since.
pub fn lost(run: Run, node: Option<&str>, windows: &Windows) -> QueryResult<Vec<Lost>> {
    let width = width(windows.after);
    let until = windows.after.until;
    let since = windows.may_begin().min(windows.before.since);
    let mut lost = Vec::new();
    for (name, end) in caught_up(run, node, Window { since, until }, width)? {
        if until.saturating_sub(end) < BUCKETS * width {
            continue;
        }
        let last = Window {
            since: end.saturating_sub(width),
            until: end,
        };
        let nearer = caught_up(run, node, last, SECOND)?;
        let since = nearer.get(&name).copied().unwrap_or(end);
        lost.push(Lost { name, since });
    }
    Ok(lost)
}

/// For each replica: the end of the last bucket of the window in which it had flushed all of the
/// log, in µs.
fn caught_up(
    run: Run,
    node: Option<&str>,
    window: Window,
    width: i64,
) -> QueryResult<BTreeMap<Arc<str>, i64>> {
    let request = ServerHistory {
        node: node.map(str::to_string),
        since: Some(window.since),
        until: Some(window.until),
        bucket: Some(width),
        metric: Some("replica_flush_lag".to_string()),
        object: None,
    };
    let rows: Vec<ServerHistoryRow> = collected(|emit| request.answer(run, emit))?;
    let mut ends: BTreeMap<Arc<str>, i64> = BTreeMap::new();
    for row in rows {
        let has_all = row.min.is_some_and(|min| min.0 == 0);
        if let (Some(name), Some(end), true) = (row.object, row.period_end, has_all) {
            ends.insert(name, end);
        }
    }
    Ok(ends)
}
