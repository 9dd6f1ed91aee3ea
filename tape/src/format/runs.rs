//! Converts samples to runs: consecutive ticks of a session with equal attributes become one row.
//! Samples must come in ascending order of ticks. Others are refused, so that no two runs of a
//! session overlap.

use crate::format::schema::{ColumnType, RUN, Schema};
use crate::format::table::Table;

/// Builds the rows of table `run`. Values are given in the order of
/// [`RunBuilder::columns`].
#[derive(Clone, Debug)]
pub struct RunBuilder {
    table: Table,
    /// Columns of `run` except session, first_tick and ticks, by index.
    columns: Vec<usize>,
    first_tick: usize,
    ticks: usize,
    session: usize,
    /// Row index + 1 of each session's newest run, by session reference; 0 = none.
    newest: Vec<u32>,
}

impl RunBuilder {
    /// `None` if the schema lacks a complete table `run`, or if its sessions do not refer to a
    /// table. The number of rows of that table bounds the memory of `newest`.
    pub fn new(schema: &Schema) -> Option<Self> {
        let def = schema.table(RUN)?;
        let first_tick = def.index("first_tick")?;
        let ticks = def.index("ticks")?;
        let session = def.index("session")?;
        let target = &def.columns[session];
        if target.ty != ColumnType::Ref || schema.index(&target.target).is_none() {
            return None;
        }
        let own = [first_tick, ticks, session];
        Some(RunBuilder {
            table: Table::new(def),
            columns: (0..def.columns.len())
                .filter(|c| !own.contains(c))
                .collect(),
            first_tick,
            ticks,
            session,
            newest: Vec::new(),
        })
    }

    /// The columns whose values [`RunBuilder::push`] takes, as indexes of the columns of `run`.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Number of runs.
    pub fn rows(&self) -> usize {
        self.table.rows
    }

    /// Adds a session's samples at `ticks` consecutive ticks. Returns false and adds nothing if the
    /// session has a run at or after `first_tick`.
    pub fn push(&mut self, session: i64, first_tick: i64, ticks: i64, values: &[i64]) -> bool {
        let Ok(slot) = usize::try_from(session) else {
            return false;
        };
        if self.newest.len() <= slot {
            self.newest.resize(slot + 1, 0);
        }
        if let Some(row) = (self.newest[slot] as usize).checked_sub(1) {
            let length = self.table.get(self.ticks, row);
            let end = self.table.get(self.first_tick, row) + length;
            if first_tick < end {
                return false;
            }
            if first_tick == end && self.equal(row, values) {
                self.table.set(self.ticks, row, length + ticks);
                return true;
            }
        }
        let row = self.table.add_row();
        self.table.set(self.session, row, session);
        self.table.set(self.first_tick, row, first_tick);
        self.table.set(self.ticks, row, ticks);
        for (&column, &value) in self.columns.iter().zip(values) {
            self.table.set(column, row, value);
        }
        self.newest[slot] = u32::try_from(row + 1).unwrap_or(0);
        true
    }

    fn equal(&self, row: usize, values: &[i64]) -> bool {
        let mut pairs = self.columns.iter().zip(values);
        pairs.all(|(&column, &value)| self.table.get(column, row) == value)
    }

    /// The runs, sorted by (session, first_tick).
    pub(crate) fn finish(mut self) -> Table {
        self.table.pad();
        let order = self.order();
        self.table.permute(&order);
        self.table
    }

    /// The rows in the order of sessions. The rows of one session were added in order of ticks.
    fn order(&self) -> Vec<u32> {
        let sessions = self.table.ints(self.session);
        // `next` has first the start of each session's rows, then the place for the session's next
        // row.
        let mut next = vec![0_u32; self.newest.len() + 1];
        for &session in &*sessions {
            next[session as usize + 1] += 1;
        }
        let mut rows = 0;
        for begin in &mut next {
            rows += *begin;
            *begin = rows;
        }
        let mut order = vec![0; sessions.len()];
        for (row, &session) in sessions.iter().enumerate() {
            let place = &mut next[session as usize];
            order[*place as usize] = row as u32;
            *place += 1;
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        crate::catalog::samples().with_runs()
    }

    #[test]
    fn a_session_that_is_no_row_of_a_table_is_refused() {
        let mut schema = schema();
        let run = schema.index(RUN).unwrap();
        let session = schema.tables[run].index("session").unwrap();
        let as_recorded = schema.tables[run].columns[session].clone();
        schema.tables[run].columns[session].ty = ColumnType::Int;
        assert!(RunBuilder::new(&schema).is_none());
        schema.tables[run].columns[session] = as_recorded;
        assert!(RunBuilder::new(&schema).is_some());
        schema.tables[run].columns[session].target = "nowhere".into();
        assert!(RunBuilder::new(&schema).is_none());
    }

    #[test]
    fn a_change_a_hole_and_an_overlap_end_a_run() {
        let schema = schema();
        let mut runs = RunBuilder::new(&schema).unwrap();
        let n = runs.columns().len();
        let a = vec![1; n];
        let b = vec![2; n];
        assert!(runs.push(2, 1, 1, &a));
        assert!(runs.push(1, 1, 1, &a));
        assert!(runs.push(1, 2, 1, &a));
        assert!(runs.push(1, 3, 1, &b));
        assert!(runs.push(1, 5, 2, &b));
        assert!(!runs.push(1, 6, 1, &b));
        assert!(runs.push(1, 7, 1, &b));
        let def = schema.table(RUN).unwrap();
        let table = runs.finish();
        let column = |name| {
            let c = def.index(name).unwrap();
            (0..table.rows).map(|r| table.get(c, r)).collect::<Vec<_>>()
        };
        assert_eq!(column("session"), [1, 1, 1, 2]);
        assert_eq!(column("first_tick"), [1, 3, 5, 1]);
        assert_eq!(column("ticks"), [2, 1, 3, 1]);
        assert_eq!(column("wait"), [1, 2, 2, 1]);
    }
}
