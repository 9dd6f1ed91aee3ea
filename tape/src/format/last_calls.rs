//! Times of last calls in sealed files. A group keeps such a time in the last row of each entry, in
//! whole seconds. An earlier row of the entry loses it: the interval of the row has a call, and a
//! later interval of the group has another one.
//!
//! Example: an entry has rows at 10:00, 10:01 and 10:07 with 21.4, 3.2 and 48.9 s since the call.
//! The group keeps 0, 0 and 48 s.

use crate::format::schema::{SINCE_CALL, STATS, Schema};
use crate::format::table::Table;

const SECOND_MS: i64 = 1_000;

/// The time that is kept in place of `since`. Both are in ms plus 1, and 0 is not known.
fn coarse(since: i64) -> i64 {
    match since {
        ..=0 => 0,
        since => since - (since - 1) % SECOND_MS,
    }
}

/// Keeps the last calls of a group. Its rows are sorted by entry and time. `None` if the schema lacks
/// the column.
pub(crate) fn keep_last(schema: &Schema, tables: &mut [Table]) -> Option<()> {
    let (t, since) = schema.column(STATS, SINCE_CALL)?;
    let entry = schema.tables[t].index("entry")?;
    let table = &mut tables[t];
    for row in 0..table.rows {
        let is_last = row + 1 == table.rows || table.get(entry, row + 1) != table.get(entry, row);
        let kept = match is_last {
            true => coarse(table.get(since, row)),
            false => 0,
        };
        table.set(since, row, kept);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stats_schema;

    #[test]
    fn the_last_row_of_an_entry_has_its_last_call_in_seconds() {
        let schema = stats_schema();
        let mut tables: Vec<Table> = schema.tables.iter().map(Table::new).collect();
        let (t, since) = schema.column(STATS, SINCE_CALL).unwrap();
        let entry = schema.tables[t].index("entry").unwrap();
        let rows = [
            (0, 0),
            (1, 21_401),
            (1, 3_201),
            (1, 48_901),
            (2, 1_000),
            (3, 1),
            (4, 0),
        ];
        for (of, value) in rows {
            let row = tables[t].add_row();
            tables[t].set(entry, row, of);
            tables[t].set(since, row, value);
        }
        for _ in 0..2 {
            keep_last(&schema, &mut tables);
            let kept: Vec<i64> = (0..rows.len())
                .map(|row| tables[t].get(since, row))
                .collect();
            assert_eq!(kept, [0, 0, 0, 48_001, 1, 1, 0]);
        }
    }
}
