//! Lines of sessions, one a session and tick, to files of a day with a group
//! an hour.

use super::lines::Record;
use super::others::{Others, Tick};
use super::part::{Fields, Part, UTF8};
use super::target::Target;
use super::value::{Header, int, invalid, label, number, text, time_us};
use super::{ImportError, ImportResult};
use crate::exchange::{Field, Place};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tacho_tape::Schema;
use tacho_tape::fast::FastMap;
use tacho_tape::schema::ColumnType;

/// A group ends with the hour, or with this many runs.
const MAX_RUNS: usize = 1_000_000;
/// A file ends with the day, or with this many definitions.
const MAX_DEFINITIONS: usize = 2_000_000;
const HOUR_MS: i64 = 3_600_000;
/// A text instead of the hash that is stored.
pub const QUERY_TEXT: &str = "query_text";

/// Lines and ticks read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Samples.
    pub samples: u64,
    /// Ticks.
    pub ticks: u64,
}

/// Which columns of the input serve what.
struct Plan {
    time: Option<usize>,
    tick: Option<usize>,
    /// Other columns of the tick.
    ticks: Vec<(usize, Field)>,
    session: Vec<(usize, Field)>,
    pid: Option<usize>,
    /// Columns of a sample that seldom change, references included.
    lasting: Vec<(usize, Field)>,
    /// Times of a sample, and their places among its values.
    times: Vec<(usize, Field, usize)>,
    blocked_by: Option<usize>,
    blocked_start: Option<usize>,
    query_text: Option<usize>,
    database: Option<usize>,
    username: Option<usize>,
}

impl Plan {
    fn new(header: Header, place: impl Fn(&str) -> Option<usize>) -> Plan {
        let position = |name: &str| header.position(name);
        let mut plan = Plan {
            time: position("time"),
            tick: position("tick"),
            pid: position("pid"),
            blocked_by: position("blocked_by"),
            blocked_start: position("blocked_by_start"),
            database: position("database"),
            username: position("username"),
            query_text: header.extra,
            ticks: Vec::new(),
            session: Vec::new(),
            lasting: Vec::new(),
            times: Vec::new(),
        };
        for (at, field) in header.fields {
            match (&field.place, field.table.as_str()) {
                _ if matches!(field.name.as_str(), "time" | "tick") => (),
                (Place::Tick, _) => plan.ticks.push((at, field)),
                (Place::Reference(column), _) if column == "blocked_by" => (),
                (Place::Reference(_), "session") => plan.session.push((at, field)),
                (Place::Own, _) if field.column.ty == ColumnType::Time => {
                    if let Some(place) = place(&field.column.name) {
                        plan.times.push((at, field, place));
                    }
                }
                _ => plan.lasting.push((at, field)),
            }
        }
        plan
    }

    fn has(fields: &Fields, name: &str) -> Option<usize> {
        fields.iter().find(|f| f.1.name == name).map(|f| f.0)
    }
}

/// A session entry and its process.
#[derive(Clone, Copy)]
struct Session {
    reference: i64,
    pid: i64,
    process: usize,
}

/// A sample that waits for the end of its tick.
struct Pending {
    session: i64,
    /// Index of its lasting values.
    values: usize,
    /// Process id and start of the one that blocks it.
    blocked_by: (i64, i64),
}

/// Builds files from lines.
pub struct Importer<'a> {
    target: &'a mut Target,
    schema: Arc<Schema>,
    plan: Arc<Plan>,
    others: Vec<Others>,
    part: Part,
    interval_ms: i64,
    /// Texts of the columns of the tick at hand: time, tick, the others.
    tick_texts: Vec<Vec<u8>>,
    tick: Option<Tick>,
    tick_interval: i64,
    failed: bool,
    /// Added to the numbers of ticks that the input gives.
    shift: i64,
    tick_values: Vec<(String, i64)>,
    pending: Vec<Pending>,
    /// The times of those, one after another.
    pending_times: Vec<i64>,
    /// Samples of the tick whose session is not known.
    unknown: u8,
    sessions: FastMap<Vec<u8>, Session>,
    samples: FastMap<Vec<u8>, usize>,
    values: Vec<Vec<i64>>,
    /// Position of a column of `run` among the values of a sample.
    places: Vec<(String, usize)>,
    texts: FastMap<u64, ()>,
    key: Vec<u8>,
    hour: i64,
    imported: Imported,
}

