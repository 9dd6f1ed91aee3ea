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

/// A replica is lost if it was not connected, or confirmed nothing, in this many buckets up to the end
/// of the window.
const BUCKETS: i64 = 5;

/// A lost replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub name: Arc<str>,
    /// End of the last bucket in which the replica confirmed log, in µs since 1970.
    pub since: i64,
}

/// The replicas that confirmed log at some time, and confirmed nothing or were not connected since.
pub fn lost(run: Run, node: Option<&str>, windows: &Windows) -> QueryResult<Vec<Lost>> {
    let width = width(windows.after);
    let until = windows.after.until;
    let mut ends: BTreeMap<Arc<str>, i64> = BTreeMap::new();
    for piece in windows.pieces() {
        ends.extend(confirmed(run, node, piece, width)?);
    }
    let mut lost = Vec::new();
    for (name, end) in ends {
        if until.saturating_sub(end) < BUCKETS * width {
            continue;
        }
        let last = Window {
            since: end.saturating_sub(width),
            until: end,
        };
        let nearer = confirmed(run, node, last, SECOND)?;
        let since = nearer.get(&name).copied().unwrap_or(end);
        lost.push(Lost { name, since });
    }
    Ok(lost)
}

/// For each replica: the end of the last bucket of the window in which it confirmed log, in µs. The
/// lag of a replica that confirms nothing never becomes less. So it confirmed something if it had
/// all of the log, or if it was once less behind than in the bucket before.
fn confirmed(
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
    let mut most: BTreeMap<Arc<str>, i128> = BTreeMap::new();
    let mut ends: BTreeMap<Arc<str>, i64> = BTreeMap::new();
    for row in rows {
        let (Some(name), Some(end), Some(min), Some(max)) =
            (row.object, row.period_end, row.min, row.max)
        else {
            continue;
        };
        let before = most.insert(name.clone(), max.0);
        if min.0 == 0 || before.is_some_and(|before| min.0 < before) {
            ends.insert(name, end);
        }
    }
    Ok(ends)
}
