//! `periods`: the load of the last minute, hour, day … before a point in time.

use super::aas::{self, WindowLoad, row_of_window};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::rows::parse::{Window, samples};
use crate::query::value::bucket::{DAY, HOUR};
use crate::query::value::error::QueryResult;

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

fn answer(asked: &Periods, run: Run, emit: Emit<PeriodsRow>) -> QueryResult<()> {
    let until = asked.until.unwrap_or(run.now_us).min(run.now_us);
    let mut rows = Vec::new();
    for (name, length) in PERIODS {
        let since = until.saturating_sub(length);
        let window = Window { since, until };
        let load = WindowLoad::read(run, samples!(asked), window, aas::MINUTE)?;
        rows.push(PeriodsRow::of_load(Some(name.into()), load));
    }
    rows.into_iter().try_for_each(emit)
}
