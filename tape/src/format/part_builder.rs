//! Builds a part in memory from rows; `ingest.rs` does it from frames.

use crate::error::{Error, Kind, Result};
use crate::fast::Fold;
use crate::format::part::{Identity, Memory, Part, PartInfo};
use crate::format::runs::RunBuilder;
use crate::format::schema::{PLAN_STATS, RUN, STATS, Schema};
use crate::format::table::{Data, Table};
use std::hash::Hasher;
use std::sync::Arc;

/// Builds a part row by row. Values are the ones that readers get: REF and NAME columns hold row
/// index + 1, times and ticks are absolute. Ticks and samples must be added in ascending order.
pub struct PartBuilder {
    pub(crate) schema: Arc<Schema>,
    pub(crate) tables: Vec<Table>,
    /// True for dictionaries, by index of the table in the schema.
    pub(crate) is_dictionary: Vec<bool>,
    pub(crate) runs: RunBuilder,
    pub(crate) lost_definitions: u64,
    pub(crate) dropped_rows: u64,
    /// Table of names, and its columns `encoding` and `bytes`.
    name: Option<(usize, usize, usize)>,
    /// Hashes of the rows of each dictionary, by index of the table in the schema.
    known: Vec<RowHashes>,
    /// The values of the current row, including zeros.
    key: Vec<i64>,
}

/// A table and some of its columns, in the order in which callers give values.
#[derive(Clone, Debug, Default)]
pub struct RowPlan {
    table: usize,
    columns: Vec<usize>,
}

/// Maps the rows of another dictionary to rows of this one.
pub(crate) enum Places {
    /// Each row has the same index in both dictionaries; their number of rows.
    Same(usize),
    /// For each row of the other dictionary the index of the same row in this one.
    Other(Vec<u32>),
}

impl Places {
    /// The reference in this dictionary for a reference of the other one; `None` if there is no
    /// such row.
    pub(crate) fn of(&self, reference: i64) -> Option<i64> {
        let Some(row) = usize::try_from(reference).ok()?.checked_sub(1) else {
            return Some(0);
        };
        match self {
            Places::Same(rows) => (row < *rows).then_some(reference),
            Places::Other(places) => places.get(row).map(|&place| i64::from(place) + 1),
        }
    }
}

/// Rows of a table by the hash of their contents. The values are only in the table. A row takes 11
/// to 21 bytes here, and 32 while the hash table grows.
#[derive(Default)]
struct RowHashes {
    /// Part of the hash and row + 1; (0, 0) if empty. The number of places is a power of two; at
    /// least a quarter of them is empty.
    places: Vec<(u32, u32)>,
    rows: usize,
}

impl RowHashes {
    /// The row with this hash for which `same` is true.
    fn find(&self, hash: u64, same: impl Fn(usize) -> bool) -> Option<usize> {
        let last = self.places.len().checked_sub(1)?;
        let mut place = hash as usize & last;
        loop {
            match self.places[place] {
                (_, 0) => return None,
                (known, row) if known == hash as u32 && same(row as usize - 1) => {
                    return Some(row as usize - 1);
                }
                _ => place = (place + 1) & last,
            }
        }
    }

    /// Adds a row that was not found.
    fn add(&mut self, hash: u64, row: usize) {
        let Ok(row) = u32::try_from(row + 1) else {
            return;
        };
        if self.rows >= self.places.len() / 4 * 3 {
            let more = (self.places.len() * 2).max(16);
            let before = std::mem::replace(&mut self.places, vec![(0, 0); more]);
            before.into_iter().for_each(|place| self.put(place));
        }
        self.put((hash as u32, row));
        self.rows += 1;
    }

    fn put(&mut self, (hash, row): (u32, u32)) {
        let last = self.places.len() - 1;
        let mut place = hash as usize & last;
        while self.places[place].1 != 0 {
            place = (place + 1) & last;
        }
        self.places[place] = (hash, row);
    }
}