impl<'a> Importer<'a> {
    /// For lines with this header; a tick weighs `interval_ms`.
    pub fn new(
        header: Header,
        others: Vec<Others>,
        schema: Arc<Schema>,
        target: &'a mut Target,
        interval_ms: i64,
    ) -> ImportResult<Self> {
        let part = Part::new(&schema)?;
        let run = schema.table("run").map(|t| t.columns.as_slice());
        let run = run.unwrap_or_default();
        let places = part.builder.sample_columns().iter().enumerate();
        let places: Vec<(String, usize)> = places
            .map(|(place, column)| (run[*column].name.clone(), place))
            .collect();
        Ok(Importer {
            plan: Arc::new(Plan::new(header, |name| place_of(&places, name))),
            part,
            schema,
            others,
            interval_ms,
            tick_texts: Vec::new(),
            tick: None,
            tick_interval: 0,
            failed: false,
            shift: 0,
            tick_values: Vec::new(),
            pending: Vec::new(),
            pending_times: Vec::new(),
            unknown: 0,
            sessions: FastMap::default(),
            samples: FastMap::default(),
            values: Vec::new(),
            places,
            texts: FastMap::default(),
            key: Vec::new(),
            hour: i64::MIN,
            imported: Imported::default(),
            target,
        })
    }

    /// Takes a line.
    pub fn line(&mut self, record: &Record) -> ImportResult<()> {
        if !self.is_same_tick(record)? {
            self.begin_tick(record)?;
        }
        match text(record, self.plan.pid) {
            b"" => Ok(()),
            pid => self.sample(record, pid == b"0"),
        }
    }

    fn tick_columns(&self) -> impl Iterator<Item = Option<usize>> {
        let own = [self.plan.time, self.plan.tick];
        own.into_iter()
            .chain(self.plan.ticks.iter().map(|t| Some(t.0)))
    }

    fn is_same_tick(&self, record: &Record) -> ImportResult<bool> {
        let Some(tick) = self.tick else {
            return Ok(false);
        };
        let mut pairs = self.tick_columns().zip(&self.tick_texts);
        if pairs.all(|(column, known)| text(record, column) == known) {
            return Ok(true);
        }
        let same = match tick.given {
            Some(given) => int(text(record, self.plan.tick), "tick")? == given,
            None => self.slot_ms(record)? == tick.slot_ms,
        };
        if same {
            self.compare_ticks(record)?;
        }
        Ok(same)
    }

    /// Two lines of one tick must say the same of it.
    fn compare_ticks(&self, record: &Record) -> ImportResult<()> {
        let known = self.tick_texts.iter().skip(2);
        for ((position, field), known) in self.plan.ticks.iter().zip(known) {
            let now = text(record, Some(*position));
            let differ = match field.column.ty {
                ColumnType::Name => now != known,
                _ => number(&self.schema, field, now)? != number(&self.schema, field, known)?,
            };
            if differ {
                let name = &field.name;
                return Err(ImportError::new(format!(
                    "lines of one time differ in {name}"
                )));
            }
        }
        Ok(())
    }

    fn slot_ms(&self, record: &Record) -> ImportResult<i64> {
        Ok(time_us(text(record, self.plan.time), "time")?.div_euclid(1000))
    }

    fn interval(&self, record: &Record) -> ImportResult<i64> {
        let given = text(record, Plan::has(&self.plan.ticks, "interval_ms"));
        match int(given, "interval_ms")? {
            0 => Ok(self.interval_ms),
            interval if interval > 0 => Ok(interval),
            _ => Err(invalid(given, "interval_ms")),
        }
    }

    fn begin_tick(&mut self, record: &Record) -> ImportResult<()> {
        self.end_tick()?;
        let slot_ms = self.slot_ms(record)?;
        let interval = self.interval(record)?;
        let given = match self.plan.tick {
            Some(_) => Some(int(text(record, self.plan.tick), "tick")?),
            None => None,
        };
        let number = match given {
            Some(given) => self.given_number(given, slot_ms, interval)?,
            None => self.next_number(slot_ms, interval)?,
        };
        let hour = slot_ms.div_euclid(HOUR_MS);
        if self.part.ticks > 0 && (hour != self.hour || self.part.builder.run_rows() >= MAX_RUNS) {
            self.end_group()?;
            let definitions = self.part.builder.dictionary_rows();
            let other_day = hour.div_euclid(24) != self.hour.div_euclid(24);
            if other_day || definitions > MAX_DEFINITIONS {
                self.end_file()?;
            }
        }
        self.hour = hour;
        self.tick = Some(Tick {
            number,
            given,
            slot_ms,
        });
        self.tick_interval = interval;
        let texts = self.tick_columns().map(|c| text(record, c).to_vec());
        self.tick_texts = texts.collect();
        self.read_tick(record, interval)
    }

