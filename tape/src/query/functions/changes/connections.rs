//! The number of client connections, which every tick has.

use super::series::{Level, Series};
use super::windows::Windows;
use crate::query::ask::context::Run;
use crate::query::rows::parse::{Samples, Window};
use crate::query::rows::scan::Scan;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;
use crate::query::value::number::Ratio;

/// A storm of connections: at least `TIMES` as many as in the normal window,
/// and at least `MORE` (ten, in ten-thousandths) more.
const TIMES: i128 = 2;
const MORE: i128 = 100_000;

/// Mean number of client connections in the normal window and in the compared
/// one, in ten-thousandths. 0 = not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    pub before: i128,
    pub after: i128,
    /// Time in µs since 1970 from which the number exceeded the middle between
    /// both means.
    pub began: Option<i64>,
}

impl Connections {
    pub fn read(run: Run, samples: Samples, windows: &Windows) -> QueryResult<Connections> {
        let before = Self::series(run, samples, windows.before)?.mean();
        let since = windows.may_begin();
        let until = windows.after.until;
        let around = Self::series(run, samples, Window { since, until })?;
        let after = around.split(windows.after.since).1.mean();
        let (Some(before), Some(after)) = (before, after) else {
            return Ok(Connections::default());
        };
        let rounded = |level: Level| Ratio::new(level.num, level.den).map_or(0, Ratio::round4);
        let is_more = after.exceeds(before);
        let excess = is_more
            .then(|| around.excess(before.middle(after)))
            .flatten();
        Ok(Connections {
            before: rounded(before),
            after: rounded(after),
            began: excess.map(|(since, _)| since),
        })
    }

    /// Begin of the storm in µs since 1970, if there is one.
    pub fn storm(&self) -> Option<i64> {
        let is_storm = self.after >= self.before * TIMES && self.after - self.before >= MORE;
        self.began.filter(|_| is_storm)
    }

    /// Number of client connections at each tick that did not fail.
    fn series(run: Run, samples: Samples, window: Window) -> QueryResult<Series> {
        let scan = Scan::new(run, samples, window)?;
        let failed = run.catalog.value("tick_status", "failed");
        let mut points: Vec<(i64, i64, i64)> = Vec::new();
        for part in &scan.parts {
            scan.check_cancel()?;
            let columns = ["slot_time", "interval_ms", "connections", "status"];
            let read = || -> QueryResult<_> {
                let [slot, interval, connections, status] = columns.map(|c| part.ints("tick", c));
                Ok((slot?, interval?, connections?, status?))
            };
            let Some((slot, interval, connections, status)) =
                run.damage.note_and_continue(read())?
            else {
                continue;
            };
            for row in 0..slot.len() {
                let us = slot[row].saturating_mul(1000);
                let counts =
                    (window.since..window.until).contains(&us) && Some(status[row]) != failed;
                if counts && interval[row] > 0 {
                    points.push((us, interval[row], connections[row]));
                }
            }
        }
        run.damage.check()?;
        points.sort_unstable();
        Ok(Series::of_points(&points, SECOND))
    }
}
