//! The writer on a storage in memory: restarts, crashes at every operation,
//! failures of every operation, retention, lack of space.

use crate::files::directory::{Kind, Numbers};
use crate::files::storage::Storage;
use crate::format::frame::Frame;
use crate::format::part::Part;
use crate::store::snapshot::Snapshot;
use crate::testing::memory::{Crash, MemoryStorage};
use crate::testing::{Load, Sampler, Seen, difference, read, rows_difference};
use crate::write::clock::Now;
use crate::write::merge::merge;
use crate::write::message::Message;
use crate::write::recover;
use crate::write::seal::seal_log;
use crate::write::writer::{Code, Writer};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

mod following;
mod marks;
mod removal;
mod sealing;

const NODE: u64 = 77;
const SLOT: i64 = 1_790_000_000_000;

/// A sampler with its writer, and the contents that readers must see so far.
struct Drive {
    storage: MemoryStorage,
    writer: Writer,
    sampler: Sampler,
    meta: Vec<(&'static str, &'static str)>,
    mono_ms: i64,
    sent: Vec<Sent>,
}

#[derive(Clone)]
struct Sent {
    sequence: u64,
    bytes: Vec<u8>,
    ticks: Vec<(u64, i64)>,
    seen: Vec<Seen>,
}

impl Drive {
    fn new(storage: &MemoryStorage, sampler: Sampler) -> Self {
        Drive::with(storage, sampler, &[("postmaster_start", "5")])
    }

    fn with(
        storage: &MemoryStorage,
        sampler: Sampler,
        meta: &[(&'static str, &'static str)],
    ) -> Self {
        let mut drive = Drive {
            storage: storage.clone(),
            writer: Writer::open(Arc::new(storage.clone()), NODE).unwrap(),
            sampler,
            meta: meta.to_vec(),
            mono_ms: 0,
            sent: Vec::new(),
        };
        drive.hello();
        drive
    }

