//! `latency_history`: how long executions took, over time.

use super::Call;
use super::common_columns::numeric;
use super::statements_history::{filters, scan, too_many};
use crate::format::schema::{HISTOGRAM_BUCKETS, LONG_BUCKETS};
use crate::query::bucket::Buckets;
use crate::query::error::QueryResult;
use crate::query::number::Ratio;
use crate::query::parse::{MAX_ROWS, Window, buckets};
use crate::query::request::request;
use crate::query::row::row;
use crate::query::spec::{Sink, Value};
use crate::query::statement_sums::{
    Counter, DurationClass, Recorded, Stats, Sums, counters, duration_classes, is_bucket,
};

row! {
    /// A row of `latency_history`.
    LatencyHistoryRow of "latency_history": FIELDS {
        period_start: Time,
        period_end: Time,
        exec_time_from: Numeric,
        exec_time_to: Numeric,
        calls: Int,
        grain: Interval,
        coverage_pct: Numeric,
    }
}

request! {
    /// How long executions of statements took, over time
    LatencyHistory of latency_history: LatencyHistoryRow {
        node,
        since,
        until,
        bucket,
        query_id,
        database,
        username,
        toplevel,
    }
}

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let spec = call.spec;
    let window = Window::of(spec)?;
    let buckets = match spec.bucket_us {
        None => Buckets::whole(window.since, window.until),
        Some(width) => buckets(spec, window, width, MAX_ROWS)?,
    };
    let rows = buckets
        .len()
        .saturating_mul(HISTOGRAM_BUCKETS + LONG_BUCKETS + 1);
    if rows > MAX_ROWS {
        return Err(too_many(rows));
    }
    let needed = |c: &Counter| c.name == "calls" || is_bucket(&c.name);
    let all = counters(spec.catalog);
    let stats = Stats {
        window,
        counters: all.into_iter().filter(needed).collect(),
        filters: filters(spec)?,
        decode: spec.decode,
        damage: &spec.damage,
        cancel: call.spec.cancel,
    };
    let found = scan(call, &stats, &buckets, |_| 0)?;
    sink.begin(FIELDS)?;
    for bucket in 0..buckets.len() {
        let span = buckets.clipped(bucket);
        let recorded = found.recorded[bucket];
        let lines = match recorded.elapsed_ms > 0 {
            true => lines(&stats.counters, found.sums.get(&(0, bucket as u32))),
            false => vec![(None, None)],
        };
        for line in lines {
            sink.row(row(span, recorded, line))?;
        }
    }
    Ok(())
}

/// Executions by class of durations, as far as there are any. Without a class
/// stand those whose time was not counted, or that there were none.
fn lines(counters: &[Counter], sums: Option<&Sums>) -> Vec<(Option<DurationClass>, Option<i64>)> {
    let get = |name: &str| {
        let place = counters.iter().position(|c| c.name == name);
        place.zip(sums).map_or(0, |(place, sums)| sums.0[place])
    };
    let classes = duration_classes(get).into_iter();
    let counted = classes.map(|class| (Some(class), Some(class.count)));
    let mut lines: Vec<_> = counted.filter(|(_, calls)| *calls > Some(0)).collect();
    let timed = lines.iter().filter_map(|(_, calls)| *calls);
    let rest = get("calls").saturating_sub(timed.fold(0, i64::saturating_add));
    if rest > 0 || lines.is_empty() {
        lines.push((None, Some(rest.max(0))));
    }
    lines
}

fn row(
    (begin, end): (i64, i64),
    recorded: Recorded,
    (class, calls): (Option<DurationClass>, Option<i64>),
) -> Vec<Value> {
    // A ten thousandth of a millisecond is a tenth of a microsecond.
    let bound = |us: i128| Value::Numeric(us * 10);
    let (begin_us, end_us) = (class.map(|c| c.begin_us), class.and_then(|c| c.end_us));
    let grain = (recorded.grain_ms > 0).then(|| Value::Interval(recorded.grain_ms * 1000));
    let covered = Ratio::new(i128::from(recorded.covered_us) * 100, (end - begin).into());
    vec![
        Value::Time(begin),
        Value::Time(end),
        begin_us.map_or(Value::Null, bound),
        end_us.map_or(Value::Null, bound),
        calls.map_or(Value::Null, Value::Int),
        grain.unwrap_or(Value::Null),
        numeric(covered),
    ]
}
