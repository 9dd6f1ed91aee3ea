//! The interface for reading: a part of the history. It is one open log converted in memory, or one
//! group of a sealed file. Parts of a node never overlap in ticks.
//!
//! A part has these tables:
//! - Dictionaries `name wait statement session text entry`. NAME and REF columns hold row index + 1
//!   in the target table (0 = null).
//! - `tick count lock server marker statement_stats`. TIMEs are absolute, and `at` is an absolute
//!   tick number.
//! - `run`: the samples as runs, sorted by (session, first_tick). It has the columns of `sample`,
//!   with `first_tick` (absolute) and `ticks` in place of `at` and `gone`. A run is consecutive
//!   ticks of a session with equal attributes.

use crate::error::Result;
use crate::format::codec::{EqualRun, Span};
use crate::format::schema::{RUN, Schema};
use crate::format::table::{Batch, BytesColumn, Column, Data, Strings, Table, in_batches};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Node and server that wrote a file. This is an attribute and never a reason to refuse the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Random number of the history directory.
    pub node: u64,
    /// System identifier of the cluster; 0 = unknown.
    pub system_identifier: u64,
    /// Timeline when the file was begun; 0 = unknown.
    pub timeline: u32,
    /// Start of the postmaster in µs since 1970; 0 = unknown.
    pub postmaster_start_us: i64,
}

/// Properties of a part that are known without decoding a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartInfo {
    /// The node and server that wrote it.
    pub identity: Identity,
    /// The file; empty for a part made in memory.
    pub file: Arc<PathBuf>,
    /// Number of the group in a sealed file, otherwise 0.
    pub group: u32,
    /// True if the file has totals of all its groups.
    pub has_totals: bool,
    /// True if the file is still being written.
    pub open: bool,
    /// Lowest tick number. Without ticks it is greater than `last_tick`.
    pub first_tick: u64,
    /// Highest tick number.
    pub last_tick: u64,
    /// First slot time in ms since 1970. Without ticks it is greater than `max_ms`.
    pub min_ms: i64,
    /// Last slot time (start of the slot) in ms since 1970.
    pub max_ms: i64,
    /// Number of rows that refer to an entry whose definition was lost. They show `?`.
    pub lost_definitions: u64,
    /// Interval in ms to which statistics of statements are thinned; 0 = as they were recorded.
    pub statements_ms: u64,
    /// Number of dropped rows: their tick is missing, or the session has a second row at the tick.
    pub dropped_rows: u64,
}

/// Damaged bytes of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// Offset in the log.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Slot time in ms of the last tick before the damage.
    pub since_ms: Option<i64>,
    /// Slot time in ms of the first tick after the damage.
    pub until_ms: Option<i64>,
    /// The damage, in words.
    pub reason: String,
}

/// Bytes of a file that are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chunk {
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Source of a part's columns. Tables and columns are indexes in the schema.
pub(crate) trait Source: Send + Sync {
    fn rows(&self, table: usize) -> usize;
    /// The numbers of a column, one for each row; `None` if every number is zero.
    fn ints(&self, table: usize, column: usize) -> Result<Option<Column>>;
    /// Calls `each` with the numbers of a column, batch by batch; false if every number is zero. A
    /// column that is not kept is decoded without memory for all of it, if its coding allows that.
    fn batches(&self, table: usize, column: usize, each: Batch) -> Result<bool> {
        Ok(in_batches(self.ints(table, column)?, each))
    }
    /// Same as `ints`, for a range of existing rows.
    fn ints_of(&self, table: usize, column: usize, rows: Range<usize>) -> Result<Option<Column>> {
        let all = self.ints(table, column)?;
        Ok(all.map(|all| all.rows(rows)))
    }
    /// The strings of a column, one for each row; `None` if every string is empty.
    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>>;
    /// The spans of a column that is stored as spans. `None` for others, and for damaged columns.
    fn spans(&self, _table: usize, _column: usize) -> Option<Vec<Span>> {
        None
    }
    /// First tick and number of ticks of the runs, if their columns are stored as spans.
    fn stretches(&self) -> Option<Vec<EqualRun>> {
        None
    }
    /// Least and greatest number of a column, if they are known without decoding it.
    fn bounds(&self, _table: usize, _column: usize) -> Option<(i64, i64)> {
        None
    }
    /// The chunks of its file that reading a column needs.
    fn chunks(&self, _table: usize, _column: usize) -> Result<Vec<Chunk>> {
        Ok(Vec::new())
    }
    /// Damage that did not prevent reading.
    fn damage(&self) -> Option<LogDamage> {
        None
    }
    /// Frees decoded columns, which can be decoded again. `shared` selects the columns that all
    /// groups of a file share.
    fn release(&self, _shared: bool) {}
}

