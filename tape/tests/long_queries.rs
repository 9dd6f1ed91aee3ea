//! Long queries: they end when they are cancelled, report their progress, and fail before memory
//! runs out.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tacho_tape::query::{Field, QueryError, QueryResult, Sink, Value};
use tacho_tape::testing::{Arguments, run};
use tacho_tape::{Identity, Part, PartBuilder, Schema, Snapshot};

const PARTS: u64 = 50;
/// Number of ticks of a part, one a second.
const TICKS: u64 = 100;

struct Nowhere;

impl Sink for Nowhere {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, _: Vec<Value>) -> QueryResult<()> {
        Ok(())
    }
}

fn catalog() -> Schema {
    tacho_tape::catalog::samples()
}

fn part(number: u64) -> Part {
    let mut b = PartBuilder::new(Arc::new(catalog().with_runs())).unwrap();
    let application = b.name(&number.to_string().repeat(2_000)).unwrap();
    let session = [("pid", 7), ("category", 1), ("application", application)];
    let session = b.intern("session", &session).unwrap();
    for tick in number * TICKS..(number + 1) * TICKS {
        let time = 1_000 * tick as i64;
        let values = [
            ("tick", tick as i64),
            ("slot_time", time),
            ("interval_ms", 1_000),
        ];
        b.row("tick", &values).unwrap();
        b.sample(tick, session, &[("state", 1)]).unwrap();
    }
    b.finish(Identity::default())
}

#[derive(Default)]
struct How<'a> {
    dimension: Option<&'a str>,
    progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
    bucket_us: Option<i64>,
    memory_bytes: Option<u64>,
    threads: usize,
}

fn ask(how: &How, cancel: &AtomicBool) -> Result<(), QueryError> {
    let catalog = catalog();
    let end = (PARTS * TICKS) as i64 * 1_000_000;
    let mut spec = Arguments::new(&catalog, end);
    spec.since_us = Some(0);
    spec.dimension = Some(how.dimension.unwrap_or("pid").into());
    spec.progress = how.progress;
    spec.bucket_us = how.bucket_us;
    spec.memory_bytes = how.memory_bytes;
    spec.threads = how.threads;
    spec.cancel = cancel;
    let store = Snapshot::from_parts((0..PARTS).map(part));
    run("top", &spec, &store, &mut Nowhere)
}

#[test]
fn a_cancelled_query_reads_no_further_part() {
    let (cancel, read) = (AtomicBool::new(false), AtomicUsize::new(0));
    let progress = |done: usize, all: usize| {
        assert_eq!(all as u64, PARTS);
        read.store(done, Ordering::Relaxed);
        cancel.store(done == 3, Ordering::Relaxed);
    };
    let how = How {
        progress: Some(&progress),
        ..How::default()
    };
    let error = ask(&how, &cancel).unwrap_err();
    assert_eq!(error.sqlstate, "57014");
    assert_eq!(read.load(Ordering::Relaxed), 3);
}

#[test]
fn every_part_is_counted_once() {
    let told = AtomicUsize::new(0);
    let progress = |_: usize, _: usize| {
        told.fetch_add(1, Ordering::Relaxed);
    };
    let how = How {
        progress: Some(&progress),
        threads: 3,
        ..How::default()
    };
    ask(&how, &AtomicBool::new(false)).unwrap();
    assert_eq!(told.load(Ordering::Relaxed) as u64, PARTS);
}

#[test]
fn keys_that_do_not_fit_into_memory_are_an_error() {
    let with = |dimension| How {
        dimension: Some(dimension),
        memory_bytes: Some(1 << 17),
        ..How::default()
    };
    let never = AtomicBool::new(false);
    ask(&with("pid"), &never).unwrap();
    let error = ask(&with("application"), &never).unwrap_err();
    assert_eq!(error.sqlstate, "53200");
}

#[test]
fn an_answer_that_does_not_fit_into_memory_is_an_error() {
    let with = |bytes: u64| How {
        bucket_us: Some(1_000_000),
        memory_bytes: Some(bytes),
        ..How::default()
    };
    let never = AtomicBool::new(false);
    ask(&with(1 << 20), &never).unwrap();
    let error = ask(&with(1 << 16), &never).unwrap_err();
    assert_eq!(error.sqlstate, "53200");
    assert_eq!(error.detail.as_deref(), Some("The limit is 0 MB."));
}
