//! `top`: the largest keys of a dimension, each whole or split by another.

use super::answer::{
    compare_keys, key_text, measures, numeric, only_database, query_text, query_texts, source,
    window_coverage,
};
use super::{Argument, Call, Function, aas};
use crate::query::bucket::Buckets;
use crate::query::cells::Cells;
use crate::query::dimension::{Dimension, names};
use crate::query::error::{QueryError, QueryResult};
use crate::query::number::Ratio;
use crate::query::plan::{MAX_BUCKETS, Window, buckets, limit};
use crate::query::scan::{Key, Scan, Scanned};
use crate::query::spec::{Field, Sink, Type, Value};
use crate::query::text::Texts;
use crate::query::vocabulary as pg;
use std::cmp::{Ordering, Reverse};
use std::collections::{HashMap, HashSet};

const FIELDS: &[Field] = &[
    ("key", Type::Text),
    ("by_key", Type::Text),
    ("query_text", Type::Text),
    ("source", Type::Text),
    ("period_start", Type::Time),
    ("period_end", Type::Time),
    ("grain", Type::Interval),
    ("avg_aas", Type::Numeric),
    ("peak_aas", Type::Numeric),
    ("p99_aas", Type::Numeric),
    ("peak_sessions", Type::Int),
    ("backend_seconds", Type::Numeric),
    ("pct", Type::Numeric),
    ("vcpus", Type::Numeric),
    ("ticks_expected", Type::Int),
    ("ticks_observed", Type::Int),
    ("ticks_failed", Type::Int),
    ("coverage_pct", Type::Numeric),
];

pub const FUNCTION: Function = Function {
    name: "top",
    about: "The largest keys of a dimension",
    arguments: &[
        Argument::Dimension,
        Argument::Since,
        Argument::Until,
        Argument::N,
        Argument::Bucket,
        Argument::OrderBy,
        Argument::By,
        Argument::Filters,
        Argument::Zone,
    ],
    fields: FIELDS,
    run,
};

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

    /// Largest first, ties by key, null last.
    fn sort(self, rows: &mut Vec<(Option<String>, Cells)>, scanned: &Scanned) {
        let observed = &scanned.observed;
        let measure = |cells: &Cells| match self {
            Order::Avg => Ratio::new(cells.sum_ms().into(), 1).unwrap_or(Ratio::ZERO),
            Order::Peak => cells.peak(observed),
            Order::P99 => cells.p99(observed),
            Order::Sessions => Ratio::new(cells.sessions().into(), 1).unwrap_or(Ratio::ZERO),
        };
        let mut measured: Vec<_> = std::mem::take(rows)
            .into_iter()
            .map(|row| (Reverse(measure(&row.1)), row))
            .collect();
        measured.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| compare_keys(&a.1.0, &b.1.0)));
        rows.extend(measured.into_iter().map(|m| m.1));
    }
}

/// A line of the answer before it is printed.
struct Line {
    key: Option<String>,
    by_key: Option<String>,
    /// `key` or `by_key` stand for what is left.
    other: bool,
    other_by: bool,
    cells: Cells,
}

struct Shape {
    dimension: Dimension,
    by: Option<Dimension>,
    order: Order,
    n: usize,
}

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let spec = call.spec;
    let name = spec.dimension.as_deref().ok_or_else(|| {
        QueryError::invalid("dimension must be given")
            .hint(format!("Available are {}.", names(spec.catalog).join(", ")))
    })?;
    let by = spec.by.as_deref();
    let shape = Shape {
        dimension: Dimension::find(spec.catalog, "dimension", name)?,
        by: by
            .map(|by| Dimension::find(spec.catalog, "dimension", by))
            .transpose()?,
        order: Order::parse(spec.order_by.as_deref())?,
        n: limit(spec.n)?,
    };
    let window = Window::of(spec)?;
    let width = spec.bucket_us.unwrap_or(aas::MINUTE);
    let buckets = buckets(spec, window, width, MAX_BUCKETS)?;
    let scan = Scan::new(spec, call.store, window, call.cancel)?;
    let by_avg = matches!(shape.order, Order::Avg) && spec.n.is_some();
    let mut found = match &shape.by {
        None if by_avg && scan.ranks_by_totals(&shape.dimension) => {
            largest(&scan, &shape, buckets)?
        }
        _ => all(&scan, &shape, buckets, by_avg)?,
    };
    let lines = lines(&shape, &mut found);
    let scanned = found.scanned;
    let texts = texts(&scan, &shape, &lines)?;
    print(&scan, &shape, &scanned, window, lines, &texts, sink)
}

