//! Finds whether other processes of the host took CPUs from the server.

use super::loads::Loads;
use super::series::{Level, Series};
use super::windows::{Windows, width};
use crate::query::ask::context::Run;
use crate::query::ask::request::Request;
use crate::query::functions::common_columns::collected;
use crate::query::functions::structs::{ServerHistory, ServerHistoryRow};
use crate::query::rows::parse::Window;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;
use crate::query::value::vocabulary as pg;

/// Other processes took CPUs if more of them than before ran or waited for a CPU: at least one more
/// (`LEAST`, in ten-thousandths), and at least a fifth more (`SHARE`).
const LEAST: i128 = 10_000;
const SHARE: i128 = 5;

/// Mean number of other processes that ran or waited for a CPU before and after, in
/// ten-thousandths. `began` is the time in µs from which there were more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub before: i128,
    pub after: i128,
    pub began: i64,
}

impl Taken {
    /// `None` unless there are many more other processes. Their number is the host's count of
    /// runnable tasks minus the sessions that were on a CPU or waited for one.
    pub fn read(
        run: Run,
        node: Option<&str>,
        windows: &Windows,
        loads: &Loads,
    ) -> QueryResult<Option<Taken>> {
        let width = width(windows.after);
        let pieces = windows.pieces();
        let mut tasks = Vec::new();
        for piece in &pieces {
            tasks.extend(self::tasks(run, node, *piece, width)?);
        }
        let own = ["running", "runnable"].map(|kind| loads.of_wait(&pg::cpu_key(kind)));
        let others = |window: Window, side: usize| {
            let all = mean(&tasks, window)?;
            Some((all - own[0][side] - own[1][side]).max(0))
        };
        let (Some(before), Some(after)) = (others(windows.before, 0), others(windows.after, 1))
        else {
            return Ok(None);
        };
        let more = after - before;
        let is_much = more >= LEAST && more * SHARE >= before;
        let middle = mean(&tasks, windows.before).zip(mean(&tasks, windows.after));
        let middle = middle.map(|(before, after)| Level {
            num: before + after,
            den: 2,
        });
        let Some(middle) = middle.filter(|_| is_much) else {
            return Ok(None);
        };
        let began = |tasks: &[(i64, i64, i64)], width| {
            let found = Series::of_points(tasks, width).excess(middle);
            found.map(|(began, _)| began)
        };
        let Some(bucket) = began(&tasks, width) else {
            return Ok(None);
        };
        let piece = |piece: &&Window| (piece.since..piece.until).contains(&bucket);
        let bounds = pieces.iter().find(piece).copied().unwrap_or(windows.after);
        let near = Window {
            since: bucket.saturating_sub(width).max(bounds.since),
            until: bucket.saturating_add(width).min(bounds.until),
        };
        let nearer = began(&self::tasks(run, node, near, SECOND)?, SECOND);
        Ok(Some(Taken {
            before,
            after,
            began: nearer.unwrap_or(bucket),
        }))
    }
}

/// Mean value of the buckets that begin in a window.
fn mean(tasks: &[(i64, i64, i64)], window: Window) -> Option<i128> {
    let within = |at: &&(i64, i64, i64)| (window.since..window.until).contains(&at.0);
    let values = tasks.iter().filter(within).map(|point| point.2.into());
    let (sum, count) = values.fold((0, 0), |(sum, count), value: i128| (sum + value, count + 1));
    (count > 0).then(|| sum / count)
}

/// A point for each bucket with a reading: start in µs, length in seconds as the weight, mean
/// number of tasks. The number is in ten-thousandths, and counts tasks that ran or waited for a
/// CPU.
fn tasks(
    run: Run,
    node: Option<&str>,
    window: Window,
    width: i64,
) -> QueryResult<Vec<(i64, i64, i64)>> {
    let request = ServerHistory {
        node: node.map(str::to_string),
        since: Some(window.since),
        until: Some(window.until),
        bucket: Some(width),
        metric: Some("tasks_runnable".to_string()),
        object: None,
    };
    let rows: Vec<ServerHistoryRow> = collected(|emit| request.answer(run, emit))?;
    let point = |row: ServerHistoryRow| {
        let value = i64::try_from(row.avg?.0).ok()?;
        Some((row.period_start?, width / SECOND, value))
    };
    Ok(rows.into_iter().filter_map(point).collect())
}
