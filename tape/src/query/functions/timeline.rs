//! `timeline`: the load bucket by bucket, as a whole or split by a dimension.

use super::aas;
use super::common_columns::{
    Covered, Ranked, collected, key_text, numeric, ranked, seconds, source,
};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::{Numeric, row};
use crate::query::pass::read::Scanned;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::parse::{MAX_ROWS, Samples, Window, buckets, limit, samples};
use crate::query::rows::scan::Scan;
use crate::query::rows::ticks::Coverage;
use crate::query::sums::cells::Cells;
use crate::query::sums::measure::Cube;
use crate::query::value::bucket::{DAY, HOUR};
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::json;
use crate::query::value::number::Ratio;
use crate::query::value::vocabulary as pg;
use std::sync::Arc;

row! {
    /// A row of `timeline`.
    TimelineRow of "timeline": FIELDS {
        bucket_start: Time,
        key: Text,
        source: Text,
        avg_aas: Numeric,
        peak_sessions: Int,
        backend_seconds: Numeric,
        vcpus: Numeric,
        ticks_expected: Int,
        ticks_observed: Int,
        ticks_failed: Int,
        coverage_pct: Numeric,
    }
}

request! {
    /// Average active sessions bucket by bucket
    Timeline of timeline: TimelineRow {
        node,
        since,
        until,
        bucket,
        by,
        n("Maximum number of keys, or all", Some("10")),
        scope,
        by_leader,
        filters,
    }
}

/// A line of the timeline.
pub struct Series {
    /// The key as text.
    pub key: Option<Arc<str>>,
    /// Cells of the key.
    pub cells: Cells,
    /// True if the largest number of sessions in one tick is known.
    pub sessions: bool,
}

/// Default width of a bucket for a window, in µs.
pub fn auto_bucket(window: Window) -> i64 {
    match window.length() {
        length if length <= 6 * HOUR => aas::MINUTE,
        length if length <= 7 * DAY => HOUR,
        _ => DAY,
    }
}

fn answer(asked: &Timeline, run: Run, emit: Emit<TimelineRow>) -> QueryResult<()> {
    let lines = Lines::of(asked, run)?;
    let n = limit(asked.n)?;
    let (scanned, series) = lines.read(run, |all| split_largest(all, n))?;
    check_width(asked.bucket, &scanned)?;
    rows(&scanned, &series, emit)
}

/// The timelines of a report, whole and split, from one scan. The report chooses the bucket itself,
/// so widths are not checked.
pub fn of_report(run: Run, asked: &Timeline) -> QueryResult<[Vec<TimelineRow>; 2]> {
    let lines = Lines::of(asked, run)?;
    let n = limit(asked.n)?;
    let (scanned, whole, split) = lines.scan(run, true, |all| split_largest(all, n))?;
    let rows = |series: &[Series]| collected(|emit| rows(&scanned, series, emit));
    Ok([rows(whole.as_slice())?, rows(&split)?])
}

fn rows(scanned: &Scanned, series: &[Series], emit: Emit<TimelineRow>) -> QueryResult<()> {
    for_each_bucket(scanned, |bucket, covered, interval| {
        let (begin, end) = scanned.buckets.clipped(bucket);
        for one in series {
            let load = one.load(bucket, covered);
            let known = Covered::of(covered, end - begin, interval);
            emit(TimelineRow {
                bucket_start: Some(scanned.buckets.start(bucket)),
                key: one.key.clone(),
                source: source(covered),
                avg_aas: load.avg_aas,
                peak_sessions: load.peak_sessions,
                backend_seconds: load.backend_seconds,
                vcpus: known.vcpus,
                ticks_expected: known.ticks_expected,
                ticks_observed: known.ticks_observed,
                ticks_failed: known.ticks_failed,
                coverage_pct: known.coverage_pct,
            })?;
        }
        Ok(())
    })
}

/// The load of a line in one bucket.
#[derive(Default)]
struct BucketLoad {
    avg_aas: Option<Numeric>,
    peak_sessions: Option<i64>,
    backend_seconds: Option<Numeric>,
}

impl Series {
    fn load(&self, bucket: usize, covered: &Coverage) -> BucketLoad {
        if covered.observed_ms == 0 {
            return BucketLoad::default();
        }
        let cell = self.cells.bucket(bucket as u32);
        let sum = cell.map_or(0, |c| c.sum_ms);
        let most = cell.map_or(0, |c| i64::from(c.sessions));
        BucketLoad {
            avg_aas: numeric(Ratio::new(sum.into(), covered.observed_ms.into())),
            peak_sessions: self.sessions.then_some(most),
            backend_seconds: seconds(sum),
        }
    }
}

/// The lines of a timeline to read.
pub struct Lines<'q> {
    /// The samples that count.
    pub samples: Samples<'q>,
    /// The window.
    pub window: Window,
    /// Width of a bucket in µs.
    pub bucket: Option<i64>,
    /// The dimension that splits the load.
    pub by: Option<&'q str>,
}

