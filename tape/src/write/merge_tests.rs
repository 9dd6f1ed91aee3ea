//! Merging on a storage in memory: exact contents, crashes at every operation, failures of every
//! operation, and readers and retention that run at the same time.

use crate::PartBuilder;
use crate::files::directory::{Kind, Numbers, file_name};
use crate::files::storage::Storage;
use crate::format::entry::{CHUNK_BYTES, CHUNK_MAGIC, COLUMN};
use crate::format::log::LogHeader;
use crate::format::part::Identity;
use crate::format::schema::Schema;
use crate::format::sealed_write::FrameRange;
use crate::store::snapshot::Snapshot;
use crate::testing::memory::{Crash, MemoryStorage};
use crate::testing::{Load, Sampler, Seen, difference, log_bytes, read, rows_difference};
use crate::write::merge::{MergeJob, merge, plan, plan_thin};
use crate::write::recover::{Stored, read_directory};
use crate::write::seal::{seal_log, write_sealed};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) const NODE: u64 = 9;

pub(crate) type Rows = (Vec<(u64, i64)>, Vec<Seen>);

fn identity() -> Identity {
    Identity {
        node: NODE,
        ..Identity::default()
    }
}

/// Sealed files with some frames each, and the contents that readers must see.
pub(crate) fn sealed_files(seed: u64, files: u64, frames: usize) -> (MemoryStorage, Rows) {
    let storage = MemoryStorage::new();
    let load = Load {
        sessions: 5,
        queries: 4,
        same: 60,
        ..Load::default()
    };
    let mut sampler = Sampler::new(seed, load);
    let (mut ticks, mut seen) = (Vec::new(), Vec::new());
    for number in 1..=files {
        let header = LogHeader {
            identity: identity(),
            incarnation: sampler.incarnation,
            first_sequence: sampler.sequence,
            ..LogHeader::default()
        };
        sampler.forget();
        let mut bytes = vec![sampler.hello(&[])];
        for _ in 0..frames {
            let (frame, t, s) = sampler.frame();
            bytes.push(frame);
            ticks.extend(t);
            seen.extend(s);
        }
        storage.put(&file_name(number, Kind::Log), &log_bytes(&header, &bytes));
        seal_log(&storage, number, u64::MAX).unwrap();
    }
    seen.sort();
    (storage, (ticks, seen))
}

fn job(files: u64) -> MergeJob {
    MergeJob {
        files: (1..=files).map(Numbers::one).collect(),
        thin_ms: None,
        text_limit: u64::MAX,
    }
}

pub(crate) fn go(
    storage: &MemoryStorage,
    files: u64,
) -> crate::Result<Option<crate::write::merge::Merged>> {
    merge(storage, &job(files), &AtomicBool::new(false))
}

pub(crate) fn names(storage: &MemoryStorage) -> Vec<String> {
    storage
        .list()
        .unwrap()
        .into_iter()
        .map(|e| e.name)
        .collect()
}

pub(crate) fn check(storage: &MemoryStorage, expected: &Rows) -> Snapshot {
    let store = Snapshot::open_storage(storage).unwrap();
    let (ticks, rows) = read(store.parts(NODE));
    assert_eq!(difference(&ticks, &expected.0), None);
    assert_eq!(rows_difference(&rows, &expected.1), None);
    assert_eq!(store.damage(), &[]);
    store
}

fn runs(store: &Snapshot) -> usize {
    store.parts(NODE).map(|p| p.rows("run")).sum()
}

#[test]
fn a_merged_file_reads_as_its_parents() {
    for seed in [1, 100, 200] {
        let (storage, expected) = sealed_files(seed, 6, 50);
        let before = check(&storage, &expected);
        let merged = go(&storage, 6).unwrap().unwrap();
        assert_eq!(names(&storage), ["0000000001-0000000006.tape"]);
        let bytes = storage.bytes_of("0000000001-0000000006.tape").unwrap();
        assert_eq!(merged.bytes, bytes.len() as u64);
        let after = check(&storage, &expected);
        assert!(runs(&after) <= runs(&before));
        let ticks = &expected.0;
        assert_eq!(merged.times, Some((ticks[0].1, ticks[ticks.len() - 1].1)));
        assert_eq!(merged.identity, identity());
        let known = |store: &Snapshot| -> usize {
            let sizes = ["session", "statement", "wait", "name"];
            let part = store.parts(NODE).next().unwrap();
            sizes.iter().map(|table| part.rows(table)).sum()
        };
        // The merged file has one set of definitions, not six.
        assert!(known(&after) < 3 * known(&before));
    }
}

