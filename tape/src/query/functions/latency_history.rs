//! `latency_history`: durations of executions over time.

use super::common_columns::numeric;
use super::statements_history::{scan, statement_filters, too_many};
use crate::format::schema::{HISTOGRAM_BUCKETS, LONG_BUCKETS};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::{Numeric, row};
use crate::query::rows::parse::{MAX_ROWS, Window, buckets};
use crate::query::sums::counters::{Counter, Counters, Named, Sums};
use crate::query::sums::executions::DurationClass;
use crate::query::sums::intervals::Recorded;
use crate::query::sums::statement_sums::Stats;
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::number::Ratio;

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
    /// Execution times of statements over time
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

fn answer(asked: &LatencyHistory, run: Run, emit: Emit<LatencyHistoryRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let buckets = match asked.bucket {
        None => Buckets::whole(window.since, window.until),
        Some(width) => buckets(run.context, window, width, MAX_ROWS)?,
    };
    let rows = buckets
        .len()
        .saturating_mul(HISTOGRAM_BUCKETS + LONG_BUCKETS + 1);
    if rows > MAX_ROWS {
        return Err(too_many(rows));
    }
    let needed = |c: &Counter| c.is_any_of(&[Named::Calls]) || c.is_bucket();
    let stats = Stats {
        run,
        window,
        counters: Counters::of(run.catalog).only(needed),
        filters: statement_filters!(asked, run)?,
    };
    let found = scan(&stats, asked.node.as_deref(), &buckets, |_| 0)?;
    for bucket in 0..buckets.len() {
        let span = buckets.clipped(bucket);
        let recorded = found.recorded[bucket];
        let lines = match recorded.elapsed_ms > 0 {
            true => lines(&stats.counters, found.sums.get(&(0, bucket as u32))),
            false => vec![(None, None)],
        };
        for line in lines {
            emit(row(span, recorded, line))?;
        }
    }
    Ok(())
}

/// Executions in each class of durations that has any. A line without a class has the executions
/// without a measured time, or shows that there were none.
fn lines(counters: &Counters, sums: Option<&Sums>) -> Vec<(Option<DurationClass>, Option<i64>)> {
    let none = counters.zeros();
    let sums = sums.unwrap_or(&none);
    let classes = counters.histogram(sums).classes().into_iter();
    let counted = classes.map(|class| (Some(class), Some(class.count)));
    let mut lines: Vec<_> = counted.filter(|(_, calls)| *calls > Some(0)).collect();
    let timed = lines.iter().filter_map(|(_, calls)| *calls);
    let calls = counters.calls(sums);
    let rest = calls.saturating_sub(timed.fold(0, i64::saturating_add));
    if rest > 0 || lines.is_empty() {
        lines.push((None, Some(rest.max(0))));
    }
    lines
}

fn row(
    (begin, end): (i64, i64),
    recorded: Recorded,
    (class, calls): (Option<DurationClass>, Option<i64>),
) -> LatencyHistoryRow {
    // Converts µs to ten-thousandths of a millisecond.
    let bound = |us: i128| Numeric(us * 10);
    let covered = Ratio::new(i128::from(recorded.covered_us) * 100, (end - begin).into());
    LatencyHistoryRow {
        period_start: Some(begin),
        period_end: Some(end),
        exec_time_from: class.map(|c| bound(c.begin_us)),
        exec_time_to: class.and_then(|c| c.end_us).map(bound),
        calls,
        grain: (recorded.grain_ms > 0).then(|| recorded.grain_ms * 1000),
        coverage_pct: numeric(covered),
    }
}
