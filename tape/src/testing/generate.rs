//! Random load for tests: frames as a sampler would send them, and the plain rows that a reader
//! must get. Everything follows from a seed.

use crate::catalog;
use crate::files::directory::{Kind, file_name};
use crate::format::frame::{DATA, Frame, FrameBuilder, HELLO};
use crate::format::hello;
use crate::format::log::LogHeader;
use crate::format::part::Part;
use crate::format::schema::{ColumnType, Schema};
use crate::format::section::Values;
use crate::format::section::to_stored;
use std::collections::BTreeMap;
use std::path::Path;

/// A session at a tick, as a reader must see it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// Tick number.
    pub tick: u64,
    /// Slot time in ms.
    pub slot_ms: i64,
    /// Process id.
    pub pid: i64,
    /// `Type:Event`; empty without a wait event.
    pub wait: String,
    /// State by number.
    pub state: i64,
    /// Query id.
    pub query_id: i64,
    /// Start of the query in ms; 0 = null.
    pub query_start: i64,
    /// Start of the transaction in ms; 0 = null.
    pub xact_start: i64,
    /// xmin; 0 = none.
    pub xmin: i64,
    /// Process id of the blocker; 0 = none.
    pub blocked_by: i64,
}

/// A small random number generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n.max(1)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Shape of the load.
#[derive(Clone, Debug)]
pub struct Load {
    /// Number of sessions.
    pub sessions: usize,
    /// Chance in percent that a session has a row.
    pub active: u64,
    /// Chance in percent that a row equals the one before.
    pub same: u64,
    /// Time between two ticks in ms.
    pub interval_ms: i64,
    /// Number of ticks in a frame.
    pub ticks_per_frame: usize,
    /// Chance in percent of a missed slot, and the same chance of a failed tick.
    pub trouble: u64,
    /// Chance in percent, for each frame, that a session is replaced.
    pub churn: u64,
    /// Number of different query ids.
    pub queries: u64,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            sessions: 5,
            active: 60,
            same: 50,
            interval_ms: 1_000,
            ticks_per_frame: 1,
            trouble: 5,
            churn: 3,
            queries: 20,
        }
    }
}

/// The schema of `catalog/samples.h`.
pub fn schema() -> Schema {
    catalog::samples()
}

/// The schema with the counters of statements.
pub fn stats_schema() -> Schema {
    catalog::schema().with_runs()
}

/// A sampler with random data.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// Incarnation of the sampler, which is its life.
    pub incarnation: u64,
    /// Sequence of the next frame.
    pub sequence: u64,
    /// Slot time of the next tick.
    pub slot_ms: i64,
    /// Number of the next tick.
    pub tick: u64,
    /// Number that is added to ticks in the expected rows.
    pub tick_base: u64,
    /// If set, the next frame has a stop marker.
    pub stopping: bool,
    /// Slot time of the next tick if the clock is never set.
    expected_slot_ms: i64,
    last_taken_ms: i64,
    random: Random,
    load: Load,
    schema: Schema,
    sessions: Vec<Session>,
    next_pid: i64,
    names: BTreeMap<String, u64>,
    session_ids: BTreeMap<i64, u64>,
}

#[derive(Clone, Debug, Default)]
struct Session {
    pid: i64,
    row: Option<Seen>,
    /// The session's row in the current frame.
    written: Option<Seen>,
}

