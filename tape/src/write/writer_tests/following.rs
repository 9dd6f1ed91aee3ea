//! A tape that is refreshed while the writer appends, fails, seals, merges, removes and begins
//! again.

use super::*;
use crate::files::directory::file_name;
use crate::query::{Field, QueryResult, Sink, UNDEFINED_FILE, Value};
use crate::store::cache::Shared;
use crate::store::snapshot::Snapshot;
use crate::store::tape::Tape;
use crate::testing::{Arguments, run, run_now};
use proptest::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Five ticks make a log, 720 a day.
const INTERVAL_MS: i64 = 120_000;

/// Actions of the writer between two refreshes, or during one.
#[derive(Clone, Copy, Debug)]
enum Step {
    Frames(usize),
    /// An operation fails while a frame is written.
    Failure(usize),
    Seal,
    Merge,
    /// Another writer takes over, and gets the last frames again.
    Restart(u64),
    /// Another life of the sampler.
    Life,
    /// The clock is set forward or back by this many minutes.
    Clock(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..40usize).prop_map(Step::Frames),
        2 => (1..5usize).prop_map(Step::Failure),
        4 => Just(Step::Seal),
        3 => Just(Step::Merge),
        1 => (0..9u64).prop_map(Step::Restart),
        1 => Just(Step::Life),
        1 => (-90..90i64).prop_map(Step::Clock),
    ]
}

/// A sampler with this interval.
fn slow(seed: u64) -> Sampler {
    let load = Load {
        sessions: 3,
        interval_ms: INTERVAL_MS,
        ..Load::default()
    };
    Sampler::new(seed, load)
}

/// The writer, and all ticks that were sent to it.
struct Recorder {
    drive: Drive,
    /// Ticks of earlier lives.
    before: Vec<u64>,
}

impl Recorder {
    fn new(seed: u64) -> Self {
        let storage = MemoryStorage::new();
        let limits = [("retention_age_s", "43200"), ("min_free_space_mb", "0")];
        Recorder {
            drive: Drive::with(&storage, slow(seed), &limits),
            before: Vec::new(),
        }
    }

    fn ticks(&self) -> Vec<u64> {
        let sent = self.drive.sent.iter().flat_map(|s| &s.ticks);
        let sent = sent.map(|tick| tick.0);
        self.before.iter().copied().chain(sent).collect()
    }

    fn frame(&mut self) {
        let sent = self.drive.make();
        while self.drive.push(&sent.bytes) != Code::Written {
            self.drive.mono_ms += INTERVAL_MS;
        }
        self.drive.mono_ms += INTERVAL_MS;
        let now = self.drive.now();
        self.drive.writer.flush(now, false);
    }

    fn take(&mut self, step: Step) {
        let drive = &mut self.drive;
        match step {
            Step::Frames(frames) => (0..frames).for_each(|_| self.frame()),
            Step::Failure(operation) => {
                let operation = drive.storage.operations() + operation;
                drive.storage.fail_at(operation, ErrorKind::StorageFull);
                self.frame();
            }
            Step::Seal => {
                for job in drive.writer.seal_jobs() {
                    let result = seal_log(&drive.storage, job.number, job.until_sequence);
                    drive.writer.sealed(job, result);
                }
            }
            Step::Merge => {
                if let Some(job) = drive.writer.merge_job() {
                    let result = merge(&drive.storage, &job, &AtomicBool::new(false));
                    drive.writer.merged(&job, result);
                }
            }
            Step::Restart(again) => {
                let last = drive.sampler.sequence - 1;
                let storage = drive.storage.clone();
                drive.restart(&storage, last.saturating_sub(again));
            }
            Step::Life => {
                self.before = self.ticks();
                let mut sampler = slow(self.drive.sampler.incarnation + 1);
                sampler.slot_ms = self.drive.sampler.slot_ms + 3 * INTERVAL_MS;
                sampler.tick_base = self.before.last().copied().unwrap_or(0);
                let storage = self.drive.storage.clone();
                let mono_ms = self.drive.mono_ms;
                self.drive = Drive::with(&storage, sampler, &self.drive.meta.clone());
                self.drive.mono_ms = mono_ms;
            }
            Step::Clock(minutes) => drive.sampler.slot_ms += minutes * 60_000,
        }
    }
}

