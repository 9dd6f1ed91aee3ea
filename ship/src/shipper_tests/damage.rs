//! Files that cannot be read, for now or until they are repaired.

use super::late::{Recorded, builder, identity, minute};
use super::{directory, number, rows, settings};
use crate::hours::hour_of;
use crate::shipper::{SERVERS, Shipper};
use parquet::record::Field as Cell;
use std::path::Path;
use tacho_tape::files::storage::{OsStorage, Storage};
use tacho_tape::format::schema::STATS;
use tacho_tape::format::sealed_write::FrameRange;
use tacho_tape::testing::memory::MemoryStorage;
use tacho_tape::write::seal::write_sealed;
use tacho_tape::{Shared, Snapshot, Tape};

/// Writes one sealed file for each of `files`.
fn write(storage: &dyn Storage, files: &[Recorded]) {
    for (file, (minutes, passes)) in (1..).zip(files) {
        let (own, frames) = (builder(minutes.clone(), passes), FrameRange::default());
        write_sealed(storage, file, own, identity(), frames).unwrap();
    }
}

/// The last pass of the first hour is in the file of the second.
const FILES: [Recorded; 2] = [
    (0..60, &[(13, 13), (26, 13), (39, 13), (52, 13)]),
    (60..70, &[(65, 13), (66, 1)]),
];

fn name(file: u64) -> String {
    format!("{file:010}.tape")
}

/// Damages a column of the statistics in a file.
fn damage(directory: &Path, file: u64, column: &str) {
    damage_of(directory, file, STATS, column);
}

/// Damages a column of a table in a file.
fn damage_of(directory: &Path, file: u64, table: &str, column: &str) {
    let tape = Snapshot::open(directory).unwrap();
    let path = directory.join(name(file));
    let mut parts = tape.parts(identity().node);
    let part = parts.find(|part| *part.info().file == path).unwrap();
    let chunk = part.chunks(table, column).unwrap()[0];
    let mut bytes = std::fs::read(&path).unwrap();
    let range = chunk.offset as usize..(chunk.offset + chunk.bytes) as usize;
    bytes[range].iter_mut().for_each(|byte| *byte ^= 0x55);
    std::fs::write(&path, bytes).unwrap();
}

/// Calls and passes of the first hour, in the rows that count.
fn counted(root: &Path) -> (i64, usize) {
    let mut found = rows(root, "statements");
    found.retain(|row| number(row, "hour") == minute(0) * 1_000);
    let calls = found.iter().map(|row| number(row, "calls")).sum();
    let passes = found.iter().filter(|row| row["toplevel"] == Cell::Null);
    (calls, passes.count())
}

#[test]
fn a_repair_brings_back_rows_of_a_file_without_ticks_of_the_hour() {
    let (root, tape) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(&OsStorage::new(tape.path()), &FILES);
    let whole = std::fs::read(tape.path().join(name(2))).unwrap();
    damage(tape.path(), 2, "calls");
    let place = directory(root.path());
    let mut shipper = Shipper::new(&place, settings("shop"));
    let mut look = || {
        let tape = Snapshot::open(tape.path()).unwrap();
        let done = shipper
            .ship_due_hours(&tape, minute(125), &|| true)
            .unwrap();
        (done.hours, done.damage.len(), counted(root.path()))
    };
    assert_eq!(look(), (1, 1, (52, 4)));
    assert_eq!(look(), (0, 1, (52, 4)));
    let said = &rows(root.path(), SERVERS)[0]["damage"];
    assert!(matches!(said, Cell::Str(_)), "{said:?}");
    std::fs::write(tape.path().join(name(2)), whole).unwrap();
    assert_eq!(look(), (1, 0, (65, 5)));
    assert_eq!(look(), (0, 0, (65, 5)));
    assert_eq!(rows(root.path(), SERVERS)[0]["damage"], Cell::Null);
    // A whole generation is not replaced by a damaged one.
    damage(tape.path(), 2, "calls");
    assert_eq!(look(), (0, 0, (65, 5)));
}

