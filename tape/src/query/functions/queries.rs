//! `queries`: the load of each query beside the counters of its executions. Load comes from the
//! samples, counters from the statistics of statements; a query may have only one of them.

use super::common_columns::{numeric, ranked};
use super::statements_history::{filters as statement_filters, scan as scan_statements, texts};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::{Numeric, row};
use crate::query::rows::dimension::Dimension;
use crate::query::rows::parse::{Window, limit, samples};
use crate::query::rows::scan::Scan;
use crate::query::rows::text::TextKey;
use crate::query::sums::counters::{Counter, Counters, Named, Sums, Unit};
use crate::query::sums::intervals::Recorded;
use crate::query::sums::statement_sums::{EntryKey, Filters, Stats};
use crate::query::sums::statements_running::{self, Running, RunningExecutions};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::{QueryError, QueryResult};
use crate::query::value::number::Ratio;
use crate::query::value::vocabulary as pg;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

row! {
    /// A row of `queries`.
    QueriesRow of "queries": FIELDS {
        key: Text,
        query_id: Id,
        query_text: Text,
        databases: Text,
        usernames: Text,
        avg_aas: Numeric,
        pct: Numeric,
        calls: Int,
        calls_per_second: Numeric,
        total_exec_time: Numeric,
        mean_exec_time: Numeric,
        p95_exec_time: Numeric,
        p99_exec_time: Numeric,
        rows: Int,
        shared_blks_read: Int,
        temp_blks_written: Int,
        errors: Int,
        running: Int,
        running_time: Numeric,
        last_call: Time,
        observed_pct: Numeric,
        counted_pct: Numeric,
    }
}

request! {
    /// Queries with their load and their cost
    Queries of queries: QueriesRow {
        node,
        since,
        until,
        n("Maximum number of queries, or all", Some("10")),
        order_by("load, time, calls, mean, p95, rows, reads, temp, errors, running_time or last_call", Some("load")),
        scope,
        by_leader,
        filters,
    }
}

/// The counters of the answer, besides the histogram.
const COUNTERS: [Named; 6] = [
    Named::Calls,
    Named::Time,
    Named::Rows,
    Named::Reads,
    Named::TempWrites,
    Named::Errors,
];

/// Filters that apply to the counters, too. Counters know no other dimension: with any other filter,
/// the samples are filtered, and each query that still has load shows all its executions.
const OF_STATEMENTS: [&str; 3] = [pg::QUERY_ID, "database", pg::USERNAME];

/// Order of the queries, which decides the ones that are shown.
#[derive(Clone, Copy)]
enum Order {
    Load,
    Counter(Named),
    Mean,
    P95,
    RunningTime,
    LastCall,
}

impl Order {
    fn parse(text: Option<&str>) -> QueryResult<Order> {
        Ok(match text.unwrap_or("load") {
            "load" => Order::Load,
            "calls" => Order::Counter(Named::Calls),
            "time" => Order::Counter(Named::Time),
            "rows" => Order::Counter(Named::Rows),
            "reads" => Order::Counter(Named::Reads),
            "temp" => Order::Counter(Named::TempWrites),
            "errors" => Order::Counter(Named::Errors),
            "mean" => Order::Mean,
            "p95" => Order::P95,
            "running_time" => Order::RunningTime,
            "last_call" => Order::LastCall,
            other => {
                return Err(QueryError::invalid(format!("invalid order_by \"{other}\"")).hint(
                    "Available orders are load, time, calls, mean, p95, rows, reads, temp, errors, running_time, last_call.",
                ));
            }
        })
    }

    fn measure(self, line: &Line, counters: &Counters) -> Ratio {
        let sums = line.sums.as_ref();
        let measure = match self {
            Order::Load => Ratio::new(line.load_ms.into(), 1),
            Order::Counter(named) => {
                sums.and_then(|sums| Ratio::new(counters.sum(sums, named).into(), 1))
            }
            Order::Mean => sums.and_then(|sums| counters.mean(sums)),
            Order::P95 => sums.and_then(|sums| counters.percentile(sums, 95)),
            Order::RunningTime => Ratio::new(line.running.time_ms.into(), 1),
            Order::LastCall => {
                sums.and_then(|sums| Ratio::new(sums.last_call_ms.unwrap_or(0).into(), 1))
            }
        };
        measure.unwrap_or(Ratio::ZERO)
    }
}

/// A query, or all queries that are not shown.
#[derive(Default)]
struct Line {
    load_ms: i64,
    sums: Option<Sums>,
    running: RunningExecutions,
    databases: BTreeSet<String>,
    usernames: BTreeSet<String>,
}

impl Line {
    fn add_sums(&mut self, sums: &Sums) {
        match &mut self.sums {
            Some(own) => own.add(sums),
            None => self.sums = Some(sums.clone()),
        }
    }

