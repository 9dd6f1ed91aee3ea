//! Damages every column of a sealed file in turn and asks every function. If the answer needs the
//! column, it equals the answer of a history without the column's groups, and a warning names them.
//! Otherwise it equals the answer of the whole history.

use super::{Field, QueryError, QueryResult, Sink, Value, list};
use crate::files::directory::{Kind, Numbers, file_name};
use crate::files::storage::Storage;
use crate::format::entry::{CHUNK_BYTES, COLUMN, Entry};
use crate::format::part::{Identity, Part};
use crate::format::part_builder::PartBuilder;
use crate::format::schema::{ColumnType, PLAN_STATS, RUN, STATS, Schema};
use crate::format::sealed_write::FrameRange;
use crate::store::sealed_read::{BlockFile, Schemas};
use crate::store::snapshot::Snapshot;
use crate::testing::memory::MemoryStorage;
use crate::testing::{Arguments, run, stats_schema};
use crate::write::seal::SealedFile;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, OnceLock};

pub(super) const NODE: u64 = 7;
/// First slot in ms; groups are an hour apart.
const BEGIN_MS: i64 = 1_790_000_040_000;
const HOUR_MS: i64 = 3_600_000;
const BEHIND_MS: i64 = BEGIN_MS + 4 * HOUR_MS;
/// Number of ticks in a group.
const TICKS: i64 = 20;

/// A row of any table. Values that are not given depend on `seed`.
fn row(b: &mut PartBuilder, table: &str, seed: i64, given: &[(&str, i64)]) -> i64 {
    let schema = b.schema();
    let columns = schema.table(table).unwrap().columns.iter();
    let open = columns.filter(|c| c.name != "id" && given.iter().all(|(name, _)| *name != c.name));
    let mut values = given.to_vec();
    let mut strings: Vec<(&str, &[u8])> = Vec::new();
    for (number, column) in open.enumerate() {
        let value = seed * 7 + number as i64;
        match column.ty {
            ColumnType::Bytes => strings.push((&column.name, b"select of a text")),
            ColumnType::Name => {
                let name = b.name(&format!("name {}", value % 5)).unwrap();
                values.push((&column.name, name));
            }
            ColumnType::Enum => values.push((&column.name, 1 + value % 2)),
            ColumnType::Ref => (),
            ColumnType::Time => values.push((&column.name, BEGIN_MS + value)),
            _ => values.push((&column.name, 1 + value % 90)),
        }
    }
    match schema.is_dictionary(schema.index(table).unwrap()) && strings.is_empty() {
        true => b.intern(table, &values).unwrap(),
        false => b.row_bytes(table, &values, &strings).unwrap(),
    }
}