/// Two hours in a file, with a sample in each tick and a marker in each hour.
fn write_two_hours(directory: &Path) {
    let mut own = builder(0..120, &[(30, 30), (60, 30), (90, 30), (119, 29)]);
    let session = own
        .intern("session", &[("pid", 1), ("category", 1)])
        .unwrap();
    for tick in 0..120 {
        own.sample(tick, session, &[("state", 1)]).unwrap();
    }
    for at in [10, 70] {
        let marker = [("time", minute(at)), ("kind", 17)];
        own.row("marker", &marker).unwrap();
    }
    let storage = OsStorage::new(directory);
    write_sealed(&storage, 1, own, identity(), FrameRange::default()).unwrap();
}

#[test]
fn a_damaged_column_leaves_out_its_table_and_not_the_hour() {
    let whole = [2, 120, 120, 2, 4];
    let shown = ["servers", "sample_runs", "ticks", "markers", "statements"];
    for (table, column, tables, left) in [
        (STATS, "calls", "table statements", [2, 120, 120, 2, 0]),
        (STATS, "time", "table statements", [2, 120, 120, 2, 0]),
        ("marker", "kind", "table markers", [2, 120, 120, 0, 4]),
        ("marker", "time", "table markers", [2, 120, 120, 0, 4]),
        (
            "run",
            "state",
            "tables sample_runs, load_minute, ticks",
            [2, 0, 0, 2, 4],
        ),
        (
            "tick",
            "interval_ms",
            "tables sample_runs, load_minute, ticks",
            [2, 0, 0, 2, 4],
        ),
        (
            "tick",
            "slot_time",
            "tables sample_runs, load_minute, ticks",
            [2, 0, 0, 2, 4],
        ),
    ] {
        let (root, tape) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write_two_hours(tape.path());
        let file = tape.path().join(name(1));
        let sound = std::fs::read(&file).unwrap();
        damage_of(tape.path(), 1, table, column);
        let place = directory(root.path());
        let mut shipper = Shipper::new(&place, settings("shop"));
        let mut look = || {
            let tape = Snapshot::open(tape.path()).unwrap();
            let done = shipper
                .ship_due_hours(&tape, minute(250), &|| true)
                .unwrap();
            let of = |table: &&str| counted_rows(root.path(), table);
            (done.hours, shown.each_ref().map(of), done.damage)
        };
        let (hours, rows, damage) = look();
        assert_eq!((hours, rows), (2, left), "{table}.{column}");
        let said = damage
            .iter()
            .any(|text| text.ends_with(&format!("({tables})")));
        assert!(said, "{table}.{column}: {damage:?}");
        assert_eq!(look().0, 0, "{table}.{column}");
        std::fs::write(&file, &sound).unwrap();
        assert_eq!(look(), (2, whole, vec![]), "{table}.{column}");
        // A whole generation is not replaced by a damaged one.
        damage_of(tape.path(), 1, table, column);
        assert_eq!((look().0, look().1), (0, whole), "{table}.{column}");
    }
}

/// Number of rows that count; for runs their ticks, for statistics the rows with
/// calls.
fn counted_rows(root: &Path, table: &str) -> usize {
    let found = rows(root, table);
    match table {
        "sample_runs" => found.iter().map(|row| number(row, "ticks") as usize).sum(),
        "statements" => found
            .iter()
            .filter(|row| row["toplevel"] != Cell::Null)
            .count(),
        _ => found.len(),
    }
}

#[test]
fn a_damaged_hour_is_read_once_while_nothing_changes() {
    let (root, directory_of_tape) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(&OsStorage::new(directory_of_tape.path()), &FILES);
    damage(directory_of_tape.path(), 2, "calls");
    let storage = MemoryStorage::new();
    for file in [1, 2] {
        let bytes = std::fs::read(directory_of_tape.path().join(name(file)));
        storage.put(&name(file), &bytes.unwrap());
    }
    let tape = Tape::of_storage(std::sync::Arc::new(storage.clone()), &Shared::new(0));
    let place = directory(root.path());
    let mut shipper = Shipper::new(&place, settings("shop"));
    let mut look = || {
        let before = storage.reads();
        let tape = tape.refresh().unwrap();
        let done = shipper
            .ship_due_hours(&tape, minute(125), &|| true)
            .unwrap();
        (done, storage.reads() - before)
    };
    let (first, reads) = look();
    assert_eq!((first.hours, first.damage.len()), (1, 1));
    let (second, later) = look();
    assert_eq!((second.objects, &second.damage), (0, &first.damage));
    // The first look reads every column of two files. The cache has 0 bytes, so for
    // each column it also reads the list of places in the footer or the index.
    assert!(later > 0 && 20 * later < reads, "{reads} {later}");
}

