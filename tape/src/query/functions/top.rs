//! `top`: the largest keys of a dimension, each as a whole or split by another dimension.

use super::aas;
use super::common_columns::{
    Covered, Load, Ranked, collected, key_text, numeric, only_database, query_text, query_texts,
    source,
};
use crate::fast::{FastMap, FastSet};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::pass::plan::Plan;
use crate::query::pass::read::Scanned;
use crate::query::rows::dimension::{Dimension, names};
use crate::query::rows::integers::{Id, Key, NULL};
use crate::query::rows::parse::{MAX_BUCKETS, Samples, Window, buckets, limit, samples};
use crate::query::rows::register::{Ids, first_of};
use crate::query::rows::scan::Scan;
use crate::query::rows::text::Texts;
use crate::query::sums::cells::{Cells, Sum};
use crate::query::sums::choice::{Choice, REST};
use crate::query::sums::measure::Cube;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::number::Ratio;
use crate::query::value::vocabulary as pg;
use std::sync::Arc;

row! {
    /// A row of `top`.
    TopRow of "top": FIELDS {
        key: Text,
        by_key: Text,
        query_text: Text,
        source: Text,
        period_start: Time,
        period_end: Time,
        grain: Interval,
        avg_aas: Numeric,
        peak_aas: Numeric,
        p99_aas: Numeric,
        peak_sessions: Int,
        backend_seconds: Numeric,
        pct: Numeric,
        vcpus: Numeric,
        ticks_expected: Int,
        ticks_observed: Int,
        ticks_failed: Int,
        coverage_pct: Numeric,
    }
}

request! {
    /// The largest keys of a dimension
    Top of top: TopRow {
        node,
        dimension("Dimension to group by: wait_event, query_id, database, …", Some("wait_event")),
        since,
        until,
        n("Maximum number of keys, or all", Some("10")),
        bucket,
        order_by("avg, peak, p99 or sessions", Some("avg")),
        by,
        scope,
        by_leader,
        filters,
    }
}

#[derive(Clone, Copy)]
enum Order {
    Avg,
    Peak,
    P99,
    Sessions,
}

impl Order {
    fn parse(text: Option<&str>) -> QueryResult<Order> {
        match text {
            None | Some("avg") => Ok(Order::Avg),
            Some("peak") => Ok(Order::Peak),
            Some("p99") => Ok(Order::P99),
            Some("sessions") => Ok(Order::Sessions),
            Some(other) => Err(QueryError::invalid(format!("invalid order_by \"{other}\""))
                .hint("Available orders are avg, peak, p99, sessions.")),
        }
    }

    /// Returns the `n` largest rows (ties by key, null last) and the others.
    fn largest(self, rows: Ranked, n: usize, found: &Ranking, ids: &Ids) -> (Ranked, Ranked) {
        let observed = &found.scanned.observed;
        let measure = |cells: &Cells| match self {
            Order::Avg => Ratio::new(cells.sum_ms().into(), 1).unwrap_or(Ratio::ZERO),
            Order::Peak => cells.peak(observed),
            Order::P99 => cells.p99(observed),
            Order::Sessions => Ratio::new(cells.sessions().into(), 1).unwrap_or(Ratio::ZERO),
        };
        let measured = rows.iter().enumerate();
        let measured = measured.map(|(at, (key, cells))| (measure(cells), *key, at));
        let first = first_of(measured, n, |a, b| {
            b.0.cmp(&a.0).then_with(|| ids.compare(a.1, b.1))
        });
        let mut rows: Vec<Option<(Id, Cells)>> = rows.into_iter().map(Some).collect();
        let own = first.into_iter().filter_map(|(_, _, at)| rows[at].take());
        (own.collect(), rows.into_iter().flatten().collect())
    }
}

/// A line of the answer before it is printed.
struct Line {
    key: Id,
    by_key: Id,
    /// True if the key, or the second key, stands for all remaining keys.
    other: bool,
    other_by: bool,
    cells: Cells,
}

struct TopQuestion {
    dimension: Dimension,
    by: Option<Dimension>,
    order: Order,
    n: usize,
}

fn answer(asked: &Top, run: Run, emit: Emit<TopRow>) -> QueryResult<()> {
    let (shape, scan) = TopQuestion::scan(asked, run)?;
    let width = asked.bucket.unwrap_or(aas::MINUTE);
    let buckets = buckets(run.context, scan.window(), width, MAX_BUCKETS)?;
    let mut found = shape.find(&scan, buckets)?;
    shape.rows(&scan, &mut found, emit)
}

/// The rows for a report that shows no figures of buckets: the window is one bucket.
pub fn of_whole(run: Run, asked: &Top) -> QueryResult<Vec<TopRow>> {
    let (shape, scan) = TopQuestion::scan(asked, run)?;
    let mut found = shape.find(&scan, scan.whole())?;
    collected(|emit| shape.rows(&scan, &mut found, emit))
}