type Rows = Vec<Vec<(&'static str, i64)>>;

const EVENTS: [&str; 21] = [
    "",
    "IO:DataFileRead",
    "IO:DataFileWrite",
    "IO:WalWrite",
    "IO:WalSync",
    "Lock:tuple",
    "Lock:transactionid",
    "Lock:relation",
    "LWLock:WALWrite",
    "LWLock:BufferMapping",
    "LWLock:ProcArray",
    "LWLock:LockManager",
    "Client:ClientRead",
    "Client:ClientWrite",
    "IPC:ParallelFinish",
    "IPC:SyncRep",
    "Timeout:PgSleep",
    "BufferPin:BufferPin",
    "Activity:WalWriterMain",
    "Extension:Extension",
    "IO:BufFileRead",
];

impl Sampler {
    /// A sampler in its first tick.
    pub fn new(incarnation: u64, load: Load) -> Self {
        let mut sampler = Sampler {
            incarnation,
            sequence: 1,
            slot_ms: 1_790_000_000_000,
            tick: 1,
            tick_base: 0,
            stopping: false,
            expected_slot_ms: 1_790_000_000_000,
            last_taken_ms: 1_789_999_999_000,
            random: Random(incarnation),
            load,
            schema: schema(),
            sessions: Vec::new(),
            next_pid: 1_000,
            names: BTreeMap::new(),
            session_ids: BTreeMap::new(),
        };
        for _ in 0..sampler.load.sessions {
            let session = sampler.session();
            sampler.sessions.push(session);
        }
        sampler
    }

    fn session(&mut self) -> Session {
        self.next_pid += 1;
        Session {
            pid: self.next_pid,
            ..Session::default()
        }
    }

    /// The hello frame with these `meta` entries.
    pub fn hello(&self, meta: &[(&str, &str)]) -> Vec<u8> {
        let mut frame = FrameBuilder::new(HELLO, self.incarnation, self.sequence, 0);
        hello::write_schema(&mut frame, &self.schema);
        hello::write_meta(&mut frame, meta);
        frame.finish()
    }

    /// Makes the next frame repeat all definitions, as the start of a log does.
    pub fn forget(&mut self) {
        self.names.clear();
        self.session_ids.clear();
    }

    /// The start of a log for a node: header and hello. The next frame repeats all definitions.
    pub fn begin_log(&mut self, node: u64) -> Vec<u8> {
        let mut header = LogHeader {
            incarnation: self.incarnation,
            first_sequence: self.sequence,
            ..LogHeader::default()
        };
        header.identity.node = node;
        self.forget();
        log_bytes(&header, &[self.hello(&[])])
    }

    /// The next data frame, its ticks as (number, slot time), and the rows that a reader must see.
    pub fn frame(&mut self) -> (Vec<u8>, Vec<(u64, i64)>, Vec<Seen>) {
        let base_ms = self.slot_ms;
        self.sessions.iter_mut().for_each(|s| s.written = None);
        let mut tables = Tables::default();
        let mut ticks = Vec::new();
        let mut seen = Vec::new();
        // The dictionaries are repeated from time to time.
        if self.sequence.is_multiple_of(60) {
            self.names.clear();
            self.session_ids.clear();
        }
        for at in 0..self.load.ticks_per_frame as i64 {
            if self.random.chance(self.load.trouble) {
                self.tick += 1;
                self.slot_ms += self.load.interval_ms;
                self.expected_slot_ms += self.load.interval_ms;
            }
            let failed = self.random.chance(self.load.trouble);
            let taken = self.slot_ms + self.random.below(self.load.interval_ms as u64) as i64;
            let elapsed = self.elapsed(taken);
            tables.ticks.push(vec![
                ("tick", self.tick as i64),
                ("slot_time", self.slot_ms),
                ("taken_at", taken),
                ("interval_ms", self.load.interval_ms),
                ("elapsed_ms", elapsed),
                ("status", if failed { 3 } else { 1 }),
                ("max_connections", 100),
                ("next_xid", 5_000 + self.tick as i64 * 7),
            ]);
            tables.counts.push(vec![
                ("at", at),
                ("category", 1),
                ("state", 1),
                ("backends", 3),
            ]);
            ticks.push((self.tick_base + self.tick, self.slot_ms));
            if !failed {
                self.rows(at, taken, &mut tables, &mut seen);
            }
            self.tick += 1;
            self.slot_ms += self.load.interval_ms;
            self.expected_slot_ms = self.slot_ms;
        }
        let mut frame = FrameBuilder::new(DATA, self.incarnation, self.sequence, base_ms);
        self.sequence += 1;
        tables.write(&mut frame, &self.schema, base_ms);
        if std::mem::take(&mut self.stopping) {
            let stop = self.schema.value("marker", "stop").unwrap_or(0);
            let marker = vec![("time", self.slot_ms), ("kind", stop)];
            write_rows(&mut frame, &self.schema, base_ms, "marker", &[marker]);
        }
        (frame.finish(), ticks, seen)
    }

    /// A frame with the texts of query ids.
    pub fn texts(&mut self, texts: &[(i64, &str)]) -> Vec<u8> {
        let mut frame = FrameBuilder::new(DATA, self.incarnation, self.sequence, self.slot_ms);
        self.sequence += 1;
        let ids = texts.iter().map(|t| t.0);
        let columns = [
            (1, Values::Ints(ids.clone().map(|id| id as u64).collect())),
            (
                2,
                Values::Ints(ids.map(|id| to_stored(ColumnType::Int, id, 0)).collect()),
            ),
            (5, Values::Ints(vec![6; texts.len()])),
            (6, Values::Bytes(texts.iter().map(|t| t.1.into()).collect())),
        ];
        frame.section(30, texts.len(), &columns);
        frame.finish()
    }

    /// Writes a directory with one log: `frames` frames of this sampler, then texts.
    ///
    /// # Errors
    /// It could not be written.
    pub fn write_tape(
        &mut self,
        directory: &Path,
        frames: usize,
        texts: &[(i64, &str)],
    ) -> std::io::Result<()> {
        let mut log = self.begin_log(self.incarnation);
        (0..frames).for_each(|_| log.extend(self.frame().0));
        if !texts.is_empty() {
            log.extend(self.texts(texts));
        }
        std::fs::create_dir_all(directory)?;
        std::fs::write(directory.join(file_name(1, Kind::Log)), log)
    }

    /// Time since the last tick on a clock that is never set.
    fn elapsed(&mut self, taken: i64) -> i64 {
        let jump = self.slot_ms.wrapping_sub(self.expected_slot_ms);
        let elapsed = taken.wrapping_sub(self.last_taken_ms).wrapping_sub(jump);
        self.last_taken_ms = taken;
        elapsed
    }

    fn rows(&mut self, at: i64, taken: i64, tables: &mut Tables, seen: &mut Vec<Seen>) {
        for index in 0..self.sessions.len() {
            if self.random.chance(self.load.churn) {
                self.write(index, at, None, tables);
                self.sessions[index] = self.session();
            }
            let before = self.sessions[index].row.clone();
            let row = match before {
                Some(row) if self.random.chance(self.load.same) => Some(row),
                before if self.random.chance(self.load.active) => {
                    Some(self.row(index, taken, before.as_ref()))
                }
                _ => None,
            };
            self.sessions[index].row.clone_from(&row);
            self.write(index, at, row.as_ref(), tables);
            seen.extend(row.map(|row| Seen {
                tick: self.tick_base + self.tick,
                slot_ms: self.slot_ms,
                ..row
            }));
        }
    }

    /// Writes a row only if it has changed within the frame.
    fn write(&mut self, index: usize, at: i64, row: Option<&Seen>, tables: &mut Tables) {
        let written = self.sessions[index].written.clone();
        if written.as_ref() == row {
            return;
        }
        self.sessions[index].written = row.cloned();
        match row {
            Some(row) => self.sample(index, at, row, tables),
            None => {
                let session = self.define_pid(self.sessions[index].pid, tables);
                let gone = [("at", at), ("session", session), ("gone", 1)];
                tables.samples.push(gone.to_vec());
            }
        }
    }

    fn row(&mut self, index: usize, taken: i64, before: Option<&Seen>) -> Seen {
        let same_query = before.filter(|_| self.random.chance(40));
        let start = taken - self.random.below(400) as i64;
        let other = self.random.below(self.sessions.len() as u64) as usize;
        let blocked = self.random.chance(10) && other != index;
        Seen {
            tick: 0,
            slot_ms: 0,
            pid: self.sessions[index].pid,
            wait: EVENTS[self.random.below(21) as usize].into(),
            state: 1 + self.random.below(2) as i64 * 2,
            query_id: same_query.map_or_else(
                || self.random.below(self.load.queries) as i64 * 7_919 * 1_000_003 - 50_000,
                |row| row.query_id,
            ),
            query_start: same_query.map_or(start, |row| row.query_start),
            xact_start: match self.random.below(3) {
                0 => 0,
                1 => start,
                _ => start - 5,
            },
            xmin: match self.random.below(2) {
                0 => 0,
                _ => 4_990 + self.tick as i64 * 7,
            },
            blocked_by: if blocked { self.sessions[other].pid } else { 0 },
        }
    }

    fn name(&mut self, name: &str, tables: &mut Tables) -> i64 {
        if name.is_empty() {
            return 0;
        }
        let id = name
            .bytes()
            .fold(17u64, |h, b| (h * 31 + u64::from(b)) % 65_521);
        if self.names.insert(name.into(), id).is_none() {
            tables.names.push((id, name.into()));
        }
        id as i64
    }

    fn define_pid(&mut self, pid: i64, tables: &mut Tables) -> i64 {
        let application = self.name(&format!("app{}", pid % 3), tables);
        if self.session_ids.insert(pid, pid as u64 * 3).is_none() {
            tables.sessions.push(vec![
                ("id", pid * 3),
                ("pid", pid),
                ("backend_start", 1_790_000_000_000_000 + pid * 1_001),
                ("category", 1),
                ("application", application),
            ]);
        }
        pid * 3
    }

    fn sample(&mut self, index: usize, at: i64, row: &Seen, tables: &mut Tables) {
        let session = self.define_pid(self.sessions[index].pid, tables);
        let blocked_by = match row.blocked_by {
            0 => 0,
            pid => self.define_pid(pid, tables),
        };
        let mut wait = 0;
        if let Some((class, event)) = row.wait.split_once(':') {
            let known = self.names.contains_key(&row.wait);
            wait = self.name(&row.wait, tables);
            if !known {
                let (class, event) = (self.name(class, tables), self.name(event, tables));
                let columns = [("wait_event_type", class), ("wait_event", event)];
                tables.waits.push([&[("id", wait)], &columns[..]].concat());
            }
        }
        let key = format!("query {}", row.query_id);
        let known = self.names.contains_key(&key);
        let statement = self.name(&key, tables);
        if !known {
            tables
                .statements
                .push(vec![("id", statement), ("query_id", row.query_id)]);
        }
        tables.samples.push(vec![
            ("at", at),
            ("session", session),
            ("wait", wait),
            ("state", row.state),
            ("statement", statement),
            ("query_start", row.query_start),
            ("xact_start", row.xact_start),
            ("xmin", row.xmin),
            ("blocked_by", blocked_by),
        ]);
    }
}

#[derive(Default)]
struct Tables {
    names: Vec<(u64, String)>,
    waits: Rows,
    statements: Rows,
    sessions: Rows,
    ticks: Rows,
    counts: Rows,
    samples: Rows,
}

impl Tables {
    fn write(&self, frame: &mut FrameBuilder, schema: &Schema, base_ms: i64) {
        let ids = Values::Ints(self.names.iter().map(|n| n.0).collect());
        let encodings = Values::Ints(vec![6; self.names.len()]);
        let bytes = Values::Bytes(self.names.iter().map(|n| n.1.clone().into()).collect());
        let section = [(1, ids), (2, encodings), (3, bytes)];
        frame.section(10, self.names.len(), &section);
        let tables = [
            ("wait", &self.waits),
            ("statement", &self.statements),
            ("session", &self.sessions),
            ("tick", &self.ticks),
            ("count", &self.counts),
            ("sample", &self.samples),
        ];
        for (name, rows) in tables {
            write_rows(frame, schema, base_ms, name, rows);
        }
    }
}

/// Adds a section of rows. Values are given by column name and as readers see them, except ids.
pub fn write_rows(
    frame: &mut FrameBuilder,
    schema: &Schema,
    base_ms: i64,
    table: &str,
    rows: &[Vec<(&'static str, i64)>],
) {
    let Some(def) = schema.table(table) else {
        return;
    };
    let columns = def.columns.iter().filter(|c| c.ty != ColumnType::Bytes);
    let columns: Vec<(u8, Values)> = columns
        .map(|column| {
            let value = |row: &Vec<(&str, i64)>| {
                let found = row.iter().find(|(name, _)| *name == column.name);
                to_stored(column.ty, found.map_or(0, |f| f.1), base_ms)
            };
            (column.id, Values::Ints(rows.iter().map(value).collect()))
        })
        .collect();
    frame.section(def.id, rows.len(), &columns);
}

/// Ticks and rows of parts, read column by column without the query engine. Rows are sorted.
///
/// # Panics
/// A column cannot be read or a tick is missing: this is for tests.
#[allow(clippy::unwrap_used)]
pub fn read<'a>(parts: impl IntoIterator<Item = &'a Part>) -> (Vec<(u64, i64)>, Vec<Seen>) {
    let mut ticks = Vec::new();
    let mut rows = Vec::new();
    for part in parts {
        let numbers = part.ints("tick", "tick").unwrap();
        let slots = part.ints("tick", "slot_time").unwrap();
        let slot_of: BTreeMap<i64, i64> =
            numbers.iter().copied().zip(slots.iter().copied()).collect();
        ticks.extend(slot_of.iter().map(|(&n, &s)| (n as u64, s)));
        let run = |column| part.ints("run", column).unwrap();
        let (first, length, session) = (run("first_tick"), run("ticks"), run("session"));
        let pids = part.ints("session", "pid").unwrap();
        let pid = |reference: i64| match reference {
            0 => 0,
            r => pids[r as usize - 1],
        };
        let waits = wait_names(part);
        let query_ids = part.ints("statement", "query_id").unwrap();
        let columns = [
            "wait",
            "state",
            "statement",
            "query_start",
            "xact_start",
            "xmin",
            "blocked_by",
        ];
        let [
            wait,
            state,
            statement,
            query_start,
            xact_start,
            xmin,
            blocked,
        ] = columns.map(run);
        for row in 0..part.rows("run") {
            for tick in first[row]..first[row] + length[row] {
                rows.push(Seen {
                    tick: tick as u64,
                    slot_ms: slot_of[&tick],
                    pid: pid(session[row]),
                    wait: waits[wait[row] as usize].clone(),
                    state: state[row],
                    query_id: query_ids[statement[row] as usize - 1],
                    query_start: query_start[row],
                    xact_start: xact_start[row],
                    xmin: xmin[row],
                    blocked_by: pid(blocked[row]),
                });
            }
        }
    }
    rows.sort();
    (ticks, rows)
}

/// `Type:Event` by reference; empty for 0.
#[allow(clippy::unwrap_used)]
fn wait_names(part: &Part) -> Vec<String> {
    let names = part.bytes("name", "bytes").unwrap();
    let name =
        |reference: i64| String::from_utf8_lossy(names.get(reference as usize - 1)).into_owned();
    let class = part.ints("wait", "wait_event_type").unwrap();
    let event = part.ints("wait", "wait_event").unwrap();
    let waits = class.iter().zip(event.iter());
    let waits = waits.map(|(&class, &event)| format!("{}:{}", name(class), name(event)));
    std::iter::once(String::new()).chain(waits).collect()
}

/// `None` if both are equal, otherwise their first difference. Whole histories are too long to
/// print.
pub fn difference<T: PartialEq + std::fmt::Debug>(got: &[T], expected: &[T]) -> Option<String> {
    let longest = got.len().max(expected.len());
    let at = (0..longest).find(|&i| got.get(i) != expected.get(i))?;
    let (got, expected) = (got.get(at), expected.get(at));
    Some(format!("row {at}: got {got:?}, expected {expected:?}"))
}

/// Same as [`difference`], for rows of sealed files. Their starts are rounded: the age of a query
/// by at most a quarter or a second (`starts.rs`). Therefore a query may have begun up to 999 ms
/// later than in `expected`. The start of its transaction is rounded from that start, so it may
/// differ twice as much.
pub fn rows_difference(got: &[Seen], expected: &[Seen]) -> Option<String> {
    let near = |got: i64, was: i64, most: i64| match (got, was) {
        (0, 0) => true,
        (0, _) | (_, 0) => false,
        _ => (0..=most).contains(&(got - was)),
    };
    let fits = |got: &Seen, was: &Seen| {
        let coarse = Seen {
            query_start: was.query_start,
            xact_start: was.xact_start,
            ..got.clone()
        };
        coarse == *was
            && near(got.query_start, was.query_start, 999)
            && (got.xact_start - was.xact_start).abs() <= 1_998
    };
    let longest = got.len().max(expected.len());
    let differ = |&i: &usize| match (got.get(i), expected.get(i)) {
        (Some(got), Some(was)) => !fits(got, was),
        _ => true,
    };
    let at = (0..longest).find(differ)?;
    let (got, expected) = (got.get(at), expected.get(at));
    Some(format!("row {at}: got {got:?}, expected {expected:?}"))
}

/// The bytes of a log: header, hello, frames.
pub fn log_bytes(header: &LogHeader, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut log = header.encode();
    frames.iter().for_each(|frame| log.extend_from_slice(frame));
    log
}

/// True if the bytes are exactly one valid frame.
pub fn is_frame(bytes: &[u8]) -> bool {
    matches!(Frame::parse(bytes), Ok(Some(f)) if f.bytes.len() == bytes.len())
}
