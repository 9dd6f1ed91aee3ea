//! `errors_history`: errors of statements by SQLSTATE.

use super::common_columns::numeric;
use super::statements_history::{statement_filters, text_of, texts, too_many};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::parse::{MAX_ROWS, Window, buckets, limit};
use crate::query::rows::text::Texts;
use crate::query::sums::counters::Counters;
use crate::query::sums::error_sums::{ErrorKey, ErrorSums, Errors};
use crate::query::sums::statement_sums::{EntryKey, Stats};
use crate::query::value::bucket::Buckets;
use crate::query::value::error::QueryResult;
use crate::query::value::filter::Filter;
use crate::query::value::number::Ratio;
use crate::query::value::sqlstate;
use crate::query::value::vocabulary as pg;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

row! {
    /// A row of `errors_history`.
    ErrorsHistoryRow of "errors_history": FIELDS {
        period_start: Time,
        period_end: Time,
        sqlstate: Text,
        condition: Text,
        class_name: Text,
        key: Text,
        query_id: Id,
        database: Text,
        username: Text,
        toplevel: Bool,
        query_text: Text,
        coverage_pct: Numeric,
        errors: Int,
        errors_per_second: Numeric,
    }
}

request! {
    /// Errors of statements by SQLSTATE
    ErrorsHistory of errors_history: ErrorsHistoryRow {
        node,
        since,
        until,
        bucket,
        n("Maximum number of statements with an SQLSTATE, or all", Some("10")),
        sqlstate,
        query_id,
        database,
        username,
        toplevel,
    }
}

fn answer(asked: &ErrorsHistory, run: Run, emit: Emit<ErrorsHistoryRow>) -> QueryResult<()> {
    let window = Window::of(run.context, asked.since, asked.until)?;
    let n = limit(asked.n)?;
    let node = asked.node.as_deref();
    let whole = Buckets::whole(window.since, window.until);
    let buckets = match asked.bucket {
        None => whole.clone(),
        Some(width) => buckets(run.context, window, width, MAX_ROWS)?,
    };
    let sqlstates = asked.sqlstate.as_deref();
    let errors = Errors {
        stats: Stats {
            run,
            window,
            counters: Counters::of(run.catalog).only(|_| false),
            filters: statement_filters!(asked, run)?,
        },
        sqlstates: sqlstates.map(codes).transpose()?,
    };
    let lines = lines(ranked(&errors, node, &whole)?, n);
    let rows = lines.len().saturating_mul(buckets.len());
    if rows > MAX_ROWS && buckets.len() > 1 {
        return Err(too_many(rows));
    }
    let numbers: HashMap<&ErrorKey, u32> = lines.iter().zip(0..).collect();
    let found = errors.sums(node, &buckets, |key| match numbers.get(&key) {
        Some(number) => *number,
        None => *numbers.get(&others(&key)).unwrap_or(&u32::MAX),
    })?;
    let entries: Vec<EntryKey> = lines.iter().filter_map(|key| key.entry.clone()).collect();
    let answer = Answer {
        buckets: &buckets,
        found: &found,
        texts: texts(run, node, window, &entries)?,
    };
    for bucket in 0..buckets.len() {
        for (number, key) in (0..).zip(&lines) {
            if let Some(errors) = found.errors.get(&(number, bucket as u32)) {
                emit(answer.row(bucket, key, *errors))?;
            }
        }
    }
    Ok(())
}

/// The filter for codes and classes, which people also write in small letters.
fn codes(text: &str) -> QueryResult<Filter> {
    let mut filter = Filter::parse("sqlstate", text)?;
    for code in filter.items_mut().flatten() {
        code.make_ascii_uppercase();
    }
    Ok(filter)
}

/// All pairs of a statement and an SQLSTATE, the most frequent first. Among equals the key decides.
fn ranked(errors: &Errors, node: Option<&str>, whole: &Buckets) -> QueryResult<Vec<ErrorKey>> {
    let mut numbers: HashMap<ErrorKey, u32> = HashMap::new();
    let found = errors.sums(node, whole, |key| {
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert(next)
    })?;
    let place = |(key, number): (ErrorKey, u32)| {
        let errors = found.errors.get(&(number, 0)).copied().unwrap_or(0);
        (Reverse(errors), key)
    };
    let mut ranked: Vec<(Reverse<i64>, ErrorKey)> = numbers.into_iter().map(place).collect();
    ranked.sort_unstable();
    Ok(ranked.into_iter().map(|(_, key)| key).collect())
}

/// The line for all other statements with the same SQLSTATE.
fn others(key: &ErrorKey) -> ErrorKey {
    ErrorKey {
        sqlstate: key.sqlstate.clone(),
        entry: None,
    }
}

/// The first `n` statements, then one line for the others of each SQLSTATE, so that the sums by SQLSTATE
/// are complete.
fn lines(ranked: Vec<ErrorKey>, n: usize) -> Vec<ErrorKey> {
    let (mut shown, unnamed): (Vec<_>, Vec<_>) =
        ranked.into_iter().partition(|key| key.entry.is_some());
    let rest = shown.split_off(n.min(shown.len()));
    let rest: BTreeSet<ErrorKey> = rest.iter().chain(&unnamed).map(others).collect();
    shown.into_iter().chain(rest).collect()
}

struct Answer<'a> {
    buckets: &'a Buckets,
    found: &'a ErrorSums,
    texts: Texts,
}

impl Answer<'_> {
    fn row(&self, bucket: usize, key: &ErrorKey, errors: i64) -> ErrorsHistoryRow {
        let (begin, end) = self.buckets.clipped(bucket);
        let recorded = self.found.recorded[bucket];
        let covered = i128::from(recorded.covered_us) * 100;
        let code = key.sqlstate.as_deref();
        let row = ErrorsHistoryRow {
            period_start: Some(begin),
            period_end: Some(end),
            sqlstate: code.map(Arc::from),
            condition: code.and_then(sqlstate::condition).map(Arc::from),
            class_name: code.and_then(sqlstate::class_name).map(Arc::from),
            coverage_pct: numeric(Ratio::new(covered, (end - begin).into())),
            errors: Some(errors),
            errors_per_second: numeric(Ratio::new(
                i128::from(errors) * 1000,
                recorded.elapsed_ms.into(),
            )),
            ..ErrorsHistoryRow::default()
        };
        let Some(entry) = &key.entry else {
            return ErrorsHistoryRow {
                key: Some(pg::OTHER.into()),
                ..row
            };
        };
        let id = entry.query_id.map(|id| id.to_string());
        ErrorsHistoryRow {
            key: Some(id.as_deref().unwrap_or(pg::NO_QUERY_ID).into()),
            query_id: entry.query_id,
            database: entry.database.as_deref().map(Arc::from),
            username: entry.username.as_deref().map(Arc::from),
            toplevel: Some(entry.toplevel),
            query_text: text_of(&self.texts, entry),
            ..row
        }
    }
}