/// The rows of a report for each of these dimensions. One scan answers all dimensions that totals
/// cannot rank and that have few keys.
pub fn of_report<const N: usize>(
    run: Run,
    samples: Samples,
    window: Window,
    n: Option<i64>,
    names: [&str; N],
) -> QueryResult<[Vec<TopRow>; N]> {
    let scan = Scan::new(run, samples, window)?;
    let buckets = buckets(run.context, window, aas::MINUTE, MAX_BUCKETS)?;
    let mut rows = [const { Vec::new() }; N];
    let mut together = Vec::new();
    for (name, rows) in names.iter().zip(&mut rows) {
        let shape = TopQuestion {
            dimension: Dimension::find(run.catalog, "dimension", name)?,
            by: None,
            order: Order::Avg,
            n: limit(n)?,
        };
        match shape.rank_alone(&scan, &buckets)? {
            Some(mut found) => *rows = collected(|emit| shape.rows(&scan, &mut found, emit))?,
            None => together.push((shape, rows)),
        }
    }
    if together.is_empty() {
        return Ok(rows);
    }
    let groups = together.iter().map(|(shape, _)| vec![&shape.dimension]);
    let groups: Vec<_> = groups.collect();
    let mut found = Ranking::of(scan.sums(buckets, &groups)?);
    let cubes = std::mem::take(&mut found.scanned.cubes);
    for ((shape, rows), cube) in together.iter_mut().zip(cubes) {
        found.scanned.cubes = vec![cube];
        **rows = collected(|emit| shape.rows(&scan, &mut found, emit))?;
    }
    Ok(rows)
}

impl TopQuestion {
    fn of(asked: &Top, run: Run) -> QueryResult<TopQuestion> {
        let name = asked.dimension.as_deref().ok_or_else(|| {
            QueryError::invalid("dimension must be given")
                .hint(format!("Available are {}.", names(run.catalog).join(", ")))
        })?;
        let find = |name| Dimension::find(run.catalog, "dimension", name);
        Ok(TopQuestion {
            dimension: find(name)?,
            by: asked.by.as_deref().map(find).transpose()?,
            order: Order::parse(asked.order_by.as_deref())?,
            n: limit(asked.n)?,
        })
    }

