//! Repair with damage at many places: readable contents stay, losses are reported, the damaged
//! files are not touched.

use crate::files::directory::{Kind, file_name};
use crate::files::storage::Storage;
use crate::format::part::Part;
use crate::format::schema::RUN;
use crate::store::snapshot::Snapshot;
use crate::testing::memory::MemoryStorage;
use crate::testing::{Load, Sampler, Seen, difference, log_bytes, read, rows_difference, schema};
use crate::write::merge_tests::{NODE, Rows, go, names, sealed_files};
use crate::write::repair::{Outcome, Repaired, repair};
use std::collections::BTreeSet;

const DAY: &str = "0000000001-0000000007.tape";

/// A merged file of several hours, and the contents that readers must see.
fn day() -> (MemoryStorage, Rows) {
    let (storage, expected) = sealed_files(3, 7, 1_200);
    go(&storage, 7).unwrap().unwrap();
    (storage, expected)
}

fn repaired(storage: &MemoryStorage) -> (MemoryStorage, Vec<Repaired>) {
    let to = MemoryStorage::new();
    let done = repair(storage, &to, None, &schema().with_runs()).unwrap();
    (to, done)
}

/// True if every column of the part can be read.
fn is_whole(part: &Part) -> bool {
    part.schema().tables.iter().all(|table| {
        table.columns.iter().all(|column| {
            part.ints(&table.name, &column.name).is_ok()
                && part.bytes(&table.name, &column.name).is_ok()
        })
    })
}

fn markers(store: &Snapshot) -> Vec<String> {
    let parts = store.parts(NODE);
    let details = parts.flat_map(|part| {
        let names = part.bytes("name", "bytes").unwrap();
        let details = part.ints("marker", "detail").unwrap();
        let name = |&d: &i64| String::from_utf8_lossy(names.get(d as usize - 1)).into_owned();
        details.iter().map(name).collect::<Vec<_>>()
    });
    details.collect()
}

#[test]
fn whole_files_are_copied_byte_for_byte() {
    let (storage, _) = sealed_files(1, 3, 20);
    let (to, done) = repaired(&storage);
    assert!(done.iter().all(|d| d.outcome == Outcome::Copied));
    for name in names(&storage) {
        assert_eq!(storage.bytes_of(&name), to.bytes_of(&name));
    }
}

#[test]
fn unreadable_pages_are_repaired_as_damage() {
    let (storage, _) = sealed_files(3, 1, 1_200);
    let name = file_name(1, Kind::Sealed);
    let sampler = &mut Sampler::new(9, Load::default());
    let mut frames = vec![sampler.hello(&[])];
    frames.extend((0..100).map(|_| sampler.frame().0));
    let mut header = crate::format::log::LogHeader::default();
    (header.identity.node, header.tick_base) = (NODE, 5_000);
    let log = file_name(2, Kind::Log);
    storage.put(&log, &log_bytes(&header, &frames));
    for name in [&name, &log] {
        let middle = storage.bytes_of(name).unwrap().len() / 2;
        storage.lose_bytes(name, middle..middle + 1);
    }
    let (to, done) = repaired(&storage);
    for repaired in &done {
        let Outcome::Repaired { damage, .. } = &repaired.outcome else {
            panic!("{repaired:?}");
        };
        assert_eq!(damage.len(), 1, "{repaired:?}");
    }
    let store = Snapshot::open_storage(&to).unwrap();
    assert_eq!(store.damage(), []);
    let ticks = read(store.parts(NODE)).0;
    assert!(ticks[0].0 < 5_000 && ticks.last().unwrap().0 > 5_000);
}

#[test]
fn repair_keeps_all_readable_rows() {
    let (storage, expected) = day();
    let bytes = storage.bytes_of(DAY).unwrap();
    for at in (0..bytes.len()).step_by(bytes.len() / 60) {
        let mut copy = bytes.clone();
        copy[at] ^= 0x10;
        let damaged = MemoryStorage::new();
        damaged.put(DAY, &copy);
        let operations = damaged.operations();
        let (to, done) = repaired(&damaged);
        assert_eq!(damaged.operations(), operations, "offset {at}");
        assert_eq!(damaged.bytes_of(DAY).unwrap(), copy, "offset {at}");
        let Outcome::Repaired { damage, .. } = &done[0].outcome else {
            panic!("offset {at}: {:?}", done[0].outcome);
        };
        assert!(!damage.is_empty());
        let store = Snapshot::open_storage(&to).unwrap();
        assert_eq!(store.damage(), [], "offset {at}");
        let (ticks, rows) = read(store.parts(NODE));
        let known: BTreeSet<_> = expected.0.iter().collect();
        assert!(ticks.iter().all(|t| known.contains(t)), "offset {at}");
        // Groups that were whole read as before.
        let before = Snapshot::open_storage(&damaged).unwrap();
        for part in before.parts(NODE).filter(|p| is_whole(p)) {
            let of = |seen: &&Seen| (part.first_tick()..=part.last_tick()).contains(&seen.tick);
            let was: Vec<Seen> = expected.1.iter().filter(of).cloned().collect();
            let is: Vec<Seen> = rows.iter().filter(of).cloned().collect();
            assert_eq!(rows_difference(&is, &was), None, "offset {at}");
        }
    }
}