/// The hash of a row: its numbers, and its strings in the order of the columns.
fn hash_of<'a>(ints: impl Iterator<Item = i64>, strings: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hash = Fold::default();
    ints.for_each(|value| hash.write_i64(value));
    for string in strings {
        hash.write_usize(string.len());
        hash.write(string);
    }
    hash.finish()
}

impl PartBuilder {
    /// Creates a builder for a schema in which `run` replaces `sample` ([`Schema::with_runs`]).
    ///
    /// # Errors
    /// The schema lacks table `run` or a part of it.
    pub fn new(schema: Arc<Schema>) -> Result<Self> {
        let runs = RunBuilder::new(&schema);
        let runs = runs.ok_or_else(|| Error::damaged("schema has no table \"run\""))?;
        let name = schema.column("name", "encoding");
        let name = name.zip(schema.column("name", "bytes"));
        let name = name.map(|((t, encoding), (_, bytes))| (t, encoding, bytes));
        let known = schema.tables.iter().map(|_| RowHashes::default()).collect();
        let is_dictionary = (0..schema.tables.len()).map(|t| schema.is_dictionary(t));
        Ok(PartBuilder {
            is_dictionary: is_dictionary.collect(),
            tables: schema.tables.iter().map(Table::new).collect(),
            runs,
            schema,
            lost_definitions: 0,
            dropped_rows: 0,
            name,
            known,
            key: Vec::new(),
        })
    }

    /// Reference to a name in UTF-8; equal names have one reference. An empty name is null.
    ///
    /// # Errors
    /// The schema has no table `name`.
    pub fn name(&mut self, name: &str) -> Result<i64> {
        if name.is_empty() {
            return Ok(0);
        }
        self.name_bytes(6, name.as_bytes())
    }

    /// Reference to a name in the encoding with this PostgreSQL id.
    ///
    /// # Errors
    /// The schema has no table `name`.
    pub fn name_bytes(&mut self, encoding: i64, name: &[u8]) -> Result<i64> {
        let Some((t, encodings, strings)) = self.name else {
            return Err(no_table("name"));
        };
        self.key.clear();
        self.key.resize(self.tables[t].columns.len(), 0);
        self.key[encodings] = encoding;
        let row = self.intern_key(t, &[(strings, name)]);
        Ok(row as i64 + 1)
    }

    /// The row of a dictionary with the values of `key` and these strings. Adds it if it is
    /// missing.
    fn intern_key(&mut self, t: usize, strings: &[(usize, &[u8])]) -> usize {
        let (key, table) = (&self.key, &mut self.tables[t]);
        let hash = hash_of(key.iter().copied(), strings.iter().map(|s| s.1));
        let same = |row| {
            let mut values = key.iter().enumerate();
            let mut strings = strings.iter();
            values.all(|(column, &value)| table.get(column, row) == value)
                && strings.all(|&(column, string)| table.string(column, row) == string)
        };
        if let Some(row) = self.known[t].find(hash, same) {
            return row;
        }
        let row = table.add_row();
        for (column, &value) in key.iter().enumerate() {
            table.set(column, row, value);
        }
        for &(column, string) in strings {
            table.set_bytes(column, string);
        }
        self.known[t].add(hash, row);
        row
    }

    /// Adds the rows of another dictionary; returns their places here. If the dictionary here is
    /// empty, it takes over their memory.
    pub(crate) fn intern_table(&mut self, t: usize, rows: Table) -> Places {
        let rows = match self.adopt(t, rows) {
            Ok(adopted) => return Places::Same(adopted),
            Err(rows) => rows,
        };
        self.tables[t].make_room(&rows);
        let columns = rows.columns.len();
        let is_string = |c: &usize| matches!(rows.columns[*c], Data::Bytes(_));
        let of_strings: Vec<usize> = (0..columns).filter(is_string).collect();
        let mut strings = Vec::with_capacity(of_strings.len());
        let places = (0..rows.rows).map(|row| {
            self.key.clear();
            self.key.extend((0..columns).map(|c| rows.get(c, row)));
            strings.clear();
            strings.extend(of_strings.iter().map(|&c| (c, rows.string(c, row))));
            self.intern_key(t, &strings) as u32
        });
        Places::Other(places.collect())
    }

