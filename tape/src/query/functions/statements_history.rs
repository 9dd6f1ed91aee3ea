//! `statements_history`: cost of statements over time.

use super::common_columns::numeric;
use crate::format::schema::Schema;
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::{Numeric, row};
use crate::query::rows::parse::{MAX_ROWS, Window, buckets, limit, nodes};
use crate::query::rows::text::{TextKey, Texts};
use crate::query::sums::counters::{Counter, Counters, Named, Sums, Unit};
use crate::query::sums::intervals::{Nodes, Recorded};
use crate::query::sums::statement_sums::{EntryKey, Stats, SumsByEntry};
use crate::query::sums::statements_running::{self, Running};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::filter::Filter;
use crate::query::value::number::Ratio;
use crate::query::value::sink::{Field, Type, Value};
use crate::query::value::vocabulary as pg;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

row! {
    /// A row of `statements_history`. The catalog has the names of the counters.
    StatementsHistoryRow of "statements_history": FIELDS {
        period_start: Time,
        period_end: Time,
        key: Text,
        query_id: Id,
        database: Text,
        username: Text,
        toplevel: Bool,
        query_text: Text,
        grain: Interval,
        coverage_pct: Numeric,
        pct: Numeric,
        calls_per_second: Numeric,
        mean_exec_time: Numeric,
        stddev_exec_time: Numeric,
        p50_exec_time: Numeric,
        p95_exec_time: Numeric,
        p99_exec_time: Numeric,
        running: Int,
        running_time: Numeric,
        last_call: Time,
    } and counters of columns_of_counters
}

request! {
    /// Cost of statements over time
    StatementsHistory of statements_history: StatementsHistoryRow {
        node,
        since,
        until,
        bucket,
        n("Maximum number of statements, or all", Some("10")),
        order_by("time, mean, p95, p99, cpu, blocks, running_time, or a counter, such as calls", Some("time")),
        query_id,
        database,
        username,
        toplevel,
    }
}

/// The columns of the counters of a catalog.
fn columns_of_counters<'a>(catalog: &'a Schema) -> Vec<Field<'a>> {
    let counters = Counters::of(catalog);
    let shown = counters.list().iter().filter(|c| c.is_shown());
    let column = |counter: &Counter<'a>| {
        let ty = match counter.unit {
            Unit::Time => Type::Numeric,
            _ => Type::Int,
        };
        (counter.name, ty)
    };
    shown.map(column).collect()
}

/// Order of the statements, which decides the ones that are shown.
enum Order {
    /// A sum of counters.
    Sum(Vec<String>),
    Mean,
    Percentile(i64),
    /// Longest running time of executions that have not ended.
    RunningTime,
}

impl Order {
    fn parse(text: Option<&str>, counters: &Counters) -> QueryResult<Order> {
        let sum = |names: &[&str]| Order::Sum(names.iter().map(|n| n.to_string()).collect());
        let is_shown = |name: &str| {
            counters
                .list()
                .iter()
                .any(|c| c.name == name && c.is_shown())
        };
        Ok(match text.unwrap_or("time") {
            "time" => sum(&["total_exec_time"]),
            "cpu" => sum(&["user_time", "system_time"]),
            "blocks" => sum(&["shared_blks_hit", "shared_blks_read"]),
            "mean" => Order::Mean,
            "p95" => Order::Percentile(95),
            "p99" => Order::Percentile(99),
            "running_time" => Order::RunningTime,
            name if is_shown(name) => sum(&[name]),
            other => {
                return Err(QueryError::invalid(format!("invalid order_by \"{other}\"")).hint(
                    "Available orders are time, mean, p95, p99, cpu, blocks, running_time, and every counter, such as calls, rows, errors.",
                ));
            }
        })
    }

    /// True if the order needs this counter.
    fn needs(&self, counter: &Counter) -> bool {
        match self {
            Order::Sum(names) => names.iter().any(|name| name == counter.name),
            Order::Mean => counter.is_any_of(&[Named::Calls, Named::Time]),
            Order::Percentile(_) => counter.is_bucket() || counter.is_any_of(&[Named::Time]),
            Order::RunningTime => false,
        }
    }