    fn add(&mut self, other: &Line) {
        self.load_ms = self.load_ms.saturating_add(other.load_ms);
        other.sums.iter().for_each(|sums| self.add_sums(sums));
        self.running.add(other.running);
    }
}

/// The key of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LineKey {
    Query(i64),
    /// Evicted entries have counters, and no query id.
    Evicted,
    /// Load without a query id.
    NoQuery,
}

impl LineKey {
    fn of_entry(key: &EntryKey) -> LineKey {
        key.query_id.map_or(LineKey::Evicted, LineKey::Query)
    }

    fn query_id(self) -> Option<i64> {
        match self {
            LineKey::Query(id) => Some(id),
            _ => None,
        }
    }

    fn shown(self) -> Arc<str> {
        match self {
            LineKey::Query(id) => id.to_string().into(),
            LineKey::Evicted => pg::EVICTED.into(),
            LineKey::NoQuery => pg::null_label(pg::QUERY_ID).unwrap_or(pg::OTHER).into(),
        }
    }
}

type Lines = BTreeMap<LineKey, Line>;

fn answer(asked: &Queries, run: Run, emit: Emit<QueriesRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let order = Order::parse(asked.order_by.as_deref())?;
    let n = limit(asked.n)?;
    let node = asked.node.as_deref();
    let scan = Scan::new(run, samples!(asked), window)?;
    let mut lines = Lines::new();
    let (observed_ms, observed_pct) = add_load(&scan, &mut lines)?;
    let stats = Stats {
        run,
        window,
        counters: Counters::of(run.catalog).only(is_needed).with_last_call(),
        filters: filters_of_statements(asked, run)?,
    };
    let whole = scan.whole();
    let with_quiet = asked.filters.iter().all(|(name, _)| is_of_statements(name));
    let recorded = add_counters(&stats, node, &whole, &mut lines, with_quiet)?;
    let running = statements_running::read(run, node, &whole, |key| stats.wants(key))?;
    add_running(&running, &mut lines, with_quiet);

    let place = |(key, line): (LineKey, Line)| {
        let measure = order.measure(&line, &stats.counters);
        (Reverse(measure), key, line)
    };
    let mut ordered: Vec<_> = lines.into_iter().map(place).collect();
    ordered.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let rest = ordered.split_off(n.min(ordered.len()));
    let shown: Vec<EntryKey> = ordered.iter().map(|(_, key, _)| entry(*key)).collect();
    let texts = texts(run, node, window, &shown)?;
    let all_ms = ordered.iter().chain(&rest).map(|(.., line)| line.load_ms);
    let rows = Rows {
        counters: &stats.counters,
        observed_ms,
        all_ms: all_ms.sum(),
        recorded,
        is_running_known: running.observed.contains(&true),
        observed_pct,
        counted_pct: numeric(Ratio::new(
            i128::from(recorded.covered_us) * 100,
            window.length().into(),
        )),
    };
    for (_, key, line) in &ordered {
        let query_id = key.query_id();
        run.check_cancel()?;
        emit(QueriesRow {
            key: Some(key.shown()),
            query_id,
            query_text: query_id.and_then(|id| texts.get(TextKey::Query(id), None)),
            databases: list(&line.databases),
            usernames: list(&line.usernames),
            ..rows.of(line)
        })?;
    }
    if rest.is_empty() {
        return Ok(());
    }
    let mut other = Line::default();
    rest.iter().for_each(|(.., line)| other.add(line));
    emit(QueriesRow {
        key: Some(pg::OTHER.into()),
        ..rows.of(&other)
    })
}

fn is_needed(counter: &Counter) -> bool {
    counter.is_any_of(&COUNTERS) || matches!(counter.unit, Unit::Bucket(_))
}

fn is_of_statements(name: &str) -> bool {
    OF_STATEMENTS.contains(&name)
}

fn filters_of_statements(asked: &Queries, run: Run) -> QueryResult<Filters> {
    let given = OF_STATEMENTS.map(|name| {
        let own = asked.filters.iter().find(|(filter, _)| filter == name);
        own.map(|(_, text)| text.clone())
    });
    let [query_id, database, username] = &given;
    statement_filters(
        run,
        [
            (pg::QUERY_ID, query_id),
            ("database", database),
            (pg::USERNAME, username),
            ("toplevel", &None),
        ],
    )
}

fn entry(key: LineKey) -> EntryKey {
    EntryKey {
        query_id: key.query_id(),
        ..EntryKey::default()
    }
}

