//! Random tapes and random questions.

use proptest::prelude::*;
use std::sync::{Arc, OnceLock};
use tacho_tape::files::directory::Numbers;
use tacho_tape::format::sealed_write::FrameRange;
use tacho_tape::query::Value;
use tacho_tape::query::bucket::{DAY, HOUR, Zone};
use tacho_tape::testing::memory::MemoryStorage;
use tacho_tape::testing::{Answer, Arguments, run};
use tacho_tape::write::seal::SealedFile;
use tacho_tape::{Identity, PartBuilder, Schema, Snapshot};

/// First slot of a tape in ms: a full minute.
pub const BEGIN_MS: i64 = 1_790_000_040_000;
/// The present, long after every tape.
pub const NOW_US: i64 = (BEGIN_MS + 86_400_000) * 1000;

pub fn catalog() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(tacho_tape::catalog::samples)
}

/// The dimensions of the catalog, with the derived ones.
pub fn dimensions() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
    NAMES.get_or_init(|| tacho_tape::query::dimension_names(catalog()))
}

/// Names of the derived dimensions.
pub fn derived() -> Vec<&'static str> {
    let all = tacho_tape::catalog::derived().iter();
    all.map(|(name, _)| *name).collect()
}

/// pid, backend start, category, backend type, database, user, application, address, leader. The
/// first two are one process that changed its name. The last has the pid of the third.
type Session = (
    i64,
    i64,
    i64,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    i64,
);

const SESSIONS: [Session; 8] = [
    (
        100,
        1,
        1,
        "client backend",
        "shop",
        "ann",
        "web",
        "10.0.0.1",
        0,
    ),
    (
        100,
        1,
        1,
        "client backend",
        "shop",
        "ann",
        "web2",
        "10.0.0.1",
        0,
    ),
    (101, 2, 1, "client backend", "shop", "bob", "", "[local]", 0),
    (
        102,
        3,
        1,
        "client backend",
        "crm",
        "bob",
        "psql",
        "[local]",
        0,
    ),
    (103, 4, 1, "parallel worker", "crm", "bob", "psql", "", 102),
    (104, 5, 2, "autovacuum worker", "crm", "", "", "", 0),
    (105, 6, 3, "walwriter", "", "", "", "", 0),
    (101, 9, 4, "walsender", "", "rep", "standby", "10.0.0.2", 0),
];

const WAITS: [(&str, &str); 5] = [
    ("IO", "DataFileRead"),
    ("Lock", "tuple"),
    ("LWLock", "WALWrite"),
    ("Client", "ClientRead"),
    ("IO", "WALSync"),
];

/// One session at one tick. Numbers are indexes of the tables above; 0 is null.
#[derive(Clone, Debug)]
pub struct Sample {
    pub session: usize,
    pub state: i64,
    pub wait: usize,
    pub cpu: i64,
    pub query: i64,
    pub marked: i64,
    pub blocker: usize,
}

#[derive(Clone, Debug)]
pub struct Tick {
    pub number: i64,
    pub slot_ms: i64,
    pub interval_ms: i64,
    pub failed: bool,
    pub samples: Vec<Sample>,
    /// True if a new part begins here.
    pub cut: bool,
}

#[derive(Clone, Debug)]
pub struct Tape {
    pub ticks: Vec<Tick>,
}

/// A question.
#[derive(Clone, Debug)]
pub struct Asked {
    pub since_us: i64,
    pub until_us: i64,
    pub bucket_us: i64,
    pub clocks: Option<Clocks>,
    pub scope: &'static str,
    pub by_leader: bool,
    pub filters: Vec<(String, String)>,
    pub dimension: &'static str,
    pub by: &'static str,
    pub order_by: &'static str,
    pub n: i64,
    pub threads: usize,
    /// True: reads sealed files. `totals`: with their totals.
    pub sealed: bool,
    pub totals: bool,
    /// Dictionaries that are larger than this are read in two passes.
    pub few_keys: usize,
    pub kept: Kept,
}

/// A time zone whose clock changes once, by an hour.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Offset of local time from UTC before the change.
    offset_us: i64,
    change_us: i64,
    by_us: i64,
}

