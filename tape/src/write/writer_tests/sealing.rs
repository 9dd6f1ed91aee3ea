//! Sealing, syncing, and trying again after failures.

use super::*;
use crate::error;
use crate::files::directory::file_name;
use crate::format::log::FRAMES_AT;
use crate::write::background;
use crate::write::merge::MergeJob;

#[test]
fn a_paused_writer_has_nothing_left_to_synchronise() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(10));
    drive.send(3);
    storage.set_free(0);
    drive.mono_ms += 1_000;
    let sent = drive.make();
    assert_eq!(drive.push(&sent.bytes), Code::Paused);
    assert_eq!(drive.writer.flush_in_ms(drive.now()), None);
    let after = Snapshot::open_storage(&storage.after(Crash::Machine)).unwrap();
    assert_eq!(read(after.parts(NODE)).0.len(), 3);
}

/// Seals and merges as the thread of the writer does.
fn work(drive: &mut Drive) {
    for job in drive.writer.jobs() {
        let done = background::work(&drive.storage, job, &AtomicBool::new(false));
        drive.writer.done(done);
    }
}

fn frames(drive: &mut Drive, frames: usize) {
    for _ in 0..frames {
        let sent = drive.make();
        assert_eq!(drive.push(&sent.bytes), Code::Written);
        drive.mono_ms += 1_000;
        let now = drive.now();
        drive.writer.flush(now, false);
        work(drive);
    }
}

#[test]
fn a_log_without_statistics_of_statements_is_sealed_as_one() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(19));
    frames(&mut drive, 700);
    assert_eq!(drive.files(Kind::Sealed), [1]);
    let sealed = drive.writer.stored_files().first().cloned();
    // A writer that starts now finds the same file.
    let found = recover::read_directory(&storage, NODE).unwrap();
    assert_eq!(sealed.as_ref(), found.stored.first());
    assert_eq!(sealed.unwrap().statements_ms, None);
}

#[test]
fn a_log_that_leads_to_a_panic_stays_and_blocks_no_other() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(17));
    storage.panic_on(Some("0000000001.open"));
    frames(&mut drive, 1_900);
    assert_eq!(drive.files(Kind::Log), [1, 4]);
    assert_eq!(drive.files(Kind::Sealed), [2, 3]);
    let path = "\"/memory/0000000001.open\"";
    let panicked =
        format!("damaged file {path}: internal error, could not seal a log: injected panic");
    assert_eq!(drive.writer.messages(), [Message::Error(panicked)]);
    // The next writer starts although log 1 still causes a panic.
    drive.writer = Writer::open(Arc::new(storage.clone()), NODE).unwrap();
    let panicked =
        format!("damaged file {path}: internal error, could not read a log: injected panic");
    assert_eq!(drive.writer.messages(), [Message::Error(panicked)]);
    storage.panic_on(None);
    assert_eq!(drive.files(Kind::Log), [1, 4]);
    drive.check();
}

#[test]
fn a_log_that_could_not_be_sealed_is_tried_again() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(18));
    frames(&mut drive, 600);
    let sent = drive.make();
    assert_eq!(drive.push(&sent.bytes), Code::Written);
    storage.fail_at(storage.operations() + 1, ErrorKind::StorageFull);
    work(&mut drive);
    assert_eq!(drive.writer.messages().len(), 1);
    frames(&mut drive, 59);
    assert_eq!(drive.files(Kind::Log), [1, 2]);
    frames(&mut drive, 3);
    assert_eq!(drive.files(Kind::Log), [2]);
    assert_eq!(drive.files(Kind::Sealed), [1]);
    drive.check();
    assert_eq!(drive.writer.messages(), []);
}

#[test]
fn a_log_whose_schema_cannot_be_read_is_kept() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(20));
    drive.send(30);
    let name = file_name(1, Kind::Log);
    let mut bytes = storage.bytes_of(&name).unwrap();
    bytes[FRAMES_AT + 45] ^= 1;
    storage.put(&name, &bytes);
    let error = seal_log(&storage, 1, u64::MAX).unwrap_err();
    assert_eq!(error.kind, error::Kind::Damaged);
    assert_eq!(storage.bytes_of(&name), Some(bytes));
}

