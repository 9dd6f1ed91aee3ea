//! The two windows: the one asked for, and the one that was normal.

use super::Changes;
use super::series::{Level, Series};
use crate::query::ask::context::Run;
use crate::query::rows::parse::{Samples, Window};
use crate::query::rows::scan::Scan;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;

/// The load is beyond its usual range from a fifth more than its median on, and
/// from a tenth of a session more.
const BEYOND: Level = Level { num: 6, den: 5 };
const LEAST: Level = Level { num: 1, den: 10 };

/// How the normal window was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normal {
    /// The caller gave it.
    Given,
    /// As long, up to where the load left its usual range before the window.
    BeforeItLeft,
    /// As long, directly before the window.
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
    /// The windows of a question.
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

    /// From when on an effect may have begun: the end of what was normal, and no
    /// earlier than a length before the window.
    pub fn may_begin(&self) -> i64 {
        let earliest = self.after.since.saturating_sub(self.after.length());
        self.before.until.clamp(earliest, self.after.since)
    }
}

/// The normal window where the caller says one; one bound is enough.
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

/// The width of a bucket that shows when a load of a window changed.
pub fn width(window: Window) -> i64 {
    const WIDTHS: [i64; 8] = [1, 5, 10, 30, 60, 300, 900, 3600];
    let most = window.length() / 60;
    let fit = WIDTHS.map(|s| s * SECOND).into_iter();
    fit.take_while(|width| *width <= most)
        .last()
        .unwrap_or(SECOND)
}

/// When the whole load left its usual range: the median of the two lengths before
/// the window is usual.
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
    // An earlier incident that was much worse is not the begin of this one.
    let excess = series.clipped(now);
    let excess = excess.excess_beyond(usual.middle(now), after.since);
    Ok(excess.map(|(since, _)| since))
}
