//! The runs of a part, or pieces of them where an attribute changes within a
//! run (the head of a lock queue).

use super::error::QueryResult;
use crate::part::Part;
use crate::schema::RUN;
use crate::table::Column;
use std::sync::Arc;

/// Pieces of runs by index: the row of table `run`, first tick, ticks.
pub struct Runs {
    rows: Option<Vec<u32>>,
    first_tick: Column,
    ticks: Column,
}

impl Runs {
    /// Whole runs.
    pub fn whole(part: &Part) -> QueryResult<Runs> {
        Ok(Runs {
            rows: None,
            first_tick: part.ints(RUN, "first_tick")?,
            ticks: part.ints(RUN, "ticks")?,
        })
    }

    /// Pieces: row, first tick, ticks of each.
    pub fn pieces(rows: Vec<u32>, first_tick: Vec<i64>, ticks: Vec<i64>) -> Runs {
        Runs {
            rows: Some(rows),
            first_tick: Column(Arc::new(first_tick)),
            ticks: Column(Arc::new(ticks)),
        }
    }

    /// Number of pieces.
    pub fn len(&self) -> usize {
        self.first_tick.len()
    }

    /// The row of table `run` a piece belongs to.
    #[inline]
    pub fn row(&self, piece: usize) -> usize {
        match &self.rows {
            Some(rows) => rows[piece] as usize,
            None => piece,
        }
    }

    /// The row of each piece; `None` when pieces are whole runs.
    pub fn rows(&self) -> Option<&[u32]> {
        self.rows.as_deref()
    }

    /// First tick and ticks of each piece.
    pub fn first_and_ticks(&self) -> (&[i64], &[i64]) {
        (&self.first_tick, &self.ticks)
    }

    /// First tick of a piece.
    #[inline]
    pub fn first_tick(&self, piece: usize) -> i64 {
        self.first_tick[piece]
    }

    /// Ticks of a piece.
    #[inline]
    pub fn ticks(&self, piece: usize) -> i64 {
        self.ticks[piece]
    }
}
