//! Exports history as CSV: every stored column of one kind of rows. An imported
//! export answers like the original history.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use tacho_source::encoding;
use tacho_source::exchange::{self, Field};
use tacho_source::stored::{Form, Stored};
use tacho_source::time;
use tacho_tape::format::schema::{RUN, Schema, TableDef};
use tacho_tape::{Column, Part};

/// A half-open window, µs since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Begin, inclusive.
    pub since: i64,
    /// End, exclusive.
    pub until: i64,
}

impl Window {
    fn holds_ms(self, ms: i64) -> bool {
        let us = ms.saturating_mul(1000);
        self.since <= us && us < self.until
    }

    /// True if the part may have rows of the table in the window. Rows with times of their own, such
    /// as markers, may lie far from the ticks of their part.
    fn may_have(self, part: &Part, table: &TableDef) -> bool {
        let overlaps = |first: i64, last: i64| {
            first.saturating_mul(1000) < self.until && last.saturating_mul(1000) >= self.since
        };
        if is_timed(table) {
            let bounds = part.bounds(&table.name, "time");
            return bounds.is_none_or(|(first, last)| overlaps(first, last));
        }
        let has_ticks = part.first_tick() <= part.last_tick();
        !has_ticks || overlaps(part.min_ms(), part.max_ms())
    }
}

/// True if the rows of a table have times of their own.
fn is_timed(table: &TableDef) -> bool {
    table.name != RUN && table.name != "text" && !exchange::has_ticks(table)
}

/// Reason why an export ended early.
#[derive(Debug)]
pub enum Failed {
    /// The history has nothing of this kind.
    Kind,
    /// The output could not be written.
    Output(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Output(error)
    }
}

/// Unwraps the system's error: the caller must be able to tell a reader that has
/// gone from a full disk.
fn system_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Writes the rows of a kind in the order of ticks. `known` is the program's
/// schema with runs. Errors of unreadable parts go to `damage`; the other parts
/// are written.
pub fn export(
    kind: &str,
    known: &Schema,
    parts: &[&Part],
    window: Window,
    out: impl Write,
    damage: &mut Vec<tacho_tape::Error>,
) -> Result<(), Failed> {
    let fields = all_fields(kind, known, parts);
    if fields.is_empty() {
        return Err(Failed::Kind);
    }
    let mut rows = Rows {
        out: csv::Writer::from_writer(out),
        text: Vec::new(),
        window,
    };
    let names = fields.iter().map(|f| f.name.as_str());
    rows.out.write_record(names).map_err(system_error)?;
    let mut texts_of: Option<Arc<PathBuf>> = None;
    for part in parts {
        let table = exchange::table_of(part.schema(), kind);
        let Some(table) = table.filter(|table| window.may_have(part, table)) else {
            continue;
        };
        // All groups of a file share its texts.
        let file = (table.name == "text").then(|| part.info().file.clone());
        if file.is_some() && std::mem::replace(&mut texts_of, file.clone()) == file {
            continue;
        }
        match Values::read(part, table, &fields) {
            Ok(values) => rows.part(&values, table)?,
            Err(error) => damage.push(error),
        }
        part.release();
    }
    Ok(rows.out.flush()?)
}

/// The columns of a kind: the program's columns in its order, whatever version
/// recorded the history, followed by further columns of the parts. An import of
/// such a file therefore loses no column.
fn all_fields(kind: &str, known: &Schema, parts: &[&Part]) -> Vec<Field> {
    let table = exchange::table_of(known, kind);
    let mut all = table.map_or_else(Vec::new, |table| exchange::fields(known, table));
    let mut seen: Option<&Schema> = Some(known);
    for part in parts {
        let schema = part.schema();
        if seen.replace(schema) == Some(schema) {
            continue;
        }
        let Some(table) = exchange::table_of(schema, kind) else {
            continue;
        };
        for field in exchange::fields(schema, table) {
            if !all.iter().any(|f| f.name == field.name) {
                all.push(field);
            }
        }
    }
    all
}

/// A field of a part's rows.
struct Source<'a> {
    stored: Stored<'a>,
    /// True if 0 is a value and not null: an empty PID would mean a tick without
    /// sessions, and an empty time no tick.
    is_never_null: bool,
}

/// The columns of a part.
struct Values<'a> {
    part: &'a Part,
    sources: Vec<Source<'a>>,
    names: Vec<String>,
    numbers: Column,
    slots: Column,
    /// Sort key of the rows: number of the tick, or the row's own time.
    begin: Column,
    /// Number of ticks of a run.
    length: Column,
}

impl<'a> Values<'a> {
    fn read(part: &'a Part, table: &TableDef, fields: &[Field]) -> tacho_tape::Result<Self> {
        let bytes = part.bytes("name", "bytes")?;
        let encodings = part.ints("name", "encoding")?;
        let names = bytes.iter().zip(encodings.iter());
        let sources = fields.iter().map(|field| Source::read(part, table, field));
        Ok(Values {
            sources: sources.collect::<tacho_tape::Result<_>>()?,
            names: names.map(|(b, e)| encoding::decode(*e, b)).collect(),
            numbers: part.ints("tick", "tick")?,
            slots: part.ints("tick", "slot_time")?,
            begin: match table.name.as_str() {
                RUN => part.ints(RUN, "first_tick")?,
                name if exchange::has_ticks(table) => part.ints(name, "at")?,
                name => part.ints(name, "time")?,
            },
            length: part.ints(RUN, "ticks")?,
            part,
        })
    }