impl<'q> Lines<'q> {
    fn of(asked: &'q Timeline, run: Run) -> QueryResult<Lines<'q>> {
        Ok(Lines {
            samples: samples!(asked),
            window: Window::of(run.context, asked.since, asked.until)?,
            bucket: asked.bucket,
            by: asked.by.as_deref(),
        })
    }

    /// Scans the window and makes the lines. `split` chooses which keys have a line of their own
    /// and which share one.
    pub fn read(
        &self,
        run: Run,
        split: impl Fn(Ranked) -> (Ranked, Ranked),
    ) -> QueryResult<(Scanned, Vec<Series>)> {
        let (scanned, whole, split) = self.scan(run, self.by.is_none(), split)?;
        Ok((scanned, whole.into_iter().chain(split).collect()))
    }

    /// Scans the window. Returns the line of all keys if `is_whole`, and the lines of the
    /// dimension.
    fn scan(
        &self,
        run: Run,
        is_whole: bool,
        split: impl Fn(Ranked) -> (Ranked, Ranked),
    ) -> QueryResult<(Scanned, Option<Series>, Vec<Series>)> {
        let width = self.bucket.unwrap_or_else(|| auto_bucket(self.window));
        let buckets = buckets(run.context, self.window, width, MAX_ROWS)?;
        let scan = Scan::new(run, self.samples, self.window)?;
        let find = |by| Dimension::find(run.catalog, "dimension", by);
        let by = self.by.map(find).transpose()?;
        let groups = is_whole.then(Vec::new).into_iter();
        let groups: Vec<Vec<&Dimension>> = groups.chain(by.iter().map(|by| vec![by])).collect();
        let mut scanned = scan.sums(buckets, &groups)?;
        let mut cubes = std::mem::take(&mut scanned.cubes).into_iter();
        let mut cube = || cubes.next().unwrap_or_default();
        let whole = is_whole.then(|| whole(cube()));
        let lines = |by: &Dimension| lines(&scan, by, split(ranked(&scan.register, cube())));
        let split = by.as_ref().map(lines).unwrap_or_default();
        Ok((scanned, whole, split))
    }
}

/// The line of all keys.
fn whole(cube: Cube<Cells>) -> Series {
    let cells = cube.into_cells().next().map_or(Cells::default(), |k| k.1);
    Series {
        key: None,
        cells,
        sessions: true,
    }
}

/// The lines of `own` keys, and one line for the `rest`.
fn lines(scan: &Scan, by: &Dimension, (own, rest): (Ranked, Ranked)) -> Vec<Series> {
    let mut lines: Vec<Series> = own
        .into_iter()
        .map(|(key, cells)| Series {
            key: key_text(&scan.register, &by.name, key),
            cells,
            sessions: true,
        })
        .collect();
    if !rest.is_empty() {
        lines.push(Series {
            key: Some(pg::OTHER.into()),
            cells: Cells::merged(rest.iter().map(|r| &r.1)),
            sessions: false,
        });
    }
    lines
}

/// Refuses a bucket that is shorter than the interval of the samples. Most of its rows would show
/// "not observed", which is wrong.
pub fn check_width(bucket: Option<i64>, scanned: &Scanned) -> QueryResult<()> {
    let Some(width) = bucket else {
        return Ok(());
    };
    let ticks = scanned.observed.buckets().iter();
    let interval = ticks.filter_map(|(_, covered)| covered.last_interval_ms());
    let longest_us = interval.max().unwrap_or(0).saturating_mul(1000);
    if width >= longest_us {
        return Ok(());
    }
    let [given, least] = [width, longest_us].map(json::interval);
    Err(
        QueryError::invalid("bucket is shorter than the sampling interval")
            .detail(format!(
                "The bucket is {given}; the window has samples every {least}."
            ))
            .hint(format!(
                "Use a bucket of at least {least}, or a window without these samples."
            )),
    )
}

/// Gives the `n` largest keys a line of their own.
pub fn split_largest(mut ranked: Ranked, n: usize) -> (Ranked, Ranked) {
    let rest = ranked.split_off(n.min(ranked.len()));
    (ranked, rest)
}

/// Calls `each` with every bucket, its coverage, and the interval of the last tick at or before its
/// end.
pub fn for_each_bucket(
    scanned: &Scanned,
    mut each: impl FnMut(usize, &Coverage, Option<i64>) -> QueryResult<()>,
) -> QueryResult<()> {
    let mut interval = scanned.observed.interval_before.map(|b| b.1);
    for bucket in 0..scanned.buckets.len() {
        let covered = scanned.observed.bucket(bucket as u32);
        interval = covered.last_interval_ms().or(interval);
        each(bucket, &covered, interval)?;
    }
    Ok(())
}
