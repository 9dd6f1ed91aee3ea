//! Wrong totals in files whose checksums are right: no answer uses them.

use super::{Field, QueryResult, Sink, Value};
use crate::error::Result;
use crate::format::part::{Part, Source};
use crate::format::table::{BytesColumn, Column};
use crate::store::snapshot::Snapshot;
use crate::testing::{Arguments, run, schema};
use crate::write::merge_tests::{NODE, go, sealed_files};
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
        let changed: Vec<Part> = changed.collect();
        assert_eq!(answers(&changed, true), truth, "{table}.{column} = {value}");
    }
}
