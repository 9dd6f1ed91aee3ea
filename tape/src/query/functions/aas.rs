//! `aas`: the load of a window in one row.

use super::common_columns::{Covered, Load, source};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::rows::parse::{MAX_BUCKETS, Samples, Window, buckets, samples};
use crate::query::rows::scan::Scan;
use crate::query::sums::cells::Cells;
use crate::query::value::bucket::SECOND;
use crate::query::value::error::QueryResult;
use std::sync::Arc;

/// One minute in µs, the default width of a bucket.
pub const MINUTE: i64 = 60 * SECOND;

/// Describes the columns of a function whose rows have columns of their own, then the load of a
/// window. `$row::of_load` makes such a row.
macro_rules! row_of_window {
    ($(#[$doc:meta])* $row:ident of $function:literal { $($column:ident: $type:ident,)* }) => {
        $crate::query::ask::row::row! {
            $(#[$doc])*
            $row of $function: FIELDS {
                $($column: $type,)*
                period_start: Time,
                period_end: Time,
                source: Text,
                grain: Interval,
                avg_aas: Numeric,
                peak_aas: Numeric,
                p99_aas: Numeric,
                peak_sessions: Int,
                backend_seconds: Numeric,
                vcpus: Numeric,
                ticks_expected: Int,
                ticks_observed: Int,
                ticks_failed: Int,
                coverage_pct: Numeric,
            }
        }

        impl $row {
            fn of_load(
                $($column: Option<$crate::query::ask::row::rust::$type>,)*
                load: $crate::query::functions::aas::WindowLoad,
            ) -> $row {
                $row {
                    $($column,)*
                    period_start: Some(load.window.since),
                    period_end: Some(load.window.until),
                    source: load.source,
                    grain: Some(load.width),
                    avg_aas: load.load.avg_aas,
                    peak_aas: load.load.peak_aas,
                    p99_aas: load.load.p99_aas,
                    peak_sessions: load.load.peak_sessions,
                    backend_seconds: load.load.backend_seconds,
                    vcpus: load.covered.vcpus,
                    ticks_expected: load.covered.ticks_expected,
                    ticks_observed: load.covered.ticks_observed,
                    ticks_failed: load.covered.ticks_failed,
                    coverage_pct: load.covered.coverage_pct,
                }
            }
        }
    };
}
pub(super) use row_of_window;

row_of_window! {
    /// A row of `aas`.
    AasRow of "aas" {}
}

request! {
    /// Average active sessions of a window
    Aas of aas: AasRow {
        node,
        since,
        until,
        bucket,
        scope,
        by_leader,
        filters,
    }
}

fn answer(asked: &Aas, run: Run, emit: Emit<AasRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let width = asked.bucket.unwrap_or(MINUTE);
    let load = WindowLoad::read(run, samples!(asked), window, width)?;
    emit(AasRow::of_load(load))
}

/// The load of a window.
pub struct WindowLoad {
    pub window: Window,
    pub source: Option<Arc<str>>,
    /// Width of a bucket in µs.
    pub width: i64,
    pub load: Load,
    pub covered: Covered,
}

impl WindowLoad {
    /// Adds up the samples of a window.
    pub fn read(run: Run, samples: Samples, window: Window, width: i64) -> QueryResult<WindowLoad> {
        let buckets = buckets(run.context, window, width, MAX_BUCKETS)?;
        let scan = Scan::new(run, samples, window)?;
        let mut scanned = scan.sums(buckets, &[vec![]])?;
        let cube = scanned.cubes.pop().unwrap_or_default();
        let cells = cube.into_cells().next().map_or(Cells::default(), |k| k.1);
        let total = scanned.observed.total();
        Ok(WindowLoad {
            window,
            source: source(&total),
            width,
            load: Load::of(&cells, &scanned, &total, true),
            covered: Covered::of_window(&scanned, &total, window),
        })
    }
}
