//! `compare`: two windows, whole or by the keys of a dimension. The first is
//! the one before, so a delta above zero is more load than then.

use super::common_columns::{
    key_text, measures, numeric, only_database, query_text, query_texts, source,
};
use super::{Call, aas};
use crate::fast::FastMap;
use crate::query::bucket::{Buckets, DAY};
use crate::query::cells::Cells;
use crate::query::dimension::Dimension;
use crate::query::error::QueryResult;
use crate::query::measure::Cube;
use crate::query::number::Ratio;
use crate::query::parse::{MAX_BUCKETS, Window, buckets, limit};
use crate::query::read::Scanned;
use crate::query::register::{Id, NULL, Register};
use crate::query::request::request;
use crate::query::row::{Taken, row};
use crate::query::scan::Scan;
use crate::query::spec::{Sink, Spec, Value};
use crate::query::text::Texts;
use crate::query::ticks::Coverage;
use crate::query::vocabulary as pg;
use std::cmp::{Ordering, Reverse};

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
        dimension("What to compare by: wait_event, query_id, database, … [default: the whole load]", None),
        since_1,
        until_1,
        since_2,
        until_2,
        n("Most keys, or all", Some("10")),
        bucket,
        scope,
        by_leader,
        filters,
    }
}

/// Percentage points of coverage from which on a difference is said.
const NOTED: i128 = 10_000;

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let spec = call.spec;
    let find = |name| Dimension::find(spec.catalog, "dimension", name);
    let dimension = spec.dimension.as_deref().map(find).transpose()?;
    let n = limit(spec.n)?;
    let windows = windows(spec)?;
    let width = spec.bucket_us.unwrap_or(aas::MINUTE);
    let by_width = |scan: &Scan| buckets(spec, scan.window(), width, MAX_BUCKETS);
    let dimensions: Vec<&Dimension> = dimension.iter().collect();
    let mut sides = Sides::read(call, windows, &[dimensions], by_width)?;
    sides.print(dimension.as_ref(), n, sink)
}

/// The rows of a report by each of some dimensions, each window from one scan. It
/// shows no figure of buckets, so a window is one, which totals of groups answer.
pub fn of_report<const N: usize>(
    call: &Call,
    windows: [Window; 2],
    names: [&str; N],
) -> QueryResult<[Vec<CompareRow>; N]> {
    let find = |name: &&str| Dimension::find(call.spec.catalog, "dimension", name);
    let dimensions: Vec<Dimension> = names.iter().map(find).collect::<QueryResult<_>>()?;
    let n = limit(call.spec.n)?;
    let groups: Vec<Vec<&Dimension>> = dimensions.iter().map(|one| vec![one]).collect();
    let mut sides = Sides::read(call, windows, &groups, |scan| Ok(scan.whole()))?;
    let mut rows = [const { Vec::new() }; N];
    for (dimension, rows) in dimensions.iter().zip(&mut rows) {
        *rows = Taken::rows_of(|sink| sides.print(Some(dimension), n, sink))?;
    }
    Ok(rows)
}

/// The two windows: the second as that of other readers; the first as long,
/// a day earlier, or where its own bounds say.
pub fn windows(spec: &Spec) -> QueryResult<[Window; 2]> {
    let second = Window::of(spec)?;
    let length = second.length();
    let (since, until) = match spec.before {
        (None, None) => (second.since - DAY, second.until - DAY),
        (Some(since), None) => (since, since.saturating_add(length)),
        (None, Some(until)) => (until.saturating_sub(length), until),
        (Some(since), Some(until)) => (since, until),
    };
    let first = Spec {
        since_us: Some(since),
        until_us: Some(until),
        ..spec.clone()
    };
    Ok([Window::of(&first)?, second])
}

/// The windows, and the keys of their answers.
struct Sides<'a> {
    sides: [Side<'a>; 2],
    register: Register,
}

/// One of the windows.
struct Side<'a> {
    scan: Scan<'a>,
    scanned: Scanned,
    total: Coverage,
    /// Sums by group that are not printed yet.
    cubes: std::vec::IntoIter<Cube<Cells>>,
}

/// The keys of a dimension in one of the windows.
struct Compared {
    keys: FastMap<Id, Cells>,
    all_ms: i64,
}

