//! Wrong totals in files whose checksums are right: no answer uses them.

use super::{Field, QueryResult, Sink, Value};
use crate::error::Result;
use crate::files::directory::Numbers;
use crate::format::entry::COLUMN;
use crate::format::footer::Chunks;
use crate::format::part::{Identity, Part, Source};
use crate::format::part_builder::PartBuilder;
use crate::format::schema::Schema;
use crate::format::sealed_write::FrameRange;
use crate::format::table::{BytesColumn, Column};
use crate::store::snapshot::Snapshot;
use crate::testing::memory::MemoryStorage;
use crate::testing::{Arguments, run, schema};
use crate::write::merge_tests::{NODE, go, sealed_files};
use crate::write::seal::SealedFile;
use std::fmt::Write;
use std::sync::Arc;

/// A part in which one column has the same value in all rows except the first.
struct Changed {
    part: Part,
    table: &'static str,
    column: &'static str,
    value: i64,
}

impl Source for Changed {
    fn rows(&self, table: usize) -> usize {
        self.part.rows(&self.part.schema().tables[table].name)
    }

    fn ints(&self, table: usize, column: usize) -> Result<Option<Column>> {
        let table = &self.part.schema().tables[table];
        let column = &table.columns[column];
        let values = self.part.ints(&table.name, &column.name)?;
        if (table.name.as_str(), column.name.as_str()) != (self.table, self.column) {
            return Ok(Some(values));
        }
        assert!(values.len() > 2, "{} rows of {}", values.len(), self.table);
        let mut values = values.to_vec();
        values[1..].fill(self.value);
        Ok(Some(Column(Arc::new(values))))
    }

    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        let table = &self.part.schema().tables[table];
        let values = self.part.bytes(&table.name, &table.columns[column].name);
        values.map(Some)
    }
}

struct Text(String);

impl Sink for Text {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, row: Vec<Value>) -> QueryResult<()> {
        let _ = writeln!(self.0, "{row:?}");
        Ok(())
    }
}

fn answers(parts: &[Part], totals: bool) -> String {
    let (store, catalog) = (Snapshot::from_parts(parts.to_vec()), schema());
    let until_ms = parts.iter().map(Part::max_ms).max().unwrap() + 1_000;
    let mut text = Text(String::new());
    for (function, dimension) in [
        ("timeline", None),
        ("aas", None),
        ("top", Some("wait_event")),
        ("top", Some("query_id")),
    ] {
        let mut spec = Arguments::new(&catalog, 1_000 * until_ms);
        spec.since_us = Some(1_000 * parts[0].min_ms());
        spec.until_us = Some(1_000 * until_ms);
        spec.bucket_us = Some(60_000_000);
        spec.dimension = dimension.map(str::to_string);
        spec.n = Some(5);
        spec.totals = totals;
        run(function, &spec, &store, &mut text).unwrap();
    }
    text.0
}

#[test]
fn totals_with_impossible_values_are_not_believed() {
    let (storage, _) = sealed_files(1, 2, 60);
    go(&storage, 2).unwrap().unwrap();
    let store = Snapshot::open_storage(&storage).unwrap();
    let parts: Vec<Part> = store.parts(NODE).cloned().collect();
    let truth = answers(&parts, false);
    assert_eq!(answers(&parts, true), truth);
    let minute = parts[0].min_ms() / 60_000;
    let sums = ["observed_ms", "failed_ms", "ticks_observed", "ticks_failed"];
    let mut cases = vec![("minute_wait_event", "sum_ms", 1 << 51)];
    cases.extend([
        ("group_query_id", "sum_ms", 1 << 51),
        ("minute_query_id", "sum_ms", 1 << 51),
    ]);
    cases.extend(sums.map(|column| ("minute", column, i64::MAX)));
    cases.extend(sums.map(|column| ("minute", column, -1)));
    cases.extend([
        ("minute", "last_slot_ms", i64::MIN),
        ("minute", "sum_ms", 1 << 51),
    ]);
    let minutes = [minute - 1, minute + 1_000, -1, i64::MIN, i64::MAX];
    cases.extend(minutes.map(|minute| ("minute", "minute", minute)));
    for (table, column, value) in cases {
        let changed = changed(&parts, table, column, value);
        assert_eq!(answers(&changed, true), truth, "{table}.{column} = {value}");
    }
}

fn changed(parts: &[Part], table: &'static str, column: &'static str, value: i64) -> Vec<Part> {
    let changed = parts.iter().map(|part| {
        let source = Changed {
            part: part.clone(),
            table,
            column,
            value,
        };
        let schema = Arc::new(part.schema().clone());
        Part::new(part.info().clone(), schema, Arc::new(source))
    });
    changed.collect()
}

/// Minute at which the history of three groups begins. Each group has two minutes of two ticks.
const FIRST: i64 = 100;

