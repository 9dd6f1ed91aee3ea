//! `summary`: a window in a few lines: load, coverage, longest gaps, largest
//! waits and queries.

use super::common_columns::{
    measures, numeric, query_text, query_texts, ranked, source, window_coverage,
};
use super::{Call, aas, markers};
use crate::query::cells::Cells;
use crate::query::civil::time_text;
use crate::query::dimension::Dimension;
use crate::query::error::QueryResult;
use crate::query::number::Ratio;
use crate::query::parse::{MAX_BUCKETS, Window, buckets};
use crate::query::read::Scanned;
use crate::query::register::NULL;
use crate::query::request::request;
use crate::query::row::row;
use crate::query::scan::Scan;
use crate::query::spec::{Sink, Value};
use crate::query::vocabulary as pg;

row! {
    /// A row of `summary`.
    SummaryRow of "summary": FIELDS {
        metric: Text,
        value: Text,
    }
}

request! {
    /// A window in a few lines
    Summary of summary: SummaryRow {
        node,
        since,
        until,
        scope,
        by_leader,
        filters,
    }
}

/// Gaps shown, and keys of waits and queries.
const SHOWN: usize = 3;

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let spec = call.spec;
    let window = Window::of(spec)?;
    let find = |name| Dimension::find(spec.catalog, "dimension", name);
    let wait = find(pg::WAIT_EVENT)?;
    let query = find(pg::QUERY_ID)?;
    let database = find("database")?;
    let buckets = buckets(spec, window, aas::MINUTE, MAX_BUCKETS)?;
    let scan = Scan::new(spec, call.store, window)?;
    let groups = [vec![], vec![&wait], vec![&query], vec![&database]];
    let mut scanned = scan.sums(buckets, &groups)?;
    let mut cubes = std::mem::take(&mut scanned.cubes).into_iter();
    let mut next = || ranked(&scan.register, cubes.next().unwrap_or_default());
    let (whole, waits, queries, databases) = (next(), next(), next(), next());
    let cells = whole.into_iter().next().map_or(Cells::default(), |k| k.1);

    let gaps = markers::gaps(call, window)?;
    sink.begin(FIELDS)?;
    let mut put =
        |metric: String, value: Value| sink.row(vec![Value::Text(metric.into()), text_of(value)]);
    for (metric, value) in headline(&scanned, window, &cells) {
        put(metric.to_string(), value)?;
    }
    let active = databases.iter().filter(|d| d.0 != NULL).count();
    put("databases_active".to_string(), Value::Int(active as i64))?;
    for (rank, (since, until, cause)) in gaps.iter().take(SHOWN).enumerate() {
        let line = format!("{} to {}: {cause}", time_text(*since), time_text(*until));
        put(format!("gap_{}", rank + 1), Value::Text(line.into()))?;
    }
    let all_ms = cells.sum_ms();
    for (rank, (key, cells)) in waits.iter().take(SHOWN).enumerate() {
        let name = scan
            .register
            .text(*key)
            .unwrap_or_else(|| "(null)".to_string());
        let line = format!("{name} {}", share(cells, &scanned, all_ms));
        put(format!("top_wait_{}", rank + 1), Value::Text(line.into()))?;
    }
    let texts = query_texts(&scan, queries.iter().take(SHOWN).map(|q| q.0))?;
    for (rank, (key, cells)) in queries.iter().take(SHOWN).enumerate() {
        let null = || pg::null_label(pg::QUERY_ID).unwrap_or("").to_string();
        let name = scan.register.text(*key).unwrap_or_else(null);
        let mut line = format!("{name} {}", share(cells, &scanned, all_ms));
        if let Value::Text(text) = query_text(&scan, &texts, *key, None) {
            line.push_str(": ");
            line.push_str(&text);
        }
        put(format!("top_query_{}", rank + 1), Value::Text(line.into()))?;
    }
    Ok(())
}

fn headline(scanned: &Scanned, window: Window, cells: &Cells) -> Vec<(&'static str, Value)> {
    let total = scanned.observed.total();
    let [avg, peak, p99, sessions, seconds] = measures(cells, scanned, &total, true);
    let [vcpus, expected, observed, failed, percent] = window_coverage(scanned, &total, window);
    vec![
        ("period_start", Value::Text(time_text(window.since).into())),
        ("period_end", Value::Text(time_text(window.until).into())),
        ("source", source(&total)),
        ("avg_aas", avg),
        ("peak_aas", peak),
        ("p99_aas", p99),
        ("peak_sessions", sessions),
        ("backend_seconds", seconds),
        ("vcpus", vcpus),
        ("ticks_expected", expected),
        ("ticks_observed", observed),
        ("ticks_failed", failed),
        ("coverage_pct", percent),
    ]
}

/// `1.2500 AAS, 41.6667 %`
fn share(cells: &Cells, scanned: &Scanned, all_ms: i64) -> String {
    let sum = i128::from(cells.sum_ms());
    let observed = scanned.observed.total().observed_ms;
    let show = |value| match text_of(value) {
        Value::Text(text) => text,
        _ => "".into(),
    };
    let aas = show(numeric(Ratio::new(sum, observed.into())));
    let percent = show(numeric(Ratio::new(100 * sum, all_ms.into())));
    format!("{aas} AAS, {percent} %")
}

/// Numbers as text.
fn text_of(value: Value) -> Value {
    match value {
        Value::Int(number) => Value::Text(number.to_string().into()),
        Value::Numeric(n) => {
            let (sign, n) = (if n < 0 { "-" } else { "" }, n.unsigned_abs());
            Value::Text(format!("{sign}{}.{:04}", n / 10_000, n % 10_000).into())
        }
        other => other,
    }
}