/// Rows of every kind in hour number `hour`.
pub(super) fn fill(b: &mut PartBuilder, hour: i64) {
    let dictionary = |b: &mut PartBuilder, table: &str| -> Vec<i64> {
        (0..4).map(|n| row(b, table, n + hour, &[])).collect()
    };
    let (sessions, waits) = (dictionary(b, "session"), dictionary(b, "wait"));
    let (statements, entries) = (dictionary(b, "statement"), dictionary(b, "entry"));
    for tick in 1 + hour * 1_000..=TICKS + hour * 1_000 {
        let slot = BEGIN_MS + hour * HOUR_MS + tick % 1_000 * 1_000;
        let of_tick = [
            ("tick", tick),
            ("slot_time", slot),
            ("taken_at", slot + tick % 7),
            ("interval_ms", 1_000),
            ("status", 1),
        ];
        row(b, "tick", tick, &of_tick);
        row(b, "count", tick, &[("at", tick)]);
        for (number, session) in sessions.iter().enumerate() {
            let kind = ((tick / 3) as usize + number) % 4;
            let values = [
                ("wait", if number == 3 { 0 } else { waits[kind] }),
                ("cpu", i64::from(number == 3)),
                ("state", 1),
                ("statement", statements[kind]),
                ("query_start", slot - 90 * number as i64),
                ("xact_start", slot - 100 * number as i64),
                ("state_change", slot - 50),
                ("xmin", 5 + tick / 2),
                ("xid", 7 + tick / 4),
                ("progress_command", kind as i64 % 2),
                ("progress_relation", kind as i64),
                ("marked", i64::from(number == 2 && kind == 1)),
                (
                    "blocked_by",
                    if kind == 0 {
                        sessions[(number + 1) % 4]
                    } else {
                        0
                    },
                ),
            ];
            b.sample(tick as u64, *session, &values).unwrap();
        }
        let pair = [
            sessions[tick as usize % 4],
            sessions[(tick as usize + 1) % 4],
        ];
        row(
            b,
            "lock",
            tick,
            &[("at", tick), ("waiter", pair[0]), ("blocker", pair[1])],
        );
        for table in [
            "server",
            "server_database",
            "server_replica",
            "server_slot",
            "server_io",
            "server_disk",
        ] {
            if tick % 5 == 0 && b.schema().table(table).is_some() {
                row(
                    b,
                    table,
                    tick,
                    &[("time", slot), ("elapsed_ms", 5_000)][..match table {
                        "server" => 2,
                        _ => 1,
                    }],
                );
            }
        }
        let entry = if tick % 5 == 0 {
            0
        } else {
            entries[tick as usize % 4]
        };
        row(
            b,
            STATS,
            tick,
            &[("time", slot), ("elapsed_ms", 1_000), ("entry", entry)],
        );
        for plan in (1..=2).filter(|_| entry != 0) {
            let of_plan = [("time", slot), ("elapsed_ms", 1_000), ("entry", entry)];
            let of_plan = [&of_plan[..], &[("plan_id", plan)]].concat();
            row(b, PLAN_STATS, tick, &of_plan);
        }
        if tick % 9 == 0 {
            row(
                b,
                "marker",
                tick,
                &[("time", slot), ("since", slot - 5_000), ("until", slot)],
            );
        }
    }
    for number in 0..4 {
        row(b, "text", number, &[("encoding", 6)]);
    }
}

/// Two files with two groups each.
fn history() -> MemoryStorage {
    let storage = MemoryStorage::new();
    let identity = Identity {
        node: NODE,
        ..Identity::default()
    };
    for number in 0..2 {
        let mut b = PartBuilder::new(Arc::new(catalog().clone())).unwrap();
        let numbers = Numbers::one(number as u64 + 1);
        let file = SealedFile::create(&storage, numbers, b.schema(), identity.clone());
        let mut file = file.unwrap();
        for hour in [2 * number, 2 * number + 1] {
            fill(&mut b, hour);
            file.group(&mut b, FrameRange::default()).unwrap();
        }
        file.finish(&storage, b).unwrap();
    }
    storage
}

/// Rows as text, and the notices.
#[derive(Clone, Default, PartialEq, Eq)]
struct Answer {
    text: String,
    notices: Vec<QueryError>,
}

impl Sink for Answer {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        assert_eq!(self.text, "", "an answer begins once");
        let _ = writeln!(self.text, "{fields:?}");
        Ok(())
    }

    fn row(&mut self, row: Vec<Value>) -> QueryResult<()> {
        let _ = writeln!(self.text, "{row:?}");
        Ok(())
    }

    fn notice(&mut self, notice: QueryError) {
        self.notices.push(notice);
    }
}

pub(super) fn catalog() -> &'static Schema {
    static CATALOG: OnceLock<Schema> = OnceLock::new();
    CATALOG.get_or_init(stats_schema)
}

/// A question about a whole history: function, dimension, whether totals are used.
pub(super) type Question = (&'static str, Option<&'static str>, bool);