    fn now(&self) -> Now {
        Now {
            wall_ms: SLOT + self.mono_ms,
            mono_ms: self.mono_ms,
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Code {
        let frame = Frame::parse(bytes).unwrap().unwrap();
        let now = self.now();
        self.writer.push(&frame, now)
    }

    fn hello(&mut self) {
        let hello = self.sampler.hello(&self.meta);
        assert_eq!(self.push(&hello), Code::Written);
    }

    /// The next frame of the sampler, not yet given to the writer.
    fn make(&mut self) -> Sent {
        let sequence = self.sampler.sequence;
        let (bytes, ticks, seen) = self.sampler.frame();
        let sent = Sent {
            sequence,
            bytes,
            ticks,
            seen,
        };
        self.sent.push(sent.clone());
        sent
    }

    /// Sends and flushes frames, then seals logs.
    fn send(&mut self, frames: usize) {
        for _ in 0..frames {
            let sent = self.make();
            assert_eq!(self.push(&sent.bytes), Code::Written);
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.mono_ms += 1_000;
        let now = self.now();
        self.writer.flush(now, false);
        self.seal();
    }

    fn seal(&mut self) {
        for job in self.writer.seal_jobs() {
            let result = seal_log(&self.storage, job.number, job.until_sequence);
            self.writer.sealed(job, result);
        }
        while let Some(job) = self.writer.merge_job() {
            let result = merge(&self.storage, &job, &AtomicBool::new(false));
            self.writer.merged(&job, result);
        }
    }

    /// Another writer takes over. The sampler sends again the frames that were not acknowledged.
    fn restart(&mut self, storage: &MemoryStorage, acknowledged: u64) {
        self.storage = storage.clone();
        self.writer = Writer::open(Arc::new(storage.clone()), NODE).unwrap();
        self.hello();
        self.seal();
        let again: Vec<Sent> = self
            .sent
            .iter()
            .filter(|s| s.sequence > acknowledged)
            .cloned()
            .collect();
        for sent in again {
            assert_eq!(self.push(&sent.bytes), Code::Written);
            self.turn();
        }
    }

    fn check(&self) {
        let store = Snapshot::open_storage(&self.storage).unwrap();
        let ticks: Vec<(u64, i64)> = self.sent.iter().flat_map(|s| s.ticks.clone()).collect();
        let mut seen: Vec<Seen> = self.sent.iter().flat_map(|s| s.seen.clone()).collect();
        seen.sort();
        let (got_ticks, got_seen) = read(store.parts(NODE));
        assert_eq!(difference(&got_ticks, &ticks), None);
        assert_eq!(rows_difference(&got_seen, &seen), None);
        assert_eq!(store.damage(), []);
        for part in store.parts(NODE) {
            assert_eq!((part.lost_definitions(), part.info().dropped_rows), (0, 0));
        }
    }

    fn files(&self, kind: Kind) -> Vec<u64> {
        let files = crate::files::directory::list(&self.storage).unwrap();
        let files = files.iter().filter(|f| f.kind == kind);
        files.map(|f| f.numbers.first).collect()
    }

    fn markers(&self) -> Vec<(String, i64, i64, String)> {
        let store = Snapshot::open_storage(&self.storage).unwrap();
        store.parts(NODE).flat_map(markers_of).collect()
    }
}

fn markers_of(part: &Part) -> Vec<(String, i64, i64, String)> {
    let column = |name| part.ints("marker", name).unwrap();
    let [kind, since, until, detail] = ["kind", "since", "until", "detail"].map(column);
    let names = part.bytes("name", "bytes").unwrap();
    let marker = |row: usize| {
        let label = part
            .schema()
            .label("marker", kind[row])
            .unwrap()
            .to_string();
        let detail = match detail[row] {
            0 => String::new(),
            r => String::from_utf8_lossy(names.get(r as usize - 1)).into_owned(),
        };
        (label, since[row], until[row], detail)
    };
    (0..kind.len()).map(marker).collect()
}

fn sampler(seed: u64) -> Sampler {
    let load = Load {
        sessions: 4,
        trouble: 0,
        queries: 5,
        ..Load::default()
    };
    Sampler::new(seed, load)
}

/// The next life of the sampler, some seconds later.
fn next_life(drive: &Drive, seed: u64, pause_ms: i64) -> Sampler {
    let mut next = sampler(seed);
    next.slot_ms = drive.sampler.slot_ms + pause_ms;
    next.tick_base = drive.sent.last().unwrap().ticks.last().unwrap().0;
    next
}

#[test]
fn a_log_is_sealed_every_ten_minutes_and_nothing_is_lost() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(1));
    drive.send(1_250);
    assert_eq!(drive.files(Kind::Sealed), [1, 2]);
    assert_eq!(drive.files(Kind::Log), [3]);
    drive.check();
    assert_eq!(drive.writer.messages(), []);
    let store = Snapshot::open_storage(&storage).unwrap();
    let bounds: Vec<_> = store
        .parts(NODE)
        .map(|p| (p.first_tick(), p.last_tick()))
        .collect();
    assert_eq!(bounds, [(1, 600), (601, 1_200), (1_201, 1_250)]);
    let on_disk: u64 = storage.list().unwrap().iter().map(|e| e.bytes).sum();
    let node = storage.bytes_of("node").unwrap().len() as u64;
    assert_eq!(drive.writer.bytes(), on_disk - node);
}

#[test]
fn the_blocks_of_a_finished_day_become_one_file() {
    let storage = MemoryStorage::new();
    let mut before_midnight = sampler(20);
    before_midnight.slot_ms = 1_790_033_700_000;
    let mut drive = Drive::new(&storage, before_midnight);
    drive.send(2_390);
    assert_eq!(drive.files(Kind::Sealed), [1, 2, 3]);
    drive.send(110);
    let day = Numbers { first: 1, last: 3 };
    let sealed = |storage: &MemoryStorage| -> Vec<Numbers> {
        let files = crate::files::directory::list(storage).unwrap();
        let files = files.into_iter().filter(|f| f.kind == Kind::Sealed);
        files.map(|f| f.numbers).collect()
    };
    assert_eq!(sealed(&storage), [day, Numbers::one(4)]);
    drive.check();
    assert_eq!(drive.writer.messages(), []);
    let on_disk: u64 = storage.list().unwrap().iter().map(|e| e.bytes).sum();
    let node = storage.bytes_of("node").unwrap().len() as u64;
    assert_eq!(drive.writer.bytes(), on_disk - node);
    // The next writer continues where this one ended, and merges no file twice.
    let after = storage.after(Crash::Process);
    drive.restart(&after, 2_450);
    drive.send(5);
    drive.check();
    assert_eq!(sealed(&after), [day, Numbers::one(4), Numbers::one(5)]);
}

#[test]
fn without_room_for_a_merge_the_blocks_stay() {
    let storage = MemoryStorage::new();
    let mut before_midnight = sampler(21);
    before_midnight.slot_ms = 1_790_033_700_000;
    let mut drive = Drive::with(&storage, before_midnight, &[("min_free_space_mb", "1")]);
    storage.set_free((1 << 20) + 1_000);
    drive.send(2_500);
    assert_eq!(drive.files(Kind::Sealed), [1, 2, 3, 4]);
    drive.check();
    storage.set_free(1 << 30);
    drive.send(600);
    assert_eq!(drive.files(Kind::Sealed), [1, 4, 5]);
    drive.check();
}

#[test]
fn a_new_writer_skips_the_frames_it_finds() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(2));
    drive.send(30);
    for acknowledged in [30, 12, 0] {
        let after = storage.after(Crash::Process);
        drive.restart(&after, acknowledged);
        drive.check();
        drive.send(5);
        drive.check();
        drive.sent.truncate(30);
        drive.sampler = sampler(2);
        for _ in 0..30 {
            drive.sampler.frame();
        }
    }
    assert_eq!(drive.markers(), []);
}