/// Flips a bit of one column of the first group.
fn without(column: (&str, &str)) -> MemoryStorage {
    let (storage, _) = day();
    let bytes = storage.bytes_of(DAY).unwrap();
    for at in (0..bytes.len() / 2).step_by(7) {
        let mut copy = bytes.clone();
        copy[at] ^= 1;
        let damaged = MemoryStorage::new();
        damaged.put(DAY, &copy);
        let store = Snapshot::open_storage(&damaged).unwrap();
        let Some(first) = store.parts(NODE).next() else {
            continue;
        };
        let lost = |t: &str, c: &str| first.ints(t, c).is_err();
        let alone = [
            (RUN, "state"),
            (RUN, "ticks"),
            (RUN, "wait"),
            ("tick", "slot_time"),
        ];
        let alone = alone.iter().all(|c| lost(c.0, c.1) == (*c == column));
        if alone && store.damage().is_empty() {
            return damaged;
        }
    }
    panic!("no offset damages {column:?} alone");
}

#[test]
fn a_lost_reference_reads_as_a_question_mark() {
    let (_, expected) = day();
    let (to, done) = repaired(&without((RUN, "wait")));
    let Outcome::Repaired { damage, lost } = &done[0].outcome else {
        panic!("{done:?}");
    };
    let store = Snapshot::open_storage(&to).unwrap();
    let first = store.parts(NODE).next().unwrap();
    assert_eq!(damage[0].since_ms, Some(first.min_ms()));
    assert_eq!(damage[0].until_ms, Some(first.max_ms()));
    let runs = damage[0].reason.clone();
    assert!(runs.starts_with("damaged chunk: column wait of "), "{runs}");
    assert!(lost[0].starts_with("column wait of "), "{lost:?}");
    assert_eq!(markers(&store), lost[..1]);
    assert!(first.lost_definitions() > 0);
    let last = first.last_tick();
    let (ticks, mut rows) = read(store.parts(NODE));
    assert_eq!(difference(&ticks, &expected.0), None);
    let in_first = |seen: &Seen| seen.tick <= last;
    assert!(rows.iter().filter(|s| in_first(s)).all(|s| s.wait == "?:?"));
    let mut was = expected.1;
    for seen in rows.iter_mut().chain(&mut was).filter(|s| in_first(s)) {
        seen.wait.clear();
    }
    rows.sort();
    was.sort();
    assert_eq!(rows_difference(&rows, &was), None);
}

#[test]
fn ticks_whose_samples_are_lost_are_not_observed() {
    for column in [(RUN, "state"), (RUN, "ticks"), ("tick", "slot_time")] {
        let damaged = without(column);
        let before = Snapshot::open_storage(&damaged).unwrap();
        let last = before.parts(NODE).next().unwrap().last_tick();
        let (to, _) = repaired(&damaged);
        let store = Snapshot::open_storage(&to).unwrap();
        let (_, expected) = day();
        let (ticks, rows) = read(store.parts(NODE));
        let kept: Vec<_> = expected.0.into_iter().filter(|t| t.0 > last).collect();
        assert_eq!(difference(&ticks, &kept), None);
        assert!(rows.iter().all(|s| s.tick > last));
        let recorded = markers(&store);
        assert!(
            recorded
                .iter()
                .any(|m| m.ends_with("ticks with their samples were lost")),
            "{recorded:?}"
        );
    }
}

#[test]
fn a_damaged_log_becomes_a_sealed_file_with_a_marker() {
    let load = Load {
        trouble: 0,
        ..Load::default()
    };
    let mut sampler = Sampler::new(5, load);
    let mut frames = vec![sampler.hello(&[])];
    frames.extend((0..90).map(|_| sampler.frame().0));
    let mut header = crate::format::log::LogHeader::default();
    header.identity.node = NODE;
    let mut log = log_bytes(&header, &frames);
    let at = log.len() - frames[89].len() - frames[90].len() + 45;
    log[at] ^= 1;
    let damaged = MemoryStorage::new();
    let name = file_name(1, Kind::Log);
    damaged.put(&name, &log);
    let before = Snapshot::open_storage(&damaged).unwrap();
    let (to, done) = repaired(&damaged);
    let Outcome::Repaired { damage, .. } = &done[0].outcome else {
        panic!("{done:?}");
    };
    assert_eq!(damage[0].bytes, frames[89].len() as u64);
    assert_eq!(damaged.bytes_of(&name).unwrap(), log);
    assert_eq!(names(&to), [file_name(1, Kind::Sealed)]);
    let after = Snapshot::open_storage(&to).unwrap();
    let (was, is) = (read(before.parts(NODE)), read(after.parts(NODE)));
    assert_eq!(difference(&is.0, &was.0), None);
    assert_eq!(rows_difference(&is.1, &was.1), None);
    assert_eq!(markers(&after).len(), 1);
}

#[test]
fn an_empty_file_is_reported_and_the_others_are_kept() {
    let (storage, _) = sealed_files(6, 2, 20);
    storage.put("0000000001.tape", &[7; 500]);
    let (to, done) = repaired(&storage);
    assert!(matches!(&done[0].outcome, Outcome::Lost(_)), "{done:?}");
    assert_eq!(done[1].outcome, Outcome::Copied);
    assert_eq!(names(&to), ["0000000002.tape"]);
    let only = MemoryStorage::new();
    let one = repair(
        &storage,
        &only,
        Some("0000000002.tape"),
        &schema().with_runs(),
    )
    .unwrap();
    assert_eq!(one.len(), 1);
    assert_eq!(names(&only), ["0000000002.tape"]);
}

#[test]
fn a_full_target_is_an_error_and_leaves_no_half_file() {
    let (storage, _) = sealed_files(7, 1, 20);
    let mut bytes = storage.bytes_of("0000000001.tape").unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    storage.put("0000000001.tape", &bytes);
    for operation in 1..=5 {
        let to = MemoryStorage::new();
        to.fail_at(operation, std::io::ErrorKind::StorageFull);
        assert!(
            repair(&storage, &to, None, &schema().with_runs()).is_err(),
            "operation {operation}"
        );
        assert!(to.list().unwrap().iter().all(|e| !e.name.ends_with(".tmp")));
    }
}