    /// The number of a tick by its distance to the one before.
    fn next_number(&self, slot_ms: i64, interval: i64) -> ImportResult<u64> {
        let before = self
            .tick
            .map(|t| (t.number, t.slot_ms))
            .or(self.target.last);
        let Some((number, before)) = before else {
            return Ok(1);
        };
        let distance = after(slot_ms, before)?;
        if self.tick.is_some() && distance < self.tick_interval.min(interval) {
            let message = "ms after the time before it, less than the interval";
            return Err(ImportError::new(format!("time is {distance} {message}"))
                .hint("Give the interval of the samples with --interval."));
        }
        Ok(number + (distance / interval).max(1) as u64)
    }

    /// A number that the input gives: it counts, also when the clock was set
    /// back.
    fn given_number(&mut self, given: i64, slot_ms: i64, interval: i64) -> ImportResult<u64> {
        let known = self.tick.and_then(|t| t.given);
        if given < 1 || known.is_some_and(|known| given <= known) {
            return Err(
                ImportError::new("tick is not later than the tick before it")
                    .hint("Lines must be sorted by tick."),
            );
        }
        if let (None, Some((number, before))) = (known, self.target.last) {
            let distance = after(slot_ms, before)?;
            self.shift = number as i64 + (distance / interval).max(1) - given;
        }
        Ok(given.saturating_add(self.shift) as u64)
    }

    /// The columns of the tick.
    fn read_tick(&mut self, record: &Record, interval: i64) -> ImportResult<()> {
        let values = self.part.values(&self.plan.ticks, record)?.into_iter();
        let mut values: Vec<(String, i64)> = values.map(|v| (v.0.to_string(), v.1)).collect();
        let slot_ms = self.tick.map_or(0, |t| t.slot_ms);
        let ok = self.schema.value("tick_status", "ok").unwrap_or(0);
        let defaults = [("status", ok), ("interval_ms", interval)];
        for (column, default) in defaults {
            match values.iter_mut().find(|v| v.0 == column) {
                Some(value) if value.1 == 0 => value.1 = default,
                Some(_) => (),
                None => values.push((column.to_string(), default)),
            }
        }
        if !values.iter().any(|v| v.0 == "taken_at") {
            values.push(("taken_at".to_string(), slot_ms));
        }
        let failed = self.schema.value("tick_status", "failed");
        let status = values.iter().find(|v| v.0 == "status").map(|v| v.1);
        self.failed = status == failed;
        self.tick_values = values;
        Ok(())
    }

    fn sample(&mut self, record: &Record, unknown: bool) -> ImportResult<()> {
        if self.failed {
            return Err(ImportError::new("a failed tick has no sessions"));
        }
        let session = self.session(record, unknown)?;
        let tick = self.tick.map_or(0, |t| t.number);
        let Session { pid, process, .. } = session;
        if !self.part.seen(pid, process, session.reference, tick) && !unknown {
            let message = format!("process {pid} occurs twice at one time");
            return Err(ImportError::new(message));
        }
        let values = self.lasting_values(record)?;
        // A query often begins with its transaction.
        let mut before: (&[u8], i64) = (b"", 0);
        for (position, field, _) in &self.plan.times {
            let text = text(record, Some(*position));
            if text != before.0 {
                before = (text, number(&self.schema, field, text)?);
            }
            self.pending_times.push(before.1);
        }
        let blocked_by = match text(record, self.plan.blocked_by) {
            b"" => (0, 0),
            pid => {
                let start = text(record, self.plan.blocked_start);
                let start = match start {
                    b"" => 0,
                    start => time_us(start, "blocked_by_start")?,
                };
                (int(pid, "blocked_by")?, start)
            }
        };
        self.pending.push(Pending {
            session: session.reference,
            values,
            blocked_by,
        });
        self.imported.samples += 1;
        Ok(())
    }