#[test]
fn ticks_continue_in_the_next_life_and_the_gap_has_exact_bounds() {
    let causes = [
        (true, "5", "recording was off"),
        (false, "5", "crash recovery"),
        (true, "6", "server was stopped"),
        (false, "6", "server was killed or the machine failed"),
    ];
    for (stopping, postmaster_start, cause) in causes {
        let storage = MemoryStorage::new();
        let mut drive = Drive::new(&storage, sampler(3));
        drive.send(10);
        drive.sampler.stopping = stopping;
        drive.send(1);
        let next = next_life(&drive, 4, 42_000);
        let mut second = Drive::with(&storage, next, &[("postmaster_start", postmaster_start)]);
        second.sent = drive.sent.clone();
        second.seal();
        second.send(5);
        second.check();
        let gaps: Vec<_> = second
            .markers()
            .into_iter()
            .filter(|m| m.0 == "gap")
            .collect();
        let since = SLOT + 11_000;
        assert_eq!(
            gaps,
            [("gap".to_string(), since, since + 42_000, cause.to_string())]
        );
    }
}

#[test]
fn lost_frames_are_a_gap() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(5));
    drive.send(10);
    for _ in 0..3 {
        drive.sampler.frame();
    }
    // Definitions in the lost frames are lost, too.
    let sent = drive.make();
    assert_eq!(drive.push(&sent.bytes), Code::Written);
    let detail = "3 frames were lost".to_string();
    let gap = ("gap".to_string(), SLOT + 10_000, SLOT + 13_000, detail);
    assert_eq!(drive.markers(), [gap]);
}

#[test]
fn a_step_of_the_clock_closes_the_log_and_deletes_nothing() {
    let (hour, year) = (3_600_000, 365 * 86_400_000_i64);
    for step in [hour, -hour, year, -year] {
        let storage = MemoryStorage::new();
        let limits = [("retention_age_s", "604800"), ("min_free_space_mb", "0")];
        let mut drive = Drive::with(&storage, sampler(6), &limits);
        drive.send(10);
        let before = drive.sampler.slot_ms;
        drive.sampler.slot_ms += step;
        drive.send(10);
        drive.check();
        assert_eq!(drive.files(Kind::Sealed), [1]);
        let markers = drive.markers();
        assert_eq!(markers.len(), 1);
        assert_eq!(
            (markers[0].0.as_str(), markers[0].2),
            ("clock step", before + step)
        );
        let way = if step > 0 { "forward" } else { "back" };
        let detail = format!("the clock was set {way} by ");
        let by = markers[0].3.strip_prefix(&detail).unwrap();
        let seconds: i64 = by.split(['.', ' ']).next().unwrap().parse().unwrap();
        assert!((step.abs() / 1_000 - seconds).abs() <= 1, "{by}");
        // The logs after the step are sealed. Each sealing runs retention, which judges the age of
        // files.
        drive.send(1_300);
        drive.check();
        assert_eq!(drive.files(Kind::Sealed).len(), 3);
    }
}