#[test]
fn a_merged_file_has_a_group_an_hour() {
    let (storage, expected) = sealed_files(3, 7, 1_200);
    go(&storage, 7).unwrap().unwrap();
    let store = check(&storage, &expected);
    let hours: Vec<i64> = store.parts(NODE).map(|p| p.min_ms() / 3_600_000).collect();
    assert!(hours.len() >= 3, "{hours:?}");
    assert!(hours.windows(2).all(|h| h[0] < h[1]), "{hours:?}");
}

#[test]
fn a_crash_at_any_point_of_merging_changes_nothing() {
    let (storage, expected) = sealed_files(4, 4, 20);
    let begin = storage.operations();
    let steps = {
        let copy = storage.after(Crash::Process);
        go(&copy, 4).unwrap().unwrap();
        copy.operations() - begin
    };
    // Create, append, sync, rename, sync the directory, four removals.
    assert_eq!(steps, 9);
    for step in 0..=steps {
        for crash in [Crash::Process, Crash::Machine, Crash::MachineHalf] {
            let copy = storage.after(Crash::Process);
            copy.stop_at(begin + step);
            let _ = go(&copy, 4);
            let after = copy.after(crash);
            check(&after, &expected);
            // The next writer tidies up and merges what is left.
            let found = read_directory(&after, NODE).unwrap();
            check(&after, &expected);
            assert_eq!(found.end.tick, expected.0.last().unwrap().0);
            match found.stored.len() {
                1 => assert_eq!(names(&after), ["0000000001-0000000004.tape"]),
                _ => drop(go(&after, 4).unwrap().unwrap()),
            }
            assert_eq!(names(&after), ["0000000001-0000000004.tape"]);
            check(&after, &expected);
        }
    }
}

#[test]
fn a_failing_operation_of_merging_keeps_the_history() {
    let (storage, expected) = sealed_files(5, 4, 20);
    let begin = storage.operations();
    for operation in 1..=9 {
        let copy = storage.after(Crash::Process);
        copy.fail_at(begin + operation, ErrorKind::StorageFull);
        let result = go(&copy, 4);
        check(&copy, &expected);
        let left_over = names(&copy).iter().any(|n| n.ends_with(".tmp"));
        assert!(!left_over, "operation {operation}");
        if let Ok(Some(merged)) = result {
            assert!(operation > 5);
            assert_eq!(merged.left.len(), 1);
        } else {
            assert!(operation <= 5);
        }
    }
}

#[test]
fn a_stopped_merge_leaves_nothing() {
    let (storage, expected) = sealed_files(6, 3, 20);
    let before = names(&storage);
    let stopped = merge(&storage, &job(3), &AtomicBool::new(true)).unwrap();
    assert!(stopped.is_none());
    assert_eq!(names(&storage), before);
    check(&storage, &expected);
}

#[test]
fn a_damaged_parent_is_not_merged() {
    let (storage, expected) = sealed_files(7, 3, 20);
    let mut bytes = storage.bytes_of("0000000002.tape").unwrap();
    let is_column = |w: &[u8]| w[..4] == CHUNK_MAGIC && w[4] == COLUMN;
    let column = bytes.windows(5).position(is_column).unwrap();
    bytes[column + CHUNK_BYTES] ^= 1;
    storage.put("0000000002.tape", &bytes);
    let error = go(&storage, 3).unwrap_err();
    assert_eq!(error.kind, crate::error::Kind::Damaged);
    assert!(error.path.unwrap().ends_with("0000000002.tape"));
    assert_eq!(names(&storage).len(), 3);
    drop(expected);
}

#[test]
fn a_foreign_file_among_those_to_merge_stops_it() {
    let (storage, expected) = sealed_files(8, 3, 20);
    let job = MergeJob {
        files: vec![Numbers::one(1), Numbers::one(3)],
        thin_ms: None,
        text_limit: u64::MAX,
    };
    assert!(merge(&storage, &job, &AtomicBool::new(false)).is_err());
    assert_eq!(names(&storage).len(), 3);
    check(&storage, &expected);
}

