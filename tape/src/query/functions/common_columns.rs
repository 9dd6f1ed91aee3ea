//! Columns that several functions have, and the measures of a key.

use crate::query::cells::Cells;
use crate::query::error::QueryResult;
use crate::query::filter::Filter;
use crate::query::measure::Cube;
use crate::query::number::Ratio;
use crate::query::parse::Window;
use crate::query::read::Scanned;
use crate::query::register::{Id, Register};
use crate::query::scan::Scan;
use crate::query::spec::Value;
use crate::query::text::{TextKey, Texts};
use crate::query::ticks::Coverage;
use crate::query::vocabulary as pg;

/// Rounded, or null.
pub fn numeric(ratio: Option<Ratio>) -> Value {
    ratio.map_or(Value::Null, |r| Value::Numeric(r.round4()))
}

/// Weight in seconds.
pub fn seconds(ms: i64) -> Value {
    numeric(Ratio::new(ms.into(), 1000))
}

/// A number of units of `us` since 1970; 0 is null.
pub fn some_time(units: i64, us: i64) -> Value {
    match units {
        0 => Value::Null,
        units => Value::Time(units.saturating_mul(us)),
    }
}

/// Where the figures come from.
pub fn source(coverage: &Coverage) -> Value {
    let known = coverage.ticks_observed > 0;
    Value::Text(if known { "raw" } else { "none" }.into())
}

/// Columns `avg_aas, peak_aas, p99_aas, peak_sessions, backend_seconds` of a
/// key. `sessions` is false where the most rows in one tick is not known.
pub fn measures(cells: &Cells, scanned: &Scanned, total: &Coverage, sessions: bool) -> [Value; 5] {
    if total.observed_ms == 0 {
        return [const { Value::Null }; 5];
    }
    let sum = cells.sum_ms();
    [
        numeric(Ratio::new(sum.into(), total.observed_ms.into())),
        numeric(Some(cells.peak(&scanned.observed))),
        numeric(Some(cells.p99(&scanned.observed))),
        Value::int(sessions.then(|| cells.sessions())),
        seconds(sum),
    ]
}

/// Columns `vcpus, ticks_expected, ticks_observed, ticks_failed,
/// coverage_pct` of a period; `interval_ms` is that of the last tick at or
/// before its end.
pub fn coverage(total: &Coverage, length_us: i64, interval_ms: Option<i64>) -> [Value; 5] {
    [
        numeric(total.vcpus()),
        Value::Int(total.ticks_expected(length_us, interval_ms)),
        Value::Int(total.ticks_observed),
        Value::Int(total.ticks_failed),
        numeric(total.percent(length_us)),
    ]
}

/// The same for a window.
pub fn window_coverage(scanned: &Scanned, total: &Coverage, window: Window) -> [Value; 5] {
    let before = scanned.observed.interval_before.map(|b| b.1);
    let interval = total.last_interval_ms().or(before);
    coverage(total, window.length(), interval)
}

/// Keys with their cells.
pub type Ranked = Vec<(Id, Cells)>;

/// The keys of a group of one dimension, the largest first, ties by key.
pub fn ranked(register: &Register, cube: Cube<Cells>) -> Ranked {
    let keys = cube.into_cells();
    let mut ranked: Vec<_> = keys
        .map(|(key, cells)| (cells.sum_ms(), key.0, cells))
        .collect();
    let ids = register.ids();
    ranked.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| ids.compare(a.1, b.1)));
    ranked
        .into_iter()
        .map(|(_, key, cells)| (key, cells))
        .collect()
}

/// A key as it is shown.
pub fn key_text(register: &Register, dimension: &str, key: Id) -> Value {
    let null = || pg::null_label(dimension).map(str::to_string);
    Value::text(register.text(key).or_else(null))
}

/// The only database a filter lets through, if it is one.
pub fn only_database<'s>(scan: &'s Scan) -> Option<&'s str> {
    let filters = scan.selection.filters.iter();
    filters
        .filter(|(dimension, _)| dimension.name == "database")
        .find_map(|(_, filter)| match filter {
            Filter { any, none } if any.len() == 1 && none.is_empty() => any[0].as_deref(),
            _ => None,
        })
}

/// Texts of query ids given as keys.
pub fn query_texts(scan: &Scan, keys: impl IntoIterator<Item = Id>) -> QueryResult<Texts> {
    let ids = keys.into_iter().filter_map(|key| query_id(scan, key));
    Texts::find(
        ids.map(TextKey::Query),
        scan.parts.iter().copied(),
        scan.others.iter().rev().copied(),
        scan.spec,
    )
}

/// The text of a query id given as key.
pub fn query_text(scan: &Scan, texts: &Texts, key: Id, database: Option<&str>) -> Value {
    let id = query_id(scan, key);
    Value::text(id.and_then(|id| texts.get(TextKey::Query(id), database)))
}

fn query_id(scan: &Scan, key: Id) -> Option<i64> {
    scan.register.text(key)?.parse().ok()
}