#[test]
fn an_unreadable_file_is_reported() {
    let (root, storage) = (tempfile::tempdir().unwrap(), MemoryStorage::new());
    write(&storage, &FILES);
    let whole = storage.bytes_of(&name(2)).unwrap();
    storage.put(&name(2), &whole[..whole.len() / 2]);
    let tape = Snapshot::open_storage(&storage).unwrap();
    let place = directory(root.path());
    let mut shipper = Shipper::new(&place, settings("shop"));
    let done = shipper
        .ship_due_hours(&tape, minute(200), &|| true)
        .unwrap();
    assert_eq!((done.hours, done.damage.len()), (1, 1));
    assert!(done.damage[0].contains(&name(2)), "{done:?}");
}

#[test]
fn a_damaged_index_takes_nothing_from_other_hours() {
    let storage = MemoryStorage::new();
    write(&storage, &[(0..120, &[(13, 13)]), (300..310, &[(306, 1)])]);
    let whole = storage.bytes_of(&name(2)).unwrap();
    let mut met = 0;
    for at in (0..whole.len()).step_by(16) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        storage.put(&name(2), &bytes);
        let tape = Snapshot::open_storage(&storage).unwrap();
        let mut parts = tape.parts(identity().node);
        let Some(Err(_)) = parts.nth(1).map(|part| part.range(STATS, "time")) else {
            continue;
        };
        met += 1;
        let root = tempfile::tempdir().unwrap();
        let place = directory(root.path());
        let mut shipper = Shipper::new(&place, settings("shop"));
        shipper
            .ship_due_hours(&tape, minute(500), &|| true)
            .unwrap();
        let found = rows(root.path(), SERVERS);
        let of_file = |hour: i64| hour >= hour_of(minute(240));
        let damaged = found.iter().filter(|row| row["damage"] != Cell::Null);
        let hours = damaged.map(|row| number(row, "hour") / 3_600_000_000);
        assert_eq!(hours.filter(|hour| !of_file(*hour)).count(), 0, "{at}");
        assert!(found.len() >= 2, "{at}");
    }
    assert!(met > 0);
}

#[test]
fn a_read_that_fails_for_the_moment_is_no_damage() {
    let storage = MemoryStorage::new();
    write(&storage, &FILES);
    let shared = || Tape::of_storage(std::sync::Arc::new(storage.clone()), &Shared::new(0));
    let mut failed = 0;
    for read in (1..).step_by(5) {
        let (root, tape) = (tempfile::tempdir().unwrap(), shared());
        let place = directory(root.path());
        let mut shipper = Shipper::new(&place, settings("shop"));
        let snapshot = tape.refresh().unwrap();
        let before = storage.reads();
        storage.fail_read_at(before + read);
        let first = shipper
            .ship_due_hours(&snapshot, minute(125), &|| true)
            .unwrap();
        let is_over = storage.reads() < before + read;
        assert_eq!(first.damage, [""; 0], "{read}");
        failed += usize::from(!first.again.is_empty());
        let again = shipper.ship_due_hours(&tape.refresh().unwrap(), minute(125), &|| true);
        let again = again.unwrap();
        assert_eq!((again.damage.len(), again.again.len()), (0, 0));
        assert_eq!(first.hours + again.hours, 1, "{read}");
        assert_eq!(counted(root.path()), (65, 5), "{read}");
        if is_over {
            break;
        }
    }
    assert!(failed > 20, "{failed}");
}
