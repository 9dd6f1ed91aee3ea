//! Turns lines of sessions, one per session and tick, into files of a day with
//! a group per hour.

use super::lines::Record;
use super::met::TextCache;
use super::others::{OtherRows, Tick};
use super::part::{Part, UTF8};
use super::plan::{Plan, RowFields};
use super::target::Target;
use super::value::{Header, int, invalid, number, text, time_us};
use super::{ImportError, ImportResult};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use tacho_tape::Schema;
use tacho_tape::fast::FastMap;
use tacho_tape::format::schema::{ColumnType, INTERVAL_LIMIT_MS};

/// A group ends with the hour, or at this number of runs.
const MAX_RUNS: usize = 1_000_000;
/// A file ends with the day, or at this number of definitions.
const MAX_DEFINITIONS: usize = 2_000_000;
const HOUR_MS: i64 = 3_600_000;
/// The largest number of a tick, so that the end of any run after it does not
/// overflow.
const MOST_TICK: i64 = i64::MAX / 2;
/// Column with a text; its hash is stored.
pub const QUERY_TEXT: &str = "query_text";

/// Numbers of imported rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// True if a file of sessions was imported.
    pub has_sessions: bool,
    /// Number of samples.
    pub samples: u64,
    /// Number of ticks.
    pub ticks: u64,
    /// Other kinds: rows added, and rows that the history had already.
    pub others: Vec<(String, u64, u64)>,
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sessions = format!("{} samples in {} ticks", self.samples, self.ticks);
        let others = self.others.iter().map(|(kind, rows, known)| match known {
            0 => format!("{rows} rows of {kind}"),
            known => format!("{rows} rows of {kind} ({known} already present)"),
        });
        let all: Vec<String> = self
            .has_sessions
            .then_some(sessions)
            .into_iter()
            .chain(others)
            .collect();
        f.write_str(&all.join(", "))
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
    wait: i64,
    statement: i64,
    /// Index of its lasting values.
    values: usize,
    /// Process id of the sample's blocker, and the start of that process in µs; 0 = unknown.
    blocked_by: (i64, i64),
}

/// Builds files from lines.
pub struct Importer<'a> {
    target: &'a mut Target,
    schema: Arc<Schema>,
    plan: Arc<Plan>,
    others: Vec<OtherRows>,
    part: Part,
    /// True if lines name processes by PID alone.
    names_pids: bool,
    interval_ms: i64,
    /// Texts of the current tick in the input: its time, its number, then its other columns.
    tick_texts: Vec<Vec<u8>>,
    tick: Option<Tick>,
    tick_interval: i64,
    failed: bool,
    /// Number that is added to the tick numbers of the input.
    shift: i64,
    tick_values: Vec<i64>,
    pending: Vec<Pending>,
    /// Times of the pending samples, one after the other: for each sample the columns
    /// `Plan::times`.
    pending_times: Vec<i64>,
    /// Number of samples of the current tick with an unknown session, so far; at most 255.
    unknown: u8,
    sessions: TextCache<Session>,
    waits: TextCache<i64>,
    statements: TextCache<i64>,
    lasting: TextCache<usize>,
    /// The lasting values of samples, one after the other.
    values: Vec<i64>,
    texts: FastMap<u64, ()>,
    key: Vec<u8>,
    /// Values of the row being read.
    row: Vec<i64>,
    hour: i64,
    imported: Imported,
}

