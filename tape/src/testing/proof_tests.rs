//! Faults around the writer and the reader: reads that fail at every call, merging and retention
//! between any two reads, crashes during retention.

use crate::files::directory::{Kind, Numbers, file_name};
use crate::files::storage::Storage;
use crate::format::frame::Frame;
use crate::format::log::LogHeader;
use crate::store::cache::Shared;
use crate::store::sealed_read::{BlockFile, Schemas};
use crate::store::snapshot::Snapshot;
use crate::store::tape::Tape;
use crate::testing::memory::{Crash, MemoryStorage};
use crate::testing::{Load, Sampler, Seen, difference, log_bytes, read, rows_difference};
use crate::write::clock::Now;
use crate::write::merge_tests::{NODE, Rows, check, go, sealed_files};
use crate::write::seal::seal_log;
use crate::write::writer::{Code, Writer};
use std::path::Path;
use std::sync::Arc;

/// A merged file and two sealed files.
fn history() -> (MemoryStorage, Rows) {
    let (storage, expected) = sealed_files(21, 5, 20);
    go(&storage, 3).unwrap().unwrap();
    (storage, expected)
}

/// Checks that every row that was read had been written, and comes once. Returns the number of
/// ticks.
fn check_subset(store: &Snapshot, expected: &Rows) -> usize {
    let whole = store.parts(NODE).filter(|part| {
        let tables = part.schema().tables.iter();
        let mut columns = tables.flat_map(|t| t.columns.iter().map(|c| (&t.name, &c.name)));
        // Rows without definitions cannot be compared.
        part.rows("session") > 0
            && columns.all(|(t, c)| part.ints(t, c).is_ok() && part.bytes(t, c).is_ok())
    });
    let (ticks, rows) = read(whole);
    let was: Vec<(u64, i64)> = expected
        .0
        .iter()
        .filter(|t| ticks.contains(t))
        .copied()
        .collect();
    assert_eq!(difference(&ticks, &was), None);
    let kept = |seen: &&Seen| ticks.iter().any(|t| t.0 == seen.tick);
    let was: Vec<Seen> = expected.1.iter().filter(kept).cloned().collect();
    assert_eq!(rows_difference(&rows, &was), None);
    ticks.len()
}

#[test]
fn a_failing_read_spares_the_rest_of_the_history() {
    let (storage, expected) = history();
    let whole = storage.after(Crash::Process);
    check(&whole, &expected);
    let calls = whole.reads();
    assert!(calls > 30);
    let mut errors = 0;
    for call in 1..=calls {
        let failing = storage.after(Crash::Process);
        failing.fail_read_at(call);
        // Without the list of the directory, nothing can be read.
        let Ok(store) = Snapshot::open_storage(&failing) else {
            errors += 1;
            continue;
        };
        let ticks = check_subset(&store, &expected);
        let is_reported = !store.damage().is_empty();
        assert!(is_reported || ticks > 0, "call {call}");
        // The files themselves are undamaged.
        check(&failing, &expected);
    }
    // The two lists of the directory.
    assert_eq!(errors, 2);
}

/// Reads every column. Damage must be an error, not a panic.
fn read_columns(store: &Snapshot) -> bool {
    let mut whole = true;
    for part in store.parts(NODE) {
        for table in &part.schema().tables {
            for column in &table.columns {
                whole &= part.ints(&table.name, &column.name).is_ok();
                whole &= part.bytes(&table.name, &column.name).is_ok();
            }
        }
    }
    whole
}

#[test]
fn damage_of_a_merged_file_is_reported_and_spares_the_other_groups() {
    let (storage, expected) = sealed_files(25, 6, 600);
    go(&storage, 6).unwrap().unwrap();
    let name = Numbers { first: 1, last: 6 }.name(Kind::Sealed);
    let bytes = storage.bytes_of(&name).unwrap();
    let groups = Snapshot::open_storage(&storage)
        .unwrap()
        .parts(NODE)
        .count();
    assert!(groups > 1);
    let all = expected.0.len();
    let (mut spared, mut step) = (0, 0);
    while step < bytes.len() {
        for cut in [false, true] {
            let damaged = MemoryStorage::new();
            let mut copy = bytes.clone();
            match cut {
                true => copy.truncate(step),
                false => copy[step] ^= 1 << (step % 8),
            }
            damaged.put(&name, &copy);
            let store = Snapshot::open_storage(&damaged).unwrap();
            let whole = read_columns(&store);
            let file = damaged.open(&name).unwrap();
            let block = BlockFile::open_whole(file, Path::new("x"), &mut Schemas::default());
            let found = block.and_then(|b| b.verify()).map_or(1, |d| d.len());
            let is_reported = !whole || !store.damage().is_empty() || found > 0;
            assert!(is_reported, "offset {step}, cut {cut}");
            // Data that is stored twice is still read.
            let ticks = check_subset(&store, &expected);
            spared += usize::from(ticks > 0);
            assert!(!whole || cut || ticks == all || !store.damage().is_empty());
        }
        step += 1 + bytes.len() / 100;
    }
    assert!(spared > 60, "{spared}");
}

