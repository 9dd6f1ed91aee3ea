//! `summary`: a window in a few lines: load, coverage, longest gaps, largest waits and queries.

use super::common_columns::{Covered, Load, numeric, query_text, query_texts, ranked, source};
use super::{aas, markers};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::{Numeric, row};
use crate::query::pass::read::Scanned;
use crate::query::rows::dimension::Dimension;
use crate::query::rows::integers::NULL;
use crate::query::rows::parse::{MAX_BUCKETS, Window, buckets, samples};
use crate::query::rows::scan::Scan;
use crate::query::sums::cells::Cells;
use crate::query::value::civil::time_text;
use crate::query::value::error::QueryResult;
use crate::query::value::number::Ratio;
use crate::query::value::vocabulary as pg;
use std::sync::Arc;

row! {
    /// A row of `summary`.
    SummaryRow of "summary": FIELDS {
        metric: Text,
        value: Text,
    }
}

request! {
    /// Summary of a window
    Summary of summary: SummaryRow {
        node,
        since,
        until,
        scope,
        by_leader,
        filters,
    }
}

/// Number of gaps, waits and queries that are shown.
const SHOWN: usize = 3;

fn answer(asked: &Summary, run: Run, emit: Emit<SummaryRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let find = |name| Dimension::find(run.catalog, "dimension", name);
    let wait = find(pg::WAIT_EVENT)?;
    let query = find(pg::QUERY_ID)?;
    let database = find("database")?;
    let buckets = buckets(run.context, window, aas::MINUTE, MAX_BUCKETS)?;
    let scan = Scan::new(run, samples!(asked), window)?;
    let groups = [vec![], vec![&wait], vec![&query], vec![&database]];
    let mut scanned = scan.sums(buckets, &groups)?;
    let mut cubes = std::mem::take(&mut scanned.cubes).into_iter();
    let mut next = || ranked(&scan.register, cubes.next().unwrap_or_default());
    let (whole, waits, queries, databases) = (next(), next(), next(), next());
    let cells = whole.into_iter().next().map_or(Cells::default(), |k| k.1);
    let gaps = markers::gaps(run, asked.node.as_deref(), window)?;
    let texts = query_texts(&scan, queries.iter().take(SHOWN).map(|q| q.0))?;

    let mut lines = headline(&scanned, window, &cells);
    let active = databases.iter().filter(|d| d.0 != NULL).count();
    lines.push(("databases_active".into(), Some(active.to_string())));
    for (rank, (since, until, cause)) in gaps.iter().take(SHOWN).enumerate() {
        let line = format!("{} to {}: {cause}", time_text(*since), time_text(*until));
        lines.push((format!("gap_{}", rank + 1), Some(line)));
    }
    let all_ms = cells.sum_ms();
    let name = |key, null: &str| scan.register.text(key).unwrap_or_else(|| null.to_string());
    for (rank, (key, cells)) in waits.iter().take(SHOWN).enumerate() {
        let share = share(cells, &scanned, all_ms);
        let line = format!("{} {share}", name(*key, "(null)"));
        lines.push((format!("top_wait_{}", rank + 1), Some(line)));
    }
    let no_query = pg::null_label(pg::QUERY_ID).unwrap_or("");
    for (rank, (key, cells)) in queries.iter().take(SHOWN).enumerate() {
        let mut line = format!(
            "{} {}",
            name(*key, no_query),
            share(cells, &scanned, all_ms)
        );
        if let Some(text) = query_text(&scan, &texts, *key, None) {
            line.push_str(": ");
            line.push_str(&text);
        }
        lines.push((format!("top_query_{}", rank + 1), Some(line)));
    }
    lines.into_iter().try_for_each(|(metric, value)| {
        emit(SummaryRow {
            metric: Some(metric.into()),
            value: value.map(Arc::from),
        })
    })
}

/// A metric and its value.
type Line = (String, Option<String>);

fn headline(scanned: &Scanned, window: Window, cells: &Cells) -> Vec<Line> {
    let total = scanned.observed.total();
    let load = Load::of(cells, scanned, &total, true);
    let covered = Covered::of_window(scanned, &total, window);
    let count = |n: Option<i64>| n.map(|n| n.to_string());
    let lines = [
        ("period_start", Some(time_text(window.since))),
        ("period_end", Some(time_text(window.until))),
        ("source", source(&total).map(|source| source.to_string())),
        ("avg_aas", load.avg_aas.map(decimal)),
        ("peak_aas", load.peak_aas.map(decimal)),
        ("p99_aas", load.p99_aas.map(decimal)),
        ("peak_sessions", count(load.peak_sessions)),
        ("backend_seconds", load.backend_seconds.map(decimal)),
        ("vcpus", covered.vcpus.map(decimal)),
        ("ticks_expected", count(covered.ticks_expected)),
        ("ticks_observed", count(covered.ticks_observed)),
        ("ticks_failed", count(covered.ticks_failed)),
        ("coverage_pct", covered.coverage_pct.map(decimal)),
    ];
    lines
        .map(|(metric, value)| (metric.to_string(), value))
        .into()
}

/// Writes the load of a key and its share of the whole load: `1.2500 AAS, 41.6667 %`.
fn share(cells: &Cells, scanned: &Scanned, all_ms: i64) -> String {
    let sum = i128::from(cells.sum_ms());
    let observed = scanned.observed.total().observed_ms;
    let show = |ratio| numeric(ratio).map(decimal).unwrap_or_default();
    let aas = show(Ratio::new(sum, observed.into()));
    let percent = show(Ratio::new(100 * sum, all_ms.into()));
    format!("{aas} AAS, {percent} %")
}

/// The number with all four decimals.
fn decimal(Numeric(n): Numeric) -> String {
    let (sign, n) = (if n < 0 { "-" } else { "" }, n.unsigned_abs());
    format!("{sign}{}.{:04}", n / 10_000, n % 10_000)
}