    /// Makes `rows` the rows of the dictionary, without a copy. Returns them if the dictionary is
    /// not empty, or if two of them are equal.
    fn adopt(&mut self, t: usize, rows: Table) -> std::result::Result<usize, Table> {
        if self.tables[t].rows > 0 {
            return Err(rows);
        }
        let columns = 0..rows.columns.len();
        let is_string = |c: &usize| matches!(rows.columns[*c], Data::Bytes(_));
        let of_strings: Vec<usize> = columns.clone().filter(is_string).collect();
        let mut known = RowHashes::default();
        for row in 0..rows.rows {
            let ints = columns.clone().map(|c| rows.get(c, row));
            let hash = hash_of(ints, of_strings.iter().map(|&c| rows.string(c, row)));
            let same = |other| rows.same(row, other);
            match known.find(hash, same) {
                Some(_) => return Err(rows),
                None => known.add(hash, row),
            }
        }
        let adopted = rows.rows;
        (self.tables[t], self.known[t]) = (rows, known);
        Ok(adopted)
    }

    /// Reference to a dictionary row (`wait`, `statement`, `session`,
    /// `entry`); equal rows have one reference.
    ///
    /// # Errors
    /// The table or a column is not in the schema.
    pub fn intern(&mut self, table: &str, values: &[(&str, i64)]) -> Result<i64> {
        let plan = self.plan(table, values.iter().map(|v| v.0))?;
        let values: Vec<i64> = values.iter().map(|v| v.1).collect();
        Ok(self.intern_row(&plan, &values))
    }

