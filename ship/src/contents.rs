//! The objects of an hour. If a column of a part is damaged, the tables that need it
//! lack the part; the other tables have it. Samples and ticks are left out together: a
//! tick without its samples would show a load that is too small.

use crate::fault::Fault;
use crate::field::{FieldReader, Names, Row, column};
use crate::hours::{self, HOUR_MS, hour_of};
use crate::names::HourId;
use crate::redact::Redaction;
use crate::samples::{Minutes, Runs, Ticks, minute_columns, run_columns};
use crate::server;
use crate::table::{Column, Constant, Encoded, Kind, Object};
use crate::texts::Texts;
use std::collections::BTreeSet;
use tacho_source::catalog;
use tacho_source::exchange::{self, Field};
use tacho_tape::format::schema::{STATS, Schema};
use tacho_tape::query::middle_us;
use tacho_tape::{Column as Numbers, Part};

/// Index of the part that could not be read, and the reason. The caller goes on without
/// the part.
type Failed = (Option<usize>, Fault);

/// One object of an hour.
#[derive(Debug, PartialEq, Eq)]
pub struct TableObject {
    pub table: &'static str,
    /// Rows of the table, encoded as Parquet.
    pub encoded: Encoded,
}

/// A part whose rows of some tables could not be read.
pub struct LeftOut<'a> {
    pub part: &'a Part,
    pub tables: &'static [&'static str],
    pub error: tacho_tape::Error,
}

/// The objects of an hour, in the order of the puts.
#[derive(Default)]
pub struct Objects<'a> {
    /// Objects that have rows.
    pub made: Vec<TableObject>,
    /// Ids of the queries that the objects of the hour refer to.
    pub queries: BTreeSet<i64>,
    /// Parts that are missing in tables.
    pub left_out: Vec<LeftOut<'a>>,
}

/// Tables that are left out together: a tick without its samples would show no load.
const OBSERVED: &[&str] = &["sample_runs", "load_minute", "ticks"];

/// Everything that is shipped for an hour.
pub struct Contents<'a> {
    pub hour_id: HourId,
    /// The parts of the node that may have rows of the hour.
    pub parts: &'a [&'a Part],
    /// All parts of the node: any of them may have a text.
    pub all: &'a [&'a Part],
    /// Values that stay on the server.
    pub redaction: &'a Redaction,
}

/// The first columns of every table.
pub fn common(hour_id: HourId) -> [(Column, Constant); 3] {
    let node = Constant::Text(format!("{:016x}", hour_id.node));
    let hour = hour_id.hour.saturating_mul(HOUR_MS * 1_000);
    let generation = i64::try_from(hour_id.generation).unwrap_or(i64::MAX);
    [
        (Column::new(1, "node", Kind::Text), node),
        (Column::new(2, "hour", Kind::Start), Constant::Number(hour)),
        (
            Column::new(3, "generation", Kind::Number),
            Constant::Number(generation),
        ),
    ]
}

/// The program's own schema.
pub fn schema() -> Schema {
    catalog::schema().clone().with_runs()
}

/// Objects of some tables, and the query ids in them.
type Group = (Vec<TableObject>, BTreeSet<i64>);

impl<'a> Objects<'a> {
    /// Makes objects from the parts that can be read. A part that fails is left out of
    /// `tables` as a whole.
    fn add(
        &mut self,
        tables: &'static [&'static str],
        parts: &[&'a Part],
        mut make: impl FnMut(&[&Part]) -> Result<Group, Failed>,
    ) -> Result<(), Fault> {
        let mut parts = parts.to_vec();
        let (made, queries) = loop {
            match make(&parts) {
                Ok(group) => break group,
                Err((Some(place), Fault::Tape(error))) if hours::is_lasting(&error) => {
                    let part = parts.remove(place);
                    let lost = LeftOut {
                        part,
                        tables,
                        error,
                    };
                    self.left_out.push(lost);
                }
                Err((_, fault)) => return Err(fault),
            }
        };
        self.made.extend(made);
        self.queries.extend(queries);
        Ok(())
    }
}