type Seen = (Vec<(u64, i64)>, Vec<crate::testing::Seen>);

/// All rows of a snapshot, and its status.
fn seen(snapshot: &Snapshot) -> (Seen, Vec<String>) {
    let markers = snapshot.parts(NODE).flat_map(markers_of);
    let lost = snapshot.parts(NODE).map(|part| {
        let info = part.info();
        (info.lost_definitions, info.dropped_rows)
    });
    let lost = lost.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    let status = [
        format!("{:?}", markers.collect::<Vec<_>>()),
        format!("{lost:?} {:?} {:?}", snapshot.damage(), snapshot.own_node()),
    ];
    (read(snapshot.parts(NODE)), status.to_vec())
}

/// Checks that the ticks of a snapshot are consecutive sent ticks, each once. Returns the last one.
fn check_ticks(snapshot: &Snapshot, sent: &[u64]) -> u64 {
    let (ticks, _) = read(snapshot.parts(NODE));
    let ticks: Vec<u64> = ticks.iter().map(|tick| tick.0).collect();
    let Some(first) = ticks.first() else {
        return 0;
    };
    let from = sent.iter().position(|tick| tick == first).unwrap();
    assert_eq!(difference(&ticks, &sent[from..from + ticks.len()]), None);
    ticks[ticks.len() - 1]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_follower_sees_each_tick_once_like_a_fresh_reader(
        seed in 0..u64::MAX / 2,
        steps in prop::collection::vec((step(), prop::option::of(0..12usize)), 1..40),
        files in prop_oneof![Just(224), 1..4usize],
    ) {
        let recorder = Arc::new(Mutex::new(Recorder::new(seed)));
        let storage = recorder.lock().unwrap().drive.storage.clone();
        let shared = Shared::with_files(1 << 20, files);
        let tape = Tape::of_storage(Arc::new(storage.clone()), &shared);
        let (mut followed, mut kept) = (Vec::new(), Vec::new());
        for (number, (step, middle)) in steps.into_iter().enumerate() {
            match middle {
                None => recorder.lock().unwrap().take(step),
                Some(read) => {
                    let during = recorder.clone();
                    let what = move |_: &MemoryStorage| during.lock().unwrap().take(step);
                    storage.meanwhile(storage.reads() + 1 + read, what);
                    let snapshot = tape.refresh().unwrap();
                    storage.meanwhile(usize::MAX, |_| ());
                    prop_assert_eq!(snapshot.damage(), &[]);
                    // With few open files, a file that was removed since cannot be read.
                    if files == 224 {
                        let last = check_ticks(&snapshot, &recorder.lock().unwrap().ticks());
                        prop_assert!(last >= followed.last().copied().unwrap_or(0));
                    }
                }
            }
            let snapshot = tape.refresh().unwrap();
            prop_assert!(Arc::ptr_eq(&snapshot, &tape.refresh().unwrap()));
            let (rows, status) = seen(&snapshot);
            let fresh = seen(&Snapshot::open_storage(&storage).unwrap());
            prop_assert_eq!(difference(&rows.0, &fresh.0.0), None);
            prop_assert_eq!(difference(&rows.1, &fresh.0.1), None);
            prop_assert_eq!(&status, &fresh.1);
            let last = followed.last().copied().unwrap_or(0);
            followed.extend(rows.0.iter().map(|tick| tick.0).filter(|tick| *tick > last));
            if number % 8 == 3 && files == 224 {
                kept.push((snapshot, (rows, status)));
            }
        }
        let sent = recorder.lock().unwrap().ticks();
        prop_assert_eq!(difference(&followed, &sent), None);
        // Merging, removing and writing did not change an old snapshot.
        for (snapshot, before) in kept {
            prop_assert_eq!(seen(&snapshot), before);
        }
    }
}

#[derive(Default)]
struct Answer(Vec<String>);

impl Sink for Answer {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.0.push(fields.iter().map(|f| f.0).collect());
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.0.push(format!("{values:?}"));
        Ok(())
    }
}

