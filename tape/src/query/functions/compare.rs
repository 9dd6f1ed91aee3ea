//! `compare`: two windows, as a whole or by the keys of a dimension. The first window is the
//! earlier one, so a positive delta means more load now.

use super::aas;
use super::common_columns::{
    Load, collected, key_text, numeric, only_database, query_text, query_texts, source,
};
use crate::fast::FastMap;
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::pass::read::Scanned;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::{Id, NULL};
use crate::query::rows::parse::{MAX_BUCKETS, Samples, Window, buckets, limit, samples};
use crate::query::rows::register::Register;
use crate::query::rows::scan::Scan;
use crate::query::rows::text::Texts;
use crate::query::rows::ticks::Coverage;
use crate::query::sums::cells::Cells;
use crate::query::sums::measure::Cube;
use crate::query::value::bucket::{Buckets, DAY};
use crate::query::value::error::QueryResult;
use crate::query::value::number::Ratio;
use crate::query::value::vocabulary as pg;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

row! {
    /// A row of `compare`.
    CompareRow of "compare": FIELDS {
        key: Text,
        query_text: Text,
        change: Text,
        avg_delta: Numeric,
        avg_aas_1: Numeric,
        avg_aas_2: Numeric,
        peak_aas_1: Numeric,
        peak_aas_2: Numeric,
        p99_aas_1: Numeric,
        p99_aas_2: Numeric,
        peak_sessions_1: Int,
        peak_sessions_2: Int,
        backend_seconds_1: Numeric,
        backend_seconds_2: Numeric,
        pct_1: Numeric,
        pct_2: Numeric,
        vcpus_1: Numeric,
        vcpus_2: Numeric,
        source_1: Text,
        source_2: Text,
        grain: Interval,
        period_start_1: Time,
        period_end_1: Time,
        period_start_2: Time,
        period_end_2: Time,
        coverage_pct_1: Numeric,
        coverage_pct_2: Numeric,
        note: Text,
    }
}

request! {
    /// Two windows side by side: what grew, shrank, is new or gone
    Compare of compare: CompareRow {
        node,
        dimension("Dimension to compare by: wait_event, query_id, database, … [default: the whole load]", None),
        since_1,
        until_1,
        since_2,
        until_2,
        n("Maximum number of keys, or all", Some("10")),
        bucket,
        scope,
        by_leader,
        filters,
    }
}

/// A note is shown if coverage differs by at least this many ten-thousandths of a percent: 1
/// percentage point.
const NOTED: i128 = 10_000;

fn answer(asked: &Compare, run: Run, emit: Emit<CompareRow>) -> QueryResult<()> {
    let find = |name| Dimension::find(run.catalog, "dimension", name);
    let dimension = asked.dimension.as_deref().map(find).transpose()?;
    let n = limit(asked.n)?;
    let windows = windows(asked, run)?;
    let width = asked.bucket.unwrap_or(aas::MINUTE);
    let by_width = |scan: &Scan| buckets(run.context, scan.window(), width, MAX_BUCKETS);
    let dimensions: Vec<&Dimension> = dimension.iter().collect();
    let mut sides = Sides::read(run, samples!(asked), windows, &[dimensions], by_width)?;
    sides.rows(dimension.as_ref(), n, emit)
}

/// The rows of a report for each of these dimensions; each window is scanned once. The report shows
/// no figures of buckets, so each window is one bucket, which totals by group can answer.
pub fn of_report<const N: usize>(
    run: Run,
    samples: Samples,
    windows: [Window; 2],
    n: Option<i64>,
    names: [&str; N],
) -> QueryResult<[Vec<CompareRow>; N]> {
    let find = |name: &&str| Dimension::find(run.catalog, "dimension", name);
    let dimensions: Vec<Dimension> = names.iter().map(find).collect::<QueryResult<_>>()?;
    let n = limit(n)?;
    let groups: Vec<Vec<&Dimension>> = dimensions.iter().map(|one| vec![one]).collect();
    let mut sides = Sides::read(run, samples, windows, &groups, |scan| Ok(scan.whole()))?;
    let mut rows = [const { Vec::new() }; N];
    for (dimension, rows) in dimensions.iter().zip(&mut rows) {
        *rows = collected(|emit| sides.rows(Some(dimension), n, emit))?;
    }
    Ok(rows)
}