/// A part of the history. It is cheap to clone and can be used from several threads.
#[derive(Clone)]
pub struct Part {
    info: PartInfo,
    schema: Arc<Schema>,
    source: Arc<dyn Source>,
    /// Zeros for missing columns, one column for each table.
    zeros: Arc<Mutex<Zeros>>,
    /// Number of questions that need the decoded columns again.
    holds: Arc<AtomicUsize>,
}

/// Keeps the decoded columns of a part's group until it is dropped.
pub struct Hold(Part);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::Relaxed);
        self.0.release();
    }
}

/// Columns of zeros by table; `None` is a table that the file does not know.
type Zeros = Vec<(Option<usize>, Column)>;

impl Part {
    pub(crate) fn new(info: PartInfo, schema: Arc<Schema>, source: Arc<dyn Source>) -> Self {
        Part {
            info,
            schema,
            source,
            zeros: Arc::default(),
            holds: Arc::default(),
        }
    }

    /// The same part with the file that it was read from.
    pub(crate) fn of_file(mut self, file: PathBuf, open: bool) -> Self {
        self.info.file = Arc::new(file);
        self.info.open = open;
        self
    }

    /// The same part with its log's numbers of lost definitions and dropped rows.
    pub(crate) fn with_lost(&self, definitions: u64, rows: u64) -> Part {
        let mut part = self.clone();
        (part.info.lost_definitions, part.info.dropped_rows) = (definitions, rows);
        part
    }

    /// The same part in which `username` is null if `user_oid` is neither `oid` nor 0. `columns`
    /// are the columns of its schema with such names.
    pub(crate) fn without_other_roles(&self, oid: i64, columns: Arc<[RoleColumn]>) -> Part {
        Part {
            source: Arc::new(OneRole {
                source: self.source.clone(),
                oid,
                columns,
            }),
            ..self.clone()
        }
    }

    /// The same part with its columns from another source, which `of` makes from its own.
    pub(crate) fn with_source(&self, of: impl FnOnce(Arc<dyn Source>) -> Arc<dyn Source>) -> Part {
        Part {
            source: of(self.source.clone()),
            zeros: Arc::default(),
            holds: Arc::default(),
            ..self.clone()
        }
    }

    pub(crate) fn shared_schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Identity, ticks and times.
    pub fn info(&self) -> &PartInfo {
        &self.info
    }

    /// The node that wrote it.
    pub fn node(&self) -> u64 {
        self.info.identity.node
    }

    /// Lowest absolute tick number.
    pub fn first_tick(&self) -> u64 {
        self.info.first_tick
    }

    /// Highest absolute tick number.
    pub fn last_tick(&self) -> u64 {
        self.info.last_tick
    }

    /// First slot time in ms. Without ticks it is greater than `max_ms`.
    pub fn min_ms(&self) -> i64 {
        self.info.min_ms
    }

    /// Last slot time in ms.
    pub fn max_ms(&self) -> i64 {
        self.info.max_ms
    }

    /// Number of rows that refer to a lost definition.
    pub fn lost_definitions(&self) -> u64 {
        self.info.lost_definitions
    }

    /// Tables, columns and labels as the file describes them.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Number of rows; 0 for a table that the file does not know.
    pub fn rows(&self, table: &str) -> usize {
        self.schema.index(table).map_or(0, |t| self.source.rows(t))
    }

    /// The numbers of a column, one for each row; zeros if the file does not have it. The first
    /// call decodes it.
    ///
    /// # Errors
    /// The stored column is damaged or could not be read.
    pub fn ints(&self, table: &str, column: &str) -> Result<Column> {
        if let Some((t, c)) = self.schema.column(table, column)
            && let Some(found) = self.source.ints(t, c)?
        {
            return Ok(found);
        }
        Ok(self.zeros(table))
    }

    /// Calls `each` with the numbers of a column, batch by batch: at least one number, in the order
    /// of rows. It keeps nothing that was not kept before, if the column's coding allows that.
    ///
    /// # Errors
    /// The stored column is damaged or could not be read. Batches before the damage were passed on.
    pub(crate) fn batches(&self, table: &str, column: &str, each: Batch) -> Result<()> {
        if let Some((t, c)) = self.schema.column(table, column)
            && self.source.batches(t, c, each)?
        {
            return Ok(());
        }
        in_batches(Some(self.zeros(table)), each);
        Ok(())
    }