#[test]
fn a_crash_after_any_operation_loses_nothing_that_was_acknowledged() {
    // Runs the writer until storage operation number `last`; all later ones fail, as in a crash.
    // Returns the drive and two frame numbers, 0 = no frame. The first is the last frame that the
    // writer acknowledged. The second is the last frame acknowledged more than 5 s (the flush
    // interval) before the crash: it must survive a power failure.
    let run = |storage: &MemoryStorage, last: usize| {
        let mut drive = Drive::new(storage, sampler(7));
        let mut acknowledged: Vec<(i64, u64)> = Vec::new();
        let mut died_ms = None;
        let mut look = |storage: &MemoryStorage, mono_ms: i64| {
            let dead = storage.operations() > last;
            died_ms = died_ms.or(dead.then_some(mono_ms));
        };
        for n in 0..24 {
            if n == 12 {
                drive.sampler.slot_ms += 5_000;
            }
            let sent = drive.make();
            if drive.push(&sent.bytes) == Code::Written {
                acknowledged.push((drive.mono_ms, sent.sequence));
            }
            look(storage, drive.mono_ms);
            for _ in 0..3 {
                drive.mono_ms += 1_000;
                let now = drive.now();
                drive.writer.flush(now, false);
                look(storage, drive.mono_ms);
            }
            drive.seal();
            look(storage, drive.mono_ms);
        }
        let died_ms = died_ms.unwrap_or(drive.mono_ms);
        let old = acknowledged.iter().filter(|a| a.0 + 5_000 < died_ms);
        let old = old.map(|a| a.1).max().unwrap_or(0);
        (drive, acknowledged.last().map_or(0, |a| a.1), old)
    };
    let storage = MemoryStorage::new();
    drop(Drive::new(&storage, sampler(7)));
    let whole = storage.after(Crash::Process);
    let (drive, ..) = run(&whole, usize::MAX);
    drive.check();
    let operations = whole.operations();
    assert!(operations > 40);
    for operation in storage.operations()..=operations {
        let crashed = storage.after(Crash::Process);
        crashed.stop_at(operation);
        let (mut drive, acknowledged, old) = run(&crashed, operation);
        drive.restart(&crashed.after(Crash::Process), acknowledged);
        drive.check();
        for crash in [Crash::Machine, Crash::MachineHalf] {
            // The machine failed, and the sampler with it. A prefix of the frames is left. It has
            // all frames that are older than the flush interval.
            let after = crashed.after(crash);
            let (ticks, seen) = read(Snapshot::open_storage(&after).unwrap().parts(NODE));
            let all: Vec<(u64, i64)> = drive.sent.iter().flat_map(|s| s.ticks.clone()).collect();
            assert_eq!(ticks, all[..ticks.len()], "operation {operation}");
            assert!(
                ticks.len() as u64 >= old,
                "operation {operation} {crash:?}: {} < {old}",
                ticks.len()
            );
            let mut expected: Vec<Seen> = drive.sent.iter().flat_map(|s| s.seen.clone()).collect();
            expected.retain(|s| s.tick <= ticks.len() as u64);
            expected.sort();
            assert_eq!(rows_difference(&seen, &expected), None);
            let mut next = Drive::new(&after, next_life(&drive, 8, 60_000));
            next.sampler.tick_base = ticks.len() as u64;
            next.seal();
            next.send(3);
            let part_ticks = read(Snapshot::open_storage(&after).unwrap().parts(NODE)).0;
            assert_eq!(part_ticks.len(), ticks.len() + 3);
        }
    }
}

#[test]
fn a_failing_operation_loses_nothing_and_is_reported() {
    let storage = MemoryStorage::new();
    drop(Drive::new(&storage, sampler(9)));
    let run = |storage: &MemoryStorage| {
        let mut drive = Drive::new(storage, sampler(9));
        for n in 0..16 {
            if n == 8 {
                drive.sampler.slot_ms += 5_000;
            }
            let sent = drive.make();
            let mut attempts = 0;
            while drive.push(&sent.bytes) != Code::Written {
                attempts += 1;
                assert!(attempts < 3);
            }
            drive.mono_ms += 3_000;
            let now = drive.now();
            drive.writer.flush(now, false);
            drive.seal();
        }
        drive
    };
    let whole = storage.after(Crash::Process);
    run(&whole);
    for operation in storage.operations() + 1..=whole.operations() {
        for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
            let failing = storage.after(Crash::Process);
            failing.fail_at(operation, kind);
            let mut drive = run(&failing);
            drive.check();
            // Only the removal of a left-over temporary file may fail without a message.
            assert!(!drive.writer.messages().is_empty(), "operation {operation}");
            let after = failing.after(Crash::Process);
            drive.restart(&after, 16);
            drive.check();
            assert_eq!(drive.files(Kind::Temporary), [0; 0]);
        }
    }
}