    /// The session of a line. One of process 0 is not known: each of a tick
    /// is another.
    fn session(&mut self, record: &Record, unknown: bool) -> ImportResult<Session> {
        make_key(&mut self.key, record, &self.plan.session);
        if unknown {
            self.unknown = self.unknown.saturating_add(1);
            self.key.push(self.unknown);
        }
        if let Some(session) = self.sessions.get(&self.key) {
            return Ok(*session);
        }
        let plan = Arc::clone(&self.plan);
        let mut values = self.part.values(&plan.session, record)?;
        let value = |name: &str| values.iter().find(|v| v.0 == name).map_or(0, |v| v.1);
        let (pid, start) = (value("pid"), value("backend_start"));
        if pid < 0 || (pid == 0 && !unknown) {
            return Err(invalid(text(record, self.plan.pid), "pid"));
        }
        if value("category") == 0 && !unknown {
            let kind = text(record, Plan::has(&self.plan.session, "backend_type"));
            let category = label(&self.schema, "category", category(kind), "category")?;
            values.retain(|v| v.0 != "category");
            values.push(("category", category));
        }
        let reference = match unknown {
            true => self.part.builder.row("session", &values)?,
            false => self.part.builder.intern("session", &values)?,
        };
        let process = self.part.process(pid, start);
        let session = Session {
            reference,
            pid,
            process,
        };
        self.sessions.insert(self.key.clone(), session);
        Ok(session)
    }

    /// Index of the lasting values of a sample.
    fn lasting_values(&mut self, record: &Record) -> ImportResult<usize> {
        make_key(&mut self.key, record, &self.plan.lasting);
        self.key
            .extend_from_slice(text(record, self.plan.query_text));
        if let Some(values) = self.samples.get(&self.key) {
            return Ok(*values);
        }
        let values = self.read_values(record)?;
        self.values.push(values);
        let index = self.values.len() - 1;
        self.samples.insert(self.key.clone(), index);
        Ok(index)
    }

    fn read_values(&mut self, record: &Record) -> ImportResult<Vec<i64>> {
        let plan = Arc::clone(&self.plan);
        let mut named: Vec<(&str, i64)> = Vec::new();
        let mut wait: Vec<(&str, i64)> = Vec::new();
        let mut statement: Vec<(&str, i64)> = Vec::new();
        for (position, field) in &plan.lasting {
            let value = self.part.value(field, text(record, Some(*position)))?;
            let value = (field.column.name.as_str(), value);
            match &field.place {
                Place::Reference(column) if column == "wait" => wait.push(value),
                Place::Reference(_) => statement.push(value),
                _ => named.push(value),
            }
        }
        named.push(("wait", self.part.refer("wait", &wait)?));
        named.push(("statement", self.statement(statement, record)?));
        let mut values = vec![0; self.places.len()];
        for (column, value) in named {
            if let Some(place) = place_of(&self.places, column) {
                values[place] = value;
            }
        }
        self.complete(&mut values)?;
        Ok(values)
    }

    /// The state, and the kind of activity, where the input has no such
    /// column.
    fn complete(&self, values: &mut [i64]) -> ImportResult<()> {
        let value = |labels: &str, name: &str| label(&self.schema, labels, name.as_bytes(), labels);
        let place = |name| place_of(&self.places, name).unwrap_or(0);
        let has = |name| Plan::has(&self.plan.lasting, name).is_some();
        let active = value("state", "active")?;
        if !has("state") {
            values[place("state")] = active;
        }
        let busy = [active, value("state", "fastpath function call")?];
        let runs = values[place("wait")] == 0 && busy.contains(&values[place("state")]);
        if !has("cpu") && runs {
            values[place("cpu")] = value("cpu", "CPU*")?;
        }
        Ok(())
    }

    fn statement(&mut self, mut values: Vec<(&str, i64)>, record: &Record) -> ImportResult<i64> {
        let query_text = text(record, self.plan.query_text);
        let value = |name| values.iter().find(|v| v.0 == name).map_or(0, |v| v.1);
        let query_id = value("query_id");
        let mut text_key = value("text_key");
        if query_id == 0 && text_key == 0 && !query_text.is_empty() {
            text_key = hash(query_text);
            values.retain(|v| v.0 != "text_key");
            values.push(("text_key", text_key));
        }
        if !query_text.is_empty() {
            self.text(query_id, text_key, record)?;
        }
        self.part.refer("statement", &values)
    }