impl<'a> Contents<'a> {
    /// Makes the objects that have rows. Damaged texts are left out.
    ///
    /// # Errors
    /// A file could not be read, which a later attempt may do, or rows could not be encoded.
    pub fn make(&self, texts: &mut Texts) -> Result<Objects<'a>, Fault> {
        let schema = schema();
        let mut objects = Objects::default();
        objects.add(OBSERVED, self.parts, |parts| {
            self.observed(&schema, texts, parts)
        })?;
        objects.add(&["locks"], self.parts, |parts| {
            self.table(&schema, "lock", "locks", texts, parts)
        })?;
        objects.add(&["markers"], self.parts, |parts| {
            self.table(&schema, "marker", "markers", texts, parts)
        })?;
        objects.add(&["server"], self.parts, |parts| self.readings(parts))?;
        let of_samples = objects.queries.clone();
        objects.add(&["statements"], self.parts, |parts| {
            self.statements(&schema, &of_samples, texts, parts)
        })?;
        if self.redaction.has_texts() {
            let mut object = self.object("texts", Texts::columns()).map_err(|e| e.1)?;
            texts.write(&objects.queries, self.redaction, &mut object)?;
            objects.made.extend(made("texts", object).map_err(|e| e.1)?);
        }
        Ok(objects)
    }

    fn observed(&self, schema: &Schema, texts: &Texts, parts: &[&Part]) -> Result<Group, Failed> {
        let mut queries = BTreeSet::new();
        let mut runs = self.object("sample_runs", run_columns(schema))?;
        let mut minutes = Minutes::default();
        each(parts, |part| {
            self.samples(part, &mut runs, &mut minutes, &mut queries)
        })?;
        let mut load = self.object("load_minute", minute_columns())?;
        minutes.write(&mut load).map_err(|e| (None, e.into()))?;
        let runs = made("sample_runs", runs)?.into_iter();
        let samples = runs.chain(made("load_minute", load)?);
        let (ticks, _) = self.table(schema, "tick", "ticks", texts, parts)?;
        Ok((samples.chain(ticks).collect(), queries))
    }

    /// A table whose rows are shipped as recorded.
    fn table(
        &self,
        schema: &Schema,
        table: &str,
        name: &'static str,
        texts: &Texts,
        parts: &[&Part],
    ) -> Result<Group, Failed> {
        let (fields, columns) = self.fields(schema, table);
        let mut object = self.object(name, columns)?;
        each(parts, |part| {
            self.rows(part, table, &fields, texts, &mut object)
        })?;
        Ok((Vec::from_iter(made(name, object)?), BTreeSet::new()))
    }

    fn readings(&self, parts: &[&Part]) -> Result<Group, Failed> {
        let mut object = self.object("server", server::columns())?;
        each(parts, |part| {
            server::write(part, self.hour_id.hour, self.redaction, &mut object)
        })?;
        Ok((Vec::from_iter(made("server", object)?), BTreeSet::new()))
    }

    /// The statistics; looks for the texts of their queries and of the samples' queries
    /// first.
    fn statements(
        &self,
        schema: &Schema,
        of_samples: &BTreeSet<i64>,
        texts: &mut Texts,
        parts: &[&Part],
    ) -> Result<Group, Failed> {
        let mut queries = BTreeSet::new();
        each(parts, |part| {
            queries.extend(statement_queries(part, self.hour_id.hour)?);
            Ok(())
        })?;
        if self.redaction.has_texts() {
            let all = of_samples.union(&queries).copied().collect();
            let found = texts.find(&all, self.all.iter().copied());
            found.map_err(|error| (None, error.into()))?;
        }
        let (objects, _) = self.table(schema, STATS, "statements", texts, parts)?;
        Ok((objects, queries))
    }

    fn object(&self, name: &str, columns: Vec<Column>) -> Result<Object, Failed> {
        Object::new(name, &common(self.hour_id), columns).map_err(|e| (None, e.into()))
    }

    fn samples(
        &self,
        part: &Part,
        object: &mut Object,
        minutes: &mut Minutes,
        queries: &mut BTreeSet<i64>,
    ) -> Result<(), Fault> {
        let hour = self.hour_id.hour;
        if hour < hour_of(part.min_ms()) || hour_of(part.max_ms()) < hour {
            return Ok(());
        }
        let ticks = Ticks::read(part)?;
        ticks.observe(hour, minutes);
        let names = Names::read(part)?;
        let runs = Runs::read(part, &names)?;
        let statements = runs.write(hour, &ticks, &names, self.redaction, object, minutes)?;
        let ids = part.ints("statement", "query_id")?;
        let of_row = |reference: &i64| ids.get(usize::try_from(reference - 1).ok()?).copied();
        queries.extend(statements.iter().filter_map(of_row));
        Ok(())
    }

    /// The shipped fields of a table, and their columns.
    fn fields(&self, schema: &Schema, table: &str) -> (Vec<Field>, Vec<Column>) {
        let Some(def) = schema.table(table) else {
            return (Vec::new(), Vec::new());
        };
        let mut fields = exchange::fields(schema, def);
        fields.retain(|field| !["user_oid", "database_oid"].contains(&field.name.as_str()));
        let mut columns: Vec<Column> = fields.iter().map(|field| column(def, field)).collect();
        if table == "tick" {
            columns.push(Column::new(10, "weight_ms", Kind::Number));
        }
        if table == STATS {
            columns.push(Column::new(10, "fingerprint", Kind::Number));
        }
        (fields, columns)
    }

    /// Adds one part's rows of a table.
    fn rows(
        &self,
        part: &Part,
        table: &str,
        fields: &[Field],
        texts: &Texts,
        object: &mut Object,
    ) -> Result<(), Fault> {
        let rows = rows_of(part, table, self.hour_id.hour)?;
        if rows.is_empty() {
            return Ok(());
        }
        let names = Names::read(part)?;
        let cells = fields.iter();
        let cells = cells.map(|f| FieldReader::read(part, table, f, self.redaction));
        let cells: Vec<_> = cells.collect::<tacho_tape::Result<_>>()?;
        let derived = self.derived(part, table, texts)?;
        let mut rest = &rows[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(object.room().min(rest.len()));
            for (cells, values) in cells.iter().zip(&mut object.values) {
                match cells {
                    Some(cells) => cells.write(now, &names, self.redaction, values),
                    None => values.repeat(None, now.len()),
                }
            }
            if let Some(values) = object.values.get_mut(cells.len()) {
                let value = |row: &Row| derived.get(row.own?).copied().flatten();
                now.iter().for_each(|row| values.number(value(row)));
            }
            object.flush_full()?;
            rest = later;
        }
        Ok(())
    }

    /// Values of the derived last column, by row of the table: the weight of a tick, or
    /// the fingerprint of a text.
    fn derived(&self, part: &Part, table: &str, texts: &Texts) -> Result<Vec<Option<i64>>, Fault> {
        Ok(match table {
            "tick" => {
                let ticks = Ticks::read(part)?;
                let numbers = part.ints("tick", "tick")?;
                let weight = |number: &i64| Some(ticks.weight_ms(ticks.place(*number)?));
                numbers.iter().map(weight).collect()
            }
            STATS => {
                let ids = part.ints("entry", "query_id")?;
                let ids = ids.iter();
                let of_entry = ids.map(|id| texts.fingerprint(*id, self.redaction));
                let of_entry: Vec<Option<i64>> = of_entry.collect();
                let found = |entry: &i64| *of_entry.get(usize::try_from(entry - 1).ok()?)?;
                part.ints(STATS, "entry")?.iter().map(found).collect()
            }
            _ => Vec::new(),
        })
    }
}

