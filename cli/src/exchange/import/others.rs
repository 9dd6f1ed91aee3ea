//! Rows of any kind except samples. Each row waits for its tick, or for the
//! first tick that is not before its time.

use super::lines::{Lines, Record};
use super::part::{Fields, Part};
use super::target::{Target, row_hash};
use super::value::{Header, int, text, time_us};
use super::{ImportError, ImportResult, Input};
use std::collections::HashSet;
use tacho_source::exchange::{self, Field, Place};
use tacho_source::time::timestamp;
use tacho_tape::format::schema::{ColumnType, Schema};

/// A tick from the input.
#[derive(Clone, Copy)]
pub struct Tick {
    /// Number of the tick in the files.
    pub number: u64,
    /// Number of the tick in the input, if the input has numbers.
    pub given: Option<i64>,
    /// Begin of the tick's slot in ms since 1970.
    pub slot_ms: i64,
}

/// The rows of a kind, in their order.
pub struct OtherRows {
    /// Name of the kind, such as `locks`.
    pub kind: String,
    /// Number of rows added.
    pub rows: u64,
    /// Number of rows left out, because the history has them already.
    pub known: u64,
    there: ExistingRows,
    file: String,
    lines: Lines,
    record: Record,
    /// True if `record` holds a row that is not added yet.
    waiting: bool,
    table: String,
    of_ticks: bool,
    time: Option<usize>,
    tick: Option<usize>,
    own: Vec<(usize, Field)>,
    text: Option<(usize, Field)>,
    references: Vec<Reference>,
}

/// Rows of the kind that the history has already.
enum ExistingRows {
    /// No rows, or rows that belong to ticks: the history has these rows if it
    /// has their ticks.
    Nothing,
    /// Rows with times of their own: the history has those up to this time, in ms
    /// since 1970.
    Until(i64),
    /// Texts, by hash.
    Texts(Vec<(usize, String)>, HashSet<u64>),
}

/// A column that refers to a row, and the fields of that row.
struct Reference {
    column: String,
    target: String,
    fields: Vec<(usize, Field)>,
}

impl OtherRows {
    /// Reads the first two lines, and finds the rows of the kind that the
    /// target has.
    pub fn open(input: Input, schema: &Schema, target: &Target) -> ImportResult<OtherRows> {
        let Input { kind, file, read } = input;
        let table = exchange::table_of(schema, &kind);
        let table = table.ok_or_else(|| unknown_kind(&kind, schema))?;
        let mut lines = Lines::new(read);
        let mut record = Record::default();
        let named = |e: ImportError| e.file(&file);
        super::read_header(&mut lines, &mut record).map_err(named)?;
        let known = exchange::fields(schema, table);
        let header = Header::parse(&record, &known, "").map_err(|e| e.at(1).file(&file))?;
        let there = ExistingRows::of(&kind, table.name.as_str(), &header, schema, target)?;
        let mut others = OtherRows {
            kind,
            rows: 0,
            known: 0,
            there,
            table: table.name.clone(),
            of_ticks: exchange::has_ticks(table),
            time: header.position("time"),
            tick: header.position("tick"),
            own: Vec::new(),
            text: None,
            references: Vec::new(),
            waiting: false,
            lines,
            record,
            file,
        };
        for (position, field) in header.fields {
            others.sort(position, field, schema);
        }
        others.next()?;
        Ok(others)
    }

    fn sort(&mut self, position: usize, field: Field, schema: &Schema) {
        match &field.place {
            Place::Tick => (),
            Place::Own if field.column.ty == ColumnType::Bytes => {
                self.text = Some((position, field));
            }
            Place::Own => self.own.push((position, field)),
            Place::Reference(column) => {
                let known = self.references.iter_mut().find(|r| r.column == *column);
                if let Some(known) = known {
                    known.fields.push((position, field));
                    return;
                }
                let own = schema.table(&self.table).and_then(|t| t.column(column));
                let target = own.map(|c| c.target.clone()).unwrap_or_default();
                let column = column.clone();
                self.references.push(Reference {
                    column,
                    target,
                    fields: vec![(position, field)],
                });
            }
        }
    }

    fn next(&mut self) -> ImportResult<()> {
        let more = self.lines.next(&mut self.record);
        self.waiting = more.map_err(|e| e.file(&self.file))?;
        Ok(())
    }

    /// Adds the rows of a tick, or the rows up to its time.
    pub fn take(&mut self, part: &mut Part, tick: Tick) -> ImportResult<()> {
        while self.waiting && self.is_due(tick).map_err(|e| self.error(e))? {
            self.add(part, tick.number).map_err(|e| self.error(e))?;
            self.next()?;
        }
        Ok(())
    }

