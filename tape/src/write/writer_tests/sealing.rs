//! Sealing, syncing, and trying again after failures.

use super::*;
use crate::write::background;

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