/// The two windows. The second is chosen as in other functions. The first has the same length one
/// day earlier, unless its own bounds are given.
fn windows(asked: &Compare, run: Run) -> QueryResult<[Window; 2]> {
    let second = Window::of(run.context, asked.since_2, asked.until_2)?;
    let length = second.length();
    let (since, until) = match (asked.since_1, asked.until_1) {
        (None, None) => (second.since - DAY, second.until - DAY),
        (Some(since), None) => (since, since.saturating_add(length)),
        (None, Some(until)) => (until.saturating_sub(length), until),
        (Some(since), Some(until)) => (since, until),
    };
    Ok([Window::of(run.context, Some(since), Some(until))?, second])
}

/// The two windows, and the ids of their keys.
struct Sides<'a> {
    sides: [Side<'a>; 2],
    register: Register,
}

/// One of the windows.
struct Side<'a> {
    scan: Scan<'a>,
    scanned: Scanned,
    total: Coverage,
    /// Cells of the dimensions that are not printed yet, one cube each.
    cubes: std::vec::IntoIter<Cube<Cells>>,
}

/// The keys of a dimension in one window.
struct Compared {
    keys: FastMap<Id, Cells>,
    all_ms: i64,
}

impl<'a> Sides<'a> {
    fn read(
        run: Run<'a>,
        samples: Samples,
        windows: [Window; 2],
        groups: &[Vec<&Dimension>],
        buckets: impl Fn(&Scan) -> QueryResult<Buckets>,
    ) -> QueryResult<Sides<'a>> {
        let register = Register::default();
        let read = |window| -> QueryResult<Side> {
            let scan = Scan::new(run, samples, window)?.registered(&register);
            let mut scanned = scan.sums(buckets(&scan)?, groups)?;
            Ok(Side {
                total: scanned.observed.total(),
                cubes: std::mem::take(&mut scanned.cubes).into_iter(),
                scan,
                scanned,
            })
        };
        let [first, second] = windows;
        let sides = [read(first)?, read(second)?];
        Ok(Sides { sides, register })
    }

    /// Emits the rows for the next dimension.
    fn rows(
        &mut self,
        dimension: Option<&Dimension>,
        n: usize,
        emit: Emit<CompareRow>,
    ) -> QueryResult<()> {
        let mut found = self.sides.each_mut().map(Side::next);
        if dimension.is_none() {
            found[1].keys.entry(NULL).or_default();
        }
        let all_ms = found.each_ref().map(|found| found.all_ms);
        let keys = found.map(|found| found.keys);
        let lines = lines(&self.sides, keys, &self.register, n);
        let scan = &self.sides[1].scan;
        let texts = match dimension {
            Some(d) if d.name == pg::QUERY_ID => {
                query_texts(scan, lines.iter().map(|line| line.key))?
            }
            _ => Texts::default(),
        };
        let note: Option<Arc<str>> = coverage_note(&self.sides).map(Arc::from);
        for line in lines {
            let key = match (dimension, line.other) {
                (None, _) => None,
                (_, true) => Some(pg::OTHER.into()),
                (Some(dimension), _) => key_text(&self.register, &dimension.name, line.key),
            };
            emit(CompareRow {
                key,
                query_text: query_text(scan, &texts, line.key, only_database(scan)),
                note: note.clone(),
                ..row(&self.sides, &line, all_ms)
            })?;
        }
        Ok(())
    }
}

impl Side<'_> {
    /// The keys of the next dimension.
    fn next(&mut self) -> Compared {
        let cube = self.cubes.next().unwrap_or_default().into_cells();
        let keys: FastMap<Id, Cells> = cube.map(|(key, cells)| (key.0, cells)).collect();
        Compared {
            all_ms: keys.values().map(Cells::sum_ms).sum(),
            keys,
        }
    }

    /// AAS for a sum of weights; zero if nothing was observed.
    fn load(&self, sum_ms: i64) -> Ratio {
        let observed = self.total.observed_ms;
        Ratio::new(sum_ms.into(), observed.into()).unwrap_or(Ratio::ZERO)
    }
}

struct Line {
    key: Id,
    other: bool,
    cells: [Cells; 2],
}

