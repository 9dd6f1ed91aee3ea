//! A file under construction, and the references found for its rows.

use super::ImportResult;
use super::lines::Record;
use super::plan::RowFields;
use super::value::{number, text};
use std::sync::Arc;
use tacho_source::exchange::Field;
use tacho_tape::PartBuilder;
use tacho_tape::fast::FastMap;
use tacho_tape::format::part_builder::RowPlan;
use tacho_tape::format::schema::{ColumnType, Schema};

/// PostgreSQL's encoding id of UTF-8.
pub const UTF8: i64 = 6;

/// Fields and their positions in a line.
pub type Fields = [(usize, Field)];

/// The last known state of a process.
#[derive(Clone, Copy)]
struct Process {
    /// Index of the first session entry of the process.
    first: i64,
    /// Index of the last session entry of the process.
    session: i64,
    /// Newest tick of the process.
    tick: u64,
    /// True for the last seen process of several with one PID.
    is_newest: bool,
}

/// A file under construction.
pub struct Part {
    /// Rows of the file.
    pub builder: PartBuilder,
    /// Ticks of the current group.
    pub ticks: u64,
    /// True if rows name processes by PID alone, without the start.
    pub names_pids: bool,
    schema: Arc<Schema>,
    /// Index in `newest` of each process, by PID and start.
    processes: FastMap<(i64, i64), usize>,
    /// Index in `newest` of the process that was seen last with each PID.
    by_pid: FastMap<i64, usize>,
    newest: Vec<Process>,
}

impl Part {
    pub fn new(schema: &Arc<Schema>) -> ImportResult<Part> {
        Ok(Part {
            builder: PartBuilder::new(Arc::clone(schema))?,
            ticks: 0,
            names_pids: false,
            schema: Arc::clone(schema),
            processes: FastMap::default(),
            by_pid: FastMap::default(),
            newest: Vec::new(),
        })
    }

    /// The number that stores a field.
    pub fn value(&mut self, field: &Field, text: &[u8]) -> ImportResult<i64> {
        match field.column.ty {
            ColumnType::Name if text.is_empty() => Ok(0),
            ColumnType::Name => Ok(self.builder.name_bytes(UTF8, text)?),
            _ => number(&self.schema, field, text),
        }
    }

    /// Values of a row; derived ones are 0.
    pub fn read(
        &mut self,
        row: &RowFields,
        record: &Record,
        values: &mut Vec<i64>,
    ) -> ImportResult<()> {
        values.clear();
        for (position, field) in &row.fields {
            values.push(self.value(field, text(record, Some(*position)))?);
        }
        values.resize(row.len(), 0);
        Ok(())
    }

    /// Reference to the row with these values; null if all are 0.
    pub fn refer_row(&mut self, row: &RowPlan, values: &[i64]) -> i64 {
        match values.iter().any(|&value| value != 0) {
            true => self.builder.intern_row(row, values),
            false => 0,
        }
    }

    /// Values of a line's fields, by column.
    pub fn values<'f>(
        &mut self,
        fields: &'f Fields,
        record: &Record,
    ) -> ImportResult<Vec<(&'f str, i64)>> {
        let value = |(position, field): &'f (usize, Field)| {
            let value = self.value(field, text(record, Some(*position)))?;
            Ok((field.column.name.as_str(), value))
        };
        fields.iter().map(value).collect()
    }

    /// Reference to the row of a table with these values; null if all are 0.
    pub fn refer(&mut self, table: &str, values: &[(&str, i64)]) -> ImportResult<i64> {
        match values.iter().any(|v| v.1 != 0) {
            true => Ok(self.builder.intern(table, values)?),
            false => Ok(0),
        }
    }

    /// The index of a process; adds it if it is new.
    pub fn process(&mut self, pid: i64, start: i64) -> usize {
        let next = self.newest.len();
        let process = *self.processes.entry((pid, start)).or_insert(next);
        if process == next {
            self.newest.push(Process {
                first: 0,
                session: 0,
                tick: 0,
                is_newest: false,
            });
        }
        process
    }

    /// Reference to the session entry of a process with these values. Most
    /// processes have only one entry, which is found without a search.
    pub fn define(&mut self, process: usize, row: &RowPlan, values: &[i64]) -> i64 {
        match self.newest[process].first {
            0 => {
                let first = self.builder.add_row(row, values);
                self.newest[process].first = first;
                first
            }
            first if self.builder.is_row(row, first, values) => first,
            _ => self.builder.intern_row(row, values),
        }
    }

    /// Notes the session entry of a process at a tick; false if the process has
    /// one at that tick already.
    pub fn seen(&mut self, pid: i64, process: usize, session: i64, tick: u64) -> bool {
        let known = &mut self.newest[process];
        let is_new = known.tick != tick;
        let was_newest = std::mem::replace(&mut known.is_newest, true);
        (known.session, known.tick) = (session, tick);
        if self.names_pids
            && !was_newest
            && let Some(other) = self.by_pid.insert(pid, process)
            && other != process
        {
            self.newest[other].is_newest = false;
        }
        is_new
    }

    /// The newest session entry of a process; `start` 0 means any start.
    /// Defines an entry for an unknown process.
    pub fn session_of(&mut self, pid: i64, start: i64) -> ImportResult<i64> {
        if pid == 0 {
            return Ok(0);
        }
        let process = match self.by_pid.get(&pid) {
            Some(&newest) if start == 0 => newest,
            _ => self.process(pid, start),
        };
        let known = self.newest[process];
        match known.session {
            0 if known.first == 0 => {
                let columns = ["pid", "backend_start"];
                let row = self.builder.plan("session", columns)?;
                Ok(self.define(process, &row, &[pid, start]))
            }
            0 => Ok(known.first),
            session => Ok(session),
        }
    }
}