impl<'a> Sides<'a> {
    fn read(
        call: &Call<'a>,
        windows: [Window; 2],
        groups: &[Vec<&Dimension>],
        buckets: impl Fn(&Scan) -> QueryResult<Buckets>,
    ) -> QueryResult<Sides<'a>> {
        let register = Register::default();
        let read = |window| -> QueryResult<Side> {
            let mut scan = Scan::new(call.spec, call.store, window)?;
            scan.register = register.clone();
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

    /// Prints the keys of the next group.
    fn print(
        &mut self,
        dimension: Option<&Dimension>,
        n: usize,
        sink: &mut dyn Sink,
    ) -> QueryResult<()> {
        let mut found = self.sides.each_mut().map(Side::next);
        if dimension.is_none() {
            found[1].keys.entry(NULL).or_default();
        }
        let all_ms = found.each_ref().map(|found| found.all_ms);
        let lines = lines(
            &self.sides,
            found.map(|found| found.keys),
            &self.register,
            n,
        );
        let scan = &self.sides[1].scan;
        let texts = match dimension {
            Some(d) if d.name == pg::QUERY_ID => {
                query_texts(scan, lines.iter().map(|line| line.key))?
            }
            _ => Texts::default(),
        };
        let note = note(&self.sides);
        sink.begin(FIELDS)?;
        for line in lines {
            let key = match (dimension, line.other) {
                (None, _) => Value::Null,
                (_, true) => Value::Text(pg::OTHER.into()),
                (Some(dimension), _) => key_text(&self.register, &dimension.name, line.key),
            };
            let text = query_text(scan, &texts, line.key, only_database(scan));
            sink.row(row(
                &self.sides,
                &line,
                all_ms,
                [key, text],
                note.as_deref(),
            ))?;
        }
        Ok(())
    }
}

impl Side<'_> {
    /// The keys of the next group.
    fn next(&mut self) -> Compared {
        let cube = self.cubes.next().unwrap_or_default().into_cells();
        let keys: FastMap<Id, Cells> = cube.map(|(key, cells)| (key.0, cells)).collect();
        Compared {
            all_ms: keys.values().map(Cells::sum_ms).sum(),
            keys,
        }
    }

    /// AAS of some weight; what was not observed counts as nothing.
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

/// Ranks by the size of the change, ties by key, and cuts.
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

/// Why the two cannot be compared without care.
fn note(sides: &[Side; 2]) -> Option<String> {
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

/// `12.5000 %`
fn percent_text(n: i128) -> String {
    format!("{}.{:04} %", n / 10_000, n % 10_000)
}

fn row(
    sides: &[Side; 2],
    line: &Line,
    all_ms: [i64; 2],
    names: [Value; 2],
    note: Option<&str>,
) -> Vec<Value> {
    let seen = sides.iter().all(|side| side.total.observed_ms > 0);
    let loads = [0, 1].map(|i| sides[i].load(line.cells[i].sum_ms()));
    let delta = Some(loads[1].minus(loads[0])).filter(|_| seen);
    let mut row = names.to_vec();
    row.push(Value::text(delta.map(|delta| change(&line.cells, delta))));
    row.push(numeric(delta));
    let measures = [0, 1].map(|i| {
        measures(
            &line.cells[i],
            &sides[i].scanned,
            &sides[i].total,
            !line.other,
        )
    });
    let [first, second] = measures;
    let both = first.into_iter().zip(second);
    row.extend(both.flat_map(|(first, second)| [first, second]));
    for (all_ms, cells) in all_ms.into_iter().zip(&line.cells) {
        let sum = 100 * i128::from(cells.sum_ms());
        row.push(numeric(Ratio::new(sum, all_ms.into())));
    }
    row.extend(sides.iter().map(|side| numeric(side.total.vcpus())));
    row.extend(sides.iter().map(|side| source(&side.total)));
    row.push(Value::Interval(sides[1].scanned.buckets.width()));
    for side in sides {
        row.push(Value::Time(side.scan.window().since));
        row.push(Value::Time(side.scan.window().until));
    }
    for side in sides {
        row.push(numeric(side.total.percent(side.scan.window().length())));
    }
    row.push(Value::text(note));
    row
}