impl<'a> Importer<'a> {
    /// Creates an importer for lines with this header. A tick weighs `interval_ms`.
    pub fn new(
        header: Header,
        others: Vec<OtherRows>,
        schema: Arc<Schema>,
        target: &'a mut Target,
        interval_ms: i64,
    ) -> ImportResult<Self> {
        let mut part = Part::new(&schema)?;
        let plan = Plan::new(header, &part.builder)?;
        let names_pids = plan.blocked_by.is_some() || !others.is_empty();
        part.names_pids = names_pids;
        Ok(Importer {
            plan: Arc::new(plan),
            names_pids,
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
            sessions: TextCache::new(1 << 12),
            waits: TextCache::new(1 << 14),
            statements: TextCache::new(1 << 14),
            lasting: TextCache::new(1 << 14),
            values: Vec::new(),
            texts: FastMap::default(),
            key: Vec::new(),
            row: Vec::new(),
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
            .chain(self.plan.ticks.fields.iter().map(|t| Some(t.0)))
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

    /// Two lines of one tick must agree about the tick.
    fn compare_ticks(&self, record: &Record) -> ImportResult<()> {
        let known = self.tick_texts.iter().skip(2);
        for ((position, field), known) in self.plan.ticks.fields.iter().zip(known) {
            let now = text(record, Some(*position));
            let differ = match field.column.ty {
                ColumnType::Name => now != known,
                _ => number(&self.schema, field, now)? != number(&self.schema, field, known)?,
            };
            if differ {
                let name = &field.name;
                return Err(ImportError::new(format!(
                    "lines of the same tick differ in column \"{name}\""
                )));
            }
        }
        Ok(())
    }

    fn slot_ms(&self, record: &Record) -> ImportResult<i64> {
        Ok(time_us(text(record, self.plan.time), "time")?.div_euclid(1000))
    }

    fn interval(&self, record: &Record) -> ImportResult<i64> {
        let given = text(record, self.plan.ticks.has("interval_ms"));
        match int(given, "interval_ms")? {
            0 => Ok(self.interval_ms),
            interval if (1..INTERVAL_LIMIT_MS).contains(&interval) => Ok(interval),
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

    /// The number of a tick by its distance to the previous one.
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
            let message = "ms after the previous time, less than the interval";
            return Err(ImportError::new(format!("time is {distance} {message}"))
                .hint("Specify the interval of the samples with --interval."));
        }
        let steps = (distance / interval).max(1) as u64;
        checked(number.saturating_add(steps))
    }

    /// A tick's number from the input. It is used even if the clock was set
    /// back.
    fn given_number(&mut self, given: i64, slot_ms: i64, interval: i64) -> ImportResult<u64> {
        let known = self.tick.and_then(|t| t.given);
        if given < 1 || known.is_some_and(|known| given <= known) {
            return Err(ImportError::new("tick is not later than the previous tick")
                .hint("Lines must be sorted by tick."));
        }
        if let (None, Some((number, before))) = (known, self.target.last) {
            let distance = after(slot_ms, before)?;
            let next = number.saturating_add((distance / interval).max(1) as u64);
            self.shift = checked(next)? as i64 - given;
        }
        checked(given.saturating_add(self.shift).unsigned_abs())
    }

    /// Reads the columns of the tick.
    fn read_tick(&mut self, record: &Record, interval: i64) -> ImportResult<()> {
        let (plan, tick) = (Arc::clone(&self.plan), self.tick);
        let (number, slot_ms) = tick.map_or((0, 0), |t| (t.number, t.slot_ms));
        let mut values = std::mem::take(&mut self.tick_values);
        self.part.read(&plan.ticks, record, &mut values)?;
        let mut complete = |column: &str, value: i64, always: bool| {
            let at = plan.ticks.position(column)?;
            if always || values[at] == 0 {
                values[at] = value;
            }
            Some(values[at])
        };
        complete("tick", number as i64, true);
        complete("slot_time", slot_ms, true);
        complete("interval_ms", interval, false);
        complete("taken_at", slot_ms, plan.ticks.has("taken_at").is_none());
        let status = complete("status", plan.labels.ok, false);
        self.failed = status.is_some() && status == plan.labels.failed;
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
            let message = format!("process {pid} occurs twice in one tick");
            return Err(ImportError::new(message));
        }
        let wait = self.wait(record)?;
        let statement = self.statement(record)?;
        let values = self.lasting_values(record)?;
        // A query often begins together with its transaction.
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
            wait,
            statement,
            values,
            blocked_by,
        });
        self.imported.samples += 1;
        Ok(())
    }

