//! A part that notes which columns are read and decodes none of them: every number is zero and
//! every string empty. A question runs on such parts to find out what it would read.

use super::part::{Chunk, LogDamage, Part, Source};
use super::table::{BytesColumn, Column};
use crate::error::Result;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The columns that were read: indexes of table and column in the schema.
#[derive(Clone, Default)]
pub(crate) struct Noted(Arc<Mutex<BTreeSet<(usize, usize)>>>);

impl Noted {
    fn note(&self, table: usize, column: usize) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.insert((table, column));
    }

    /// The same part, whose columns are noted and not decoded.
    pub(crate) fn part(&self, part: &Part) -> Part {
        let noted = self.clone();
        part.with_source(|source| Arc::new(NotingSource { source, noted }))
    }

    /// The columns that were read so far.
    pub(crate) fn columns(&self) -> Vec<(usize, usize)> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.iter().copied().collect()
    }
}

/// The columns of another source, noted and not decoded. Bounds that the index of the file has are
/// real, because they decide what is read.
struct NotingSource {
    source: Arc<dyn Source>,
    noted: Noted,
}

impl Source for NotingSource {
    fn rows(&self, table: usize) -> usize {
        self.source.rows(table)
    }

    fn ints(&self, table: usize, column: usize) -> Result<Option<Column>> {
        self.noted.note(table, column);
        Ok(None)
    }

    fn ints_of(&self, table: usize, column: usize, _: Range<usize>) -> Result<Option<Column>> {
        self.ints(table, column)
    }

    fn bytes(&self, table: usize, column: usize) -> Result<Option<BytesColumn>> {
        self.noted.note(table, column);
        Ok(None)
    }

    fn bounds(&self, table: usize, column: usize) -> Option<(i64, i64)> {
        let known = self.source.bounds(table, column);
        let in_memory = || {
            let is_in_memory = self
                .chunks(table, column)
                .is_ok_and(|chunks| chunks.is_empty());
            let values = self
                .source
                .ints(table, column)
                .ok()
                .filter(|_| is_in_memory)??;
            let min = values.iter().copied().min()?;
            Some((min, values.iter().copied().max()?))
        };
        known.or_else(in_memory)
    }

    fn chunks(&self, table: usize, column: usize) -> Result<Vec<Chunk>> {
        self.source.chunks(table, column)
    }

    fn damage(&self) -> Option<LogDamage> {
        self.source.damage()
    }
}