/// What was found, and what of it has no cells of its own.
struct Found {
    scanned: Scanned,
    /// Keys that have parts which were not chosen.
    left: HashSet<Option<String>>,
    /// Only the largest keys have cells; these are of all keys together.
    whole: Option<Cells>,
}

/// Every key, and with `by` its parts: when `by_avg` only the largest.
fn all(scan: &Scan, shape: &Shape, buckets: Buckets, by_avg: bool) -> QueryResult<Found> {
    let mut groups = vec![vec![&shape.dimension]];
    groups.extend(shape.by.as_ref().map(|by| vec![&shape.dimension, by]));
    let mut left = HashSet::new();
    let scanned = match shape.by {
        Some(_) if by_avg => {
            let choose = |sizes| choose(shape.n, sizes, &mut left);
            scan.chosen_sums(buckets, &groups, choose)?
        }
        _ => scan.sums(buckets, &groups)?,
    };
    Ok(Found {
        scanned,
        left,
        whole: None,
    })
}

/// The largest keys, and all together.
fn largest(scan: &Scan, shape: &Shape, buckets: Buckets) -> QueryResult<Found> {
    let mut is_rest = false;
    let choose = |sizes: Vec<(Key, i64)>| {
        let mut sizes: Vec<Weighed> = sizes.into_iter().map(|(key, sum)| (key.0, sum)).collect();
        sizes.sort_by(larger);
        is_rest = sizes.len() > shape.n;
        let chosen = sizes.into_iter().take(shape.n);
        chosen.map(|(key, _)| (key, None)).collect()
    };
    let mut scanned = scan.largest_sums(buckets, &shape.dimension, choose)?;
    let whole = scanned.cubes.remove(0).into_keys().pop();
    let whole = whole.map_or(Cells::default(), |key| key.1);
    Ok(Found {
        scanned,
        left: HashSet::new(),
        whole: is_rest.then_some(whole),
    })
}

/// Largest first, ties by key.
fn larger(a: &Weighed, b: &Weighed) -> Ordering {
    b.1.cmp(&a.1).then_with(|| compare_keys(&a.0, &b.0))
}

/// A key with its Σ weight.
type Weighed = (Option<String>, i64);

/// The `n` largest parts of the `n` largest keys; `left` gets the keys that
/// have more.
fn choose(n: usize, sizes: Vec<(Key, i64)>, left: &mut HashSet<Option<String>>) -> HashSet<Key> {
    let mut keys: HashMap<Option<String>, (i64, Vec<Weighed>)> = HashMap::new();
    for ((key, by), size) in sizes {
        let (sum, parts) = keys.entry(key).or_default();
        *sum += size;
        parts.push((by, size));
    }
    let mut ranked: Vec<Weighed> = keys.iter().map(|(key, all)| (key.clone(), all.0)).collect();
    ranked.sort_by(larger);
    let mut chosen = HashSet::new();
    for (key, _) in ranked.into_iter().take(n) {
        let mut parts = keys.remove(&key).unwrap_or_default().1;
        parts.sort_by(larger);
        if parts.len() > n {
            left.insert(key.clone());
        }
        let parts = parts.into_iter().take(n);
        chosen.extend(parts.map(|(by, _)| (key.clone(), by)));
    }
    chosen
}

/// Ranks and cuts.
fn lines(shape: &Shape, found: &mut Found) -> Vec<Line> {
    let Found { scanned, left, .. } = found;
    let mut cubes = std::mem::take(&mut scanned.cubes).into_iter();
    let whole = cubes.next().unwrap_or_default().into_keys();
    let mut whole: Vec<(Option<String>, Cells)> = whole
        .into_iter()
        .map(|(key, cells)| (key.0, cells))
        .collect();
    shape.order.sort(&mut whole, scanned);
    let rest = whole.split_off(shape.n.min(whole.len()));
    let rest = match &found.whole {
        Some(all) => {
            let rest = all.without(whole.iter().map(|key| &key.1));
            Some(rest.with_finished(std::mem::take(&mut scanned.rest)))
        }
        None if rest.is_empty() => None,
        None => Some(Cells::merged(rest.iter().map(|r| &r.1))),
    };
    let mut lines = Vec::new();
    match cubes.next() {
        None => lines.extend(whole.into_iter().map(|(key, cells)| Line {
            key,
            by_key: None,
            other: false,
            other_by: false,
            cells,
        })),
        Some(cube) => {
            let mut parts = by_key(cube.into_keys());
            for (key, cells) in whole {
                let parts = parts.remove(&key).unwrap_or_default();
                let rest = left.contains(&key).then_some(cells);
                split(shape, scanned, key, parts, rest, &mut lines);
            }
        }
    }
    if let Some(cells) = rest {
        lines.push(Line {
            key: None,
            by_key: None,
            other: true,
            other_by: shape.by.is_some(),
            cells,
        });
    }
    lines
}

