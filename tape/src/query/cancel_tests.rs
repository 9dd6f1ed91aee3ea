//! How soon a cancelled question ends, in columns of ticks and samples that are
//! still read: one is the most that is done between two looks at the flag.

use super::{CANCELED, Field, QueryResult, Sink, Spec, Value, run};
use crate::build::PartBuilder;
use crate::error::Result;
use crate::part::{Identity, Part, Source};
use crate::schema::RUN;
use crate::store::Store;
use crate::table::{BytesColumn, Column};
use crate::testing::schema;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Columns of ticks and runs that were read; cancels at one of them.
#[derive(Default)]
struct Reads {
    count: AtomicUsize,
    cancel_at: usize,
    cancel: AtomicBool,
}

struct Watched {
    part: Part,
    reads: Arc<Reads>,
}

impl Source for Watched {
    fn rows(&self, table: usize) -> usize {
        self.part.rows(&self.part.schema().tables[table].name)
    }

    fn ints(&self, table: usize, column: usize) -> Result<Option<Column>> {
        let table = &self.part.schema().tables[table];
        let count = &self.reads.count;
        let counts = [RUN, "tick"].contains(&table.name.as_str());
        if counts && count.fetch_add(1, Ordering::Relaxed) + 1 == self.reads.cancel_at {
            self.reads.cancel.store(true, Ordering::Relaxed);
        }
        let values = self.part.ints(&table.name, &table.columns[column].name);
        values.map(Some)
    }

    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        let table = &self.part.schema().tables[table];
        let values = self.part.bytes(&table.name, &table.columns[column].name);
        values.map(Some)
    }
}

/// Two sessions that wait and execute one thing after the other.
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

/// Asks for a filtered split and cancels at a read; returns how many columns
/// were read, and rows or the SQLSTATE of the error.
fn ask(cancel_at: usize) -> (usize, std::result::Result<usize, &'static str>) {
    let reads = Arc::new(Reads {
        cancel_at,
        ..Reads::default()
    });
    let watched = [0, 100, 200].map(|first| {
        let part = part(first);
        let schema = Arc::new(part.schema().clone());
        let info = part.info().clone();
        let reads = reads.clone();
        Part::new(info, schema, Arc::new(Watched { part, reads }))
    });
    let (store, catalog) = (Store::from_parts(watched), schema());
    let mut spec = Spec::new(&catalog, 1_000_000_000);
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
    let done = run("top", &spec, &store, &reads.cancel, &mut rows);
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