impl Zone for Clocks {
    fn offset(&self, at_us: i64) -> i64 {
        let changed = at_us >= self.change_us;
        self.offset_us + if changed { self.by_us } else { 0 }
    }

    fn next_change(&self, at_us: i64) -> Option<i64> {
        Some(self.change_us).filter(|change| *change > at_us)
    }
}

/// Clocks whose midnight and whose change lie within the tape.
fn clocks() -> impl Strategy<Value = Clocks> {
    let midnight = prop_oneof![(0..6_i64).prop_map(|m| m * 60_000), 0..300_000_i64];
    let by = prop_oneof![Just(HOUR), Just(-HOUR), Just(0)];
    (midnight, 0..300_000_i64, by).prop_map(|(midnight, change, by_us)| Clocks {
        offset_us: -((BEGIN_MS + midnight) * 1000).rem_euclid(DAY),
        change_us: (BEGIN_MS + change) * 1000,
        by_us,
    })
}

/// Totals of the sealed files.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Number of queries with totals by minute.
    pub minute_keys: usize,
    /// Tables that every second file lacks, because an older version wrote it.
    pub lacking: &'static [&'static str],
}

/// Tables that files of older versions lack.
const LACKING: [&[&str]; 3] = [
    &[],
    &["group_minute_query_id"],
    &["group_query_id", "minute_query_id", "group_minute_query_id"],
];

impl Asked {
    /// A question that totals answer, if files have totals by its dimension.
    fn plain(mut self) -> Asked {
        let minute = 60_000_000;
        self.since_us = self.since_us.div_euclid(minute) * minute;
        self.until_us = self.until_us.div_euclid(minute) * minute;
        self.until_us = self.until_us.max(self.since_us + minute);
        self.bucket_us = (self.bucket_us / minute).max(1) * minute;
        (self.scope, self.by_leader, self.filters) = ("load", false, Vec::new());
        if self.dimension == "query_id" {
            // Totals rank only by averages.
            (self.order_by, self.sealed, self.totals) = ("avg", true, true);
        }
        self
    }
}

fn sample() -> impl Strategy<Value = Sample> {
    let query = prop_oneof![3 => 0..4_i64, 1 => 4..2 * QUERIES];
    let marked = prop_oneof![6 => Just(0), 1 => Just(1), 1 => Just(2)];
    (
        0..8_usize,
        0..8_i64,
        0..6_usize,
        0..5_i64,
        query,
        marked,
        0..9_usize,
    )
        .prop_map(
            |(session, state, wait, cpu, query, marked, blocker)| Sample {
                session,
                state: if state > 3 { 1 } else { state },
                wait,
                cpu: if wait == 0 { cpu } else { 0 },
                query,
                marked,
                blocker: if blocker > 4 { 0 } else { blocker },
            },
        )
}

/// Repeats a set of samples over several ticks, so that there are runs. Sometimes a session pauses.
fn stretch() -> impl Strategy<Value = Vec<Tick>> {
    let interval = prop_oneof![Just(1000), Just(1000), Just(250), Just(5000)];
    let hole = prop_oneof![8 => Just(0), 1 => 1..4_i64, 1 => Just(90)];
    let samples = prop::collection::vec(sample(), 0..7);
    let pauses = prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 1..9);
    (
        samples,
        pauses,
        interval,
        hole,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.3),
    )
        .prop_map(|(samples, pauses, interval_ms, hole, failed, cut)| {
            let samples = if failed {
                Vec::new()
            } else {
                once_each(&samples)
            };
            let here = |(i, p): (usize, &(u8, u8, u8))| {
                let pausing = p.0 & p.1 & p.2;
                let numbered = samples.iter().enumerate();
                let present = numbered.filter(|(bit, _)| pausing >> bit & 1 == 0);
                Tick {
                    number: if i == 0 { hole } else { 0 },
                    slot_ms: 0,
                    interval_ms,
                    failed,
                    samples: present.map(|(_, s)| s.clone()).collect(),
                    cut: cut && i == 0,
                }
            };
            pauses.iter().enumerate().map(here).collect()
        })
}