#[test]
fn without_space_recording_pauses_and_resumes_with_markers() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(10));
    drive.send(5);
    storage.set_free(1);
    drive.mono_ms += 5_000;
    let paused_at = drive.now().wall_ms;
    let sent = drive.make();
    assert_eq!(drive.push(&sent.bytes), Code::Paused);
    assert_eq!(drive.push(&sent.bytes), Code::Paused);
    let paused = Message::Trouble("less than 1024 MB are free".into());
    assert_eq!(drive.writer.messages(), [paused]);
    assert_eq!(drive.writer.written().1, 5);
    storage.set_free(1 << 40);
    drive.mono_ms += 5_000;
    assert_eq!(drive.push(&sent.bytes), Code::Written);
    assert_eq!(drive.writer.messages(), []);
    drive.check();
    let kinds: Vec<_> = drive
        .markers()
        .into_iter()
        .map(|m| (m.0, m.1, m.2))
        .collect();
    let period = (paused_at, paused_at + 5_000);
    let expected = ["recording paused", "recording resumed"];
    assert_eq!(kinds, expected.map(|k| (k.to_string(), period.0, period.1)));
}

#[test]
fn a_pause_names_the_limit_for_who_can_change_it() {
    for (started_by, name) in [
        ("postmaster", "tacho.min_free_space"),
        ("recorder", "--min-free-space"),
    ] {
        let storage = MemoryStorage::new();
        let mut drive = Drive::with(&storage, sampler(10), &[("started_by", started_by)]);
        drive.send(5);
        storage.set_free(1);
        drive.mono_ms += 5_000;
        let sent = drive.make();
        assert_eq!(drive.push(&sent.bytes), Code::Paused);
        storage.set_free(1 << 40);
        drive.mono_ms += 5_000;
        assert_eq!(drive.push(&sent.bytes), Code::Written);
        let details: Vec<_> = drive.markers().into_iter().map(|m| m.3).collect();
        let expected = format!("less than 1024 MB are free, see {name}");
        assert_eq!(details, [expected.clone(), expected]);
    }
}

#[test]
fn a_pause_is_known_to_the_writer_of_the_next_life() {
    let causes = [
        ("5", "recording was paused for lack of space"),
        (
            "6",
            "the server ended while recording was paused for lack of space",
        ),
    ];
    for (postmaster_start, cause) in causes {
        let storage = MemoryStorage::new();
        let mut drive = Drive::new(&storage, sampler(10));
        drive.send(5);
        storage.set_free(1);
        drive.mono_ms += 5_000;
        let paused_at = drive.now().wall_ms;
        let sent = drive.make();
        assert_eq!(drive.push(&sent.bytes), Code::Paused);
        drive.sent.pop();
        storage.set_free(1 << 40);
        let next = next_life(&drive, 4, 42_000);
        let after = storage.after(Crash::Process);
        let mut second = Drive::with(&after, next, &[("postmaster_start", postmaster_start)]);
        second.mono_ms = 60_000;
        second.sent = drive.sent.clone();
        second.send(5);
        second.check();
        let marker = |kind: &str, since, until, detail: &str| {
            (kind.to_string(), since, until, detail.to_string())
        };
        let (full, resumed_at) = ("not enough space for history", SLOT + 60_000);
        let expected = [
            marker("gap", SLOT + 5_000, SLOT + 48_000, cause),
            marker("recording paused", paused_at, resumed_at, full),
            marker("recording resumed", paused_at, resumed_at, full),
        ];
        assert_eq!(second.markers(), expected);
        // A crash came before the file of the pause was removed.
        let mark = crate::files::directory::file_mark(paused_at);
        assert_eq!(after.bytes_of(&mark), None);
        after.put(&mark, b"");
        let again = after.after(Crash::Process);
        second.restart(&again, second.sampler.sequence - 1);
        second.send(5);
        second.check();
        assert_eq!(second.markers(), expected);
        assert_eq!(again.bytes_of(&mark), None);
    }
}

