//! Tables in memory, column by column. Rows beyond the end of a column are zeros or empty strings,
//! so columns that are never set cost nothing.

use crate::format::schema::{ColumnType, TableDef};
use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The numbers of a column, one for each row of its table. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column(pub(crate) Arc<Vec<i64>>);

/// Maximum number of rows in a batch of a column: 32 KiB. It is a multiple of pco's 256.
pub(crate) const BATCH_ROWS: usize = 1 << 12;

/// Takes a column's numbers batch by batch, in the order of rows.
pub(crate) type Batch<'e> = &'e mut dyn FnMut(&[i64]);

impl Column {
    /// A copy of a range of existing rows.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Column {
        Column(Arc::new(self[rows].to_vec()))
    }
}

impl Deref for Column {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        &self.0
    }
}

/// Passes on the numbers of a column; false without a column.
pub(crate) fn in_batches(column: Option<Column>, each: Batch) -> bool {
    let batches = column.iter().flat_map(|column| column.chunks(BATCH_ROWS));
    batches.for_each(each);
    column.is_some()
}

/// The strings of a column, one for each row of its table. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BytesColumn(pub(crate) Arc<Strings>);

/// Consecutive strings. `ends[i]` is the end of string i in `data`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strings {
    pub(crate) ends: Vec<usize>,
    pub(crate) data: Vec<u8>,
}

impl Strings {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        self.ends.push(self.data.len());
    }

    /// The string of a row; empty beyond the end.
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        let Some(&end) = self.ends.get(row) else {
            return &[];
        };
        let begin = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.data[begin..end]
    }
}

impl BytesColumn {
    /// The string of a row; empty beyond the end.
    pub fn get(&self, row: usize) -> &[u8] {
        self.0.get(row)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.0.ends.len()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    /// The strings in the order of rows.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }
}

/// A column under construction. It may be shorter than its table.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    Ints(Vec<i64>),
    Bytes(Strings),
}

/// Makes room for `more` values, and at least for an eighth more than there are. `Vec` alone would
/// double the memory, which may never be needed.
pub(crate) fn make_room<T>(values: &mut Vec<T>, more: usize) {
    if values.capacity() - values.len() < more {
        values.reserve_exact(more.max(values.len() / 8));
    }
}

/// A table under construction. Its columns have the same indexes as in the table's descriptor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Data>,
}

impl Table {
    pub(crate) fn new(def: &TableDef) -> Self {
        let columns = def.columns.iter().map(|c| match c.ty {
            ColumnType::Bytes => Data::Bytes(Strings::default()),
            _ => Data::Ints(Vec::new()),
        });
        Table {
            rows: 0,
            columns: columns.collect(),
        }
    }

    /// Adds a row of zeros and returns its index.
    pub(crate) fn add_row(&mut self) -> usize {
        self.rows += 1;
        self.rows - 1
    }