    /// The session of a line. PID 0 means an unknown session: each line of a
    /// tick with PID 0 is another session.
    fn session(&mut self, record: &Record, unknown: bool) -> ImportResult<Session> {
        make_key(&mut self.key, record, positions(&self.plan.session));
        if unknown {
            self.unknown = self.unknown.saturating_add(1);
            self.key.push(self.unknown);
        }
        if let Some(session) = self.sessions.get(&self.key) {
            return Ok(session);
        }
        let plan = Arc::clone(&self.plan);
        let own = &plan.session;
        self.part.read(own, record, &mut self.row)?;
        let value = |at: Option<usize>| at.map_or(0, |at| self.row[at]);
        let (pid, start) = (value(plan.places.pid), value(plan.places.start));
        if pid < 0 || (pid == 0 && !unknown) {
            return Err(invalid(text(record, self.plan.pid), "pid"));
        }
        if let Some(category) = plan.places.category.map(|at| &mut self.row[at])
            && *category == 0
            && !unknown
        {
            let backend_type = text(record, plan.backend_type);
            *category = plan.labels.category(backend_type);
        }
        let process = self.part.process(pid, start);
        let reference = match unknown {
            true => self.part.builder.add_row(&own.row, &self.row),
            false => self.part.define(process, &own.row, &self.row),
        };
        let session = Session {
            reference,
            pid,
            process,
        };
        self.sessions.keep(&self.key, session);
        Ok(session)
    }

    fn wait(&mut self, record: &Record) -> ImportResult<i64> {
        if self.plan.wait.fields.is_empty() {
            return Ok(0);
        }
        make_key(&mut self.key, record, positions(&self.plan.wait));
        if let Some(wait) = self.waits.get(&self.key) {
            return Ok(wait);
        }
        let plan = Arc::clone(&self.plan);
        self.part.read(&plan.wait, record, &mut self.row)?;
        let wait = self.part.refer_row(&plan.wait.row, &self.row);
        self.waits.keep(&self.key, wait);
        Ok(wait)
    }

    /// Index of the lasting values of a sample.
    fn lasting_values(&mut self, record: &Record) -> ImportResult<usize> {
        if self.plan.lasting.is_empty() {
            return Ok(0);
        }
        let positions = self.plan.lasting.iter().map(|f| Some(f.0));
        make_key(&mut self.key, record, positions);
        if let Some(values) = self.lasting.get(&self.key) {
            return Ok(values);
        }
        let begin = self.values.len();
        for (position, field, _) in &self.plan.lasting {
            let value = self.part.value(field, text(record, Some(*position)))?;
            self.values.push(value);
        }
        self.lasting.keep(&self.key, begin);
        Ok(begin)
    }

    fn statement(&mut self, record: &Record) -> ImportResult<i64> {
        let plan = Arc::clone(&self.plan);
        let more = match text(record, plan.query_text) {
            b"" => [None; 3],
            _ => [plan.query_text, plan.database, plan.username],
        };
        let columns = positions(&plan.statement).chain(more);
        make_key(&mut self.key, record, columns);
        if let Some(statement) = self.statements.get(&self.key) {
            return Ok(statement);
        }
        let own = &plan.statement;
        self.part.read(own, record, &mut self.row)?;
        let query_text = text(record, plan.query_text);
        let query_id = own.position("query_id").map_or(0, |at| self.row[at]);
        if let Some(text_key) = own.position("text_key").map(|at| &mut self.row[at])
            && !query_text.is_empty()
        {
            if query_id == 0 && *text_key == 0 {
                *text_key = hash(query_text);
            }
            let text_key = *text_key;
            self.text(query_id, text_key, record)?;
        }
        let statement = self.part.refer_row(&own.row, &self.row);
        self.statements.keep(&self.key, statement);
        Ok(statement)
    }