type Parts = Vec<(Option<String>, Cells)>;

fn by_key(cells: Vec<(Key, Cells)>) -> HashMap<Option<String>, Parts> {
    let mut parts: HashMap<Option<String>, Parts> = HashMap::new();
    for ((key, by), cells) in cells {
        parts.entry(key).or_default().push((by, cells));
    }
    parts
}

/// The largest parts of one key and what is left. With `whole`, the cells of
/// the key, there are more parts than those given.
fn split(
    shape: &Shape,
    scanned: &Scanned,
    key: Option<String>,
    mut parts: Parts,
    whole: Option<Cells>,
    lines: &mut Vec<Line>,
) {
    shape.order.sort(&mut parts, scanned);
    let rest = parts.split_off(shape.n.min(parts.len()));
    let rest = match whole {
        Some(cells) => Some(cells.without(parts.iter().map(|part| &part.1))),
        None if rest.is_empty() => None,
        None => Some(Cells::merged(rest.iter().map(|r| &r.1))),
    };
    lines.extend(parts.into_iter().map(|(by_key, cells)| Line {
        key: key.clone(),
        by_key,
        other: false,
        other_by: false,
        cells,
    }));
    if let Some(cells) = rest {
        lines.push(Line {
            key,
            by_key: None,
            other: false,
            other_by: true,
            cells,
        });
    }
}

/// Texts of the lines, when a key is a query id.
fn texts(scan: &Scan, shape: &Shape, lines: &[Line]) -> QueryResult<Texts> {
    let by_is_query = shape.by.as_ref().is_some_and(|by| by.name == pg::QUERY_ID);
    if shape.dimension.name == pg::QUERY_ID {
        query_texts(scan, lines.iter().map(|line| &line.key))
    } else if by_is_query {
        query_texts(scan, lines.iter().map(|line| &line.by_key))
    } else {
        Ok(Texts::default())
    }
}

fn print(
    scan: &Scan,
    shape: &Shape,
    scanned: &Scanned,
    window: Window,
    lines: Vec<Line>,
    texts: &Texts,
    sink: &mut dyn Sink,
) -> QueryResult<()> {
    let total = scanned.observed.total();
    let all_ms: i64 = lines.iter().map(|line| line.cells.sum_ms()).sum();
    let database = only_database(scan).map(str::to_string);
    sink.begin(FIELDS)?;
    for line in lines {
        scan.check_cancel()?;
        let other = || Value::Text(pg::OTHER.to_string());
        let text = match &shape.by {
            _ if shape.dimension.name == pg::QUERY_ID => {
                let by_database = shape.by.as_ref().is_some_and(|by| by.name == "database");
                let same = line.by_key.clone().filter(|_| by_database);
                query_text(texts, &line.key, same.or(database.clone()).as_deref())
            }
            Some(by) if by.name == pg::QUERY_ID => {
                query_text(texts, &line.by_key, database.as_deref())
            }
            _ => Value::Null,
        };
        let key = key_text(&shape.dimension.name, &line.key);
        let by_key = shape.by.as_ref().map(|by| key_text(&by.name, &line.by_key));
        let mut row = vec![
            if line.other { other() } else { key },
            if line.other_by {
                other()
            } else {
                by_key.unwrap_or(Value::Null)
            },
            text,
            source(&total),
            Value::Time(window.since),
            Value::Time(window.until),
            Value::Interval(scanned.buckets.width()),
        ];
        let sessions = !line.other && !line.other_by;
        row.extend(measures(&line.cells, scanned, &total, sessions));
        let sum = i128::from(line.cells.sum_ms());
        row.push(numeric(Ratio::new(100 * sum, all_ms.into())));
        row.extend(window_coverage(scanned, &total, window));
        sink.row(row)?;
    }
    Ok(())
}