#[test]
fn every_unreadable_page_is_reported_and_spares_the_rest() {
    let (storage, mut expected) = sealed_files(25, 6, 600);
    go(&storage, 6).unwrap().unwrap();
    let mut log = next_life(&expected);
    let mut frames = vec![log.hello(&[])];
    let base = expected.0.last().unwrap().0;
    for _ in 0..300 {
        let (frame, ticks, rows) = log.frame();
        frames.push(frame);
        expected.0.extend(ticks.iter().map(|t| (t.0 + base, t.1)));
        let rows = rows.into_iter().map(|mut seen| {
            seen.tick += base;
            seen
        });
        expected.1.extend(rows);
    }
    expected.1.sort();
    let mut header = LogHeader::default();
    (header.identity.node, header.tick_base) = (NODE, base);
    storage.put(&file_name(7, Kind::Log), &log_bytes(&header, &frames));
    check(&storage, &expected);
    let merged = Numbers { first: 1, last: 6 }.name(Kind::Sealed);
    for (name, least) in [(merged.clone(), 300), (file_name(7, Kind::Log), 600)] {
        let length = storage.bytes_of(&name).unwrap().len();
        assert!(length > 8 * 4_096, "{name}: {length}");
        for at in (0..length).step_by(4_096) {
            storage.lose_bytes(&name, at..at + 4_096);
            let fresh = Snapshot::open_storage(&storage).unwrap();
            let tape = Tape::of_storage(Arc::new(storage.clone()), &Shared::default());
            let followed = tape.refresh().unwrap();
            for store in [&fresh, &*followed] {
                let whole = read_columns(store);
                let file = storage.open(&name).unwrap();
                let block = BlockFile::open_whole(file, Path::new("x"), &mut Schemas::default());
                let found = block.and_then(|b| b.verify()).map_or(1, |d| d.len());
                let is_reported = !whole || !store.damage().is_empty() || found > 0;
                assert!(is_reported, "{name} at {at}");
                // Rows of a log may refer to lost definitions.
                let ticks = match name == merged {
                    true => check_subset(store, &expected),
                    false => {
                        let ticks = read(store.parts(NODE)).0;
                        assert!(ticks.iter().all(|tick| expected.0.contains(tick)));
                        ticks.len()
                    }
                };
                assert!(ticks >= least || at == 0, "{name} at {at}: {ticks}");
            }
        }
        storage.lose_bytes(&name, 0..0);
        check(&storage, &expected);
    }
}

fn writer(storage: &MemoryStorage) -> crate::Result<Writer> {
    Writer::open(Arc::new(storage.clone()), NODE)
}

/// A sampler that starts some time after this history.
fn next_life(expected: &Rows) -> Sampler {
    let load = Load {
        trouble: 0,
        ..Load::default()
    };
    let mut sampler = Sampler::new(77, load);
    sampler.slot_ms = expected.0.last().unwrap().1 + 60_000;
    sampler
}

fn send(writer: &mut Writer, storage: &MemoryStorage, bytes: &[u8], mono_ms: i64) -> Code {
    let frame = Frame::parse(bytes).unwrap().unwrap();
    let now = Now {
        wall_ms: 1_790_000_000_000 + mono_ms,
        mono_ms,
    };
    let code = writer.push(&frame, now);
    writer.flush(now, false);
    for job in writer.seal_jobs() {
        let result = seal_log(storage, job.number, job.until_sequence);
        writer.sealed(job, result);
    }
    code
}