    /// Keeps a text once per file and database.
    fn text(&mut self, query_id: i64, text_key: i64, record: &Record) -> ImportResult<()> {
        let query_text = text(record, self.plan.query_text);
        let [database, username] =
            [self.plan.database, self.plan.username].map(|c| text(record, c));
        let mut hasher = DefaultHasher::new();
        (query_id, text_key, database).hash(&mut hasher);
        if self.texts.insert(hasher.finish(), ()).is_some() {
            return Ok(());
        }
        let builder = &mut self.part.builder;
        let mut name = |text: &[u8]| match text {
            b"" => Ok(0),
            text => builder.name_bytes(UTF8, text),
        };
        let key = match query_id {
            0 => text_key,
            _ => hash(query_text),
        };
        let numbers = [
            ("text_key", key),
            ("query_id", query_id),
            ("database", name(database)?),
            ("username", name(username)?),
            ("encoding", UTF8),
        ];
        builder.row_bytes("text", &numbers, &[("bytes", query_text)])?;
        Ok(())
    }

    fn end_tick(&mut self) -> ImportResult<()> {
        let Some(tick) = self.tick else {
            return Ok(());
        };
        let part = &mut self.part;
        let own = [("tick", tick.number as i64), ("slot_time", tick.slot_ms)];
        let more = self.tick_values.iter().map(|v| (v.0.as_str(), v.1));
        let values: Vec<(&str, i64)> = own.into_iter().chain(more).collect();
        part.builder.row("tick", &values)?;
        part.ticks += 1;
        self.imported.ticks += 1;
        let blocked = place_of(&self.places, "blocked_by");
        let mut row = vec![0; self.places.len()];
        let mut times = self.pending_times.drain(..);
        for sample in self.pending.drain(..) {
            row.copy_from_slice(&self.values[sample.values]);
            for (_, _, place) in &self.plan.times {
                row[*place] = times.next().unwrap_or(0);
            }
            if let (Some(place), (pid, start)) = (blocked, sample.blocked_by) {
                row[place] = part.session_of(pid, start)?;
            }
            part.builder.sample_row(tick.number, sample.session, &row)?;
        }
        self.unknown = 0;
        for others in &mut self.others {
            others.take(part, tick)?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> ImportResult<()> {
        self.target.group(&mut self.part.builder)?;
        // Values of samples are seldom met again; definitions stay.
        self.samples.clear();
        self.values.clear();
        self.part.ticks = 0;
        Ok(())
    }

    fn end_file(&mut self) -> ImportResult<()> {
        let next = Part::new(&self.schema)?;
        let done = std::mem::replace(&mut self.part, next);
        self.sessions.clear();
        self.texts.clear();
        self.target.end_file(done.builder)
    }

    /// Writes what is left.
    pub fn end(mut self) -> ImportResult<Imported> {
        self.end_tick()?;
        for others in &mut self.others {
            others.end(&mut self.part)?;
        }
        if self.part.builder.has_rows() {
            self.end_group()?;
        }
        self.end_file()?;
        Ok(self.imported)
    }
}

fn place_of(places: &[(String, usize)], column: &str) -> Option<usize> {
    places.iter().find(|p| p.0 == column).map(|p| p.1)
}

/// ms from a time to a later one.
fn after(slot_ms: i64, before: i64) -> ImportResult<i64> {
    match slot_ms - before {
        distance if distance > 0 => Ok(distance),
        _ => Err(
            ImportError::new("time is not later than the time before it")
                .hint("Lines must be sorted by time."),
        ),
    }
}

/// The columns of a line as one key.
fn make_key(key: &mut Vec<u8>, record: &Record, columns: &Fields) {
    key.clear();
    for (position, _) in columns {
        let text = text(record, Some(*position));
        key.extend_from_slice(&(text.len() as u32).to_le_bytes());
        key.extend_from_slice(text);
    }
}

/// The category of a type of process, when the input does not say.
fn category(backend_type: &[u8]) -> &'static [u8] {
    match backend_type {
        b"" | b"client backend" | b"parallel worker" => b"foreground",
        b"autovacuum worker" | b"autovacuum launcher" => b"maintenance",
        b"walsender" | b"walreceiver" => b"replication",
        other if other.starts_with(b"logical replication") => b"replication",
        _ => b"background",
    }
}

/// Hash of a text; never 0.
fn hash(text: &[u8]) -> i64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    (hasher.finish() >> 1).max(1) as i64
}