    /// A column of zeros. It is made once, because some callers ask for each cell.
    fn zeros(&self, table: &str) -> Column {
        let table = self.schema.index(table);
        let mut zeros = self.zeros.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = zeros.iter().find(|(of, _)| *of == table) {
            return known.clone();
        }
        let rows = table.map_or(0, |t| self.source.rows(t));
        let column = Column(Arc::new(vec![0; rows]));
        zeros.push((table, column.clone()));
        column
    }

    /// Same as [`Part::ints`] for a range of rows. It decodes no more than necessary and keeps
    /// nothing.
    pub(crate) fn ints_of(&self, table: &str, column: &str, rows: Range<usize>) -> Result<Column> {
        if rows == (0..self.rows(table)) {
            return self.ints(table, column);
        }
        if let Some((t, c)) = self.schema.column(table, column)
            && let Some(found) = self.source.ints_of(t, c, rows.clone())?
        {
            return Ok(found);
        }
        Ok(Column(Arc::new(vec![0; rows.len()])))
    }

    /// The range of rows from the first to the last with a wanted number in this column.
    pub(crate) fn rows_with(
        &self,
        table: &str,
        column: &str,
        is_wanted: impl Fn(i64) -> bool,
    ) -> Result<Range<usize>> {
        let place = self.schema.column(table, column);
        let Some(spans) = place.and_then(|(t, c)| self.source.spans(t, c)) else {
            let values = self.ints(table, column)?;
            let first = values.iter().position(|value| is_wanted(*value));
            let last = values.iter().rposition(|value| is_wanted(*value));
            return Ok(first.unwrap_or(0)..last.map_or(0, |last| last + 1));
        };
        let (mut found, mut end) = (None, 0);
        for span in spans {
            let begin = end;
            end += span.rows;
            if is_wanted(span.value) {
                found.get_or_insert(begin..end).end = end;
            }
        }
        Ok(found.unwrap_or_default())
    }

    /// The spans of a column of `run`, if it is stored as spans and undamaged.
    pub(crate) fn spans(&self, column: &str) -> Option<Vec<Span>> {
        let (table, column) = self.schema.column(RUN, column)?;
        self.source.spans(table, column)
    }

    /// First tick and number of ticks of the runs, if they are stored as a few stretches and
    /// undamaged.
    pub(crate) fn stretches(&self) -> Option<Vec<EqualRun>> {
        self.source.stretches()
    }

    /// The chunks of its file that reading a column needs: the column's chunk or pack, and the
    /// chunks of the columns that it is stored relative to. Empty for a column in memory.
    ///
    /// # Errors
    /// The index of the file is damaged or could not be read.
    pub fn chunks(&self, table: &str, column: &str) -> Result<Vec<Chunk>> {
        match self.schema.column(table, column) {
            Some((t, c)) => self.source.chunks(t, c),
            None => Ok(Vec::new()),
        }
    }

    /// Bounds of a column's numbers: no number lies outside. `None` if they are not known without
    /// decoding.
    pub fn bounds(&self, table: &str, column: &str) -> Option<(i64, i64)> {
        match self.schema.column(table, column) {
            Some((t, c)) => self.source.bounds(t, c),
            None => Some((0, 0)),
        }
    }

    /// Least and greatest number of a column. It decodes the column only if the file has no bounds.
    /// `None` without rows.
    ///
    /// # Errors
    /// The stored column is damaged or could not be read.
    pub fn range(&self, table: &str, column: &str) -> Result<Option<(i64, i64)>> {
        if self.rows(table) == 0 {
            return Ok(None);
        }
        if let Some(known) = self.bounds(table, column) {
            return Ok(Some(known));
        }
        let values = self.ints(table, column)?;
        let min = values.iter().copied().min();
        Ok(min.zip(values.iter().copied().max()))
    }

    /// True if both are groups of one file, which share their dictionaries.
    pub fn is_of_same_file(&self, other: &Part) -> bool {
        self.info.group != 0 && other.info.group != 0 && self.info.file == other.info.file
    }

    /// Damage of its file that was found while a column was read but did not prevent reading.
    pub(crate) fn damage(&self) -> Option<LogDamage> {
        self.source.damage()
    }