    #[inline]
    pub(crate) fn get(&self, column: usize, row: usize) -> i64 {
        match self.columns.get(column) {
            Some(Data::Ints(v)) => v.get(row).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// The string of a row; empty for a column of numbers.
    #[inline]
    pub(crate) fn string(&self, column: usize, row: usize) -> &[u8] {
        match self.columns.get(column) {
            Some(Data::Bytes(s)) => s.get(row),
            _ => &[],
        }
    }

    /// True if two rows have equal contents.
    pub(crate) fn same(&self, row: usize, other: usize) -> bool {
        self.columns.iter().all(|data| match data {
            Data::Ints(v) => v.get(row).unwrap_or(&0) == v.get(other).unwrap_or(&0),
            Data::Bytes(s) => s.get(row) == s.get(other),
        })
    }

    /// Makes room for the rows of another table with the same columns.
    pub(crate) fn make_room(&mut self, more: &Table) {
        for (data, more) in self.columns.iter_mut().zip(&more.columns) {
            match (data, more) {
                (Data::Ints(v), Data::Ints(m)) if !m.is_empty() => {
                    make_room(v, self.rows.saturating_sub(v.len()) + m.len());
                }
                (Data::Bytes(s), Data::Bytes(m)) => {
                    make_room(&mut s.ends, m.ends.len());
                    make_room(&mut s.data, m.data.len());
                }
                _ => (),
            }
        }
    }

    /// Adds the rows of another table with the same columns.
    pub(crate) fn append(&mut self, more: Table) {
        for (data, more) in self.columns.iter_mut().zip(more.columns) {
            match (data, more) {
                (Data::Ints(v), Data::Ints(mut m)) if !m.is_empty() => {
                    v.resize(self.rows, 0);
                    v.append(&mut m);
                }
                (Data::Bytes(s), Data::Bytes(m)) => {
                    s.ends.resize(self.rows, s.data.len());
                    (0..m.ends.len()).for_each(|row| s.push(m.get(row)));
                }
                _ => (),
            }
        }
        self.rows += more.rows;
    }

    /// The numbers of a column, one for each row; zeros for a column of strings.
    pub(crate) fn ints(&self, column: usize) -> Cow<'_, [i64]> {
        match self.columns.get(column) {
            Some(Data::Ints(v)) if v.len() == self.rows => Cow::Borrowed(v),
            _ => Cow::Owned((0..self.rows).map(|row| self.get(column, row)).collect()),
        }
    }

    /// Sets a number of an existing row. A column of strings is not changed.
    #[inline]
    pub(crate) fn set(&mut self, column: usize, row: usize, value: i64) {
        if let Some(Data::Ints(v)) = self.columns.get_mut(column) {
            if row < v.len() {
                v[row] = value;
            } else if value != 0 {
                if v.len() < row {
                    v.resize(row, 0);
                }
                v.push(value);
            }
        }
    }

    /// Sets the string of the newest row. A column of numbers is not changed.
    pub(crate) fn set_bytes(&mut self, column: usize, value: &[u8]) {
        let row = self.rows - 1;
        if let Some(Data::Bytes(s)) = self.columns.get_mut(column) {
            if s.ends.len() == row + 1 {
                let begin = if row == 0 { 0 } else { s.ends[row - 1] };
                s.data.truncate(begin);
                s.ends.pop();
            }
            let end = s.data.len();
            s.ends.resize(row, end);
            s.push(value);
        }
    }

    /// Replaces the string of an existing row. The time grows with the rows after it.
    pub(crate) fn replace_bytes(&mut self, column: usize, row: usize, value: &[u8]) {
        let rows = self.rows;
        if let Some(Data::Bytes(s)) = self.columns.get_mut(column) {
            s.ends.resize(rows, s.data.len());
            let begin = if row == 0 { 0 } else { s.ends[row - 1] };
            let old = s.ends[row];
            s.data.splice(begin..old, value.iter().copied());
            for end in &mut s.ends[row..] {
                *end = *end - (old - begin) + value.len();
            }
        }
    }

    /// Extends every column that has values to the number of rows.
    pub(crate) fn pad(&mut self) {
        let rows = self.rows;
        for column in &mut self.columns {
            match column {
                Data::Ints(v) if !v.is_empty() => {
                    v.reserve_exact(rows - v.len());
                    v.resize(rows, 0);
                }
                Data::Bytes(s) if !s.ends.is_empty() => s.ends.resize(rows, s.data.len()),
                _ => (),
            }
        }
    }

    /// A table of these rows, in this order.
    pub(crate) fn select(&self, rows: &[usize]) -> Table {
        let columns = self.columns.iter().map(|data| match data {
            Data::Ints(v) if v.is_empty() => Data::Ints(Vec::new()),
            Data::Ints(v) => Data::Ints(rows.iter().map(|&r| v[r]).collect()),
            Data::Bytes(s) => {
                let mut selected = Strings::default();
                rows.iter().for_each(|&row| selected.push(s.get(row)));
                Data::Bytes(selected)
            }
        });
        Table {
            rows: rows.len(),
            columns: columns.collect(),
        }
    }

    /// Reorders the rows. Columns of strings are not changed.
    pub(crate) fn permute(&mut self, order: &[u32]) {
        for column in &mut self.columns {
            if let Data::Ints(v) = column
                && !v.is_empty()
            {
                *v = order.iter().map(|&row| v[row as usize]).collect();
            }
        }
    }
}
