//! Thins old statistics of statements. Each row covers a period. The rows of an entry whose periods
//! have their middle in the same interval become one row. Every counter is summed, so the sum over
//! all rows stays the same.

use crate::format::schema::{STATS, Schema};
use crate::format::table::{Data, Table};
use std::collections::HashMap;

/// Adds up the rows of `statement_stats` in intervals of `width_ms`.
pub fn thin(schema: &Schema, tables: &mut [Table], width_ms: i64) {
    let Some(t) = schema.index(STATS) else {
        return;
    };
    let def = &schema.tables[t];
    let place = |name| def.index(name);
    let (Some(time), Some(elapsed), Some(entry)) =
        (place("time"), place("elapsed_ms"), place("entry"))
    else {
        return;
    };
    let old = std::mem::replace(&mut tables[t], Table::new(def));
    let mut rows: HashMap<(i64, i64), usize> = HashMap::new();
    let new = &mut tables[t];
    let mut target = Vec::with_capacity(old.rows);
    for row in 0..old.rows {
        let middle = old.get(time, row) - old.get(elapsed, row) / 2;
        let key = (old.get(entry, row), middle.div_euclid(width_ms.max(1)));
        let to = *rows.entry(key).or_insert_with(|| new.add_row());
        new.set(entry, to, key.0);
        new.set(time, to, new.get(time, to).max(old.get(time, row)));
        target.push(to);
    }
    for (c, column) in old.columns.iter().enumerate() {
        if let Data::Ints(values) = column
            && c != time
            && c != entry
        {
            for (&value, &to) in values.iter().zip(&target) {
                new.set(c, to, new.get(c, to).saturating_add(value));
            }
        }
    }
    new.pad();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stats_schema;
    use proptest::prelude::*;

    fn table(schema: &Schema, rows: &[(i64, i64, i64, i64)]) -> Vec<Table> {
        let mut tables: Vec<Table> = schema.tables.iter().map(Table::new).collect();
        let t = schema.index(STATS).unwrap();
        let names = ["entry", "time", "elapsed_ms", "calls", "histogram_3"];
        for &(entry, time, elapsed, calls) in rows {
            let row = tables[t].add_row();
            for (name, value) in names.iter().zip([entry, time, elapsed, calls, calls / 2]) {
                let (_, c) = schema.column(STATS, name).unwrap();
                tables[t].set(c, row, value);
            }
        }
        tables[t].pad();
        tables
    }

    fn column(schema: &Schema, tables: &[Table], name: &str) -> Vec<i64> {
        let (t, c) = schema.column(STATS, name).unwrap();
        (0..tables[t].rows)
            .map(|row| tables[t].get(c, row))
            .collect()
    }

    #[test]
    fn minutes_become_ten_minutes() {
        let schema = stats_schema();
        let rows: Vec<_> = (1..=20)
            .map(|m| (m % 2, m * 60_000 + 13, 60_000, 1))
            .collect();
        let mut tables = table(&schema, &rows);
        thin(&schema, &mut tables, 600_000);
        assert_eq!(column(&schema, &tables, "calls"), [5, 5, 5, 5]);
        assert_eq!(column(&schema, &tables, "entry"), [1, 0, 1, 0]);
        assert_eq!(column(&schema, &tables, "elapsed_ms"), [300_000; 4]);
        let times = [540_013, 600_013, 1_140_013, 1_200_013];
        assert_eq!(column(&schema, &tables, "time"), times);
    }

    proptest! {
        #[test]
        fn sums_before_are_sums_after(
            rows in prop::collection::vec((0..4i64, 0..90_000_000i64, 1..100_000i64, 0..1_000i64), 0..60),
            widths in prop::collection::vec(1..4_000_000i64, 1..4),
        ) {
            let schema = stats_schema();
            let mut tables = table(&schema, &rows);
            let names = ["elapsed_ms", "calls", "histogram_3"];
            let by_entry = |tables: &[Table]| {
                let entries = column(&schema, tables, "entry");
                let mut sums = vec![0; 12];
                for (n, name) in names.iter().enumerate() {
                    for (entry, value) in entries.iter().zip(column(&schema, tables, name)) {
                        sums[n * 4 + *entry as usize] += value;
                    }
                }
                sums
            };
            let before = by_entry(&tables);
            for width in widths {
                thin(&schema, &mut tables, width);
                prop_assert_eq!(by_entry(&tables), before.clone());
                let after = tables.clone();
                thin(&schema, &mut tables, width);
                prop_assert_eq!(by_entry(&tables), by_entry(&after));
            }
        }
    }
}