/// Keeps one sample for each process at a tick.
fn once_each(samples: &[Sample]) -> Vec<Sample> {
    let mut kept: Vec<Sample> = Vec::new();
    for sample in samples {
        let pid = SESSIONS[sample.session].0;
        if kept.iter().all(|s| SESSIONS[s.session].0 != pid) {
            kept.push(sample.clone());
        }
    }
    kept
}

pub fn tape() -> impl Strategy<Value = Tape> {
    prop::collection::vec(stretch(), 1..25).prop_map(|stretches| {
        let mut ticks: Vec<Tick> = stretches.concat();
        let (mut number, mut slot_ms) = (41, BEGIN_MS);
        for tick in &mut ticks {
            let hole = tick.number;
            number += 1 + hole;
            slot_ms += hole * tick.interval_ms;
            (tick.number, tick.slot_ms) = (number, slot_ms);
            slot_ms += tick.interval_ms;
        }
        Tape { ticks }
    })
}

/// Values for filters by dimension. Some of them never occur.
pub const VALUES: &[(&str, &[&str])] = &[
    (
        "wait_event_type",
        &["IO", "Lock", "CPU", "Client", "(null)"],
    ),
    (
        "wait_event",
        &[
            "IO:DataFileRead",
            "DataFileRead",
            "WALSync",
            "Lock:tuple",
            "Client:ClientRead",
            "CPU*",
            "CPU:running",
            "(null)",
        ],
    ),
    ("query_id", &["11", "-12", "13", "99", "(null)"]),
    ("plan_id", &["7", "(null)"]),
    ("tags", &["job=mail", "job=none", "(null)"]),
    ("pid", &["100", "101", "102", "7"]),
    (
        "backend_type",
        &["client backend", "parallel worker", "walwriter", "(null)"],
    ),
    ("category", &["foreground", "maintenance", "replication"]),
    ("database", &["shop", "crm", "gone", "(null)"]),
    ("username", &["ann", "bob", "(null)"]),
    ("application", &["web", "web2", "psql", "(null)"]),
    ("client_addr", &["[local]", "10.0.0.1", "(null)"]),
    ("leader", &["102", "(null)"]),
    (
        "state",
        &["active", "idle", "idle in transaction", "(null)"],
    ),
    ("cpu", &["running", "CPU*", "(null)"]),
    ("blocked_by", &["100", "102", "(null)"]),
    ("root_blocker", &["100", "102", "(cycle)", "(null)"]),
];

/// One to three values of a dimension, all accepted or all refused.
fn filter() -> impl Strategy<Value = (String, String)> {
    let items = prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    let what = (
        prop::sample::select(VALUES),
        items,
        prop::bool::weighted(0.3),
    );
    what.prop_map(|((name, values), items, negated)| {
        let sign = if negated { "!" } else { "" };
        let item = |value: &prop::sample::Index| format!("{sign}{}", value.get(values));
        let items: Vec<String> = items.iter().map(item).collect();
        (name.to_string(), items.join(","))
    })
}

/// True if the filter accepts values outside the scope, which is refused.
fn is_outside((name, text): &(String, String)) -> bool {
    let inside = |item: &str| match name.as_str() {
        "category" => item == "foreground",
        "state" => item == "active",
        "wait_event" => item != "Client:ClientRead",
        _ => true,
    };
    text.split(',')
        .any(|item| !item.starts_with('!') && !inside(item))
}