#[test]
fn frames_that_went_to_a_directory_that_is_gone_are_a_gap() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::with(&storage, sampler(12), &[("postmaster_start", "5000000")]);
    drive.send(10);
    drive.sent.clear();
    drive.sampler.forget();
    drive.restart(&MemoryStorage::new(), 10);
    drive.send(5);
    drive.check();
    let moved = "the directory was removed or replaced".to_string();
    let gap = ("gap".to_string(), 5_000, SLOT + 10_000, moved);
    assert_eq!(drive.markers(), [gap]);
}

#[test]
fn a_disk_filled_by_others_destroys_no_history() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(11));
    drive.send(1_900);
    assert_eq!(drive.files(Kind::Sealed), [1, 2, 3]);
    // Removing the whole history would not free enough space.
    storage.set_free(0);
    let sent = drive.make();
    for _ in 0..100 {
        drive.mono_ms += 5_000;
        assert_eq!(drive.push(&sent.bytes), Code::Paused);
    }
    storage.set_free(1 << 40);
    assert_eq!(drive.push(&sent.bytes), Code::Written);
    assert_eq!(drive.files(Kind::Sealed), [1, 2, 3]);
    drive.check();
}

#[test]
fn below_the_free_space_the_oldest_file_goes_when_that_helps() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(11));
    drive.send(1_900);
    let gone = "/memory/0000000001.tape";
    storage.set_free((1 << 30) - 100);
    let warning = format!(
        "removed the oldest history file \"{gone}\": free space is 100 bytes below \"tacho.min_free_space\""
    );
    // The file system reports the freed space late.
    drive.send(8);
    assert_eq!(drive.files(Kind::Sealed), [2, 3]);
    assert_eq!(drive.writer.messages(), [Message::Warning(warning)]);
    storage.set_free(1 << 40);
    drive.send(20);
    assert_eq!(drive.files(Kind::Sealed), [2, 3]);
    drive.sent.drain(..600);
    drive.check();
}

#[test]
fn the_size_limit_removes_the_oldest_files() {
    let storage = MemoryStorage::new();
    let limit = [("retention_size_mb", "1"), ("min_free_space_mb", "0")];
    let mut load = sampler(12);
    load = {
        let slot_ms = load.slot_ms;
        let wide = Load {
            sessions: 60,
            active: 100,
            same: 0,
            trouble: 0,
            ..Load::default()
        };
        let mut wide = Sampler::new(12, wide);
        wide.slot_ms = slot_ms;
        wide
    };
    let mut drive = Drive::with(&storage, load, &limit);
    drive.send(6_000);
    assert!(drive.writer.bytes() <= 1 << 20);
    assert!(drive.writer.bytes() > 1 << 19);
    // The longest log has a sixteenth of the limit, so 16 files or more remain.
    let sealed = drive.files(Kind::Sealed);
    assert!(sealed[0] > 1 && sealed.len() > 15);
    let store = Snapshot::open_storage(&storage).unwrap();
    let first = store.parts(NODE).next().unwrap().first_tick();
    let kept: Vec<Sent> = drive
        .sent
        .iter()
        .filter(|s| s.ticks[0].0 >= first)
        .cloned()
        .collect();
    drive.sent = kept;
    drive.check();
}

#[test]
fn the_age_limit_removes_old_files_but_believes_no_jump() {
    let storage = MemoryStorage::new();
    let limit = [("retention_age_s", "900")];
    let mut drive = Drive::with(&storage, sampler(13), &limit);
    drive.send(1_801);
    assert_eq!(drive.files(Kind::Sealed), [2, 3]);
    drive.send(600);
    assert_eq!(drive.files(Kind::Sealed), [3, 4]);
    // The clock jumps by a year. The log before the jump is sealed, then the log after it.
    // Retention removes no file either time.
    drive.sampler.slot_ms += 365 * 86_400_000;
    drive.send(1);
    assert_eq!(drive.files(Kind::Sealed), [3, 4, 5]);
    drive.send(600);
    // The day before the jump is over: 3, 4 and 5 are one file.
    assert_eq!(drive.files(Kind::Sealed), [3, 6]);
    drive.sent.drain(..1_200);
    drive.check();
}