    /// Adds the rows after the last tick.
    pub fn end(&mut self, part: &mut Part) -> ImportResult<()> {
        while self.waiting {
            if self.of_ticks {
                return Err(self.error(no_tick()));
            }
            self.add(part, 0).map_err(|e| self.error(e))?;
            self.next()?;
        }
        Ok(())
    }

    fn is_due(&self, tick: Tick) -> ImportResult<bool> {
        let own = match (self.tick, tick.given) {
            (Some(_), Some(given)) => int(text(&self.record, self.tick), "tick")?.cmp(&given),
            _ => {
                let us = time_us(text(&self.record, self.time), "time")?;
                us.div_euclid(1000).cmp(&tick.slot_ms)
            }
        };
        match own.is_lt() && self.of_ticks {
            true => Err(no_tick()),
            false => Ok(own.is_le()),
        }
    }

    /// True if the history has the row already. A time that is not later than the
    /// newest one in the history is an error.
    fn is_there(&self) -> ImportResult<bool> {
        match &self.there {
            ExistingRows::Nothing => Ok(false),
            ExistingRows::Until(newest) => {
                let us = time_us(text(&self.record, self.time), "time")?;
                match us.div_euclid(1000) > *newest {
                    true => Ok(false),
                    false => Err(not_later(&self.kind, *newest)),
                }
            }
            ExistingRows::Texts(names, known) => {
                let fields = names.iter();
                let fields =
                    fields.map(|(at, name)| (name.as_str(), text(&self.record, Some(*at))));
                Ok(known.contains(&row_hash(fields)))
            }
        }
    }

    fn add(&mut self, part: &mut Part, tick: u64) -> ImportResult<()> {
        if self.is_there()? {
            self.known += 1;
            return Ok(());
        }
        self.rows += 1;
        let record = &self.record;
        let mut values = part.values(&self.own, record)?;
        if self.of_ticks {
            values.push(("at", i64::try_from(tick).unwrap_or(0)));
        }
        for Reference {
            column,
            target,
            fields,
        } in &self.references
        {
            let reference = match target.as_str() {
                "session" => session(part, fields, record)?,
                target => {
                    let values = part.values(fields, record)?;
                    part.refer(target, &values)?
                }
            };
            values.push((column, reference));
        }
        let mut strings: Vec<(&str, &[u8])> = Vec::new();
        if let Some((position, field)) = &self.text {
            strings.push((&field.column.name, text(record, Some(*position))));
            values.push(("encoding", super::part::UTF8));
        }
        part.builder.row_bytes(&self.table, &values, &strings)?;
        Ok(())
    }

    fn error(&self, error: ImportError) -> ImportError {
        error.at(self.record.line).file(&self.file)
    }
}

/// The session with a PID and a start.
fn session(part: &mut Part, fields: &Fields, record: &Record) -> ImportResult<i64> {
    let values = part.values(fields, record)?;
    let value = |name| values.iter().find(|v| v.0 == name).map_or(0, |v| v.1);
    part.session_of(value("pid"), value("backend_start"))
}

impl ExistingRows {
    fn of(
        kind: &str,
        table: &str,
        header: &Header,
        schema: &Schema,
        target: &Target,
    ) -> ImportResult<ExistingRows> {
        if kind == exchange::TEXTS {
            let names = header.fields.iter().map(|(at, f)| (*at, f.name.clone()));
            return Ok(ExistingRows::Texts(names.collect(), target.texts()?));
        }
        let of_ticks = schema.table(table).is_some_and(exchange::has_ticks);
        let newest = if of_ticks {
            None
        } else {
            target.newest(table)?
        };
        Ok(newest.map_or(ExistingRows::Nothing, ExistingRows::Until))
    }
}

/// The error of a row that is not later than the history's rows of its kind.
fn not_later(kind: &str, newest_ms: i64) -> ImportError {
    let newest = timestamp(newest_ms.saturating_mul(1000));
    ImportError::new(format!(
        "time is not later than the newest of {kind} in the history, {newest}"
    ))
    .hint("Remove the lines up to that time.")
}

fn no_tick() -> ImportError {
    ImportError::new("time matches no tick of the imported sessions")
        .hint("Import the sessions of the same ticks, in the same order.")
}

/// The error of an unknown kind.
pub fn unknown_kind(kind: &str, schema: &Schema) -> ImportError {
    let kinds = exchange::kinds(schema).join(", ");
    ImportError::usage(format!("unknown kind \"{kind}\"")).hint(format!("Available are {kinds}."))
}