/// Every function; `top` by dimensions of all kinds, with totals and without. `plan` reads nothing
/// without the id of a plan.
pub(super) fn questions() -> Vec<Question> {
    let names = list().iter().map(|f| f.name);
    let names = names.filter(|name| !["top", "plan"].contains(name));
    let mut all: Vec<Question> = names.map(|name| (name, None, true)).collect();
    for dimension in ["wait_event", "query_id", "username", "root_blocker", "pid"] {
        all.extend([
            ("top", Some(dimension), true),
            ("top", Some(dimension), false),
        ]);
    }
    all
}

pub(super) fn spec_of((name, dimension, totals): Question) -> Arguments<'static> {
    let mut spec = Arguments::new(catalog(), 1_000 * BEHIND_MS);
    spec.since_us = Some(1_000 * BEGIN_MS);
    spec.until_us = Some(1_000 * BEHIND_MS);
    spec.bucket_us = Some(3_600_000_000);
    if name == "compare" {
        spec.before = (spec.since_us, spec.until_us);
    }
    spec.node = Some(format!("{NODE:016x}"));
    spec.dimension = dimension.map(str::to_string);
    spec.scope = (name == "samples").then(|| "all".to_string());
    (spec.totals, spec.threads) = (totals, 2);
    spec
}

fn ask(store: &Snapshot, question: Question) -> Answer {
    let (name, dimension, _) = question;
    let spec = spec_of(question);
    let mut answer = Answer::default();
    let done = run(name, &spec, store, &mut answer);
    done.unwrap_or_else(|error| panic!("{name} {dimension:?}: {error:?}"));
    // A report ends with its damage.
    if let Some(at) = answer.text.find(", \\\"damage\\\": ") {
        assert!(
            answer
                .notices
                .iter()
                .any(|n| answer.text[at..].contains(&n.message))
        );
        answer.text.truncate(at);
        answer.text.push_str("}\")]\n");
    }
    answer
}

/// The columns of a file outside its first group. Columns with an id from 20 on are mostly
/// counters, which are alike: every tenth is taken.
fn columns(storage: &MemoryStorage, name: &str) -> Vec<Entry> {
    let file = storage.open(name).unwrap();
    let block = BlockFile::open(file, Path::new(name), &mut Schemas::default()).unwrap();
    let chunks = block.chunks().map(|chunk| chunk.unwrap().0);
    let is_tried = |e: &Entry| e.column < 20 || e.column.is_multiple_of(10);
    chunks
        .filter(|e| e.kind == COLUMN && e.group != 1 && is_tried(e))
        .collect()
}

/// How a column is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    FlippedBit,
    /// The device cannot read the bytes.
    LostBytes,
}

/// The same history with a damaged column.
fn damaged(storage: &MemoryStorage, name: &str, entry: &Entry, how: How) -> Snapshot {
    let at = entry.offset as usize + CHUNK_BYTES;
    match how {
        How::FlippedBit => {
            let mut bytes = storage.bytes_of(name).unwrap();
            bytes[at] ^= 1;
            storage.put(name, &bytes);
        }
        How::LostBytes => storage.lose_bytes(name, at..at + 1),
    }
    let store = Snapshot::open_storage(storage).unwrap();
    assert_eq!(store.damage(), []);
    store
}

/// Table and column of a chunk.
fn name_of(schema: &Schema, entry: &Entry) -> (String, String) {
    let table = &schema.tables[schema.index_of_id(entry.table).unwrap()];
    let column = &table.columns[table.index_of_id(entry.column).unwrap()];
    (table.name.clone(), column.name.clone())
}

/// The answers of a history without some groups of its first file.
fn without(parts: &[Part], left_out: impl Fn(u32) -> bool) -> Vec<Answer> {
    let first = parts[0].info().file.clone();
    let rest = |p: &&Part| p.info().file != first || !left_out(p.info().group);
    let store = Snapshot::from_parts(parts.iter().filter(rest).cloned());
    let questions = questions().into_iter();
    questions.map(|question| ask(&store, question)).collect()
}