#[test]
fn a_damaged_merged_file_does_not_hide_its_parents() {
    let (storage, expected) = sealed_files(9, 3, 20);
    let parents = storage.after(Crash::Process);
    go(&storage, 3).unwrap().unwrap();
    let merged = storage.bytes_of("0000000001-0000000003.tape").unwrap();
    for end in (0..merged.len()).step_by(merged.len() / 20) {
        parents.put("0000000001-0000000003.tape", &merged[..end]);
        let store = Snapshot::open_storage(&parents).unwrap();
        assert!(!store.damage().is_empty(), "end {end}");
        let (ticks, rows) = read(store.parts(NODE));
        assert_eq!(difference(&ticks, &expected.0), None, "end {end}");
        assert_eq!(rows_difference(&rows, &expected.1), None, "end {end}");
    }
}

/// A reader opens the directory between any two operations of a merge.
#[test]
fn a_reader_beside_a_merge_sees_every_tick_once() {
    let (storage, expected) = sealed_files(10, 4, 20);
    let begin = storage.operations();
    for step in 0..=9 {
        let copy = storage.after(Crash::Process);
        // This snapshot is opened before the merge and read after it.
        let early = Snapshot::open_storage(&copy).unwrap();
        copy.stop_at(begin + step);
        let _ = go(&copy, 4);
        check(&copy, &expected);
        let (ticks, rows) = read(early.parts(NODE));
        assert_eq!(difference(&ticks, &expected.0), None);
        assert_eq!(rows_difference(&rows, &expected.1), None);
    }
}

#[test]
fn retention_beside_a_merge_is_a_merge_that_fails() {
    let (storage, expected) = sealed_files(11, 4, 20);
    storage.remove("0000000001.tape").unwrap();
    assert_eq!(
        go(&storage, 4).unwrap_err().kind,
        crate::error::Kind::NotFound
    );
    let kept = |tick: u64| tick > 20;
    let ticks = expected.0.iter().copied().filter(|t| kept(t.0)).collect();
    let seen = expected
        .1
        .iter()
        .filter(|s| kept(s.tick))
        .cloned()
        .collect();
    check(&storage, &(ticks, seen));
}

fn stored(number: u64, day: i64, node: u64) -> Stored {
    let begin = day * 86_400_000 + number as i64;
    Stored {
        numbers: Numbers::one(number),
        kind: Kind::Sealed,
        bytes: 10,
        times: Some((begin, begin + 1)),
        identity: Some(Identity {
            node,
            ..Identity::default()
        }),
        statements_ms: Some(0),
    }
}

fn planned(files: &[Stored], most: u64, waiting: &[u64]) -> Option<Vec<u64>> {
    let job = plan(files, 1, most, waiting)?;
    Some(job.files.iter().map(|n| n.first).collect())
}

#[test]
fn a_file_without_statistics_of_statements_is_marked() {
    let (storage, _) = sealed_files(21, 2, 30);
    let merged = go(&storage, 2).unwrap().unwrap();
    assert_eq!(merged.statements_ms, None);
    let found = read_directory(&storage, NODE).unwrap();
    assert_eq!(found.stored[0].statements_ms, None);
}

#[test]
fn a_day_is_merged_when_the_next_one_has_begun() {
    let mut files = vec![stored(1, 5, 1), stored(2, 5, 1), stored(4, 5, 1)];
    assert_eq!(planned(&files, 100, &[]), None);
    files.push(stored(5, 6, 1));
    assert_eq!(planned(&files, 100, &[]), Some(vec![1, 2, 4]));
    assert_eq!(planned(&files, 20, &[]), Some(vec![1, 2]));
    assert_eq!(planned(&files, 15, &[]), None);
    // Log 3 is not sealed yet, so nothing is merged across it.
    assert_eq!(planned(&files, 100, &[3]), Some(vec![1, 2]));
    files[1].times = None;
    assert_eq!(planned(&files, 100, &[]), Some(vec![1, 2, 4]));
    files[1].identity = None;
    assert_eq!(planned(&files, 100, &[]), None);
}

#[test]
fn files_of_another_recorder_or_server_are_not_merged() {
    let mut files: Vec<Stored> = (1..=4).map(|n| stored(n, 5, 2)).collect();
    files.push(stored(5, 6, 1));
    assert_eq!(planned(&files, 100, &[]), None);
    let mut files: Vec<Stored> = (1..=4).map(|n| stored(n, 5, 1)).collect();
    for file in &mut files[2..] {
        file.identity.as_mut().unwrap().postmaster_start_us = 7;
    }
    files.push(stored(5, 6, 1));
    assert_eq!(planned(&files, 100, &[]), Some(vec![1, 2]));
}