    /// A plan for values of these columns.
    ///
    /// # Errors
    /// The table or a column is not in the schema.
    pub fn plan<'a>(
        &self,
        table: &str,
        columns: impl IntoIterator<Item = &'a str>,
    ) -> Result<RowPlan> {
        let table = self.table_index(table)?;
        let columns = columns.into_iter().map(|c| self.column_index(table, c));
        let columns = columns.collect::<Result<_>>()?;
        Ok(RowPlan { table, columns })
    }

    /// Same as [`PartBuilder::intern`], with columns from a plan.
    pub fn intern_row(&mut self, plan: &RowPlan, values: &[i64]) -> i64 {
        self.key.clear();
        self.key.resize(self.tables[plan.table].columns.len(), 0);
        for (&column, &value) in plan.columns.iter().zip(values) {
            self.key[column] = value;
        }
        self.intern_key(plan.table, &[]) as i64 + 1
    }

    /// True if the row with this reference has these values.
    pub fn is_row(&self, plan: &RowPlan, reference: i64, values: &[i64]) -> bool {
        let table = &self.tables[plan.table];
        let row = usize::try_from(reference - 1).unwrap_or(usize::MAX);
        let mut pairs = plan.columns.iter().zip(values);
        pairs.all(|(&column, &value)| table.get(column, row) == value)
    }

    /// Same as [`PartBuilder::row`], with columns from a plan.
    pub fn add_row(&mut self, plan: &RowPlan, values: &[i64]) -> i64 {
        let table = &mut self.tables[plan.table];
        let row = table.add_row();
        for (&column, &value) in plan.columns.iter().zip(values) {
            table.set(column, row, value);
        }
        row as i64 + 1
    }

    /// Adds a row to any table except `run`; returns its index + 1. Columns without a value are 0.
    ///
    /// # Errors
    /// The table or a column is not in the schema.
    pub fn row(&mut self, table: &str, values: &[(&str, i64)]) -> Result<i64> {
        self.row_bytes(table, values, &[])
    }

    /// Adds a row with strings; see [`PartBuilder::row`].
    ///
    /// # Errors
    /// The table or a column is not in the schema.
    pub fn row_bytes(
        &mut self,
        table: &str,
        values: &[(&str, i64)],
        strings: &[(&str, &[u8])],
    ) -> Result<i64> {
        let t = self.table_index(table)?;
        let row = self.tables[t].add_row();
        for &(column, value) in values {
            let c = self.column_index(t, column)?;
            self.tables[t].set(c, row, value);
        }
        for &(column, value) in strings {
            let c = self.column_index(t, column)?;
            self.tables[t].set_bytes(c, value);
        }
        Ok(row as i64 + 1)
    }

    /// Adds a sample of a session at a tick.
    ///
    /// # Errors
    /// A column is not in the schema, or the session has a sample at or after
    /// this tick.
    pub fn sample(&mut self, tick: u64, session: i64, values: &[(&str, i64)]) -> Result<()> {
        let t = self.table_index(RUN)?;
        let mut row = vec![0; self.tables[t].columns.len()];
        for &(column, value) in values {
            row[self.column_index(t, column)?] = value;
        }
        let row: Vec<i64> = self.runs.columns().iter().map(|&c| row[c]).collect();
        self.sample_row(tick, session, &row)
    }

    /// Adds a sample whose values are in the order of [`PartBuilder::sample_columns`]. This is the
    /// fast way.
    ///
    /// # Errors
    /// The session has a sample at or after this tick.
    pub fn sample_row(&mut self, tick: u64, session: i64, values: &[i64]) -> Result<()> {
        if self.runs.push(session, tick as i64, 1, values) {
            return Ok(());
        }
        Err(Error::damaged(format!(
            "session {session} has two samples at tick {tick} or goes back in time"
        )))
    }

    /// The columns that [`PartBuilder::sample_row`] takes, as indexes of the columns of `run`.
    pub fn sample_columns(&self) -> &[usize] {
        self.runs.columns()
    }

    /// Number of rows of a table so far; 0 if the schema lacks it.
    pub fn rows(&self, table: &str) -> usize {
        let known = self.schema.index(table);
        known.map_or(0, |t| self.tables[t].rows)
    }

    /// Number of runs so far.
    pub fn run_rows(&self) -> usize {
        self.runs.rows()
    }

    /// True if a table other than a dictionary has rows.
    pub fn has_rows(&self) -> bool {
        let own = |t: &usize| !self.is_dictionary[*t];
        let mut tables = (0..self.tables.len()).filter(own);
        self.runs.rows() > 0 || tables.any(|t| self.tables[t].rows > 0)
    }

    /// The finished part.
    pub fn finish(self, identity: Identity) -> Part {
        let (schema, tables, mut info) = self.into_tables();
        info.identity = identity;
        Part::new(info, schema, Arc::new(Memory::new(tables)))
    }

    /// The finished tables by index in the schema, padded, including runs.
    fn into_tables(mut self) -> (Arc<Schema>, Vec<Table>, PartInfo) {
        let (mut tables, info) = self.take_group();
        let schema = self.schema.clone();
        let dictionaries = self.into_dictionaries().into_iter();
        for (t, table) in dictionaries.enumerate().filter(|d| d.1.rows > 0) {
            tables[t] = table;
        }
        (schema, tables, info)
    }

    /// Takes the tables except dictionaries, by index in the schema, padded, including runs.
    /// References stay valid for later rows.
    pub(crate) fn take_group(&mut self) -> (Vec<Table>, PartInfo) {
        let schema = self.schema.clone();
        let mut tables: Vec<Table> = schema.tables.iter().map(Table::new).collect();
        let own = (0..tables.len()).filter(|&t| !self.is_dictionary[t]);
        for t in own.collect::<Vec<_>>() {
            std::mem::swap(&mut tables[t], &mut self.tables[t]);
            tables[t].pad();
        }
        if let (Some(t), Some(fresh)) = (schema.index(RUN), RunBuilder::new(&schema)) {
            tables[t] = std::mem::replace(&mut self.runs, fresh).finish();
        }
        let mut info = in_order(&schema, &mut tables);
        info.lost_definitions = std::mem::take(&mut self.lost_definitions);
        info.dropped_rows = std::mem::take(&mut self.dropped_rows);
        (tables, info)
    }

    /// A copy of the rows of [`PartBuilder::take_group`], for readers while rows are still added.
    pub(crate) fn copy_group(&self) -> (Vec<Table>, PartInfo) {
        let schema = &self.schema;
        let tables = self.tables.iter().enumerate();
        let own = tables.map(|(t, table)| match self.is_dictionary[t] {
            true => Table::new(&schema.tables[t]),
            false => table.clone(),
        });
        let mut tables: Vec<Table> = own.collect();
        tables.iter_mut().for_each(Table::pad);
        if let Some(t) = schema.index(RUN) {
            tables[t] = self.runs.clone().finish();
        }
        let info = in_order(schema, &mut tables);
        (tables, info)
    }

    /// Number of rows outside of dictionaries.
    pub(crate) fn group_rows(&self) -> usize {
        let own = (0..self.tables.len()).filter(|&t| !self.is_dictionary[t]);
        let rows: usize = own.map(|t| self.tables[t].rows).sum();
        rows + self.runs.rows()
    }

    /// Calls `show` with the tables of a group and the dictionaries as a part. Returns the tables.
    pub(crate) fn as_part<T>(
        &mut self,
        info: &PartInfo,
        mut tables: Vec<Table>,
        show: impl FnOnce(&Part) -> T,
    ) -> (Vec<Table>, T) {
        let schema = self.schema.clone();
        let lend = |tables: &mut Vec<Table>, own: &mut Vec<Table>| {
            for t in (0..tables.len()).filter(|&t| schema.is_dictionary(t)) {
                std::mem::swap(&mut tables[t], &mut own[t]);
            }
        };
        lend(&mut tables, &mut self.tables);
        let memory = Arc::new(Memory::new(tables));
        let part = Part::new(info.clone(), schema.clone(), memory.clone());
        let shown = show(&part);
        drop(part);
        let mut tables = Memory::into_tables(memory, &schema);
        lend(&mut tables, &mut self.tables);
        (tables, shown)
    }

    /// The dictionaries by index in the schema, padded. Other tables are empty.
    pub(crate) fn into_dictionaries(mut self) -> Vec<Table> {
        for (t, table) in self.tables.iter_mut().enumerate() {
            match self.is_dictionary[t] {
                true => table.pad(),
                false => *table = Table::new(&self.schema.tables[t]),
            }
        }
        self.tables
    }

    /// Number of rows of all dictionaries.
    pub fn dictionary_rows(&self) -> usize {
        let shared = (0..self.tables.len()).filter(|&t| self.is_dictionary[t]);
        shared.map(|t| self.tables[t].rows).sum()
    }

    /// The schema that the builder was made for.
    pub fn schema(&self) -> Arc<Schema> {
        self.schema.clone()
    }

    fn table_index(&self, table: &str) -> Result<usize> {
        let index = self.schema.index(table);
        index.ok_or_else(|| no_table(table))
    }

    fn column_index(&self, table: usize, column: &str) -> Result<usize> {
        let def = &self.schema.tables[table];
        let index = def.index(column);
        index.ok_or_else(|| {
            let message = format!("no column \"{column}\" in table \"{}\"", def.name);
            Error::new(Kind::NotFound, message)
        })
    }
}