/// Answers of some functions.
fn answers(snapshot: &Snapshot, now_ms: i64) -> Vec<String> {
    let catalog = crate::testing::schema();
    let mut answer = Answer::default();
    let names = ["top", "timeline", "aas", "samples", "sessions", "blocking"];
    for name in names {
        let spec = Arguments {
            dimension: Some("wait_event".into()).filter(|_| name == "top"),
            ..Arguments::new(&catalog, now_ms * 1_000)
        };
        run(name, &spec, snapshot, &mut answer).unwrap();
    }
    answer.0
}

#[test]
fn a_snapshot_answers_while_its_files_exist_or_are_open() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(12));
    drive.send(2_500);
    let now_ms = drive.sampler.slot_ms;
    let names: Vec<String> = storage
        .list()
        .unwrap()
        .into_iter()
        .map(|e| e.name)
        .collect();
    assert!(names.iter().filter(|n| n.ends_with(".tape")).count() >= 3);
    let catalog = crate::testing::schema();
    let spec = Arguments {
        dimension: Some("wait_event".into()),
        ..Arguments::new(&catalog, now_ms * 1_000)
    };
    let top = |snapshot: &Snapshot| {
        let mut answer = Answer::default();
        run("top", &spec, snapshot, &mut answer).map(|()| answer.0)
    };
    let fresh = |storage: &MemoryStorage| top(&Snapshot::open_storage(storage).unwrap()).unwrap();
    let expected = fresh(&storage);
    let other = storage.bytes_of(&names[0]).unwrap();
    let remove = |storage: &MemoryStorage| storage.remove(&names[1]).unwrap();
    let replace = |storage: &MemoryStorage| storage.put(&names[1], &other);
    let changes: [&dyn Fn(&MemoryStorage); 2] = [&remove, &replace];
    for change in changes {
        for files in [1, 224] {
            let storage = storage.after(Crash::Process);
            // No column stays in memory.
            let shared = Shared::with_files(0, files);
            let tape = Tape::of_storage(Arc::new(storage.clone()), &shared);
            let before = tape.refresh().unwrap();
            assert_eq!(top(&before).unwrap(), expected);
            change(&storage);
            match files {
                224 => assert_eq!(top(&before).unwrap(), expected),
                _ => {
                    let gone = top(&before).unwrap_err();
                    assert_eq!(gone.sqlstate, UNDEFINED_FILE, "{gone}");
                    let hint = "The file was merged or removed after the history was opened. Repeat the query.";
                    assert_eq!(gone.hint.as_deref(), Some(hint));
                }
            }
            // `run_now` starts such a question again on a new snapshot.
            let mut now = Answer::default();
            run_now("top", &spec, &tape, &mut now).unwrap();
            assert_eq!(now.0, fresh(&storage));
        }
    }
}

#[test]
fn a_question_is_repeated_when_a_file_goes_in_the_middle_of_it() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(13));
    drive.send(2_500);
    let now_ms = drive.sampler.slot_ms;
    let catalog = crate::testing::schema();
    let mut spec = Arguments::new(&catalog, now_ms * 1_000);
    spec.dimension = Some("wait_event".into());
    spec.totals = false;
    let name = file_name(drive.files(Kind::Sealed)[0], Kind::Sealed);
    let ask = |tape: &Tape| {
        let mut answer = Answer::default();
        run_now("top", &spec, tape, &mut answer).unwrap();
        answer.0
    };
    let before_and_after = [false, true].map(|is_after| {
        let storage = storage.after(Crash::Process);
        if is_after {
            storage.remove(&name).unwrap();
        }
        ask(&Tape::of_storage(Arc::new(storage), &Shared::default()))
    });
    assert_ne!(before_and_after[0], before_and_after[1]);
    let mut seen = [0, 0];
    for read in 1.. {
        let storage = storage.after(Crash::Process);
        let shared = Shared::with_files(0, 1);
        let tape = Tape::of_storage(Arc::new(storage.clone()), &shared);
        tape.refresh().unwrap();
        let gone = name.clone();
        let remove = move |storage: &MemoryStorage| storage.remove(&gone).unwrap();
        storage.meanwhile(storage.reads() + read, remove);
        let answer = ask(&tape);
        let which = before_and_after.iter().position(|known| *known == answer);
        seen[which.unwrap()] += 1;
        if storage.bytes_of(&name).is_some() {
            // The question needed fewer reads.
            break;
        }
    }
    // Both cases occur: the file is read before it goes, or the question starts again.
    assert!(seen.iter().all(|times| *times > 1), "{seen:?}");
}