/// The sealed files 1 and 2, each of a tick with a sample, with these schemas.
fn two_files(schemas: [&Schema; 2]) -> MemoryStorage {
    let storage = MemoryStorage::new();
    for (number, schema) in (1..).zip(schemas) {
        let mut b = PartBuilder::new(Arc::new(schema.clone())).unwrap();
        let application = b.name("web").unwrap();
        let process = [("pid", 70 + number), ("category", 1)];
        let session = [&process[..], &[("application", application)]].concat();
        let session = b.intern("session", &session).unwrap();
        let statement = b.intern("statement", &[("query_id", 5)]).unwrap();
        let tick = [("tick", number), ("slot_time", 1_000 * number)];
        let tick = [tick, [("interval_ms", 1_000), ("status", 1)]].concat();
        b.row("tick", &tick).unwrap();
        let mut values = vec![("state", 1), ("statement", statement)];
        // Leaves out a column that an older schema does not have.
        if schema.column("run", "xid").is_some() {
            values.push(("xid", 9));
        }
        b.sample(number as u64, session, &values).unwrap();
        write_sealed(
            &storage,
            number as u64,
            b,
            identity(),
            FrameRange::default(),
        )
        .unwrap();
    }
    storage
}

fn whole_schema() -> Schema {
    crate::catalog::samples().with_runs()
}

#[test]
fn files_of_an_older_program_are_merged_with_newer_ones() {
    let new = whole_schema();
    let mut old = new.clone();
    let by_query = |name: &str| matches!(name, "group_query_id" | "minute_query_id");
    old.tables.retain(|t| !by_query(&t.name));
    let run = old.index("run").unwrap();
    old.tables[run].columns.retain(|c| c.name != "xid");
    for (schemas, xids) in [([&old, &new], [0, 9]), ([&new, &old], [9, 0])] {
        let storage = two_files(schemas);
        go(&storage, 2).unwrap().unwrap();
        assert_eq!(names(&storage), ["0000000001-0000000002.tape"]);
        let store = Snapshot::open_storage(&storage).unwrap();
        assert_eq!(store.damage(), []);
        let parts: Vec<_> = store.parts(NODE).collect();
        let [part] = parts[..] else {
            panic!("{} groups", parts.len());
        };
        let ints = |table, column| part.ints(table, column).unwrap().to_vec();
        assert_eq!(ints("tick", "tick"), [1, 2]);
        assert_eq!(ints("run", "first_tick"), [1, 2]);
        assert_eq!(ints("run", "xid"), xids);
        assert_eq!(ints("session", "pid"), [71, 72]);
        assert_eq!(ints("session", "application"), [1, 1]);
        assert_eq!(ints("statement", "query_id"), [5]);
        // The merged file has totals of both files.
        assert_eq!(ints("group_query_id", "sum_ms"), [2_000]);
    }
}

#[test]
fn files_that_contradict_each_other_are_left_as_they_are() {
    let (one, mut other) = (whole_schema(), whole_schema());
    let run = other.index("run").unwrap();
    let state = other.tables[run].index("state").unwrap();
    other.tables[run].columns[state].role = crate::format::schema::Role::Counter;
    let storage = two_files([&one, &other]);
    let error = go(&storage, 2).unwrap_err().to_string();
    assert!(
        error.contains("columns differ from the columns of the earlier files"),
        "{error}"
    );
    assert_eq!(names(&storage), ["0000000001.tape", "0000000002.tape"]);
    let store = Snapshot::open_storage(&storage).unwrap();
    let ticks = store.parts(NODE).map(|p| p.rows("tick")).sum::<usize>();
    assert_eq!(ticks, 2);
}

#[test]
fn a_file_is_thinned_when_it_is_old_enough_and_each_age_once() {
    let tiers = [(600_000, 100), (3_600_000, 500)];
    let file = |number, ms| Stored {
        statements_ms: ms,
        ..stored(number, 0, 1)
    };
    let at = |files: &[Stored], now| {
        let job = plan_thin(files, 1, now, &tiers)?;
        Some((job.files[0].first, job.thin_ms?))
    };
    let begin = 86_400_000;
    let files = [file(1, None), file(2, Some(0)), file(3, Some(600_000))];
    let mut day = files.clone();
    day.iter_mut().for_each(|f| f.times = Some((begin, begin)));
    assert_eq!(at(&day, begin + 100), None);
    assert_eq!(at(&day, begin + 101), Some((2, 600_000)));
    assert_eq!(at(&day, begin + 501), Some((2, 3_600_000)));
    assert_eq!(at(&day[2..], begin + 101), None);
    assert_eq!(at(&day[2..], begin + 501), Some((3, 3_600_000)));
    day[1].identity = None;
    assert_eq!(at(&day, begin + 101), None);
}