#[test]
fn a_copied_directory_begins_a_node_of_its_own() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(14));
    drive.send(20);
    let copy = storage.copied();
    let mut writer = Writer::open(Arc::new(copy.clone()), 99).unwrap();
    let mut other = sampler(15);
    other.slot_ms += 100_000;
    let hello = other.hello(&[]);
    for bytes in [hello, other.frame().0] {
        let frame = Frame::parse(&bytes).unwrap().unwrap();
        assert_eq!(writer.push(&frame, Now::default()), Code::Written);
    }
    let store = Snapshot::open_storage(&copy).unwrap();
    let nodes: Vec<u64> = store.nodes().iter().map(|n| n.id).collect();
    assert_eq!(nodes, [99, NODE]);
    assert_eq!(store.own_node(), Some(99));
    let first = store.parts(99).next().unwrap();
    assert_eq!(first.first_tick(), 1);
    let markers: Vec<_> = markers_of(first).into_iter().map(|m| (m.0, m.3)).collect();
    let why =
        "the directory was copied from \"/memory\"; the copied history is node 000000000000004d";
    assert_eq!(markers, [("new node".into(), why.to_string())]);
    assert_eq!(store.answering(99), [99]);
    drive.storage = copy;
    drive.check();
}

#[test]
fn a_restored_directory_answers_from_its_files() {
    let server = [("system_identifier", "7"), ("postmaster_start", "5")];
    let storage = MemoryStorage::new();
    let mut drive = Drive::with(&storage, sampler(14), &server);
    drive.send(20);
    let mut end_ms = drive.sampler.slot_ms;
    for (number, seed) in [(99, 15), (100, 16)] {
        drive.storage = drive.storage.restored();
        drive.writer = Writer::open(Arc::new(drive.storage.clone()), number).unwrap();
        let messages = drive.writer.messages();
        assert!(
            matches!(messages[..], [Message::Warning(_)]),
            "{messages:?}"
        );
        drive.sampler = sampler(seed);
        drive.sampler.slot_ms = end_ms + 60_000;
        drive.hello();
        drive.send(5);
        let store = Snapshot::open_storage(&drive.storage).unwrap();
        let markers: Vec<_> = markers_of(store.parts(number).next().unwrap());
        let gap = ("gap".to_string(), end_ms, end_ms + 60_000);
        assert_eq!(markers[0].0, "new node");
        assert_eq!((markers[1].0.clone(), markers[1].1, markers[1].2), gap);
        end_ms = drive.sampler.slot_ms;
    }
    let store = Snapshot::open_storage(&drive.storage).unwrap();
    assert_eq!(store.answering(100), [100, 99, NODE]);
    let ticks = |node: &u64| read(store.parts(*node)).0.len();
    let ticks: Vec<usize> = store.answering(100).iter().map(ticks).collect();
    assert_eq!(ticks, [5, 5, 20]);
    // A node of another server does not continue the history of these nodes.
    assert_eq!(store.answering(1), [1]);
}

#[test]
fn a_setting_that_arrives_later_is_obeyed() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(16));
    drive.send(1);
    assert_eq!(drive.writer.flush_in_ms(drive.now()), Some(4_000));
    let mut frame =
        crate::format::frame::FrameBuilder::new(crate::format::frame::DATA, 16, 2, SLOT);
    crate::format::hello::write_meta(
        &mut frame,
        &[("flush_interval_ms", "60000"), ("timeline", "x")],
    );
    let bytes = frame.finish();
    assert_eq!(drive.push(&bytes), Code::Written);
    assert_eq!(drive.writer.flush_in_ms(drive.now()), Some(59_000));
    let message = Message::Warning("invalid value for \"timeline\": \"x\"".into());
    assert_eq!(drive.writer.messages(), [message]);
    assert_eq!(drive.writer.written(), (16, 2));
}

#[test]
fn a_tick_at_an_impossible_time_is_no_step_of_the_clock() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(6));
    drive.send(10);
    drive.sampler.slot_ms = i64::MIN + 3_600_000;
    let sent = drive.make();
    assert_eq!(drive.push(&sent.bytes), Code::Written);
    assert_eq!(drive.files(Kind::Sealed), Vec::<u64>::new());
    assert_eq!(drive.markers(), []);
}
