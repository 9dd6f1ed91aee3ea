//! `aas`: the load of a window in one row.

use super::Call;
use super::common_columns::{measures, source, window_coverage};
use crate::query::bucket::SECOND;
use crate::query::cells::Cells;
use crate::query::error::QueryResult;
use crate::query::parse::{MAX_BUCKETS, Window, buckets};
use crate::query::request::request;
use crate::query::scan::Scan;
use crate::query::spec::{Sink, Value};

/// Default width of a bucket.
pub const MINUTE: i64 = 60 * SECOND;

/// Describes the columns of a function whose rows are those of [`row`], behind its
/// own.
macro_rules! row_of_window {
    ($(#[$doc:meta])* $row:ident of $function:literal { $($column:ident: $type:ident,)* }) => {
        $crate::query::row::row! {
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

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let window = Window::of(call.spec)?;
    let row = row(call, window)?;
    sink.begin(FIELDS)?;
    sink.row(row)
}

/// The row of a window.
pub fn row(call: &Call, window: Window) -> QueryResult<Vec<Value>> {
    let width = call.spec.bucket_us.unwrap_or(MINUTE);
    let buckets = buckets(call.spec, window, width, MAX_BUCKETS)?;
    let scan = Scan::new(call.spec, call.store, window)?;
    let mut scanned = scan.sums(buckets, &[vec![]])?;
    let cube = scanned.cubes.pop().unwrap_or_default();
    let cells = cube.into_cells().next().map_or(Cells::default(), |k| k.1);
    let total = scanned.observed.total();
    let mut row = vec![
        Value::Time(window.since),
        Value::Time(window.until),
        source(&total),
        Value::Interval(width),
    ];
    row.extend(measures(&cells, &scanned, &total, true));
    row.extend(window_coverage(&scanned, &total, window));
    Ok(row)
}