/// Adds the load of each query to its line. Returns the observed time in ms and the percentage of
/// the window that it is.
fn add_load(scan: &Scan, lines: &mut Lines) -> QueryResult<(i64, Option<Numeric>)> {
    let dimension = Dimension::find(scan.run.catalog, "dimension", pg::QUERY_ID)?;
    let mut scanned = scan.sums(scan.whole(), &[vec![&dimension]])?;
    let cube = scanned.cubes.pop().unwrap_or_default();
    for (key, cells) in ranked(&scan.register, cube) {
        let id = scan.register.text(key).and_then(|id| id.parse().ok());
        let line = lines.entry(id.map_or(LineKey::NoQuery, LineKey::Query));
        line.or_default().load_ms += cells.sum_ms();
    }
    let total = scanned.observed.total();
    let observed_pct = numeric(total.percent(scan.window().length()));
    Ok((total.observed_ms, observed_pct))
}

/// Adds the counters of statements, and the names of their databases and roles.
fn add_counters(
    stats: &Stats,
    node: Option<&str>,
    whole: &Buckets,
    lines: &mut Lines,
    with_quiet: bool,
) -> QueryResult<Recorded> {
    let mut numbers: HashMap<EntryKey, u32> = HashMap::new();
    let found = scan_statements(stats, node, whole, |key| {
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert(next)
    })?;
    for (key, number) in numbers {
        let line_key = LineKey::of_entry(&key);
        let Some(sums) = found.sums.get(&(number, 0)) else {
            continue;
        };
        if !with_quiet && !lines.contains_key(&line_key) {
            continue;
        }
        let line = lines.entry(line_key).or_default();
        line.add_sums(sums);
        line.databases.extend(key.database);
        line.usernames.extend(key.username);
    }
    Ok(found.recorded.first().copied().unwrap_or_default())
}

fn add_running(running: &Running, lines: &mut Lines, with_quiet: bool) {
    let mut keys: Vec<LineKey> = lines.keys().copied().collect();
    if with_quiet {
        keys.extend(running.longest_ms().into_keys().map(LineKey::of_entry));
        keys.sort_unstable();
        keys.dedup();
    }
    let last = keys.len() as u32;
    let number = |key: &EntryKey| {
        let found = keys.binary_search(&LineKey::of_entry(key));
        found.map_or(last, |at| at as u32)
    };
    for ((line, _), executions) in running.by_line(number) {
        if let Some(key) = keys.get(line as usize) {
            lines.entry(*key).or_default().running.add(executions);
        }
    }
}

fn list(names: &BTreeSet<String>) -> Option<Arc<str>> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| names.join(", ").into())
}

/// The measures of lines.
struct Rows<'a> {
    counters: &'a Counters<'a>,
    observed_ms: i64,
    /// Load of all queries.
    all_ms: i64,
    recorded: Recorded,
    is_running_known: bool,
    observed_pct: Option<Numeric>,
    counted_pct: Option<Numeric>,
}

impl Rows<'_> {
    fn of(&self, line: &Line) -> QueriesRow {
        let load = i128::from(line.load_ms);
        let is_observed = self.observed_ms > 0;
        let row = QueriesRow {
            avg_aas: numeric(Ratio::new(load, self.observed_ms.into())),
            pct: numeric(Ratio::new(load * 100, self.all_ms.into()).filter(|_| is_observed)),
            running: self.is_running_known.then_some(line.running.count),
            running_time: self
                .is_running_known
                .then(|| Numeric(i128::from(line.running.time_ms) * 10_000)),
            observed_pct: self.observed_pct,
            counted_pct: self.counted_pct,
            ..QueriesRow::default()
        };
        match self.recorded.elapsed_ms > 0 {
            true => self.with_counters(row, line),
            false => row,
        }
    }

    fn with_counters(&self, row: QueriesRow, line: &Line) -> QueriesRow {
        let none = self.counters.zeros();
        let sums = line.sums.as_ref().unwrap_or(&none);
        let sum = |named| self.counters.sum(sums, named);
        let calls = sum(Named::Calls);
        let per_second = Ratio::new(i128::from(calls) * 1000, self.recorded.elapsed_ms.into());
        QueriesRow {
            calls: Some(calls),
            calls_per_second: numeric(per_second),
            total_exec_time: Some(Numeric(i128::from(sum(Named::Time)) * 100)),
            mean_exec_time: numeric(self.counters.mean(sums)),
            p95_exec_time: numeric(self.counters.percentile(sums, 95)),
            p99_exec_time: numeric(self.counters.percentile(sums, 99)),
            rows: Some(sum(Named::Rows)),
            shared_blks_read: Some(sum(Named::Reads)),
            temp_blks_written: Some(sum(Named::TempWrites)),
            errors: Some(sum(Named::Errors)),
            last_call: sums.last_call_us(),
            ..row
        }
    }
}