/// A sealed file with half an hour of statistics of one statement.
fn statements() -> MemoryStorage {
    use crate::format::schema::STATS;
    let storage = MemoryStorage::new();
    let mut builder = PartBuilder::new(Arc::new(crate::testing::stats_schema())).unwrap();
    let slot = [("tick", 1), ("slot_time", 1_000)];
    builder.row("tick", &slot).unwrap();
    let entry = builder.intern("entry", &[("query_id", 7)]).unwrap();
    for minute in 1..=30 {
        let row = [
            ("time", minute * 60_000),
            ("elapsed_ms", 60_000),
            ("entry", entry),
            ("calls", minute),
        ];
        builder.row(STATS, &row).unwrap();
    }
    let identity = Identity {
        node: 1,
        ..Identity::default()
    };
    let frames = FrameRange::default();
    write_sealed(&storage, 1, builder, identity, frames).unwrap();
    storage
}

fn thin_job(thin_ms: u64) -> MergeJob {
    MergeJob {
        files: vec![Numbers::one(1)],
        thin_ms: Some(thin_ms),
        text_limit: u64::MAX,
    }
}

#[test]
fn thinning_keeps_every_other_row_totals_and_the_sums() {
    use crate::format::schema::STATS;
    let storage = statements();
    for (thin_ms, calls) in [(600_000, vec![55, 155, 255]), (3_600_000, vec![465])] {
        let merged = merge(&storage, &thin_job(thin_ms), &AtomicBool::new(false)).unwrap();
        assert_eq!(merged.unwrap().statements_ms, Some(thin_ms));
        let store = Snapshot::open_storage(&storage).unwrap();
        let parts: Vec<_> = store.parts(1).collect();
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].info().statements_ms, thin_ms);
        assert_eq!(parts[0].rows("tick"), 1);
        assert!(parts[0].info().has_totals);
        assert_eq!(parts[0].ints("minute", "minute").unwrap()[..], [0]);
        assert_eq!(parts[0].ints(STATS, "calls").unwrap()[..], calls);
    }
}

#[test]
fn a_crash_or_a_failure_at_any_point_of_thinning_leaves_one_file_with_the_sums() {
    use crate::format::schema::STATS;
    let storage = statements();
    let calls = |storage: &MemoryStorage| -> i64 {
        let store = Snapshot::open_storage(storage).unwrap();
        assert_eq!(store.damage(), []);
        let parts = store.parts(1);
        let sums = parts.map(|p| p.ints(STATS, "calls").unwrap().iter().sum::<i64>());
        sums.sum()
    };
    let go = |storage: &MemoryStorage| merge(storage, &thin_job(600_000), &AtomicBool::new(false));
    let begin = storage.operations();
    let whole = storage.after(Crash::Process);
    go(&whole).unwrap().unwrap();
    assert_eq!(calls(&whole), 465);
    for operation in begin..=whole.operations() {
        for crash in [Crash::Process, Crash::Machine, Crash::MachineHalf] {
            let crashed = storage.after(Crash::Process);
            crashed.stop_at(operation);
            let _ = go(&crashed);
            let after = crashed.after(crash);
            assert_eq!(calls(&after), 465, "operation {operation}");
            let found = read_directory(&after, 1).unwrap();
            assert_eq!(names(&after), ["0000000001.tape"]);
            assert_eq!(found.stored.len(), 1);
        }
        let failing = storage.after(Crash::Process);
        failing.fail_at(operation + 1, ErrorKind::StorageFull);
        let _ = go(&failing);
        assert_eq!(calls(&failing), 465, "operation {operation}");
        assert!(!names(&failing).iter().any(|n| n.ends_with(".tmp")));
    }
}

#[test]
fn a_merge_that_is_stopped_at_once_reads_no_file() {
    let (storage, _) = sealed_files(3, 3, 5);
    let before = storage.reads();
    let merged = merge(&storage, &job(3), &AtomicBool::new(true)).unwrap();
    assert!(merged.is_none());
    // The only read is the list of files.
    assert_eq!(storage.reads(), before + 1);
}