    /// Adds a text to the file being built, once for each database, query id and text key.
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
        let (plan, part) = (Arc::clone(&self.plan), &mut self.part);
        part.builder.add_row(&plan.ticks.row, &self.tick_values);
        part.ticks += 1;
        self.imported.ticks += 1;
        let mut row = vec![0; plan.places.count];
        let mut times = self.pending_times.drain(..);
        for sample in self.pending.drain(..) {
            let lasting = self.values[sample.values..].iter().copied();
            for ((_, _, place), value) in plan.lasting.iter().zip(lasting) {
                row[*place] = value;
            }
            for ((_, _, place), value) in plan.times.iter().zip(&mut times) {
                row[*place] = value;
            }
            set(&mut row, plan.places.wait, sample.wait);
            set(&mut row, plan.places.statement, sample.statement);
            plan.complete(&mut row, sample.wait);
            if plan.places.blocked_by.is_some() {
                let (pid, start) = sample.blocked_by;
                let blocked_by = part.session_of(pid, start)?;
                set(&mut row, plan.places.blocked_by, blocked_by);
            }
            part.builder.sample_row(tick.number, sample.session, &row)?;
        }
        drop(times);
        self.unknown = 0;
        for others in &mut self.others {
            others.take(part, tick)?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> ImportResult<()> {
        self.target.group(&mut self.part.builder)?;
        // Values of samples seldom come again in the next group; definitions
        // stay.
        self.lasting.clear();
        self.values.clear();
        self.part.ticks = 0;
        Ok(())
    }

    fn end_file(&mut self) -> ImportResult<()> {
        let mut next = Part::new(&self.schema)?;
        next.names_pids = self.names_pids;
        let done = std::mem::replace(&mut self.part, next);
        self.sessions.clear();
        self.waits.clear();
        self.statements.clear();
        self.texts.clear();
        self.target.end_file(done.builder)
    }

    /// Writes the remaining rows.
    pub fn end(mut self) -> ImportResult<Imported> {
        self.end_tick()?;
        for others in &mut self.others {
            others.end(&mut self.part)?;
        }
        let builder = &self.part.builder;
        // Texts without rows are definitions without a group.
        let alone = !self.target.has_file() && builder.dictionary_rows() > 0;
        if builder.has_rows() || alone {
            self.end_group()?;
        }
        self.end_file()?;
        let others = self.others.into_iter();
        self.imported.others = others.map(|o| (o.kind, o.rows, o.known)).collect();
        Ok(self.imported)
    }
}

/// Sets a value of a sample, if samples have the column.
fn set(row: &mut [i64], place: Option<usize>, value: i64) {
    if let Some(place) = place {
        row[place] = value;
    }
}

fn positions(row: &RowFields) -> impl Iterator<Item = Option<usize>> {
    row.fields.iter().map(|f| Some(f.0))
}

/// Checks that the number of a tick is not too large.
fn checked(number: u64) -> ImportResult<u64> {
    match number <= MOST_TICK as u64 {
        true => Ok(number),
        false => Err(ImportError::new(format!("tick {number} is too large"))
            .hint(format!("At most {MOST_TICK} is possible."))),
    }
}

/// Time in ms from `before` to the slot `slot_ms`, which must be later.
fn after(slot_ms: i64, before: i64) -> ImportResult<i64> {
    match slot_ms - before {
        distance if distance > 0 => Ok(distance),
        _ => Err(ImportError::new("time is not later than the previous time")
            .hint("Lines must be sorted by time.")),
    }
}

/// Joins columns of a line into one key.
fn make_key(key: &mut Vec<u8>, record: &Record, columns: impl Iterator<Item = Option<usize>>) {
    key.clear();
    for position in columns {
        let text = text(record, position);
        key.extend_from_slice(&(text.len() as u32).to_le_bytes());
        key.extend_from_slice(text);
    }
}

/// Hash of a text; never 0.
fn hash(text: &[u8]) -> i64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    (hasher.finish() >> 1).max(1) as i64
}
