//! Markers that users leave as files: each enters the history exactly once.

use super::*;
use crate::write::markers::MARK;

const NAME: &str = "marker-00000000000000aa";

fn put(storage: &MemoryStorage, name: &str, bytes: &[u8]) {
    let mut file = storage.create(name).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    storage.sync_directory().unwrap();
}

fn left(storage: &MemoryStorage) -> Vec<String> {
    let names = storage.names().unwrap().into_iter().map(|n| n.name);
    names.filter(|name| name.starts_with("marker-")).collect()
}

/// Times and texts of the markers of this kind.
fn recorded_texts(storage: &MemoryStorage) -> Vec<(i64, String)> {
    let store = Snapshot::open_storage(storage).unwrap();
    let mut recorded = Vec::new();
    for part in store.parts(NODE) {
        let kind = part.schema().value("marker", MARK).unwrap();
        let marks = crate::query::removals(part, kind, crate::query::decode).unwrap();
        for mark in marks {
            assert_eq!((mark.since_ms, mark.until_ms), (0, 0));
            recorded.push((mark.time_ms, mark.detail.unwrap()));
        }
    }
    recorded
}

#[test]
fn a_marker_is_recorded_once_and_its_file_goes_with_the_sync() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(5));
    drive.send(3);
    let text = format!("tacho-marker-1 {}\ndeploy 1.4 \u{202e}<b>", SLOT + 2_500);
    put(&storage, NAME, text.as_bytes());
    let sent = drive.make();
    assert_eq!(drive.push(&sent.bytes), Code::Written);
    assert_eq!(left(&storage), [NAME]);
    drive.mono_ms += 10_000;
    drive.writer.flush(drive.now(), true);
    assert_eq!(left(&storage), [""; 0]);
    drive.send(700);
    let expected = [(SLOT + 2_500, "deploy 1.4 \u{202e}<b>".to_string())];
    assert_eq!(recorded_texts(&storage), expected);
    drive.check();
    drive.restart(&storage.after(Crash::Process), 704);
    drive.send(3);
    assert_eq!(recorded_texts(&drive.storage), expected);
    assert_eq!(drive.writer.messages(), []);
}

#[test]
fn a_marker_is_recorded_once_despite_a_crash_anywhere() {
    let begin = MemoryStorage::new();
    drop(Drive::new(&begin, sampler(7)));
    put(
        &begin,
        NAME,
        format!("tacho-marker-1 {SLOT}\nonce").as_bytes(),
    );
    let run = |storage: &MemoryStorage| {
        let mut drive = Drive::new(storage, sampler(7));
        for _ in 0..8 {
            let sent = drive.make();
            drive.push(&sent.bytes);
            drive.turn();
        }
        drive
    };
    let whole = begin.after(Crash::Process);
    run(&whole);
    assert_eq!(recorded_texts(&whole).len(), 1);
    assert_eq!(left(&whole), [""; 0]);
    let operations = whole.operations();
    assert!(operations > 8);
    for operation in begin.operations()..=operations {
        let crashed = begin.after(Crash::Process);
        crashed.stop_at(operation);
        let drive = run(&crashed);
        for crash in [Crash::Process, Crash::Machine, Crash::MachineHalf] {
            let after = crashed.after(crash);
            let mut next = Drive::new(&after, next_life(&drive, 8, 60_000));
            next.send(12);
            assert_eq!(
                recorded_texts(&after),
                [(SLOT, "once".to_string())],
                "{operation} {crash:?}"
            );
            assert_eq!(left(&after), [""; 0], "{operation} {crash:?}");
        }
    }
}

#[test]
fn a_marker_is_recorded_once_although_its_frame_was_cut_off() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(9));
    drive.send(3);
    put(
        &storage,
        NAME,
        format!("tacho-marker-1 {SLOT}\nonce").as_bytes(),
    );
    let sent = drive.make();
    // The frame of the marker fits into the half that is written.
    storage.fail_at(storage.operations() + 1, ErrorKind::StorageFull);
    assert_ne!(drive.push(&sent.bytes), Code::Written);
    drive.mono_ms += 60_000;
    assert_eq!(drive.push(&sent.bytes), Code::Written);
    drive.turn();
    assert_eq!(recorded_texts(&storage), [(SLOT, "once".to_string())]);
    drive.check();
}

#[test]
fn a_marker_is_recorded_although_a_read_fails() {
    for read in 1..=4 {
        let storage = MemoryStorage::new();
        let mut drive = Drive::new(&storage, sampler(9));
        drive.send(3);
        let text = format!("tacho-marker-1 {SLOT}\nlater");
        put(&storage, NAME, text.as_bytes());
        storage.fail_read_at(storage.reads() + read);
        drive.send(1);
        drive.mono_ms += 2_000;
        drive.send(2);
        let recorded = recorded_texts(&storage);
        assert_eq!(recorded, [(SLOT, "later".to_string())], "read {read}");
    }
}

#[test]
fn an_invalid_marker_is_removed_and_reported() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(5));
    drive.send(1);
    let long = format!("tacho-marker-1 {SLOT}\n{}", "x".repeat(1_001));
    let hostile: [&[u8]; 7] = [
        b"",
        b"deploy",
        b"tacho-marker-1 now\nx",
        b"tacho-marker-1 5\n \t",
        b"tacho-marker-1 5\na\x1b[2Jb",
        b"tacho-marker-1 5\n\xff\xfe",
        long.as_bytes(),
    ];
    for (number, bytes) in hostile.iter().enumerate() {
        put(&storage, &format!("marker-{number:016x}"), bytes);
    }
    for foreign in [
        "marker-",
        "marker-00000000000000AA",
        "marker-../../../../etc",
        "marker-0",
    ] {
        put(&storage, foreign, b"tacho-marker-1 5\nforeign");
    }
    put(
        &storage,
        "marker-00000000000000bb",
        b"tacho-marker-1 5\nof 1970",
    );
    drive.mono_ms += 2_000;
    drive.send(12);
    assert_eq!(drive.writer.messages().len(), hostile.len());
    assert_eq!(left(&storage).len(), 4);
    let recorded = recorded_texts(&storage);
    assert_eq!(recorded.len(), 1);
    assert!(
        recorded[0].0 > SLOT && recorded[0].1 == "of 1970",
        "{recorded:?}"
    );
    // The next writer removes an incomplete file.
    put(&storage, &format!("{NAME}.tmp"), b"tacho-m");
    drive.restart(&storage.after(Crash::Process), 13);
    assert_eq!(left(&drive.storage).len(), 4);
}

#[test]
fn many_markers_are_recorded_before_several_frames() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(5));
    drive.send(1);
    for number in 0..250 {
        let text = format!("tacho-marker-1 {}\nmarker {number}", SLOT + number);
        put(&storage, &format!("marker-{number:016x}"), text.as_bytes());
    }
    drive.mono_ms += 2_000;
    drive.send(20);
    assert_eq!(recorded_texts(&storage).len(), 250);
    assert_eq!(left(&storage), [""; 0]);
}
