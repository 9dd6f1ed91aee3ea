//! `aas`, `periods`, `summary`, `timeline` and `top` equal sums over the rows of `samples()`, and
//! `samples()` equals the rows that were put in. Tapes are random: gaps, failed ticks, mixed
//! intervals, parts in memory, groups of sealed files with all, some or no totals. Few keys and
//! more keys than are printed are read in one pass and in two. Filters, windows and time zones are
//! random; zones change their clocks within the tape.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "support/model.rs"]
mod model;
#[path = "support/naive.rs"]
mod naive;

use model::{Asked, Tape, ask, catalog};
use naive::{Measures, Naive, fraction};
use proptest::prelude::*;
use tacho_tape::query::Value;
use tacho_tape::testing::{Answer, Arguments};

const MINUTE: i64 = 60_000_000;

/// Lengths of the periods in minutes.
const PERIODS: [i64; 6] = [1, 5, 60, 1_440, 7 * 1_440, 30 * 1_440];

fn spec(asked: &Asked) -> Arguments<'_> {
    let mut spec = Arguments::new(catalog(), model::NOW_US);
    spec.since_us = Some(asked.since_us);
    spec.until_us = Some(asked.until_us);
    spec.bucket_us = Some(asked.bucket_us);
    spec.zone = asked.clocks.as_ref().map(|clocks| clocks as _);
    spec.scope = Some(asked.scope.to_string());
    spec.by_leader = asked.by_leader;
    spec.filters = asked.filters.clone();
    spec.threads = asked.threads;
    spec.totals = asked.totals;
    spec.few_keys = asked.few_keys;
    spec
}

fn all_samples(tape: &Tape, asked: &Asked) -> Answer {
    let mut spec = spec(asked);
    (spec.scope, spec.filters, spec.by_leader) = (Some("all".into()), vec![], false);
    ask("samples", &spec, &tape.store(asked))
}

fn check_top(tape: &Tape, asked: &Asked, naive: &Naive) {
    let mut spec = spec(asked);
    spec.dimension = Some(asked.dimension.to_string());
    spec.order_by = Some(asked.order_by.to_string());
    spec.n = Some(asked.n);
    let got = ask("top", &spec, &tape.store(asked));
    let want = naive.top(asked);
    assert_eq!(got.rows.len(), want.len(), "rows of top: {got:?}");
    for (row, want) in want.iter().enumerate() {
        check_line(&got, row, "key", want);
    }
    spec.by = Some(asked.by.to_string());
    let got = ask("top", &spec, &tape.store(asked));
    let want = naive.split(asked);
    assert_eq!(got.rows.len(), want.len(), "rows of a split: {got:?}");
    for (row, (key, part)) in want.iter().enumerate() {
        assert_eq!(got.get(row, "key"), key_value(key));
        check_line(&got, row, "by_key", part);
    }
}

fn key_value(key: &Option<String>) -> Value {
    Value::text(key.clone())
}

fn check_line(got: &Answer, row: usize, named: &str, want: &Measures) {
    let key = key_value(&want.key);
    assert_eq!(got.get(row, named), key);
    for (column, value) in [
        ("avg_aas", &want.avg),
        ("peak_aas", &want.peak),
        ("p99_aas", &want.p99),
        ("backend_seconds", &want.seconds),
        ("pct", &want.pct),
    ] {
        assert_eq!(
            got.get(row, column),
            fraction(*value),
            "{column} of {key:?}"
        );
    }
    let sessions = want.sessions.map_or(Value::Null, Value::Int);
    assert_eq!(got.get(row, "peak_sessions"), sessions);
}

fn check_timeline(tape: &Tape, asked: &Asked, naive: &Naive) {
    let Some(got) = model::ask_timeline(&spec(asked), tape, asked) else {
        return;
    };
    let want = naive.timeline(asked);
    assert_eq!(got.rows.len(), want.len());
    for (row, want) in want.iter().enumerate() {
        assert_eq!(got.get(row, "bucket_start"), Value::Time(want.start_us));
        assert_eq!(got.get(row, "avg_aas"), fraction(want.avg), "bucket {row}");
        let sessions = want.sessions.map_or(Value::Null, Value::Int);
        assert_eq!(got.get(row, "peak_sessions"), sessions);
        assert_eq!(got.get(row, "ticks_observed"), Value::Int(want.observed));
        assert_eq!(got.get(row, "ticks_failed"), Value::Int(want.failed));
        assert_eq!(got.get(row, "ticks_expected"), Value::Int(want.expected));
    }
}

