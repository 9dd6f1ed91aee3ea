//! Counts the columns that a question still reads after it was cancelled. `top` reads at most one
//! column of ticks or samples; every other function ends with the part that it is reading.

use super::damage_tests::{NODE, Question, catalog, fill, questions, spec_of};
use super::{CANCELED, Field, QueryResult, Sink, Value};
use crate::error::Result;
use crate::format::part::{Identity, Part, Source};
use crate::format::part_builder::PartBuilder;
use crate::format::schema::RUN;
use crate::format::table::{BytesColumn, Column};
use crate::store::snapshot::Snapshot;
use crate::testing::{Arguments, Random, run, schema};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Counts the columns that are read, and cancels at one of them.
#[derive(Default)]
struct Reads {
    /// If true, columns of all tables count, otherwise only columns of ticks and runs.
    all: bool,
    count: AtomicUsize,
    cancel_at: usize,
    cancel: AtomicBool,
    /// Number of the part for each column that was read after the cancel.
    late: Mutex<Vec<u64>>,
}

impl Reads {
    fn read(&self, part: &Part, table: &str) {
        if !self.all && ![RUN, "tick"].contains(&table) {
            return;
        }
        if self.cancel.load(Ordering::Relaxed) {
            self.late.lock().unwrap().push(part.first_tick());
        }
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.cancel_at {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }
}

struct Watched {
    part: Part,
    reads: Arc<Reads>,
    /// Columns read since they were last released. Reading them again costs nothing.
    known: Mutex<HashSet<(usize, usize)>>,
}

impl Watched {
    fn read(&self, table: usize, column: usize) -> (&str, &str) {
        let (number, table) = (table, &self.part.schema().tables[table]);
        let is_new = self.known.lock().unwrap().insert((number, column));
        if is_new || !self.reads.all {
            self.reads.read(&self.part, &table.name);
        }
        (&table.name, &table.columns[column].name)
    }
}

impl Source for Watched {
    fn rows(&self, table: usize) -> usize {
        self.part.rows(&self.part.schema().tables[table].name)
    }

    fn ints(&self, table: usize, column: usize) -> Result<Option<Column>> {
        let (table, column) = self.read(table, column);
        self.part.ints(table, column).map(Some)
    }

    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        let (table, column) = self.read(table, column);
        self.part.bytes(table, column).map(Some)
    }

    fn release(&self, _shared: bool) {
        self.known.lock().unwrap().clear();
    }
}

/// Two sessions that wait and execute statements one after the other.
fn part(first: i64) -> Part {
    let mut b = PartBuilder::new(Arc::new(schema().with_runs())).unwrap();
    let waits = [1, 2].map(|number| b.intern("wait", &[("number", number)]).unwrap());
    let statements = [3, 4, 5].map(|id| b.intern("statement", &[("query_id", id)]).unwrap());
    let sessions = [7, 8].map(|pid| {
        let session = [("pid", pid), ("category", 1)];
        b.intern("session", &session).unwrap()
    });
    for tick in first..first + 40 {
        let values = [("tick", tick), ("slot_time", 1_000 * tick)];
        let values = [values[0], values[1], ("interval_ms", 1_000)];
        b.row("tick", &values).unwrap();
        for session in sessions {
            let at = tick as usize;
            let (wait, statement) = (waits[at % 2], statements[at % 3]);
            let values = [("state", 1), ("wait", wait), ("statement", statement)];
            b.sample(tick as u64, session, &values).unwrap();
        }
    }
    b.finish(Identity::default())
}

struct Rows(usize);

impl Sink for Rows {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, _: Vec<Value>) -> QueryResult<()> {
        self.0 += 1;
        Ok(())
    }
}

/// A history of these parts whose reads are counted.
fn watched(parts: impl IntoIterator<Item = Part>, reads: &Arc<Reads>) -> Snapshot {
    let parts = parts.into_iter().map(|part| {
        let schema = Arc::new(part.schema().clone());
        let info = part.info().clone();
        let reads = reads.clone();
        let known = Mutex::default();
        Part::new(info, schema, Arc::new(Watched { part, reads, known }))
    });
    Snapshot::from_parts(parts)
}