    /// The shape of a question and the samples that it needs.
    fn scan<'a>(asked: &Top, run: Run<'a>) -> QueryResult<(TopQuestion, Scan<'a>)> {
        let shape = TopQuestion::of(asked, run)?;
        let window = Window::of(run.context, asked.since, asked.until)?;
        let scan = Scan::new(run, samples!(asked), window)?;
        Ok((shape, scan))
    }

    /// True if the answer needs only the largest keys by their sums.
    fn is_by_sum(&self) -> bool {
        matches!(self.order, Order::Avg) && self.n != usize::MAX
    }

    fn find(&self, scan: &Scan, buckets: Buckets) -> QueryResult<Ranking> {
        match self.rank_alone(scan, &buckets)? {
            Some(found) => Ok(found),
            None => all(scan, self, buckets, self.is_by_sum()),
        }
    }

    /// Ranks the keys in a scan for this dimension alone. It does so if totals can rank them, or if
    /// a first pass must choose the largest of many keys. `None` if one pass over the samples gives
    /// all keys their cells.
    fn rank_alone(&self, scan: &Scan, buckets: &Buckets) -> QueryResult<Option<Ranking>> {
        if !self.is_by_sum() {
            return Ok(None);
        }
        let ranked = [vec![], vec![&self.dimension]];
        let plan = match &self.by {
            None => scan.plan_largest(buckets, &ranked),
            Some(_) => None,
        };
        match plan {
            Some(plan) => largest(scan, self, plan).map(Some),
            None if scan.may_have_many(&self.dimension) => {
                all(scan, self, buckets.clone(), true).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Emits the rows and takes everything out of `found`.
    fn rows(&self, scan: &Scan, found: &mut Ranking, emit: Emit<TopRow>) -> QueryResult<()> {
        let lines = lines(self, found, &scan.register.ids());
        let texts = texts(scan, self, &lines)?;
        rows(scan, self, &found.scanned, lines, &texts, emit)
    }
}

/// The cells of the ranked keys, and how to find the load of the others.
struct Ranking {
    scanned: Scanned,
    /// Keys with parts that were not chosen.
    left: FastSet<Id>,
    /// If only the largest keys have cells: the cells of all keys together.
    whole: Option<Cells>,
}

impl Ranking {
    fn of(scanned: Scanned) -> Ranking {
        Ranking {
            scanned,
            left: FastSet::default(),
            whole: None,
        }
    }
}

/// Every key, and with `by` its parts: one for each key of `by`. With `by_avg` only the largest of
/// them.
fn all(scan: &Scan, shape: &TopQuestion, buckets: Buckets, by_avg: bool) -> QueryResult<Ranking> {
    let mut groups = vec![vec![&shape.dimension]];
    groups.extend(shape.by.as_ref().map(|by| vec![&shape.dimension, by]));
    let mut left = FastSet::default();
    let ids = || scan.register.ids();
    let plan = match by_avg {
        true => scan.plan_chosen(buckets, &groups),
        false => scan.plan(buckets, &groups),
    };
    let scanned = scan.read(plan, |sizes| match shape.by {
        Some(_) => choose_parts(shape.n, sizes, &groups, &mut left, &ids()),
        None => {
            let keys = largest_of(shape.n, sizes.sums(), &ids());
            let keys = keys.into_iter().map(|(key, _)| key);
            vec![Choice::of(&groups[0], keys).with_rest()]
        }
    })?;
    Ok(Ranking {
        left,
        ..Ranking::of(scanned)
    })
}

/// The largest keys, and all keys together.
fn largest(scan: &Scan, shape: &TopQuestion, plan: Plan) -> QueryResult<Ranking> {
    let mut is_rest = false;
    let mut scanned = scan.read(plan, |sizes| {
        is_rest = sizes.sums().nth(shape.n).is_some();
        let keys = largest_of(shape.n, sizes.sums(), &scan.register.ids());
        let keys = keys.into_iter().map(|(key, _)| key);
        let all = Choice::of(&[], [(NULL, NULL)]);
        vec![all, Choice::of(&[&shape.dimension], keys)]
    })?;
    let whole = scanned.cubes.remove(0).into_cells().next();
    let whole = whole.map_or(Cells::default(), |key| key.1);
    Ok(Ranking {
        whole: is_rest.then_some(whole),
        ..Ranking::of(scanned)
    })
}

/// A key with the sum of its samples' weights in ms.
type Weighed = (Key, i64);

/// The `n` largest keys; ties by the texts of the keys.
fn largest_of(n: usize, sizes: impl IntoIterator<Item = Weighed>, ids: &Ids) -> Vec<Weighed> {
    first_of(sizes.into_iter(), n, |(a, a_ms), (b, b_ms)| {
        let by_text = || ids.compare(a.0, b.0).then_with(|| ids.compare(a.1, b.1));
        b_ms.cmp(a_ms).then_with(by_text)
    })
}

/// Chooses the `n` largest parts of the `n` largest keys. `left` gets the keys that have more
/// parts.
fn choose_parts(
    n: usize,
    sizes: &Cube<Sum>,
    groups: &[Vec<&Dimension>],
    left: &mut FastSet<Id>,
    ids: &Ids,
) -> Vec<Choice> {
    let mut keys: FastMap<Id, i64> = FastMap::default();
    for ((key, _), sum_ms) in sizes.sums() {
        *keys.entry(key).or_default() += sum_ms;
    }
    let keys = keys.into_iter().map(|(key, sum_ms)| ((key, NULL), sum_ms));
    let keys = largest_of(n, keys, ids);
    let mut parts: FastMap<Id, Vec<Weighed>> =
        keys.iter().map(|(key, _)| (key.0, Vec::new())).collect();
    for part in sizes.sums() {
        if let Some(parts) = parts.get_mut(&part.0.0) {
            parts.push(part);
        }
    }
    let mut chosen = Vec::new();
    for (key, parts) in parts {
        if parts.len() > n {
            left.insert(key);
        }
        chosen.extend(largest_of(n, parts, ids).into_iter().map(|(part, _)| part));
    }
    let keys = keys.into_iter().map(|(key, _)| key);
    let keys = Choice::of(&groups[0], keys).with_rest();
    vec![keys, Choice::of(&groups[1], chosen)]
}

/// Ranks the keys and keeps the first `n`.
fn lines(shape: &TopQuestion, found: &mut Ranking, ids: &Ids) -> Vec<Line> {
    let mut cubes = std::mem::take(&mut found.scanned.cubes).into_iter();
    let (mut keys, mut rest): (Ranked, Ranked) = (Vec::new(), Vec::new());
    for (key, cells) in cubes.next().unwrap_or_default().into_cells() {
        match key {
            REST => rest.push((NULL, cells)),
            (key, _) => keys.push((key, cells)),
        }
    }
    let (whole, left) = shape.order.largest(keys, shape.n, found, ids);
    rest.extend(left);
    let rest = match &found.whole {
        Some(all) => {
            let rest = all.without(whole.iter().map(|key| &key.1));
            Some(rest.with_finished(std::mem::take(&mut found.scanned.rest)))
        }
        None => merged(&rest),
    };
    let mut lines = Vec::new();
    match cubes.next() {
        None => lines.extend(whole.into_iter().map(|(key, cells)| Line {
            key,
            by_key: NULL,
            other: false,
            other_by: false,
            cells,
        })),
        Some(cube) => {
            let mut parts: FastMap<Id, Ranked> = FastMap::default();
            for ((key, by), cells) in cube.into_cells() {
                parts.entry(key).or_default().push((by, cells));
            }
            for (key, cells) in whole {
                let parts = parts.remove(&key).unwrap_or_default();
                split(shape, found, (key, cells), parts, ids, &mut lines);
            }
        }
    }
    if let Some(cells) = rest {
        lines.push(Line {
            key: NULL,
            by_key: NULL,
            other: true,
            other_by: shape.by.is_some(),
            cells,
        });
    }
    lines
}

/// The cells of the remaining keys, if there are any.
fn merged(rest: &Ranked) -> Option<Cells> {
    (!rest.is_empty()).then(|| Cells::merged(rest.iter().map(|r| &r.1)))
}

/// Adds the largest parts of a key and the rest of it. The rest may contain parts that are not in
/// `parts`.
fn split(
    shape: &TopQuestion,
    found: &Ranking,
    (key, whole): (Id, Cells),
    parts: Ranked,
    ids: &Ids,
    lines: &mut Vec<Line>,
) {
    let (parts, rest) = shape.order.largest(parts, shape.n, found, ids);
    let rest = match found.left.contains(&key) {
        true => Some(whole.without(parts.iter().map(|part| &part.1))),
        false => merged(&rest),
    };
    lines.extend(parts.into_iter().map(|(by_key, cells)| Line {
        key,
        by_key,
        other: false,
        other_by: false,
        cells,
    }));
    if let Some(cells) = rest {
        lines.push(Line {
            key,
            by_key: NULL,
            other: false,
            other_by: true,
            cells,
        });
    }
}

/// Query texts of the lines, if a key is a query id.
fn texts(scan: &Scan, shape: &TopQuestion, lines: &[Line]) -> QueryResult<Texts> {
    let by_is_query = shape.by.as_ref().is_some_and(|by| by.name == pg::QUERY_ID);
    if shape.dimension.name == pg::QUERY_ID {
        query_texts(scan, lines.iter().map(|line| line.key))
    } else if by_is_query {
        query_texts(scan, lines.iter().map(|line| line.by_key))
    } else {
        Ok(Texts::default())
    }
}

fn rows(
    scan: &Scan,
    shape: &TopQuestion,
    scanned: &Scanned,
    lines: Vec<Line>,
    texts: &Texts,
    emit: Emit<TopRow>,
) -> QueryResult<()> {
    let (total, window) = (scanned.observed.total(), scan.window());
    let all_ms: i64 = lines.iter().map(|line| line.cells.sum_ms()).sum();
    for line in lines {
        scan.check_cancel()?;
        let load = Load::of(&line.cells, scanned, &total, !line.other && !line.other_by);
        let covered = Covered::of_window(scanned, &total, window);
        let sum = 100 * i128::from(line.cells.sum_ms());
        let by = shape.by.as_ref();
        emit(TopRow {
            key: shown(scan, Some(&shape.dimension), line.key, line.other),
            by_key: shown(scan, by, line.by_key, line.other_by),
            query_text: text(scan, shape, &line, texts),
            source: source(&total),
            period_start: Some(window.since),
            period_end: Some(window.until),
            grain: Some(scanned.buckets.width()),
            avg_aas: load.avg_aas,
            peak_aas: load.peak_aas,
            p99_aas: load.p99_aas,
            peak_sessions: load.peak_sessions,
            backend_seconds: load.backend_seconds,
            pct: numeric(Ratio::new(sum, all_ms.into())),
            vcpus: covered.vcpus,
            ticks_expected: covered.ticks_expected,
            ticks_observed: covered.ticks_observed,
            ticks_failed: covered.ticks_failed,
            coverage_pct: covered.coverage_pct,
        })?;
    }
    Ok(())
}

/// A line's key as text.
fn shown(scan: &Scan, dimension: Option<&Dimension>, key: Id, other: bool) -> Option<Arc<str>> {
    match other {
        true => Some(pg::OTHER.into()),
        false => key_text(&scan.register, &dimension?.name, key),
    }
}

/// The text of a line's query.
fn text(scan: &Scan, shape: &TopQuestion, line: &Line, texts: &Texts) -> Option<Arc<str>> {
    let only = only_database(scan);
    match &shape.by {
        _ if shape.dimension.name == pg::QUERY_ID => {
            let by_database = shape.by.as_ref().is_some_and(|by| by.name == "database");
            let same = scan.register.text(line.by_key).filter(|_| by_database);
            query_text(scan, texts, line.key, same.as_deref().or(only))
        }
        Some(by) if by.name == pg::QUERY_ID => query_text(scan, texts, line.by_key, only),
        _ => None,
    }
}
