//! The texts of a merged file: the most used ones, up to a limit. Omitted texts are counted; no row
//! is lost with them.

use crate::format::part_builder::PartBuilder;
use crate::format::schema::{ColumnType, RUN, Schema};
use crate::format::table::{Data, Table};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Key of a text: the query id, or without one the text's key.
type Key = (i64, i64);

/// Number of uses of each dictionary row that has a text, by table and reference.
#[derive(Default)]
pub(crate) struct Usage(HashMap<usize, Vec<u64>>);

/// Number and bytes of the omitted texts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) texts: usize,
    pub(crate) bytes: usize,
}

impl Usage {
    /// Counts the uses in a table: one for each sample, and one for each row of other tables.
    pub(crate) fn count(&mut self, schema: &Schema, t: usize, rows: &Table) {
        let def = &schema.tables[t];
        let ticks = def.index("ticks").filter(|_| def.name == RUN);
        for (c, column) in def.columns.iter().enumerate() {
            let target = schema.index(&column.target);
            let target = target.filter(|_| column.ty == ColumnType::Ref);
            let target = target.filter(|&t| schema.tables[t].index("query_id").is_some());
            let Some(target) = target else {
                continue;
            };
            let used = self.0.entry(target).or_default();
            let Data::Ints(references) = &rows.columns[c] else {
                continue;
            };
            for (row, &reference) in references.iter().enumerate() {
                let length = ticks.map(|ticks| rows.get(ticks, row));
                let weight = length.map_or(1, |n| u64::try_from(n).unwrap_or(0));
                let reference = usize::try_from(reference).unwrap_or(0);
                if used.len() <= reference {
                    used.resize(reference + 1, 0);
                }
                used[reference] = used[reference].saturating_add(weight);
            }
        }
    }

    fn by_key(&self, schema: &Schema, tables: &[Table]) -> HashMap<Key, u64> {
        let mut used: HashMap<Key, u64> = HashMap::new();
        for (&t, weights) in &self.0 {
            let index = |name| schema.tables[t].index(name);
            let [query_id, text_key] = [index("query_id"), index("text_key")];
            // Reference 0 means no row.
            let weights = weights.iter().skip(1).enumerate();
            for (row, &weight) in weights.filter(|w| *w.1 > 0) {
                let value = |c: Option<usize>| c.map_or(0, |c| tables[t].get(c, row));
                let known = used.entry(key(value(query_id), value(text_key)));
                let known = known.or_default();
                *known = known.saturating_add(weight);
            }
        }
        used
    }
}

fn key(query_id: i64, text_key: i64) -> Key {
    match query_id {
        0 => (0, text_key),
        id => (id, 0),
    }
}

/// Sorts the texts, most used first, and drops the texts beyond the limit in bytes.
pub(crate) fn limit(builder: &mut PartBuilder, usage: &Usage, most_bytes: u64) -> LeftOut {
    let schema = builder.schema();
    let Some(t) = schema.index("text") else {
        return LeftOut::default();
    };
    let used = usage.by_key(&schema, &builder.tables);
    let def = &schema.tables[t];
    let table = &mut builder.tables[t];
    table.pad();
    let (query_id, text_key) = (def.index("query_id"), def.index("text_key"));
    let weight = |row: usize| {
        let value = |c: Option<usize>| c.map_or(0, |c| table.get(c, row));
        used.get(&key(value(query_id), value(text_key))).copied()
    };
    let mut order: Vec<usize> = (0..table.rows).collect();
    order.sort_by_cached_key(|&row| Reverse(weight(row).unwrap_or(0)));
    let length = |row: usize| -> usize {
        let strings = table.columns.iter().map(|data| match data {
            Data::Bytes(strings) => strings.get(row).len(),
            Data::Ints(_) => 0,
        });
        strings.sum()
    };
    let (mut kept, mut left_out, mut bytes) = (Vec::new(), LeftOut::default(), 0_u64);
    for row in order {
        let length = length(row);
        bytes = bytes.saturating_add(length as u64);
        if bytes <= most_bytes {
            kept.push(row);
        } else {
            left_out.texts += 1;
            left_out.bytes += length;
        }
    }
    *table = table.select(&kept);
    left_out
}