/// Asks for a filtered split and cancels at a read. Returns the number of columns read, and the
/// number of rows or the SQLSTATE of the error.
fn ask(cancel_at: usize) -> (usize, std::result::Result<usize, &'static str>) {
    let reads = Arc::new(Reads {
        cancel_at,
        ..Reads::default()
    });
    let store = watched([0, 100, 200].map(part), &reads);
    let catalog = schema();
    let mut spec = Arguments::new(&catalog, 1_000_000_000);
    spec.since_us = Some(0);
    spec.dimension = Some("wait_event_type".into());
    spec.by = Some("query_id".into());
    spec.n = Some(2);
    spec.filters = vec![
        ("pid".into(), "7".into()),
        ("state".into(), "active".into()),
        ("query_id".into(), "!5".into()),
    ];
    let mut rows = Rows(0);
    spec.cancel = &reads.cancel;
    let done = run("top", &spec, &store, &mut rows);
    let done = done.map(|()| rows.0).map_err(|error| error.sqlstate);
    (reads.count.load(Ordering::Relaxed), done)
}

#[test]
fn a_cancelled_question_reads_no_more_than_one_other_column() {
    let (all, done) = ask(usize::MAX);
    assert!(done.is_ok_and(|rows| rows > 0), "{done:?}");
    // Places, filters and keys of three parts.
    assert!(all >= 3 * 7, "{all} reads");
    for cancel_at in 1..=all {
        let (read, done) = ask(cancel_at);
        assert_eq!(done, Err(CANCELED), "cancelled at {cancel_at} of {all}");
        assert!(read <= cancel_at + 1, "cancelled at {cancel_at}: {read}");
    }
}

/// An hour with rows of every kind.
fn hour(number: i64) -> Part {
    let mut b = PartBuilder::new(Arc::new(catalog().clone())).unwrap();
    fill(&mut b, number);
    b.finish(Identity {
        node: NODE,
        ..Identity::default()
    })
}

/// Asks any question about some hours and cancels at a read. Returns the reads, and the number of
/// rows or the SQLSTATE of the error.
fn ask_hours(
    question: Question,
    hours: &[Part],
    cancel_at: usize,
) -> (Arc<Reads>, std::result::Result<usize, &'static str>) {
    let reads = Arc::new(Reads {
        all: true,
        cancel_at,
        ..Reads::default()
    });
    let store = watched(hours.iter().cloned(), &reads);
    let mut spec = spec_of(question);
    spec.threads = 1;
    let mut rows = Rows(0);
    spec.cancel = &reads.cancel;
    let done = run(question.0, &spec, &store, &mut rows);
    let done = done.map(|()| rows.0).map_err(|error| error.sqlstate);
    (reads, done)
}

/// Maximum number of columns of a part that are read after the cancel. Most of them belong to
/// `samples`.
const MOST: usize = 50;

#[test]
fn whenever_a_function_is_cancelled_it_reads_no_other_part() {
    let hours: Vec<Part> = (0..4).map(hour).collect();
    let mut random = Random(1);
    for question in questions() {
        let (reads, done) = ask_hours(question, &hours, usize::MAX);
        let all = reads.count.load(Ordering::Relaxed);
        assert!(done.is_ok(), "{question:?}: {done:?}");
        for _ in 0..40 {
            let at = 1 + random.below(all as u64) as usize;
            let (reads, done) = ask_hours(question, &hours, at);
            let late = reads.late.lock().unwrap();
            let mut parts = late.clone();
            parts.dedup();
            let what = format!("{question:?} at {at} of {all}: {late:?}");
            assert_eq!(done, Err(CANCELED), "{what}");
            assert!(parts.len() <= 1 && late.len() <= MOST, "{what}");
        }
    }
}
