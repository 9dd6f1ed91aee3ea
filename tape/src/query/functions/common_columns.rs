//! Columns that several functions have, and the load of a key.

use crate::query::ask::request::Emit;
use crate::query::ask::row::Numeric;
use crate::query::pass::read::Scanned;
use crate::query::rows::integers::Id;
use crate::query::rows::parse::Window;
use crate::query::rows::register::Register;
use crate::query::rows::scan::Scan;
use crate::query::rows::text::{TextKey, Texts};
use crate::query::rows::ticks::Coverage;
use crate::query::sums::cells::Cells;
use crate::query::sums::measure::Cube;
use crate::query::value::error::QueryResult;
use crate::query::value::filter::Filter;
use crate::query::value::number::Ratio;
use crate::query::value::vocabulary as pg;
use std::sync::Arc;

/// The rows that an answer emits.
pub fn collected<R>(answer: impl FnOnce(Emit<R>) -> QueryResult<()>) -> QueryResult<Vec<R>> {
    let mut rows = Vec::new();
    answer(&mut |row| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// Rounded to four decimals.
pub fn numeric(ratio: Option<Ratio>) -> Option<Numeric> {
    ratio.map(|ratio| Numeric(ratio.round4()))
}

/// Weight in seconds.
pub fn seconds(ms: i64) -> Option<Numeric> {
    numeric(Ratio::new(ms.into(), 1000))
}

/// A time in µs since 1970 from a number of units of `us` µs: `some_time(5, 1000)` is 5,000. `None`
/// for 0.
pub fn some_time(units: i64, us: i64) -> Option<i64> {
    (units != 0).then(|| units.saturating_mul(us))
}

/// The value, or `None` for 0.
pub fn nonzero(value: i64) -> Option<i64> {
    (value != 0).then_some(value)
}

/// `raw` if ticks were observed, otherwise `none`.
pub fn source(coverage: &Coverage) -> Option<Arc<str>> {
    let known = coverage.ticks_observed > 0;
    Some(if known { "raw" } else { "none" }.into())
}

/// The load of a key in a window.
#[derive(Default)]
pub struct Load {
    pub avg_aas: Option<Numeric>,
    pub peak_aas: Option<Numeric>,
    pub p99_aas: Option<Numeric>,
    pub peak_sessions: Option<i64>,
    pub backend_seconds: Option<Numeric>,
}

impl Load {
    /// The load of a key with these cells. `sessions` is false if the largest number of sessions in
    /// one tick is unknown; then its column is null.
    pub fn of(cells: &Cells, scanned: &Scanned, total: &Coverage, sessions: bool) -> Load {
        if total.observed_ms == 0 {
            return Load::default();
        }
        let sum = cells.sum_ms();
        Load {
            avg_aas: numeric(Ratio::new(sum.into(), total.observed_ms.into())),
            peak_aas: numeric(Some(cells.peak(&scanned.observed))),
            p99_aas: numeric(Some(cells.p99(&scanned.observed))),
            peak_sessions: sessions.then(|| cells.sessions()),
            backend_seconds: seconds(sum),
        }
    }
}

/// The observed share of a period.
pub struct Covered {
    pub vcpus: Option<Numeric>,
    pub ticks_expected: Option<i64>,
    pub ticks_observed: Option<i64>,
    pub ticks_failed: Option<i64>,
    pub coverage_pct: Option<Numeric>,
}

impl Covered {
    /// `interval_ms` is the interval of the last tick at or before the end of the period.
    pub fn of(total: &Coverage, length_us: i64, interval_ms: Option<i64>) -> Covered {
        Covered {
            vcpus: numeric(total.vcpus()),
            ticks_expected: Some(total.ticks_expected(length_us, interval_ms)),
            ticks_observed: Some(total.ticks_observed),
            ticks_failed: Some(total.ticks_failed),
            coverage_pct: numeric(total.percent(length_us)),
        }
    }

    /// Same as [`Covered::of`], for a window.
    pub fn of_window(scanned: &Scanned, total: &Coverage, window: Window) -> Covered {
        let before = scanned.observed.interval_before.map(|b| b.1);
        let interval = total.last_interval_ms().or(before);
        Covered::of(total, window.length(), interval)
    }
}

/// Keys with their cells.
pub type Ranked = Vec<(Id, Cells)>;

/// The keys of one dimension with their cells, ordered by the sum of the cells, the largest first.
/// Keys with equal sums are in the order of the keys.
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

/// A key as text.
pub fn key_text(register: &Register, dimension: &str, key: Id) -> Option<Arc<str>> {
    let null = || pg::null_label(dimension).map(str::to_string);
    register.text(key).or_else(null).map(Arc::from)
}

/// The database that a filter accepts, if it accepts only one.
pub fn only_database<'s>(scan: &'s Scan) -> Option<&'s str> {
    let filters = scan.selection.filters.iter();
    filters
        .filter(|(dimension, _)| dimension.name == "database")
        .find_map(|(_, filter)| match filter {
            Filter { any, none } if any.len() == 1 && none.is_empty() => any[0].as_deref(),
            _ => None,
        })
}

/// Texts of queries whose keys are query ids.
pub fn query_texts(scan: &Scan, keys: impl IntoIterator<Item = Id>) -> QueryResult<Texts> {
    let ids = keys.into_iter().filter_map(|key| query_id(scan, key));
    Texts::find(
        ids.map(TextKey::Query),
        scan.parts.iter().copied(),
        scan.others.iter().rev().copied(),
        scan.run,
    )
}

/// The text of a query whose key is a query id.
pub fn query_text(scan: &Scan, texts: &Texts, key: Id, database: Option<&str>) -> Option<Arc<str>> {
    texts.get(TextKey::Query(query_id(scan, key)?), database)
}

fn query_id(scan: &Scan, key: Id) -> Option<i64> {
    scan.register.text(key)?.parse().ok()
}