#[test]
fn a_log_that_could_not_be_synced_before_a_pause_takes_no_more_frames() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(21));
    drive.send(3);
    let sent = drive.make();
    assert_eq!(drive.push(&sent.bytes), Code::Written);
    storage.set_free(0);
    drive.mono_ms += 1_000;
    let refused = drive.make();
    storage.fail_at(storage.operations() + 1, ErrorKind::Other);
    assert_eq!(drive.push(&refused.bytes), Code::Paused);
    storage.set_free(1 << 40);
    drive.mono_ms += 60_000;
    assert_eq!(drive.push(&refused.bytes), Code::Written);
    assert_eq!(drive.files(Kind::Log), [1, 2]);
    drive.check();
}

#[test]
fn a_file_of_a_clock_that_was_ahead_is_removed_with_the_next_file() {
    let storage = MemoryStorage::new();
    let limit = [("retention_age_s", "900")];
    let mut drive = Drive::with(&storage, sampler(22), &limit);
    let year = 365 * 86_400_000;
    drive.sampler.slot_ms += year;
    drive.send(300);
    drive.sampler.slot_ms -= year;
    drive.send(1_300);
    assert_eq!(drive.files(Kind::Sealed), [1, 2, 3]);
    drive.send(900);
    assert_eq!(drive.files(Kind::Sealed), [3, 4]);
}

/// Sends and seals frames, without merging.
fn sealed_only(drive: &mut Drive, frames: usize) {
    for _ in 0..frames {
        let sent = drive.make();
        assert_eq!(drive.push(&sent.bytes), Code::Written);
        for job in drive.writer.seal_jobs() {
            let sealed = seal_log(&drive.storage, job.number, job.until_sequence);
            drive.writer.sealed(job, sealed);
        }
    }
}

/// Seals the files of a day and one of a later day. Returns the job that merges the first day.
fn finished_day(drive: &mut Drive) -> MergeJob {
    sealed_only(drive, 1_201);
    drive.sampler.slot_ms += 2 * 86_400_000;
    sealed_only(drive, 601);
    drive.writer.merge_job().unwrap()
}

#[test]
fn a_merge_that_a_full_disk_stopped_is_tried_again_with_the_next_log() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(23));
    let job = finished_day(&mut drive);
    let full = error::Error::new(error::Kind::NoSpace, "no space left");
    drive.writer.merged(&job, Err(full));
    assert_eq!(drive.writer.merge_job(), None);
    sealed_only(&mut drive, 600);
    assert_eq!(drive.writer.merge_job(), Some(job));
}

#[test]
fn a_merged_file_whose_name_was_not_synced_is_known_to_retention() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(24));
    let job = finished_day(&mut drive);
    // The directory is synced after the rename, which creates the merged file.
    let begin = storage.operations();
    let before = storage.after(Crash::Process);
    merge(&before, &job, &AtomicBool::new(false)).unwrap();
    let failed = (1..before.operations() - begin).find_map(|operation| {
        let copy = storage.after(Crash::Process);
        copy.fail_at(copy.operations() + operation, ErrorKind::Other);
        let result = merge(&copy, &job, &AtomicBool::new(false));
        let name = job.numbers().name(Kind::Sealed);
        let bytes = copy.bytes_of(&name)?;
        Some((result.err()?, name, bytes))
    });
    let (error, name, bytes) = failed.unwrap();
    storage.put(&name, &bytes);
    drive.writer.merged(&job, Err(error));
    let known = drive.writer.stored_files().iter();
    let merged = known.filter(|s| s.numbers == job.numbers());
    assert_eq!(merged.map(|s| s.bytes).sum::<u64>(), bytes.len() as u64);
}