    /// Keeps the decoded columns of the group for several passes.
    #[must_use]
    pub fn hold(&self) -> Hold {
        self.holds.fetch_add(1, Ordering::Relaxed);
        Hold(self.clone())
    }

    /// Frees the decoded columns of the group, unless a [`Hold`] keeps them; the next call decodes
    /// them again. Columns that callers still have stay valid.
    pub fn release(&self) {
        if self.holds.load(Ordering::Relaxed) > 0 {
            return;
        }
        let mut zeros = self.zeros.lock().unwrap_or_else(PoisonError::into_inner);
        zeros.clear();
        drop(zeros);
        self.source.release(false);
    }

    /// Same as [`Part::release`], for columns that all groups of the file share.
    pub fn release_shared(&self) {
        self.source.release(true);
    }

    /// The strings of a column, one for each row; empty strings if the file does not have it. The
    /// first call decodes it.
    ///
    /// # Errors
    /// The stored column is damaged or could not be read.
    pub fn bytes(&self, table: &str, column: &str) -> Result<BytesColumn> {
        if let Some((t, c)) = self.schema.column(table, column)
            && let Some(found) = self.source.bytes(t, c)?
        {
            return Ok(found);
        }
        Ok(BytesColumn(Arc::new(Strings {
            ends: vec![0; self.rows(table)],
            data: Vec::new(),
        })))
    }
}

/// Indexes in the schema: a table, its column `username` and its column `user_oid`.
pub(crate) type RoleColumn = (usize, usize, usize);

/// The columns with names of roles.
pub(crate) fn role_columns(schema: &Schema) -> Vec<RoleColumn> {
    let tables = schema.tables.iter().enumerate();
    let columns = tables.filter_map(|(t, def)| {
        let oids = def.index("user_oid")?;
        Some((t, def.index("username")?, oids))
    });
    columns.collect()
}

/// A part in which `username` is null if `user_oid` is the OID of another role.
struct OneRole {
    source: Arc<dyn Source>,
    oid: i64,
    columns: Arc<[RoleColumn]>,
}

impl Source for OneRole {
    fn rows(&self, table: usize) -> usize {
        self.source.rows(table)
    }

    fn ints(&self, table: usize, column: usize) -> Result<Option<Column>> {
        let values = self.source.ints(table, column)?;
        let named = |c: &&RoleColumn| (c.0, c.1) == (table, column);
        let (Some(names), Some(place)) = (&values, self.columns.iter().find(named)) else {
            return Ok(values);
        };
        let Some(oids) = self.source.ints(table, place.2)? else {
            return Ok(values);
        };
        let own = |(name, oid): (&i64, &i64)| match *oid == 0 || *oid == self.oid {
            true => *name,
            false => 0,
        };
        let names: Vec<i64> = names.iter().zip(oids.iter()).map(own).collect();
        Ok(Some(Column(Arc::new(names))))
    }

    fn batches(&self, table: usize, column: usize, each: Batch) -> Result<bool> {
        if !self.columns.iter().any(|c| (c.0, c.1) == (table, column)) {
            return self.source.batches(table, column, each);
        }
        Ok(in_batches(self.ints(table, column)?, each))
    }

    fn ints_of(&self, table: usize, column: usize, rows: Range<usize>) -> Result<Option<Column>> {
        match self.columns.iter().any(|c| (c.0, c.1) == (table, column)) {
            true => {
                let all = self.ints(table, column)?;
                Ok(all.map(|all| all.rows(rows)))
            }
            false => self.source.ints_of(table, column, rows),
        }
    }

    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        self.source.bytes(table, column)
    }

    fn bounds(&self, table: usize, column: usize) -> Option<(i64, i64)> {
        match self.columns.iter().any(|c| (c.0, c.1) == (table, column)) {
            true => None,
            false => self.source.bounds(table, column),
        }
    }

    fn spans(&self, table: usize, column: usize) -> Option<Vec<Span>> {
        self.source.spans(table, column)
    }

    fn stretches(&self) -> Option<Vec<EqualRun>> {
        self.source.stretches()
    }

    fn chunks(&self, table: usize, column: usize) -> Result<Vec<Chunk>> {
        let mut chunks = self.source.chunks(table, column)?;
        if let Some(place) = self.columns.iter().find(|c| (c.0, c.1) == (table, column)) {
            chunks.extend(self.source.chunks(table, place.2)?);
        }
        Ok(chunks)
    }

    fn damage(&self) -> Option<LogDamage> {
        self.source.damage()
    }

    fn release(&self, shared: bool) {
        self.source.release(shared);
    }
}