/// Ranks by the size of the change, ties by key, and keeps the first `n`.
fn lines(
    sides: &[Side; 2],
    mut found: [FastMap<Id, Cells>; 2],
    register: &Register,
    n: usize,
) -> Vec<Line> {
    let mut keys: Vec<Id> = found.iter().flat_map(|f| f.keys().copied()).collect();
    let ids = register.ids();
    keys.sort_unstable_by(|a, b| ids.compare(*a, *b));
    keys.dedup();
    let mut lines: Vec<(Ratio, Line)> = Vec::new();
    for key in keys {
        let cells = [0, 1].map(|i| found[i].remove(&key).unwrap_or_default());
        let loads = [0, 1].map(|i| sides[i].load(cells[i].sum_ms()));
        let other = false;
        lines.push((loads[1].minus(loads[0]).abs(), Line { key, other, cells }));
    }
    lines.sort_by_key(|(change, _)| Reverse(*change));
    let mut lines: Vec<Line> = lines.into_iter().map(|(_, line)| line).collect();
    let rest = lines.split_off(n.min(lines.len()));
    if !rest.is_empty() {
        lines.push(Line {
            key: NULL,
            other: true,
            cells: [0, 1].map(|i| Cells::merged(rest.iter().map(|line| &line.cells[i]))),
        });
    }
    lines
}

/// `new`, `gone`, `up`, `down` or `same`.
fn change(cells: &[Cells; 2], delta: Ratio) -> &'static str {
    match (
        cells[0].sum_ms(),
        cells[1].sum_ms(),
        delta.cmp(&Ratio::ZERO),
    ) {
        (0, 1.., _) => "new",
        (1.., 0, _) => "gone",
        (_, _, Ordering::Greater) => "up",
        (_, _, Ordering::Less) => "down",
        _ => "same",
    }
}

/// The reason why the two windows are hard to compare, if there is one.
fn coverage_note(sides: &[Side; 2]) -> Option<String> {
    let shown = |i: usize| {
        let percent = sides[i].total.percent(sides[i].scan.window().length());
        percent.map_or(0, Ratio::round4)
    };
    let seen = [0, 1].map(|i| sides[i].total.observed_ms > 0);
    let [a, b] = [shown(0), shown(1)];
    match seen {
        [false, false] => Some("neither window was observed".to_string()),
        [false, true] => Some("window 1 was not observed".to_string()),
        [true, false] => Some("window 2 was not observed".to_string()),
        _ if (a - b).abs() < NOTED => None,
        _ => Some(format!(
            "unequal coverage: window 1 was observed for {}, window 2 for {}",
            percent_text(a),
            percent_text(b)
        )),
    }
}

/// Writes ten-thousandths of a percent: `12.5000 %`.
fn percent_text(n: i128) -> String {
    format!("{}.{:04} %", n / 10_000, n % 10_000)
}

/// The figures of a line.
fn row(sides: &[Side; 2], line: &Line, all_ms: [i64; 2]) -> CompareRow {
    let seen = sides.iter().all(|side| side.total.observed_ms > 0);
    let loads = [0, 1].map(|i| sides[i].load(line.cells[i].sum_ms()));
    let delta = Some(loads[1].minus(loads[0])).filter(|_| seen);
    let [load_1, load_2] = [0, 1].map(|i| {
        let side = &sides[i];
        Load::of(&line.cells[i], &side.scanned, &side.total, !line.other)
    });
    let [pct_1, pct_2] = [0, 1].map(|i| {
        let sum = 100 * i128::from(line.cells[i].sum_ms());
        numeric(Ratio::new(sum, all_ms[i].into()))
    });
    let [window_1, window_2] = sides.each_ref().map(|side| side.scan.window());
    let [coverage_pct_1, coverage_pct_2] = sides
        .each_ref()
        .map(|side| numeric(side.total.percent(side.scan.window().length())));
    CompareRow {
        key: None,
        query_text: None,
        change: delta.map(|delta| change(&line.cells, delta).into()),
        avg_delta: numeric(delta),
        avg_aas_1: load_1.avg_aas,
        avg_aas_2: load_2.avg_aas,
        peak_aas_1: load_1.peak_aas,
        peak_aas_2: load_2.peak_aas,
        p99_aas_1: load_1.p99_aas,
        p99_aas_2: load_2.p99_aas,
        peak_sessions_1: load_1.peak_sessions,
        peak_sessions_2: load_2.peak_sessions,
        backend_seconds_1: load_1.backend_seconds,
        backend_seconds_2: load_2.backend_seconds,
        pct_1,
        pct_2,
        vcpus_1: numeric(sides[0].total.vcpus()),
        vcpus_2: numeric(sides[1].total.vcpus()),
        source_1: source(&sides[0].total),
        source_2: source(&sides[1].total),
        grain: Some(sides[1].scanned.buckets.width()),
        period_start_1: Some(window_1.since),
        period_end_1: Some(window_1.until),
        period_start_2: Some(window_2.since),
        period_end_2: Some(window_2.until),
        coverage_pct_1,
        coverage_pct_2,
        note: None,
    }
}