/// A sampler of many sessions: a log of more rows than one group.
fn wide(seed: u64) -> Sampler {
    let load = Load {
        sessions: 40,
        same: 20,
        ..Load::default()
    };
    Sampler::new(seed, load)
}

#[test]
fn a_long_log_answers_in_groups_as_it_does_in_one() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, wide(5));
    let tape = Tape::of_storage(Arc::new(storage.clone()), &Shared::default());
    let mut parts = Vec::new();
    for frames in [1, 1, 90, 1, 200, 7, 250] {
        drive.send(frames);
        let snapshot = tape.refresh().unwrap();
        let fresh = Snapshot::open_storage(&storage).unwrap();
        let now_ms = drive.sampler.slot_ms;
        assert_eq!(seen(&snapshot), seen(&fresh));
        assert_eq!(
            difference(&answers(&snapshot, now_ms), &answers(&fresh, now_ms)),
            None
        );
        parts.push(snapshot.parts(NODE).count());
    }
    assert!(
        parts.is_sorted() && parts[0] == 1 && parts[6] >= 4,
        "{parts:?}"
    );
}

#[test]
fn a_log_is_read_from_where_it_ended_and_sealed_files_once() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(6));
    drive.send(1_250);
    let tape = Tape::of_storage(Arc::new(storage.clone()), &Shared::default());
    let reads = |what: &dyn Fn() -> Arc<Snapshot>| {
        let before = storage.reads();
        what();
        storage.reads() - before
    };
    reads(&|| tape.refresh().unwrap());
    let lists = storage.lists();
    // Compares whether the directory has changed, and the length of the log.
    assert_eq!(reads(&|| tape.refresh().unwrap()), 2);
    drive.send(1);
    assert_eq!(reads(&|| tape.refresh().unwrap()), 3);
    assert_eq!(storage.lists(), lists);
    // A log that begins or goes is noticed.
    storage.put("0000009999.open", b"");
    tape.refresh().unwrap();
    assert!(storage.lists() > lists);
    let lists = storage.lists();
    storage.remove("0000009999.open").unwrap();
    tape.refresh().unwrap();
    assert!(storage.lists() > lists);
}

#[test]
fn a_file_replaced_under_its_name_is_read_again() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(7));
    drive.send(700);
    let tape = Tape::of_storage(Arc::new(storage.clone()), &Shared::default());
    let before = tape.refresh().unwrap();
    let expected = seen(&before);
    let other = {
        let storage = MemoryStorage::new();
        let mut drive = Drive::new(&storage, sampler(8));
        drive.send(700);
        storage.bytes_of("0000000001.tape").unwrap()
    };
    storage.put("0000000001.tape", &other);
    let after = seen(&tape.refresh().unwrap());
    assert_ne!(after, expected);
    assert_eq!(after, seen(&Snapshot::open_storage(&storage).unwrap()));
    assert_eq!(seen(&before), expected);
}