/// Calls `each` with every part. An error carries the part's index.
fn each(parts: &[&Part], mut each: impl FnMut(&Part) -> Result<(), Fault>) -> Result<(), Failed> {
    for (place, part) in parts.iter().enumerate() {
        each(part).map_err(|fault| match fault {
            Fault::Tape(_) => (Some(place), fault),
            Fault::Other(_) => (None, fault),
        })?;
        part.release();
    }
    Ok(())
}

/// Finishes an object; `None` if it has no rows.
fn made(table: &'static str, object: Object) -> Result<Option<TableObject>, Failed> {
    let encoded = object.finish().map_err(|e| (None, e.into()))?;
    Ok(encoded.map(|encoded| TableObject { table, encoded }))
}

/// The rows of a table that belong to an hour, as stored.
fn rows_of(part: &Part, table: &str, hour: i64) -> Result<Vec<Row>, Fault> {
    if part.rows(table) == 0 || !may_have(part, table, hour)? {
        return Ok(Vec::new());
    }
    let of = |ms: i64| hour_of(ms) == hour;
    let own = |own| Row {
        tick: None,
        own: Some(own),
    };
    Ok(match table {
        "tick" => {
            let slots = part.ints("tick", "slot_time")?;
            positions(&slots, of).map(own).collect()
        }
        STATS => {
            let hours = statement_hours(part)?;
            positions(&hours, |of| of == hour).map(own).collect()
        }
        _ if part.schema().column(table, "at").is_some() => {
            let ticks = Ticks::read(part)?;
            let at = part.ints(table, "at")?;
            let row = |(own, number): (usize, &i64)| {
                let place = ticks.place(*number)?;
                ticks.is_of(place, hour).then(|| Row {
                    tick: Some(ticks.row(place)),
                    own: Some(own),
                })
            };
            at.iter().enumerate().filter_map(row).collect()
        }
        _ => {
            let times = part.ints(table, "time")?;
            positions(&times, of).map(own).collect()
        }
    })
}