pub fn asked() -> impl Strategy<Value = Asked> {
    let dimension = || {
        let any = prop::sample::select(dimensions());
        prop_oneof![4 => any, 1 => prop::sample::select(derived())]
    };
    let scope = prop_oneof![Just("load"), Just("foreground"), Just("all")];
    let order = prop_oneof![Just("avg"), Just("peak"), Just("p99"), Just("sessions")];
    let bucket = prop_oneof![
        Just(1000_i64),
        Just(7000),
        Just(60_000),
        Just(600_000),
        Just(7_200_000)
    ];
    let window = (-20_000..300_000_i64, 0..400_000_i64, 0..2_i64);
    let filters = prop::collection::vec(filter(), 0..3);
    let summed = ["wait_event", "wait_event_type", "query_id", "query_id"];
    let summed = prop::sample::select(summed.to_vec());
    let what = (dimension(), dimension(), order, 1..6_i64);
    let how = (
        1..4_usize,
        any::<bool>(),
        any::<bool>(),
        0..5_usize,
        prop_oneof![3 => Just(LACKING[0]), 1 => Just(LACKING[1]), 1 => Just(LACKING[2])],
        prop::option::weighted(0.4, clocks()),
        prop::sample::select(vec![0, 3, 256]),
    );
    let asked = (window, bucket, scope, any::<bool>(), filters, what, how).prop_map(
        |((since, length, half), bucket, scope, by_leader, filters, what, how)| Asked {
            since_us: (BEGIN_MS + since) * 1000 + half * 500,
            until_us: (BEGIN_MS + since + length) * 1000 + half * 500,
            bucket_us: bucket * 1000,
            clocks: how.5,
            scope: match filters.iter().any(is_outside) {
                true => "all",
                false => scope,
            },
            by_leader,
            filters,
            dimension: what.0,
            by: what.1,
            order_by: what.2,
            n: what.3,
            threads: how.0,
            sealed: how.1,
            totals: how.2,
            few_keys: how.6,
            kept: Kept {
                minute_keys: how.3,
                lacking: how.4,
            },
        },
    );
    (asked, prop::option::of(summed)).prop_map(|(asked, summed)| match summed {
        Some(dimension) => Asked { dimension, ..asked }.plain(),
        None => asked,
    })
}

impl Tape {
    /// The tape in memory, or in sealed files with three groups each.
    pub fn store(&self, asked: &Asked) -> Snapshot {
        let mut pieces: Vec<&[Tick]> = Vec::new();
        let mut begin = 0;
        for end in 1..=self.ticks.len() {
            if end == self.ticks.len() || self.ticks[end].cut {
                pieces.push(&self.ticks[begin..end]);
                begin = end;
            }
        }
        if asked.sealed {
            return sealed_files(&pieces, asked.kept);
        }
        Snapshot::from_parts(pieces.into_iter().map(|ticks| {
            let mut b = builder(&[]);
            fill(&mut b, ticks);
            b.finish(identity())
        }))
    }

    /// Checks that `samples()` returns the rows that were put in.
    pub fn check_samples(&self, samples: &Answer, asked: &Asked) {
        let inside = |t: &&Tick| (asked.since_us..asked.until_us).contains(&(t.slot_ms * 1000));
        let mut row = 0;
        for tick in self.ticks.iter().filter(inside).rev() {
            let mut wanted: Vec<&Sample> = tick.samples.iter().collect();
            wanted.sort_by_key(|s| SESSIONS[s.session].0);
            for sample in wanted {
                let session = SESSIONS[sample.session];
                let counted = sample.marked & 1 == 0;
                let text = |t: &str| match t {
                    "" => Value::Null,
                    t => Value::Text(t.into()),
                };
                let wait = sample.wait.checked_sub(1).map_or(("", ""), |w| WAITS[w]);
                let expected = [
                    ("sample_time", Value::Time(tick.slot_ms * 1000)),
                    ("tick", Value::Int(tick.number)),
                    ("pid", Value::Int(session.0)),
                    ("backend_start", Value::Time(session.1)),
                    ("database", text(session.4)),
                    ("application", text(session.6)),
                    ("wait_event_type", text(wait.0)),
                    ("wait_event", text(wait.1)),
                    (
                        "weight_ms",
                        Value::Int(if counted { tick.interval_ms } else { 0 }),
                    ),
                ];
                for (column, value) in expected {
                    assert_eq!(samples.get(row, column), value, "{column} of sample {row}");
                }
                row += 1;
            }
        }
        assert_eq!(samples.rows.len(), row);
    }
}

fn sealed_files(pieces: &[&[Tick]], kept: Kept) -> Snapshot {
    let storage = MemoryStorage::new();
    for (number, groups) in pieces.chunks(3).enumerate() {
        let lacking = if number % 2 == 0 { &[] } else { kept.lacking };
        let mut b = builder(lacking);
        let numbers = Numbers::one(number as u64 + 1);
        let file = SealedFile::create(&storage, numbers, b.schema(), identity()).unwrap();
        let mut file = file.with_minute_keys(kept.minute_keys);
        for ticks in groups {
            fill(&mut b, ticks);
            file.group(&mut b, FrameRange::default()).unwrap();
        }
        file.finish(&storage, b).unwrap();
    }
    let store = Snapshot::open_storage(&storage).unwrap();
    assert_eq!(store.damage(), []);
    store
}