#[test]
fn damage_in_a_followed_log_is_reported_as_to_a_fresh_reader() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(9));
    drive.send(20);
    let whole = storage.bytes_of("0000000001.open").unwrap();
    drive.send(20);
    let longer = storage.bytes_of("0000000001.open").unwrap();
    let tape_of = |bytes: &[u8]| {
        let copy = storage.after(Crash::Process);
        copy.put("0000000001.open", bytes);
        copy
    };
    // The log grows in four steps. A frame after the position of the follower is damaged. The first
    // step has half of this frame, the last step has all frames.
    for flipped in [whole.len() + 50, whole.len() + 900] {
        let copy = tape_of(&whole);
        let tape = Tape::of_storage(Arc::new(copy.clone()), &Shared::default());
        tape.refresh().unwrap();
        let mut damaged = longer.clone();
        damaged[flipped] ^= 1;
        let mut from = whole.len();
        for end in [
            flipped + 1,
            flipped + 700,
            damaged.len() - 30,
            damaged.len(),
        ] {
            copy.append_to("0000000001.open", &damaged[from..end]);
            from = end;
            let snapshot = tape.refresh().unwrap();
            let fresh = Snapshot::open_storage(&copy).unwrap();
            assert_eq!(seen(&snapshot), seen(&fresh), "{flipped} {end}");
        }
        assert_eq!(tape.refresh().unwrap().damage().len(), 1);
    }
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn thirty_two_threads_answer_as_one_while_files_are_merged_and_removed() {
    let storage = MemoryStorage::new();
    let mut late = sampler(10);
    late.slot_ms = 1_790_033_700_000;
    // Retention removes files some minutes after they were merged.
    let limits = [("retention_age_s", "1300"), ("min_free_space_mb", "0")];
    let mut drive = Drive::with(&storage, late, &limits);
    drive.send(1_900);
    let now_ms = drive.sampler.slot_ms;
    // The limit is smaller than the columns that one answer decodes.
    let shared = Shared::new(1 << 18);
    let tape = Tape::of_storage(Arc::new(storage.clone()), &shared);
    let snapshot = tape.refresh().unwrap();
    let expected = answers(&Snapshot::open_storage(&storage).unwrap(), now_ms);
    assert_eq!(drive.files(Kind::Sealed), [1, 2, 3]);
    let (is_done, mut sealed) = (AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        // Ends the threads even if a check below fails.
        let end = SetOnDrop(&is_done);
        let ask = || {
            loop {
                let found = difference(&answers(&snapshot, now_ms), &expected);
                if found.is_some() || is_done.load(Ordering::Relaxed) {
                    return found;
                }
            }
        };
        let threads: Vec<_> = (0..32).map(|_| scope.spawn(ask)).collect();
        for _ in 0..24 {
            drive.send(50);
            tape.refresh().unwrap();
            sealed.push(drive.files(Kind::Sealed));
        }
        drop(end);
        for thread in threads {
            assert_eq!(thread.join().unwrap(), None);
        }
    });
    // The first file was removed, and the other two are one.
    sealed.dedup();
    assert_eq!(sealed, [vec![1, 2, 3], vec![2, 4], vec![2, 4, 5]]);
    assert_eq!(answers(&snapshot, now_ms), expected);
    let kept = shared.bytes();
    assert!(kept > 0 && kept <= 1 << 18, "{kept}");
}

#[test]
fn many_who_wait_for_a_column_decode_it_once() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, wide(11));
    drive.send(601);
    let tape = Tape::of_storage(Arc::new(storage.clone()), &Shared::default());
    let snapshot = tape.refresh().unwrap();
    let part = snapshot.parts(NODE).next().unwrap();
    part.ints("run", "ticks").unwrap();
    let before = storage.reads();
    let columns: Vec<crate::Column> = std::thread::scope(|scope| {
        let ask = || part.ints("run", "wait").unwrap();
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(storage.reads() - before, 1);
    let first = &columns[0];
    assert!(
        columns
            .iter()
            .all(|column| Arc::ptr_eq(&column.0, &first.0))
    );
    // The last reader does not free a shared column.
    part.release();
    assert!(Arc::ptr_eq(&part.ints("run", "wait").unwrap().0, &first.0));
}

#[test]
fn lists_of_chunks_count_among_the_kept_bytes() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, wide(11));
    drive.send(601);
    let bounds = |shared: &Shared| {
        let tape = Tape::of_storage(Arc::new(storage.clone()), shared);
        let snapshot = tape.refresh().unwrap();
        let part = snapshot.parts(NODE).next().unwrap();
        let before = storage.reads();
        let bounds = [(); 3].map(|()| part.bounds("run", "wait").unwrap());
        assert!(bounds.iter().all(|one| *one == bounds[0]));
        (bounds[0], shared.bytes(), storage.reads() - before)
    };
    // No column is decoded. The cache holds 48 bytes for each of some dozens of chunks.
    let (expected, kept, reads) = bounds(&Shared::default());
    assert!(kept > 48 * 24 && reads > 0, "{kept} bytes, {reads} reads");
    // Without room in the cache, the chunks are read for each question.
    let (again, none, more) = bounds(&Shared::new(0));
    assert_eq!((again, none), (expected, 0));
    assert!(more >= 3 * reads, "{more} reads, {reads} with a cache");
}