/// Columns in memory.
#[derive(Default)]
pub(crate) struct Memory {
    tables: Vec<(usize, Vec<Held>)>,
}

#[derive(Clone)]
enum Held {
    None,
    Ints(Column),
    Bytes(BytesColumn),
}

impl Memory {
    pub(crate) fn new(tables: Vec<Table>) -> Self {
        Memory {
            tables: tables.into_iter().map(held).collect(),
        }
    }

    /// The same tables, except those for which `tables` has a new one at the same index.
    pub(crate) fn renewed(&self, tables: Vec<Option<Table>>) -> Self {
        let tables = tables.into_iter().enumerate();
        let tables = tables.map(|(t, table)| match table {
            Some(table) => held(table),
            None => self.tables.get(t).cloned().unwrap_or_default(),
        });
        Memory {
            tables: tables.collect(),
        }
    }

    /// Takes the tables out. Columns that others still hold are copied.
    pub(crate) fn into_tables(memory: Arc<Memory>, schema: &Schema) -> Vec<Table> {
        let mut tables: Vec<Table> = schema.tables.iter().map(Table::new).collect();
        let held = Arc::try_unwrap(memory).map_or_else(|m| m.tables.clone(), |m| m.tables);
        for (table, (rows, held)) in tables.iter_mut().zip(held) {
            table.rows = rows;
            for (data, held) in table.columns.iter_mut().zip(held) {
                match held {
                    Held::Ints(c) => *data = Data::Ints(Arc::unwrap_or_clone(c.0)),
                    Held::Bytes(c) => *data = Data::Bytes(Arc::unwrap_or_clone(c.0)),
                    Held::None => (),
                }
            }
        }
        tables
    }

    fn held(&self, table: usize, column: usize) -> &Held {
        let columns = self.tables.get(table).map(|t| &t.1);
        columns.and_then(|c| c.get(column)).unwrap_or(&Held::None)
    }
}

fn held(mut table: Table) -> (usize, Vec<Held>) {
    table.pad();
    let columns = table.columns.into_iter().map(|data| match data {
        Data::Ints(v) if !v.is_empty() => Held::Ints(Column(Arc::new(v))),
        Data::Bytes(s) if !s.ends.is_empty() => Held::Bytes(BytesColumn(Arc::new(s))),
        _ => Held::None,
    });
    (table.rows, columns.collect())
}

impl Source for Memory {
    fn rows(&self, table: usize) -> usize {
        self.tables.get(table).map_or(0, |t| t.0)
    }

    fn ints(&self, table: usize, column: usize) -> Result<Option<Column>> {
        Ok(match self.held(table, column) {
            Held::Ints(c) => Some(c.clone()),
            _ => None,
        })
    }

    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        Ok(match self.held(table, column) {
            Held::Bytes(c) => Some(c.clone()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::schema;

    #[test]
    fn zeros_of_a_column_that_is_not_there_are_made_once_until_they_are_given_back() {
        let schema = schema().with_runs();
        let mut tables: Vec<Table> = schema.tables.iter().map(Table::new).collect();
        let sessions = schema.index("session").unwrap();
        tables[sessions].rows = 1_000;
        let source = Arc::new(Memory::new(tables));
        let part = Part::new(PartInfo::default(), Arc::new(schema), source);
        let zeros = |column| part.ints("session", column).unwrap();
        let first = zeros("a column of a later version");
        assert_eq!(&first[..], [0; 1_000]);
        let again = zeros("another one");
        assert!(Arc::ptr_eq(&first.0, &again.0));
        assert!(part.ints(RUN, "wait").unwrap().is_empty());
        part.release();
        assert_eq!(Arc::strong_count(&first.0), 2);
    }

    #[test]
    fn columns_are_kept_until_the_last_hold_ends() {
        let schema = schema().with_runs();
        let tables = schema.tables.iter().map(Table::new).collect();
        let source = Arc::new(Memory::new(tables));
        let part = Part::new(PartInfo::default(), Arc::new(schema), source);
        let zeros = part.ints("session", "a column of a later version").unwrap();
        let (one, other) = (part.hold(), part.clone().hold());
        part.release();
        drop(one);
        part.release();
        assert_eq!(Arc::strong_count(&zeros.0), 2);
        drop(other);
        assert_eq!(Arc::strong_count(&zeros.0), 1);
    }
}