    /// The figure of a statement.
    fn measure(&self, counters: &Counters, sums: &Sums) -> Option<Ratio> {
        match self {
            Order::Sum(names) => {
                let sum = |name: &String| i128::from(sums.at(counters.place(name)));
                Ratio::new(names.iter().map(sum).sum(), 1)
            }
            Order::Mean => counters.mean(sums),
            Order::Percentile(percent) => counters.percentile(sums, *percent),
            Order::RunningTime => None,
        }
    }
}

/// A line that the answer has in every period.
enum Line {
    One(EntryKey),
    Other,
}

fn answer(
    asked: &StatementsHistory,
    run: Run,
    emit: Emit<StatementsHistoryRow>,
) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let n = limit(asked.n)?;
    let node = asked.node.as_deref();
    let all = Counters::of(run.catalog);
    let order = Order::parse(asked.order_by.as_deref(), &all)?;
    let whole = Buckets::whole(window.since, window.until);
    let buckets = match asked.bucket {
        None => whole.clone(),
        Some(width) => buckets(run.context, window, width, MAX_ROWS)?,
    };
    let mut stats = Stats {
        run,
        window,
        counters: all.only(|c| order.needs(c)),
        filters: statement_filters!(asked, run)?,
    };
    let running = statements_running::read(run, node, &buckets, |key| stats.wants(key))?;
    let ranked = rank(&stats, node, &whole, (&order, &running))?;
    let lines: HashMap<EntryKey, u32> = ranked.iter().take(n).cloned().zip(0..).collect();
    let other = lines.len() as u32;
    let rows = (lines.len() + 1).saturating_mul(buckets.len());
    if rows > MAX_ROWS && buckets.len() > 1 {
        return Err(too_many(rows));
    }
    stats.counters = all;
    let found = scan(&stats, node, &buckets, |key| {
        lines.get(&key).copied().unwrap_or(other)
    })?;
    let mut shown: Vec<Line> = ranked.iter().take(n).cloned().map(Line::One).collect();
    shown.extend((ranked.len() > n).then_some(Line::Other));
    let texts = texts(run, node, window, &ranked[..n.min(ranked.len())])?;
    let answer = Answer {
        counters: &stats.counters,
        buckets: &buckets,
        found: &found,
        observed: &running.observed,
        running: &running.by_line(|key| lines.get(key).copied().unwrap_or(other)),
        texts: &texts,
    };
    for bucket in 0..buckets.len() {
        for (number, line) in shown.iter().enumerate() {
            emit(answer.row(bucket, number, line, shown.len()))?;
        }
    }
    Ok(())
}

pub(super) fn too_many(rows: usize) -> QueryError {
    QueryError::invalid("too many rows")
        .detail(format!(
            "The answer has {rows} rows; at most {MAX_ROWS} are allowed."
        ))
        .hint("Use a wider bucket, a shorter window or a smaller n.")
}

/// Checks the filters.
pub(super) fn filters(
    run: Run,
    given: [(&str, &Option<String>); 4],
) -> QueryResult<Vec<(String, Filter)>> {
    let mut filters = Vec::new();
    for (name, text) in given {
        let Some(text) = text else {
            continue;
        };
        let mut filter = Filter::parse(name, text)?;
        for item in filter.items_mut() {
            let Some(value) = item.as_deref() else {
                continue;
            };
            // Both names of a missing id, as answers show it.
            let is_none = name == "query_id" && [pg::EVICTED, pg::NO_QUERY_ID].contains(&value);
            let valid = match name {
                "query_id" => is_none || value.parse::<i64>().is_ok(),
                "toplevel" => value == "true" || value == "false",
                _ => true,
            };
            if !valid {
                let message = format!("invalid value \"{value}\" for filter \"{name}\"");
                return Err(QueryError::invalid(message).hint(match name {
                    "query_id" => "Use a whole number, a list of whole numbers, or (null).",
                    _ => "Use true or false.",
                }));
            }
            if is_none {
                *item = None;
            }
        }
        filters.push((name.to_string(), filter));
    }
    if let Some(owner) = &run.owner {
        let own = Filter {
            any: vec![Some(owner.clone())],
            none: Vec::new(),
        };
        filters.push((pg::USERNAME.to_string(), own));
    }
    Ok(filters)
}