/// Damages columns of the first file in turn and asks every question. Returns the columns that a
/// question needed.
fn check_columns(how: How, is_tried: impl Fn(usize) -> bool) -> BTreeSet<String> {
    let storage = history();
    let name = file_name(1, Kind::Sealed);
    let whole = Snapshot::open_storage(&storage).unwrap();
    let parts: Vec<Part> = whole.parts(NODE).cloned().collect();
    let groups: Vec<u32> = parts.iter().map(|p| p.info().group).collect();
    assert_eq!(groups, [1, 2, 1, 2]);
    let expected = without(&parts, |_| false);
    let less = [
        without(&parts, |_| true),
        without(&parts, |group| group == 2),
    ];
    let bytes = storage.bytes_of(&name).unwrap();
    let mut needed: BTreeSet<String> = BTreeSet::new();
    let columns = columns(&storage, &name).into_iter().enumerate();
    for (_, entry) in columns.filter(|(number, _)| is_tried(*number)) {
        let (table, column) = name_of(parts[0].schema(), &entry);
        let store = damaged(&storage, &name, &entry, how);
        for (index, question) in questions().into_iter().enumerate() {
            let mut got = ask(&store, question);
            let what = format!("{question:?}: {table}.{column} of group {}", entry.group);
            let warned: Vec<QueryError> = got
                .notices
                .extract_if(.., |notice| notice.severity() == "WARNING")
                .collect();
            let is_warned = |text: &str| warned.iter().any(|w| w.message.contains(text));
            let of_all = &expected[index];
            let wanted = match (is_warned("skipped"), is_warned("query texts")) {
                (true, _) => {
                    needed.insert(format!("{table}.{column}"));
                    check_warning(&warned[0], &name, entry.group, how);
                    &less[usize::from(entry.group == 2)][index]
                }
                (false, true) => {
                    needed.insert("texts".to_string());
                    assert!(["text", "name"].contains(&table.as_str()), "{what}");
                    assert_eq!(got.text.lines().count(), of_all.text.lines().count());
                    continue;
                }
                (false, false) => {
                    assert_eq!(warned, [], "{what}");
                    of_all
                }
            };
            assert!(got == *wanted, "{what}: {}\n{}", got.text, wanted.text);
        }
        storage.put(&name, &bytes);
    }
    needed
}

/// Checks that a warning names the parts of a file that were left out, and the reason.
fn check_warning(warning: &QueryError, file: &str, group: u32, how: How) {
    let left_out = match group {
        0 => "2 groups were skipped, ticks 1 to 1020",
        _ => "Group 2 was skipped, ticks 1001 to 1020",
    };
    let why = match how {
        How::FlippedBit => "damaged chunk at offset ",
        How::LostBytes => "could not read file: Input/output error (os error 5) at offset ",
    };
    let detail = warning.detail.as_deref().unwrap();
    for text in [left_out, why, &format!("File \"{file}\": ")] {
        assert!(detail.contains(text), "{detail}");
    }
}

#[test]
fn every_answer_reports_the_group_that_a_damaged_column_removes() {
    let needed = check_columns(How::FlippedBit, |_| true);
    for column in [
        "tick.slot_time",
        "name.bytes",
        "session.pid",
        "lock.at",
        "texts",
    ] {
        assert!(needed.contains(column), "{column} of {needed:?}");
    }
    for table in [RUN, STATS, PLAN_STATS, "marker", "server", "wait", "entry"] {
        let table = format!("{table}.");
        assert!(
            needed.iter().any(|c| c.starts_with(&table)),
            "{table} of {needed:?}"
        );
    }
}

#[test]
fn a_column_that_the_device_cannot_read_is_left_out_as_a_damaged_one() {
    let needed = check_columns(How::LostBytes, |number| number.is_multiple_of(5));
    assert!(needed.len() > 10, "{needed:?}");
}
