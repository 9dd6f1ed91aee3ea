//! Thins old statistics of statements. Each row covers a period. Rows with the same
//! entry, plan and SQLSTATE whose periods have their middle in the same interval become one row.
//! Every counter is summed, so the sum over all rows stays the same. The longest execution is the
//! greatest of the rows. The time since the last call is taken from the latest row.

use crate::format::schema::{ERROR_STATS, PLAN_STATS, SINCE_CALL, STATS, Schema};
use crate::format::table::{Data, Table};
use std::collections::HashMap;

/// Adds up the rows of `statement_stats`, `plan_stats` and `error_stats` in intervals of `width_ms`.
pub fn thin(schema: &Schema, tables: &mut [Table], width_ms: i64) {
    thin_table(schema, tables, STATS, &["entry"], width_ms);
    let plan = ["entry", "plan_id", "plan_since", "was_alone"];
    thin_table(schema, tables, PLAN_STATS, &plan, width_ms);
    thin_table(
        schema,
        tables,
        ERROR_STATS,
        &["entry", "sqlstate"],
        width_ms,
    );
}

/// Adds up the rows of one table that have equal keys.
fn thin_table(
    schema: &Schema,
    tables: &mut [Table],
    name: &str,
    keys: &[&str],
    width_ms: i64,
) -> Option<()> {
    let t = schema.index(name)?;
    let def = &schema.tables[t];
    let (time, elapsed) = (def.index("time")?, def.index("elapsed_ms")?);
    let keys: Vec<usize> = keys
        .iter()
        .map(|key| def.index(key))
        .collect::<Option<_>>()?;
    let longest = def.index("max_exec_time");
    let since_call = def.index(SINCE_CALL);
    let old = std::mem::replace(&mut tables[t], Table::new(def));
    let mut rows: HashMap<(Vec<i64>, i64), usize> = HashMap::new();
    let new = &mut tables[t];
    let mut target = Vec::with_capacity(old.rows);
    for row in 0..old.rows {
        let middle = old.get(time, row) - old.get(elapsed, row) / 2;
        let own = keys.iter().map(|&c| old.get(c, row)).collect();
        let key = (own, middle.div_euclid(width_ms.max(1)));
        let to = *rows.entry(key).or_insert_with(|| new.add_row());
        for &c in &keys {
            new.set(c, to, old.get(c, row));
        }
        if let Some(c) = since_call
            && old.get(time, row) >= new.get(time, to)
        {
            new.set(c, to, old.get(c, row));
        }
        new.set(time, to, new.get(time, to).max(old.get(time, row)));
        target.push(to);
    }
    for (c, column) in old.columns.iter().enumerate() {
        if let Data::Ints(values) = column
            && c != time
            && Some(c) != since_call
            && !keys.contains(&c)
        {
            for (&value, &to) in values.iter().zip(&target) {
                let own = new.get(c, to);
                new.set(
                    c,
                    to,
                    match Some(c) == longest {
                        true => own.max(value),
                        false => own.saturating_add(value),
                    },
                );
            }
        }
    }
    if let (Some(longest), Some(calls)) = (longest, def.index("calls")) {
        forget_longest(&old, new, (longest, calls), &target);
    }
    new.pad();
    Some(())
}

/// Sets the longest execution of a row to 0 (unknown) if a row that became part of it has calls,
/// but no longest execution.
fn forget_longest(
    old: &Table,
    new: &mut Table,
    (longest, calls): (usize, usize),
    target: &[usize],
) {
    for (row, &to) in target.iter().enumerate() {
        if old.get(longest, row) == 0 && old.get(calls, row) > 0 {
            new.set(longest, to, 0);
        }
    }
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

    #[test]
    fn the_latest_row_has_the_last_call() {
        let schema = stats_schema();
        let rows: Vec<_> = (1..=12).map(|m| (m % 2, m * 60_000, 60_000, 1)).collect();
        let mut tables = table(&schema, &rows);
        let (t, c) = schema.column(STATS, SINCE_CALL).unwrap();
        for row in 0..12 {
            tables[t].set(c, row, 1_000 + row as i64);
        }
        tables[t].set(c, 11, 0);
        thin(&schema, &mut tables, 600_000);
        assert_eq!(column(&schema, &tables, "entry"), [1, 0, 1, 0]);
        let minutes = [9, 10, 11, 12].map(|minute| minute * 60_000);
        assert_eq!(column(&schema, &tables, "time"), minutes);
        let since = [1_008, 1_009, 1_010, 0];
        assert_eq!(column(&schema, &tables, SINCE_CALL), since);
    }

    #[test]
    fn plans_are_added_up_each_for_itself() {
        let schema = stats_schema();
        let mut tables: Vec<Table> = schema.tables.iter().map(Table::new).collect();
        let t = schema.index(PLAN_STATS).unwrap();
        let names = ["plan_id", "time", "calls", "max_exec_time"];
        let rows = [
            [7, 60_000, 10, 5],
            [8, 60_000, 1, 9],
            [7, 120_000, 20, 3],
            [8, 120_000, 2, 0],
            [7, 660_000, 30, 4],
        ];
        for values in rows {
            let row = tables[t].add_row();
            for (name, value) in names.iter().zip(values) {
                let (_, c) = schema.column(PLAN_STATS, name).unwrap();
                tables[t].set(c, row, value);
            }
            let (_, elapsed) = schema.column(PLAN_STATS, "elapsed_ms").unwrap();
            tables[t].set(elapsed, row, 60_000);
        }
        tables[t].pad();
        thin(&schema, &mut tables, 600_000);
        let of = |name: &str| -> Vec<i64> {
            let (_, c) = schema.column(PLAN_STATS, name).unwrap();
            (0..tables[t].rows)
                .map(|row| tables[t].get(c, row))
                .collect()
        };
        assert_eq!(of("plan_id"), [7, 8, 7]);
        assert_eq!(of("calls"), [30, 3, 30]);
        assert_eq!(of("time"), [120_000, 120_000, 660_000]);
        assert_eq!(of("max_exec_time"), [5, 0, 4]);
    }

    #[test]
    fn errors_are_added_up_by_sqlstate() {
        let schema = stats_schema();
        let mut tables: Vec<Table> = schema.tables.iter().map(Table::new).collect();
        let t = schema.index(ERROR_STATS).unwrap();
        let names = ["time", "elapsed_ms", "entry", "sqlstate", "errors"];
        let rows = [
            [60_000, 60_000, 1, 23, 5],
            [60_000, 60_000, 1, 40, 1],
            [120_000, 60_000, 1, 23, 7],
            [120_000, 60_000, 2, 23, 2],
        ];
        for values in rows {
            let row = tables[t].add_row();
            for (name, value) in names.iter().zip(values) {
                let (_, c) = schema.column(ERROR_STATS, name).unwrap();
                tables[t].set(c, row, value);
            }
        }
        tables[t].pad();
        thin(&schema, &mut tables, 600_000);
        let mut after: Vec<[i64; 5]> = (0..tables[t].rows)
            .map(|row| {
                names.map(|name| tables[t].get(schema.column(ERROR_STATS, name).unwrap().1, row))
            })
            .collect();
        after.sort_unstable();
        let expected = [
            [60_000, 60_000, 1, 40, 1],
            [120_000, 60_000, 2, 23, 2],
            [120_000, 120_000, 1, 23, 12],
        ];
        assert_eq!(after, expected);
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