/// Two sessions run query 1 in each tick, a third one does so in the first tick of each group. Four
/// others run the group's own query (11, 12, 13), but only two of them in the group's second
/// minute. Query 1 is the largest of the file, and the only one with minutes of the whole file.
fn three_groups(schema: Schema) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let mut b = PartBuilder::new(Arc::new(schema)).unwrap();
    let identity = Identity {
        node: NODE,
        ..Identity::default()
    };
    let file = SealedFile::create(&storage, Numbers::one(1), b.schema(), identity).unwrap();
    let mut file = file.with_minute_keys(1);
    for group in 0..3 {
        for second in [0, 30, 60, 90] {
            let tick = 4 * group + second / 30;
            let slot_ms = 60_000 * (FIRST + 2 * group) + 1_000 * second;
            let values = [("tick", tick), ("slot_time", slot_ms)];
            let values = [&values[..], &[("interval_ms", 30_000), ("status", 1)]].concat();
            b.row("tick", &values).unwrap();
            let own = if second < 60 { 4 } else { 2 };
            let common = if second == 0 { 3 } else { 2 };
            let queries = [vec![1; common], vec![11 + group; own]].concat();
            for (pid, query) in (1..).zip(queries) {
                let session = [("pid", pid), ("category", 1)];
                let session = b.intern("session", &session).unwrap();
                let statement = b.intern("statement", &[("query_id", query)]).unwrap();
                let values = [("state", 1), ("statement", statement)];
                b.sample(tick as u64, session, &values).unwrap();
            }
        }
        file.group(&mut b, FrameRange::default()).unwrap();
    }
    file.finish(&storage, b).unwrap();
    storage
}

/// `top` of the queries of one group by minute, and the number of chunks of samples that it read.
fn top_of_group(storage: &MemoryStorage, group: i64, n: i64, totals: bool) -> (String, usize) {
    let (store, catalog) = (Snapshot::open_storage(storage).unwrap(), schema());
    let minute = 60_000_000;
    let since = minute * (FIRST + 2 * group);
    let mut spec = Arguments::new(&catalog, since + 9 * minute);
    (spec.since_us, spec.until_us) = (Some(since), Some(since + 2 * minute));
    spec.dimension = Some("query_id".into());
    (spec.n, spec.totals, spec.texts) = (Some(n), totals, false);
    storage.take_spans();
    let mut text = Text(String::new());
    run("top", &spec, &store, &mut text).unwrap();
    let read: Vec<u64> = storage
        .take_spans()
        .into_iter()
        .map(|read| read.1)
        .collect();
    let bytes = storage.bytes_of("0000000001.tape").unwrap();
    let mut chunks = Chunks::new(&bytes);
    let chunks = std::iter::from_fn(|| chunks.next_valid());
    let runs = catalog.tables[catalog.index("sample").unwrap()].id;
    let of_runs = chunks.filter(|(entry, _)| entry.kind == COLUMN && entry.table == runs);
    let read_of_runs = of_runs.filter(|(entry, _)| read.contains(&entry.offset));
    (text.0, read_of_runs.count())
}

#[test]
fn a_file_has_the_minutes_of_each_groups_largest_keys() {
    let storage = three_groups(schema().with_runs());
    let store = Snapshot::open_storage(&storage).unwrap();
    let part = store.parts(NODE).next().unwrap();
    let column = |table, name| part.ints(table, name).unwrap().to_vec();
    let queries = column("statement", "query_id");
    let query_ids = |keys: Vec<i64>| -> Vec<i64> {
        keys.iter().map(|key| queries[*key as usize - 1]).collect()
    };
    let of_file = query_ids(column("minute_query_id", "key"));
    assert_eq!(of_file, [1; 6]);
    let sums = column("minute_query_id", "sum_ms");
    assert_eq!(sums, [150_000, 120_000, 150_000, 120_000, 150_000, 120_000]);
    let own = "group_minute_query_id";
    assert_eq!(column(own, "group"), [1, 1, 2, 2, 3, 3]);
    assert_eq!(query_ids(column(own, "key")), [11, 11, 12, 12, 13, 13]);
    let sums = column(own, "sum_ms");
    assert_eq!(sums, [240_000, 120_000, 240_000, 120_000, 240_000, 120_000]);
}

#[test]
fn the_largest_query_of_a_group_needs_no_samples() {
    let storage = three_groups(schema().with_runs());
    let mut old = schema().with_runs();
    old.tables
        .retain(|table| table.name != "group_minute_query_id");
    let old = three_groups(old);
    for group in 0..3 {
        for n in [1, 2, 3] {
            let (truth, read) = top_of_group(&storage, group, n, false);
            assert!(read > 0, "the oracle reads samples");
            assert_eq!(top_of_group(&storage, group, n, true), (truth.clone(), 0));
            let (answer, read) = top_of_group(&old, group, n, true);
            assert_eq!(answer, truth);
            assert!(read > 0, "a file without the table has too few minutes");
        }
    }
}

#[test]
fn wrong_minutes_of_a_group_are_not_believed() {
    let storage = three_groups(schema().with_runs());
    let store = Snapshot::open_storage(&storage).unwrap();
    let parts: Vec<Part> = store.parts(NODE).cloned().collect();
    let truth = answers(&parts, false);
    assert_eq!(answers(&parts, true), truth);
    for value in [1 << 51, -1, i64::MIN] {
        let changed = changed(&parts, "group_minute_query_id", "sum_ms", value);
        assert_eq!(answers(&changed, true), truth, "{value}");
    }
}