#[test]
fn a_writer_that_cannot_read_at_its_start_hides_nothing() {
    let (storage, expected) = history();
    // The newest ticks are in a log that was never sealed.
    let mut first = writer(&storage).unwrap();
    let mut sampler = next_life(&expected);
    send(&mut first, &storage, &sampler.hello(&[]), 0);
    let mut expected = expected;
    let base = expected.0.last().unwrap().0;
    for n in 1..=5 {
        let (frame, ticks, _) = sampler.frame();
        assert_eq!(send(&mut first, &storage, &frame, n * 1_000), Code::Written);
        expected.0.extend(ticks.iter().map(|t| (t.0 + base, t.1)));
    }
    let probe = storage.after(Crash::Process);
    writer(&probe).unwrap();
    for call in 1..=probe.reads() {
        let failing = storage.after(Crash::Process);
        failing.fail_read_at(call);
        let Ok(mut writer) = writer(&failing) else {
            continue;
        };
        let mut sampler = next_life(&expected);
        sampler.incarnation = 78;
        send(&mut writer, &failing, &sampler.hello(&[]), 0);
        let mut slots = Vec::new();
        for n in 1..=3 {
            let (frame, ticks, _) = sampler.frame();
            assert_eq!(
                send(&mut writer, &failing, &frame, n * 1_000),
                Code::Written
            );
            slots.extend(ticks.iter().map(|t| t.1));
        }
        let store = Snapshot::open_storage(&failing).unwrap();
        let nodes: Vec<u64> = store.nodes().iter().map(|n| n.id).collect();
        let ticks: Vec<(u64, i64)> = nodes
            .iter()
            .rev()
            .flat_map(|n| read(store.parts(*n)).0)
            .collect();
        let old = &ticks[..ticks.len().saturating_sub(3)];
        assert_eq!(difference(old, &expected.0), None, "call {call}");
        let new: Vec<i64> = ticks.iter().rev().take(3).rev().map(|t| t.1).collect();
        assert_eq!(new, slots, "call {call}");
    }
}

#[test]
fn a_merge_between_any_two_reads_changes_nothing() {
    let (storage, expected) = sealed_files(22, 4, 20);
    let probe = storage.after(Crash::Process);
    check(&probe, &expected);
    for call in 1..=probe.reads() {
        let copy = storage.after(Crash::Process);
        copy.meanwhile(call, |other| drop(go(other, 4).unwrap().unwrap()));
        check(&copy, &expected);
        assert!(copy.bytes_of("0000000001-0000000004.tape").is_some());
    }
}

#[test]
fn retention_between_any_two_reads_takes_whole_files_only() {
    let (storage, expected) = sealed_files(23, 4, 20);
    let probe = storage.after(Crash::Process);
    check(&probe, &expected);
    for call in 1..=probe.reads() {
        let copy = storage.after(Crash::Process);
        copy.meanwhile(call, |other| {
            for number in [1, 2] {
                other
                    .remove(&Numbers::one(number).name(Kind::Sealed))
                    .unwrap();
            }
        });
        let store = Snapshot::open_storage(&copy).unwrap();
        let ticks = check_subset(&store, &expected);
        assert!([40, 60, 80].contains(&ticks), "call {call}: {ticks}");
        assert_eq!(store.damage(), [], "call {call}");
    }
}

#[test]
fn a_crash_during_retention_leaves_the_newest_files_whole() {
    let (storage, expected) = sealed_files(24, 6, 20);
    let run = |storage: &MemoryStorage| -> crate::Result<()> {
        let mut writer = writer(storage)?;
        let mut sampler = next_life(&expected);
        sampler.slot_ms += 3_500_000;
        let hello = sampler.hello(&[("retention_age_s", "3600"), ("min_free_space_mb", "0")]);
        send(&mut writer, storage, &hello, 0);
        for n in 1..=4 {
            // A step of the clock ends a log. The log is sealed, and then retention runs.
            sampler.slot_ms += i64::from(n == 3) * 5_000;
            send(&mut writer, storage, &sampler.frame().0, n * 1_000);
        }
        Ok(())
    };
    let whole = storage.after(Crash::Process);
    let begin = whole.operations();
    run(&whole).unwrap();
    let sealed = |storage: &MemoryStorage| -> Vec<u64> {
        let files = crate::files::directory::list(storage).unwrap();
        let files = files.iter().filter(|f| f.kind == Kind::Sealed);
        files.map(|f| f.numbers.first).collect()
    };
    assert!(!sealed(&whole).contains(&1), "{:?}", sealed(&whole));
    for operation in 0..=whole.operations() - begin {
        for crash in [Crash::Process, Crash::Machine, Crash::MachineHalf] {
            let crashed = storage.after(Crash::Process);
            crashed.stop_at(begin + operation);
            let _ = run(&crashed);
            let after = crashed.after(crash);
            let store = Snapshot::open_storage(&after).unwrap();
            assert_eq!(store.damage(), [], "operation {operation}");
            let last = expected.0.last().unwrap().0;
            let (ticks, _) = read(store.parts(NODE));
            let old: Vec<(u64, i64)> = ticks.into_iter().filter(|t| t.0 <= last).collect();
            let from = expected.0.len() - old.len();
            assert_eq!(from % 20, 0, "operation {operation}");
            assert_eq!(difference(&old, &expected.0[from..]), None);
            // The next writer continues normally.
            run(&after.after(Crash::Process)).unwrap();
        }
    }
}