/// A builder for a file without these tables.
fn builder(lacking: &[&str]) -> PartBuilder {
    let mut schema = catalog().clone().with_runs();
    schema.tables.retain(|t| !lacking.contains(&&*t.name));
    PartBuilder::new(Arc::new(schema)).unwrap()
}

fn identity() -> Identity {
    Identity {
        node: 7,
        ..Identity::default()
    }
}

fn fill(b: &mut PartBuilder, ticks: &[Tick]) {
    for tick in ticks {
        let values = [
            ("tick", tick.number),
            ("slot_time", tick.slot_ms),
            ("interval_ms", tick.interval_ms),
            ("status", if tick.failed { 3 } else { 1 }),
        ];
        b.row("tick", &values).unwrap();
        for sample in &tick.samples {
            let session = session(b, sample.session);
            let values = [
                ("wait", wait(b, sample.wait)),
                ("state", sample.state),
                ("cpu", sample.cpu),
                ("marked", sample.marked),
                ("statement", statement(b, sample.query)),
                ("blocked_by", blocker(b, sample.blocker)),
            ];
            b.sample(tick.number as u64, session, &values).unwrap();
        }
    }
}

fn session(b: &mut PartBuilder, index: usize) -> i64 {
    let s = SESSIONS[index];
    let mut name = |text: &str| b.name(text).unwrap();
    let values = [
        ("pid", s.0),
        ("backend_start", s.1),
        ("category", s.2),
        ("backend_type", name(s.3)),
        ("database", name(s.4)),
        ("username", name(s.5)),
        ("application", name(s.6)),
        ("client_addr", name(s.7)),
        ("leader", s.8),
    ];
    b.intern("session", &values).unwrap()
}

/// A session with a unique pid, because `samples()` shows only the pid of a blocker.
fn blocker(b: &mut PartBuilder, index: usize) -> i64 {
    match index {
        0 => 0,
        index => session(b, [0, 1, 3, 4][index - 1]),
    }
}

fn wait(b: &mut PartBuilder, index: usize) -> i64 {
    let Some(index) = index.checked_sub(1) else {
        return 0;
    };
    let class = b.name(WAITS[index].0).unwrap();
    let event = b.name(WAITS[index].1).unwrap();
    let values = [("wait_event_type", class), ("wait_event", event)];
    b.intern("wait", &values).unwrap()
}

/// Number of queries. The same number of statements are these queries with another plan.
const QUERIES: i64 = 120;

/// Query ids 11, -12, 13, -14 …
fn statement(b: &mut PartBuilder, query: i64) -> i64 {
    let number = query % QUERIES;
    if number == 0 {
        return 0;
    }
    let id = (10 + number) * if number % 2 == 0 { -1 } else { 1 };
    let plan = if query > QUERIES { 7 } else { 0 };
    let tags = match query % 3 {
        0 => b.name("job=mail").unwrap(),
        _ => 0,
    };
    let values = [("query_id", id), ("plan_id", plan), ("tags", tags)];
    b.intern("statement", &values).unwrap()
}

/// Asks a function. Filters outside the scope give an empty answer.
pub fn ask(function: &str, spec: &Arguments, store: &Snapshot) -> Answer {
    let mut answer = Answer::default();
    run(function, spec, store, &mut answer).unwrap();
    answer
}

/// Same as [`ask`]. `None` if the bucket is shorter than the interval of ticks, which is refused.
pub fn ask_timeline(spec: &Arguments, tape: &Tape, asked: &Asked) -> Option<Answer> {
    let mut answer = Answer::default();
    match run("timeline", spec, &tape.store(asked), &mut answer) {
        Ok(()) => Some(answer),
        Err(error) => {
            let refused = "bucket is shorter than the sampling interval";
            assert_eq!(error.message, refused);
            let longest = tape.ticks.iter().map(|tick| tick.interval_ms).max();
            assert!(longest.is_some_and(|ms| ms * 1000 > asked.bucket_us));
            None
        }
    }
}
