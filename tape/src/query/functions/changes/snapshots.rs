//! Finds a session whose old snapshot holds back vacuum.

use super::windows::Windows;
use crate::query::ask::context::Run;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::parse::{Samples, Window};
use crate::query::rows::scan::Scan;
use crate::query::value::error::QueryResult;
use std::sync::Arc;

/// A snapshot is old if at least `AGE` transactions began since, and `TIMES` as many
/// as for the oldest snapshot of the normal window.
const AGE: i64 = 1_000;
const TIMES: i64 = 4;

/// A session that keeps an old snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub pid: i64,
    pub application: Option<Arc<str>>,
    /// Number of transactions that began after the snapshot.
    pub age: i64,
    /// Time of the first tick at which it was the oldest snapshot, in µs since 1970.
    pub since: i64,
}

/// The oldest snapshot at a tick.
#[derive(Clone, Copy)]
struct Oldest {
    time: i64,
    xmin: i64,
    age: i64,
    pid: i64,
}

/// The session with the oldest snapshot of the window, if it is old.
pub fn snapshot(run: Run, samples: Samples, windows: &Windows) -> QueryResult<Option<Snapshot>> {
    let since = windows.before.since.min(windows.may_begin());
    let until = windows.after.until;
    let around = Window { since, until };
    let scan = Scan::new(run, samples, around)?;
    let ticks = ticks(run, &scan, around)?;
    let is_before = |tick: &&Oldest| tick.time < windows.before.until;
    let before = ticks.iter().filter(is_before).map(|tick| tick.age).max();
    let after = ticks.iter().filter(|tick| tick.time >= windows.after.since);
    let Some(oldest) = after.filter(|t| t.pid > 0).max_by_key(|t| (t.age, t.time)) else {
        return Ok(None);
    };
    let own = |tick: &&Oldest| (tick.xmin, tick.pid) == (oldest.xmin, oldest.pid);
    let first = ticks.iter().find(own).map_or(oldest.time, |tick| tick.time);
    let is_old = oldest.age >= AGE && oldest.age >= before.unwrap_or(0).saturating_mul(TIMES);
    if !is_old {
        return Ok(None);
    }
    Ok(Some(Snapshot {
        pid: oldest.pid,
        application: application(run, samples, around, oldest.pid)?,
        age: oldest.age,
        since: first,
    }))
}

/// The oldest snapshot at each tick that recorded it, in order of time.
fn ticks(run: Run, scan: &Scan, window: Window) -> QueryResult<Vec<Oldest>> {
    let mut ticks = Vec::new();
    for part in &scan.parts {
        scan.check_cancel()?;
        let columns = ["slot_time", "oldest_xmin", "next_xid", "oldest_xmin_pid"];
        let read = || -> QueryResult<_> {
            let [slot, xmin, next, pid] = columns.map(|c| part.ints("tick", c));
            Ok((slot?, xmin?, next?, pid?))
        };
        let Some((slot, xmin, next, pid)) = run.damage.note_and_continue(read())? else {
            continue;
        };
        for row in 0..slot.len() {
            let time = slot[row].saturating_mul(1000);
            if xmin[row] > 0 && (window.since..window.until).contains(&time) {
                ticks.push(Oldest {
                    time,
                    xmin: xmin[row],
                    age: next[row].saturating_sub(xmin[row]),
                    pid: pid[row],
                });
            }
        }
    }
    run.damage.check()?;
    ticks.sort_by_key(|tick| tick.time);
    Ok(ticks)
}

/// The application of a session, if a sample has it.
fn application(
    run: Run,
    samples: Samples,
    window: Window,
    pid: i64,
) -> QueryResult<Option<Arc<str>>> {
    let filters = [("pid".to_string(), pid.to_string())];
    let samples = Samples {
        scope: Some("all"),
        filters: &filters,
        ..samples
    };
    let scan = Scan::new(run, samples, window)?;
    let dimension = Dimension::find(run.catalog, "dimension", "application")?;
    let mut scanned = scan.weights(&[vec![&dimension]])?;
    let cube = scanned.cubes.pop().unwrap_or_default();
    let named = cube.into_cells().filter_map(|(key, cells)| {
        let name = scan.register.text(key.0)?;
        Some((cells.sum_ms(), name))
    });
    Ok(named.max().map(|(_, name)| name.into()))
}