fn check_aas(tape: &Tape, asked: &Asked, naive: &Naive) {
    let got = ask("aas", &spec(asked), &tape.store(asked));
    let want = naive.aas(asked);
    assert_eq!(got.rows.len(), 1);
    assert_eq!(got.get(0, "avg_aas"), fraction(want.avg));
    assert_eq!(got.get(0, "peak_aas"), fraction(want.peak));
    assert_eq!(got.get(0, "p99_aas"), fraction(want.p99));
    assert_eq!(got.get(0, "backend_seconds"), fraction(want.seconds));
    let sessions = want.sessions.map_or(Value::Null, Value::Int);
    assert_eq!(got.get(0, "peak_sessions"), sessions);
}

/// All periods; their peaks only if a naive scan is fast enough.
fn check_periods(tape: &Tape, asked: &Asked) {
    let mut spec = spec(asked);
    spec.bucket_us = None;
    let got = ask("periods", &spec, &tape.store(asked));
    for (row, minutes) in PERIODS.into_iter().enumerate() {
        let length = minutes * MINUTE;
        let is_short = minutes <= 60;
        let asked = Asked {
            since_us: asked.until_us - length,
            bucket_us: if is_short { MINUTE } else { length },
            clocks: asked.clocks.filter(|_| is_short),
            ..asked.clone()
        };
        let naive = Naive::new(tape, &all_samples(tape, &asked), &asked);
        let want = naive.aas(&asked);
        assert_eq!(got.get(row, "avg_aas"), fraction(want.avg), "{minutes} min");
        assert_eq!(got.get(row, "backend_seconds"), fraction(want.seconds));
        if is_short {
            assert_eq!(got.get(row, "peak_aas"), fraction(want.peak));
            assert_eq!(got.get(row, "p99_aas"), fraction(want.p99));
        }
    }
}

/// Load and largest wait events of a summary.
fn check_summary(tape: &Tape, asked: &Asked) {
    let asked = Asked {
        bucket_us: MINUTE,
        dimension: "wait_event",
        order_by: "avg",
        n: 3,
        ..asked.clone()
    };
    let got = ask("summary", &spec(&asked), &tape.store(&asked));
    let metric = |name: &str| {
        let found = got.rows.iter().find(|r| r[0] == Value::Text(name.into()));
        found.map(|row| row[1].clone())
    };
    let shown = |value: Value| match value {
        Value::Numeric(n) => Value::Text(format!("{}.{:04}", n / 10_000, n % 10_000).into()),
        other => other,
    };
    let naive = Naive::new(tape, &all_samples(tape, &asked), &asked);
    let want = naive.aas(&asked);
    for (name, value) in [
        ("avg_aas", want.avg),
        ("peak_aas", want.peak),
        ("p99_aas", want.p99),
        ("backend_seconds", want.seconds),
    ] {
        assert_eq!(metric(name), Some(shown(fraction(value))), "{name}");
    }
    let waits = naive.top(&asked);
    let waits = waits.iter().filter(|w| w.key.as_deref() != Some("(other)"));
    for (rank, want) in waits.enumerate() {
        let line = metric(&format!("top_wait_{}", rank + 1));
        let Some(Value::Text(line)) = line else {
            panic!("no wait of rank {rank}: {got:?}");
        };
        let key = want.key.as_deref().unwrap_or("(null)");
        assert!(line.starts_with(&format!("{key} ")), "{line} for {key}");
    }
}

/// The parts of a split, and the keys, add up to the whole.
fn check_sums(tape: &Tape, asked: &Asked) {
    let store = tape.store(asked);
    let mut spec = spec(asked);
    let seconds = |answer: &Answer| -> i128 {
        let rows = 0..answer.rows.len();
        rows.map(|row| match answer.get(row, "backend_seconds") {
            Value::Numeric(n) => n,
            _ => 0,
        })
        .sum()
    };
    let whole = seconds(&ask("aas", &spec, &store));
    spec.dimension = Some(asked.dimension.to_string());
    spec.by = Some(asked.by.to_string());
    spec.n = Some(asked.n);
    assert_eq!(seconds(&ask("top", &spec, &store)), whole);
    if let Some(lines) = model::ask_timeline(&spec, tape, asked) {
        assert_eq!(seconds(&lines), whole);
    }
}

#[test]
fn each_dimension_of_the_catalog_is_filtered_by() {
    let filtered: Vec<&str> = model::VALUES.iter().map(|(name, _)| *name).collect();
    assert_eq!(filtered, model::dimensions());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn functions_equal_a_naive_scan_of_samples(tape in model::tape(), asked in model::asked()) {
        let samples = all_samples(&tape, &asked);
        tape.check_samples(&samples, &asked);
        let naive = Naive::new(&tape, &samples, &asked);
        check_aas(&tape, &asked, &naive);
        check_timeline(&tape, &asked, &naive);
        check_top(&tape, &asked, &naive);
        check_periods(&tape, &asked);
        check_summary(&tape, &asked);
        check_sums(&tape, &asked);
    }
}