    /// Indexes of the rows, in order.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.begin.len()).collect();
        order.sort_by_key(|&row| self.begin[row]);
        order
    }

    /// The row of a tick by its number; `None` if the part lacks the tick.
    fn tick_row(&self, number: i64) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }
}

impl<'a> Source<'a> {
    fn read(part: &'a Part, table: &TableDef, field: &Field) -> tacho_tape::Result<Self> {
        Ok(Source {
            stored: Stored::read(part, &table.name, field, &field.column)?,
            is_never_null: table.name == RUN && ["pid", "time"].contains(&field.name.as_str()),
        })
    }

    fn write(&self, out: &mut Vec<u8>, names: &[String], row: usize) -> io::Result<()> {
        if let Form::Text(bytes, encodings) = &self.stored.form {
            let encoding = encodings.get(row).copied().unwrap_or(0);
            out.extend_from_slice(encoding::decode(encoding, bytes.get(row)).as_bytes());
            return Ok(());
        }
        let value = self.stored.numbers.get(row).copied().unwrap_or(0);
        if value == 0 && !self.is_never_null {
            return Ok(());
        }
        match &self.stored.form {
            Form::Time { us } => write!(out, "{}", time::timestamp(value.saturating_mul(*us))),
            Form::Measured => write!(out, "{}", value - 1),
            Form::Fraction => {
                let sign = if value < 0 { "-" } else { "" };
                let value = value.unsigned_abs();
                write!(out, "{sign}{}.{:02}", value / 100, value % 100)
            }
            Form::Name => {
                let name = usize::try_from(value - 1).ok().and_then(|r| names.get(r));
                out.extend_from_slice(name.map_or("?", String::as_str).as_bytes());
                Ok(())
            }
            Form::Label(labels) => match labels.get(&value) {
                Some(label) => out.write_all(label.as_bytes()),
                None => write!(out, "{value}"),
            },
            _ => write!(out, "{value}"),
        }
    }
}

struct Rows<W: Write> {
    out: csv::Writer<W>,
    text: Vec<u8>,
    window: Window,
}

impl<W: Write> Rows<W> {
    fn part(&mut self, values: &Values, table: &TableDef) -> Result<(), Failed> {
        match table.name.as_str() {
            RUN => self.samples(values),
            "text" => self.texts(values, table),
            _ if is_timed(table) => self.timed(values),
            _ => self.of_ticks(values),
        }
    }

    fn row(&mut self, values: &Values, tick: Option<usize>, row: Option<usize>) -> io::Result<()> {
        for source in &values.sources {
            self.text.clear();
            if let Some(row) = source.stored.row(tick, row) {
                source.write(&mut self.text, &values.names, row)?;
            }
            self.out.write_field(&self.text).map_err(system_error)?;
        }
        self.out.write_record(None::<&[u8]>).map_err(system_error)
    }

    /// Writes a row for each sample, and one for each tick without samples.
    fn samples(&mut self, values: &Values) -> Result<(), Failed> {
        let end = |run: usize| values.begin[run].saturating_add(values.length[run]);
        let mut coming = values.order().into_iter().peekable();
        let mut running: Vec<usize> = Vec::new();
        for (tick, (&number, &slot)) in values.numbers.iter().zip(values.slots.iter()).enumerate() {
            running.retain(|&run| end(run) > number);
            while let Some(run) = coming.next_if(|&run| values.begin[run] <= number) {
                running.extend((end(run) > number).then_some(run));
            }
            if !self.window.holds_ms(slot) {
                continue;
            }
            if running.is_empty() {
                self.row(values, Some(tick), None)?;
            }
            for &run in &running {
                self.row(values, Some(tick), Some(run))?;
            }
        }
        Ok(())
    }

    fn texts(&mut self, values: &Values, table: &TableDef) -> Result<(), Failed> {
        let first = (!values.numbers.is_empty()).then_some(0);
        for row in 0..values.part.rows(&table.name) {
            self.row(values, first, Some(row))?;
        }
        Ok(())
    }

    /// Writes rows that belong to ticks, in the order of ticks.
    fn of_ticks(&mut self, values: &Values) -> Result<(), Failed> {
        for row in values.order() {
            let tick = values.tick_row(values.begin[row]);
            if tick.is_some_and(|t| self.window.holds_ms(values.slots[t])) {
                self.row(values, tick, Some(row))?;
            }
        }
        Ok(())
    }

    /// Writes rows with a time of their own, in order of time.
    fn timed(&mut self, values: &Values) -> Result<(), Failed> {
        for row in values.order() {
            if self.window.holds_ms(values.begin[row]) {
                self.row(values, None, Some(row))?;
            }
        }
        Ok(())
    }
}
