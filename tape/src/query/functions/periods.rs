//! `periods`: the load of the last minute, hour, day … before a moment.

use super::aas;
use super::{Argument, Call, Function};
use crate::query::bucket::{DAY, HOUR};
use crate::query::error::QueryResult;
use crate::query::parse::Window;
use crate::query::spec::{Field, Sink, Type, Value};

const PERIODS: [(&str, i64); 6] = [
    ("1m", aas::MINUTE),
    ("5m", 5 * aas::MINUTE),
    ("1h", HOUR),
    ("1d", DAY),
    ("1w", 7 * DAY),
    ("1mo", 30 * DAY),
];

const FIELDS: &[Field] = &[
    ("period", Type::Text),
    ("period_start", Type::Time),
    ("period_end", Type::Time),
    ("source", Type::Text),
    ("grain", Type::Interval),
    ("avg_aas", Type::Numeric),
    ("peak_aas", Type::Numeric),
    ("p99_aas", Type::Numeric),
    ("peak_sessions", Type::Int),
    ("backend_seconds", Type::Numeric),
    ("vcpus", Type::Numeric),
    ("ticks_expected", Type::Int),
    ("ticks_observed", Type::Int),
    ("ticks_failed", Type::Int),
    ("coverage_pct", Type::Numeric),
];

pub const FUNCTION: Function = Function {
    name: "periods",
    about: "Average active sessions of the last minute, hour, day, week, month",
    arguments: &[Argument::Until, Argument::Filters, Argument::Zone],
    said: &[],
    fields: FIELDS,
    run,
};

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let now = call.spec.now_us;
    let until = call.spec.until_us.unwrap_or(now).min(now);
    let mut rows = Vec::new();
    for (name, length) in PERIODS {
        let since = until.saturating_sub(length);
        let mut row = vec![Value::Text(name.to_string())];
        row.extend(aas::row(call, Window { since, until })?);
        rows.push(row);
    }
    sink.begin(FIELDS)?;
    rows.into_iter().try_for_each(|row| sink.row(row))
}