/// The filters of a request that has all these arguments.
macro_rules! statement_filters {
    ($request:expr, $run:expr) => {
        $crate::query::functions::statements_history::filters(
            $run,
            [
                ("query_id", &$request.query_id),
                ("database", &$request.database),
                ("username", &$request.username),
                ("toplevel", &$request.toplevel),
            ],
        )
    };
}
pub(super) use statement_filters;

/// Adds up the rows of all requested nodes.
pub(super) fn scan(
    stats: &Stats,
    node: Option<&str>,
    buckets: &Buckets,
    mut number: impl FnMut(EntryKey) -> u32,
) -> QueryResult<SumsByEntry> {
    let mut all = SumsByEntry {
        recorded: vec![Recorded::default(); buckets.len()],
        ..SumsByEntry::default()
    };
    let nodes = nodes(stats.run, node)?;
    let together = Nodes::of(stats.run.store, &nodes);
    for node in nodes {
        let parts = stats.run.store.parts(node);
        let found = stats.sums(parts, buckets, &mut number)?;
        for (key, sums) in found.sums {
            match all.sums.get_mut(&key) {
                Some(known) => known.add(&sums),
                None => drop(all.sums.insert(key, sums)),
            }
        }
        together.add(&mut all.recorded, found.recorded);
    }
    Ok(all)
}

/// All statements, also running ones, the largest first. Among equals, statements without counters
/// come last, then the key decides.
fn rank(
    stats: &Stats,
    node: Option<&str>,
    whole: &Buckets,
    (order, running): (&Order, &Running),
) -> QueryResult<Vec<EntryKey>> {
    let mut numbers: HashMap<EntryKey, u32> = HashMap::new();
    let found = scan(stats, node, whole, |key| {
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert(next)
    })?;
    // `None` if a statement has no counters and only runs.
    let mut sums: HashMap<EntryKey, Option<&Sums>> = HashMap::new();
    for (key, number) in numbers {
        if let Some(own) = found.sums.get(&(number, 0)) {
            sums.insert(key, Some(own));
        }
    }
    let longest = running.longest_ms();
    for key in longest.keys() {
        sums.entry((*key).clone()).or_default();
    }
    let counters = &stats.counters;
    let measure = |key: &EntryKey, sums: Option<&Sums>| match order {
        Order::RunningTime => Ratio::new(longest.get(key).copied().unwrap_or(0).into(), 1),
        _ => order.measure(counters, sums?),
    };
    let place = |(key, sums): (EntryKey, Option<&Sums>)| {
        let measure = measure(&key, sums).unwrap_or(Ratio::ZERO);
        (Reverse(measure), sums.is_none(), key)
    };
    let mut ranked: Vec<_> = sums.into_iter().map(place).collect();
    ranked.sort_unstable();
    Ok(ranked.into_iter().map(|(.., key)| key).collect())
}

/// Query texts of the shown statements.
pub(super) fn texts(
    run: Run,
    node: Option<&str>,
    window: Window,
    keys: &[EntryKey],
) -> QueryResult<Texts> {
    let nodes = nodes(run, node)?;
    let parts = nodes.iter().flat_map(|node| run.store.parts(*node));
    let (near, far): (Vec<_>, Vec<_>) = parts.partition(|part| window.overlaps(part));
    let wanted = keys.iter().filter_map(|key| key.query_id);
    Texts::find(wanted.map(TextKey::Query), near, far.into_iter().rev(), run)
}

/// The text of a statement, from [`texts`].
pub(super) fn text_of(texts: &Texts, key: &EntryKey) -> Option<Arc<str>> {
    texts.get(TextKey::Query(key.query_id?), key.database.as_deref())
}

struct Answer<'a> {
    counters: &'a Counters<'a>,
    buckets: &'a Buckets,
    found: &'a SumsByEntry,
    /// For each bucket: true if the statements that ran at its end are known.
    observed: &'a [bool],
    /// The running executions of a line at the end of a bucket. The keys are the number of the line
    /// and the index of the bucket.
    running: &'a HashMap<(u32, u32), statements_running::RunningExecutions>,
    texts: &'a Texts,
}

