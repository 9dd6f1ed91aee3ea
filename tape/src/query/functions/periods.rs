//! `periods`: the load of the last minute, hour, day … before a moment.

use super::Call;
use super::aas::{self, row_of_window};
use crate::query::bucket::{DAY, HOUR};
use crate::query::error::QueryResult;
use crate::query::parse::Window;
use crate::query::request::request;
use crate::query::spec::{Sink, Value};

const PERIODS: [(&str, i64); 6] = [
    ("1m", aas::MINUTE),
    ("5m", 5 * aas::MINUTE),
    ("1h", HOUR),
    ("1d", DAY),
    ("1w", 7 * DAY),
    ("1mo", 30 * DAY),
];

row_of_window! {
    /// A row of `periods`.
    PeriodsRow of "periods" {
        period: Text,
    }
}

request! {
    /// Average active sessions of the last minute, hour, day, week, month
    Periods of periods: PeriodsRow {
        node,
        until,
        scope,
        by_leader,
        filters,
    }
}

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let now = call.spec.now_us;
    let until = call.spec.until_us.unwrap_or(now).min(now);
    let mut rows = Vec::new();
    for (name, length) in PERIODS {
        let since = until.saturating_sub(length);
        let mut row = vec![Value::Text(name.into())];
        row.extend(aas::row(call, Window { since, until })?);
        rows.push(row);
    }
    sink.begin(FIELDS)?;
    rows.into_iter().try_for_each(|row| sink.row(row))
}