fn no_table(table: &str) -> Error {
    Error::new(Kind::NotFound, format!("no table \"{table}\""))
}

/// Sorts the rows of a group; returns its ticks and slot times.
fn in_order(schema: &Schema, tables: &mut [Table]) -> PartInfo {
    sort(schema, tables, "count", ["category", "state", "at"]);
    sort(schema, tables, STATS, ["entry", "time"]);
    sort(schema, tables, PLAN_STATS, ["entry", "plan_id", "time"]);
    bounds(schema, tables)
}

/// Sorts the rows of a table so that equal values of these columns become consecutive. Such columns
/// are stored as a few spans (`codec.rs`).
fn sort<const N: usize>(schema: &Schema, tables: &mut [Table], table: &str, by: [&str; N]) {
    let Some(t) = schema.index(table) else {
        return;
    };
    let def = &schema.tables[t];
    let keys: Vec<usize> = by.iter().filter_map(|name| def.index(name)).collect();
    let table = &mut tables[t];
    let mut order: Vec<u32> = (0..table.rows as u32).collect();
    let key = |row: u32| keys.iter().map(move |&c| (c, row as usize));
    order.sort_by(|&a, &b| {
        let a = key(a).map(|(c, row)| table.get(c, row));
        a.cmp(key(b).map(|(c, row)| table.get(c, row)))
    });
    table.permute(&order);
}