impl Answer<'_> {
    fn row(&self, bucket: usize, number: usize, line: &Line, lines: usize) -> StatementsHistoryRow {
        let (begin, end) = self.buckets.clipped(bucket);
        let recorded = self.found.recorded[bucket];
        let covered = Ratio::new(i128::from(recorded.covered_us) * 100, (end - begin).into());
        let running = self.running.get(&(number as u32, bucket as u32)).copied();
        let running = self.observed[bucket].then(|| running.unwrap_or_default());
        let row = StatementsHistoryRow {
            period_start: Some(begin),
            period_end: Some(end),
            grain: (recorded.grain_ms > 0).then(|| recorded.grain_ms * 1000),
            coverage_pct: numeric(covered),
            running: running.map(|r| r.count),
            running_time: running.map(|r| Numeric(i128::from(r.time_ms) * 10_000)),
            ..self.of_line(line)
        };
        if recorded.elapsed_ms <= 0 {
            let shown = self.counters.list().iter().filter(|c| c.is_shown());
            return StatementsHistoryRow {
                counters: shown.map(|_| Value::Null).collect(),
                ..row
            };
        }
        let none = self.counters.zeros();
        let sums = self.sums(bucket, number).unwrap_or(&none);
        self.with_measures(row, bucket, sums, recorded.elapsed_ms, lines)
    }

    fn sums(&self, bucket: usize, number: usize) -> Option<&Sums> {
        self.found.sums.get(&(number as u32, bucket as u32))
    }

    /// The columns that name a statement.
    fn of_line(&self, line: &Line) -> StatementsHistoryRow {
        let Line::One(key) = line else {
            return StatementsHistoryRow {
                key: Some(pg::OTHER.into()),
                ..StatementsHistoryRow::default()
            };
        };
        let id = key.query_id.map(|id| id.to_string());
        StatementsHistoryRow {
            key: Some(id.as_deref().unwrap_or(pg::EVICTED).into()),
            query_id: key.query_id,
            database: key.database.as_deref().map(Arc::from),
            username: key.username.as_deref().map(Arc::from),
            toplevel: Some(key.toplevel),
            query_text: text_of(self.texts, key),
            ..StatementsHistoryRow::default()
        }
    }

    /// A row with its measures and the sums of its counters.
    fn with_measures(
        &self,
        row: StatementsHistoryRow,
        bucket: usize,
        sums: &Sums,
        elapsed_ms: i64,
        lines: usize,
    ) -> StatementsHistoryRow {
        let counters = self.counters;
        let time = |sums: &Sums| i128::from(counters.time(sums));
        let all = (0..lines).filter_map(|number| self.sums(bucket, number));
        let calls = i128::from(counters.calls(sums));
        let percentile = |percent| numeric(counters.percentile(sums, percent));
        let shown = counters.list().iter().zip(&sums.counts);
        let value = |(counter, &sum): (&Counter, &i64)| match counter.unit {
            Unit::Time => Value::Numeric(i128::from(sum) * 100),
            _ => Value::Int(sum),
        };
        StatementsHistoryRow {
            pct: numeric(Ratio::new(time(sums) * 100, all.map(time).sum())),
            calls_per_second: numeric(Ratio::new(calls * 1000, elapsed_ms.into())),
            mean_exec_time: numeric(counters.mean(sums)),
            stddev_exec_time: counters.deviation(sums),
            p50_exec_time: percentile(50),
            p95_exec_time: percentile(95),
            p99_exec_time: percentile(99),
            last_call: sums.last_call_us(),
            counters: shown.filter(|(c, _)| c.is_shown()).map(value).collect(),
            ..row
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ask::row::Row;
    use crate::testing::{schema, stats_schema};

    #[test]
    fn columns_follow_the_catalog_of_the_question() {
        let of_keys: Vec<&str> = FIELDS.iter().map(|f| f.0).collect();
        let mut less = schema();
        less.tables.retain(|table| table.name != "statement_stats");
        let all = stats_schema();
        let names = |schema| -> Vec<&str> {
            let columns = StatementsHistoryRow::columns(schema);
            columns.iter().map(|f| f.0).collect()
        };
        assert_eq!(names(&less), of_keys);
        assert!(names(&all).len() > of_keys.len());
    }
}