fn positions(values: &[i64], wanted: impl Fn(i64) -> bool) -> impl Iterator<Item = usize> {
    let found = values.iter().enumerate();
    found.filter_map(move |(row, value)| wanted(*value).then_some(row))
}

/// True if a part may have rows of a table in an hour.
fn may_have(part: &Part, table: &str, hour: i64) -> tacho_tape::Result<bool> {
    let range = match table {
        STATS => hours::statements_ms(part)?,
        _ if hours::TIMED.contains(&table) => hours::range(part, table)?,
        _ => Some((part.min_ms(), part.max_ms())),
    };
    Ok(range.is_some_and(|(first, last)| hour_of(first) <= hour && hour <= hour_of(last)))
}

/// The hour of each row of the statistics: the hour that contains the middle of its
/// interval.
fn statement_hours(part: &Part) -> Result<Vec<i64>, Fault> {
    let (time, elapsed) = (part.ints(STATS, "time")?, part.ints(STATS, "elapsed_ms")?);
    let pairs = time.iter().zip(elapsed.iter());
    Ok(pairs
        .map(|(time, elapsed)| hour_of(middle_us(*time, *elapsed).div_euclid(1_000)))
        .collect())
}

/// Query ids of the statistics of an hour.
fn statement_queries(part: &Part, hour: i64) -> Result<BTreeSet<i64>, Fault> {
    if part.rows(STATS) == 0 || !may_have(part, STATS, hour)? {
        return Ok(BTreeSet::new());
    }
    let (entries, ids): (Numbers, Numbers) =
        (part.ints(STATS, "entry")?, part.ints("entry", "query_id")?);
    let hours = statement_hours(part)?;
    let rows = positions(&hours, |of| of == hour);
    let found = rows.filter_map(|row| ids.get(usize::try_from(entries[row] - 1).ok()?));
    Ok(found.copied().collect())
}