/// First and last tick and slot time in table `tick`.
pub(crate) fn bounds(schema: &Schema, tables: &[Table]) -> PartInfo {
    let mut info = PartInfo {
        first_tick: u64::MAX,
        min_ms: i64::MAX,
        max_ms: i64::MIN,
        ..PartInfo::default()
    };
    let number = schema.column("tick", "tick");
    let time = schema.column("tick", "slot_time");
    if let (Some((t, number)), Some((_, time))) = (number, time) {
        for row in 0..tables[t].rows {
            let tick = tables[t].get(number, row) as u64;
            let ms = tables[t].get(time, row);
            info.first_tick = info.first_tick.min(tick);
            info.last_tick = info.last_tick.max(tick);
            info.min_ms = info.min_ms.min(ms);
            info.max_ms = info.max_ms.max(ms);
        }
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> PartBuilder {
        let schema = crate::catalog::samples().with_runs();
        PartBuilder::new(Arc::new(schema)).unwrap()
    }

    #[test]
    fn a_part_gives_back_rows_runs_and_bounds() {
        let mut b = builder();
        let class = b.name("IO").unwrap();
        let event = b.name("DataFileRead").unwrap();
        assert_eq!((class, b.name("IO").unwrap()), (1, 1));
        let wait = [("wait_event_type", class), ("wait_event", event)];
        let wait = b.intern("wait", &wait).unwrap();
        let session = b.intern("session", &[("pid", 77)]).unwrap();
        for tick in 10..13 {
            let slot = ("slot_time", 1_000 * tick);
            b.row("tick", &[("tick", tick), slot]).unwrap();
            b.sample(tick as u64, session, &[("wait", wait)]).unwrap();
        }
        let node = Identity {
            node: 5,
            ..Identity::default()
        };
        let part = b.finish(node);
        assert_eq!(
            (part.node(), part.first_tick(), part.last_tick()),
            (5, 10, 12)
        );
        assert_eq!((part.min_ms(), part.max_ms()), (10_000, 12_000));
        assert_eq!(part.rows("run"), 1);
        assert_eq!(part.ints("run", "ticks").unwrap()[..], [3]);
        assert_eq!(part.ints("run", "first_tick").unwrap()[..], [10]);
        assert_eq!(part.ints("session", "pid").unwrap()[..], [77]);
        assert_eq!(part.ints("tick", "cost_step").unwrap()[..], [0, 0, 0]);
        assert_eq!(part.ints("tick", "of_the_future").unwrap().len(), 3);
        let names = part.bytes("name", "bytes").unwrap();
        assert_eq!(names.get(1), b"DataFileRead");
        assert_eq!(part.rows("nothing"), 0);
    }

    #[test]
    fn a_second_sample_of_a_session_at_a_tick_is_refused() {
        let mut b = builder();
        b.sample(1, 1, &[]).unwrap();
        assert!(b.sample(1, 1, &[("state", 1)]).is_err());
        assert!(b.sample(1, 1, &[("no_such_column", 1)]).is_err());
    }
}
