//! The two windows of a comparison: `after` is the requested one, `before` the
//! normal one.

use super::Changes;
use super::series::{Level, Series};
use crate::query::ask::context::Run;
use crate::query::rows::parse::{Samples, Window};
use crate::query::rows::scan::Scan;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;

/// The load has left its usual range if it is more than 6/5 of the usual load (`BEYOND`). It must
/// also be more than 0.1 sessions above the usual load (`LEAST`).
const BEYOND: Level = Level { num: 6, den: 5 };
const LEAST: Level = Level { num: 1, den: 10 };

/// How the normal window was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normal {
    /// The caller gave it.
    Given,
    /// A window of the same length that ends where the load left its usual range,
    /// which was before the requested window.
    BeforeItLeft,
    /// A window of the same length directly before the requested one.
    DirectlyBefore,
}

/// The windows that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    pub before: Window,
    pub after: Window,
    pub normal: Normal,
}

impl Windows {
    /// The requested window, and the normal window for it.
    pub fn of(asked: &Changes, run: Run, samples: Samples) -> QueryResult<Windows> {
        let after = Window::at_or_of(run.context, asked.at, asked.since, asked.until)?;
        let before = |before: Window, normal| Windows {
            before,
            after,
            normal,
        };
        if let Some(given) = given(asked, run, after)? {
            return Ok(before(given, Normal::Given));
        }
        let left = left_usual_range(run, samples, after)?;
        let left = left.filter(|at| *at < after.since);
        let until = left.unwrap_or(after.since);
        let normal = match left {
            Some(_) => Normal::BeforeItLeft,
            None => Normal::DirectlyBefore,
        };
        let since = until.saturating_sub(after.length());
        Ok(before(Window { since, until }, normal))
    }

    /// Two windows: the normal one, and the time in which an effect may have begun. They are one if
    /// they overlap or touch.
    pub fn pieces(&self) -> Vec<Window> {
        let (since, until) = (self.may_begin(), self.after.until);
        let before = self.before;
        let touch = before.since <= until && since <= before.until;
        match touch {
            true => vec![Window {
                since: since.min(before.since),
                until: until.max(before.until),
            }],
            false => vec![before, Window { since, until }],
        }
    }

    /// Earliest time at which an effect may have begun, in µs: the end of the
    /// normal window, but at most one length of the window before its start.
    pub fn may_begin(&self) -> i64 {
        let earliest = self.after.since.saturating_sub(self.after.length());
        self.before.until.clamp(earliest, self.after.since)
    }
}

/// The normal window if the caller gave one. If it has only one bound, it is as
/// long as the requested window.
fn given(asked: &Changes, run: Run, after: Window) -> QueryResult<Option<Window>> {
    let length = after.length();
    let (since, until) = match (asked.before_since, asked.before_until) {
        (None, None) => return Ok(None),
        (Some(since), None) => (since, since.saturating_add(length)),
        (None, Some(until)) => (until.saturating_sub(length), until),
        (Some(since), Some(until)) => (since, until),
    };
    Window::of(run.context, Some(since), Some(until)).map(Some)
}

/// Width in µs of the buckets in which changes are dated: the largest of 1 s to 1
/// h that gives the window at least 60 buckets.
pub fn width(window: Window) -> i64 {
    const WIDTHS: [i64; 8] = [1, 5, 10, 30, 60, 300, 900, 3600];
    let most = window.length() / 60;
    let fit = WIDTHS.map(|s| s * SECOND).into_iter();
    fit.take_while(|width| *width <= most)
        .last()
        .unwrap_or(SECOND)
}

/// Time in µs at which the load of the whole server left its usual range; `None`
/// if it did not. The usual load is the median over twice the window's length
/// before the window.
fn left_usual_range(run: Run, samples: Samples, after: Window) -> QueryResult<Option<i64>> {
    if after.length() == 0 {
        return Ok(None);
    }
    let around = Window {
        since: after.since.saturating_sub(2 * after.length()),
        until: after.until,
    };
    let scan = Scan::new(run, samples, around)?;
    let series = Series::of_load(&scan, width(after))?;
    let (before, within) = series.split(after.since);
    let (Some(usual), Some(now)) = (before.median(), within.mean()) else {
        return Ok(None);
    };
    let is_beyond = now.exceeds(usual.times(BEYOND)) && now.exceeds(usual.plus(LEAST));
    if !is_beyond {
        return Ok(None);
    }
    // Without this, a much worse incident before would count as the begin of this
    // one.
    let excess = series.clipped(now);
    let excess = excess.excess_beyond(usual.middle(now), after.since);
    Ok(excess.map(|(since, _)| since))
}
