//! Each removal is recorded by a marker and shown by `status`.

use super::*;
use crate::files::shipped::{Shipped, shipped_name};
use crate::query::{Field, QueryResult, Sink, Value};
use crate::testing::{Arguments, run};

#[derive(Default)]
struct Rows(Vec<Vec<Value>>);

impl Sink for Rows {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.0.push(values);
        Ok(())
    }
}

/// A value of `status`.
fn status(drive: &Drive, metric: &str) -> Option<String> {
    let store = Snapshot::open_storage(&drive.storage).unwrap();
    let catalog = crate::testing::schema();
    let spec = Arguments::new(&catalog, drive.now().wall_ms * 1_000);
    let mut rows = Rows::default();
    run("status", &spec, &store, &mut rows).unwrap();
    let text = |value: &Value| match value {
        Value::Text(text) => Some(text.to_string()),
        _ => None,
    };
    let row = rows
        .0
        .iter()
        .find(|r| text(&r[0]).as_deref() == Some(metric));
    text(&row.unwrap()[1])
}

/// Checks that one removed file is reported with its reason, and that the marker's period ends
/// before the remaining history begins.
fn check_removal_marker(drive: &Drive, why: &str) {
    let marker = status(drive, "history_removed").unwrap();
    assert!(
        marker.starts_with("1 file of ") && marker.ends_with(why),
        "{marker}"
    );
    assert!(status(drive, "history_removed_time").is_some());
    let store = Snapshot::open_storage(&drive.storage).unwrap();
    let kept = store.parts(NODE).map(|p| p.min_ms()).min();
    let kind = crate::testing::schema().value("marker", "history removed");
    let mut until = Vec::new();
    for part in store.parts(NODE) {
        let kinds = part.ints("marker", "kind").unwrap();
        let untils = part.ints("marker", "until").unwrap();
        let pairs = kinds.iter().zip(untils.iter());
        until.extend(pairs.filter(|m| Some(*m.0) == kind).map(|m| *m.1));
    }
    assert_eq!(until.len(), 1);
    assert!(Some(until[0]) < kept);
}

#[test]
fn status_has_the_last_removal_and_its_reason() {
    let limits = [
        (("retention_age_s", "900"), "older than tacho.retention_age"),
        (
            ("retention_size_mb", "1"),
            "the history exceeded tacho.retention_size",
        ),
    ];
    for (limit, why) in limits {
        let storage = MemoryStorage::new();
        let mut load = sampler(31);
        let slot_ms = load.slot_ms;
        if limit.0 == "retention_size_mb" {
            let wide = Load {
                sessions: 60,
                active: 100,
                same: 0,
                ..Load::default()
            };
            load = Sampler::new(31, wide);
            load.slot_ms = slot_ms;
        }
        let mut drive = Drive::with(&storage, load, &[limit, ("min_free_space_mb", "0")]);
        drive.send(600);
        assert_eq!(status(&drive, "history_removed"), None);
        assert_eq!(status(&drive, "history_removed_time"), None);
        while drive.files(Kind::Sealed).first().is_none_or(|n| *n == 1) {
            drive.send(1);
        }
        drive.send(1);
        check_removal_marker(&drive, why);
    }
}

#[test]
fn removal_for_room_is_reported() {
    let storage = MemoryStorage::new();
    let mut drive = Drive::new(&storage, sampler(11));
    drive.send(1_900);
    assert_eq!(status(&drive, "history_removed"), None);
    storage.set_free((1 << 30) - 100);
    drive.send(8);
    storage.set_free(1 << 40);
    drive.send(1);
    check_removal_marker(&drive, "less space was free than tacho.min_free_space");
}

/// A sampler with many rows in each tick, without missed slots and failed ticks.
fn wide(seed: u64) -> Sampler {
    let load = Load {
        sessions: 60,
        active: 100,
        same: 0,
        trouble: 0,
        ..Load::default()
    };
    Sampler::new(seed, load)
}

/// Notes that all files up to a number are shipped.
fn tell_shipped(storage: &MemoryStorage, until: u64) {
    let name = shipped_name(until);
    let place = "s3://lake/x".to_string();
    let mut file = storage.create(&name).unwrap();
    file.append(Shipped { until, place }.text().as_bytes())
        .unwrap();
}

#[test]
fn unshipped_files_stay_up_to_a_bound_and_their_removal_is_reported() {
    for limit in [("retention_size_mb", "1"), ("retention_age_s", "900")] {
        let storage = MemoryStorage::new();
        let unshipped = ("retention_unshipped_mb", "2");
        let limits = [limit, unshipped, ("min_free_space_mb", "0")];
        let mut drive = Drive::with(&storage, wide(41), &limits);
        while drive.writer.bytes() < 3 << 19 {
            drive.send(1);
        }
        let oldest = drive.writer.stored_files()[0].clone();
        assert_eq!(oldest.numbers.first, 1);
        while drive.writer.stored_files()[0].numbers.first == 1 {
            drive.send(1);
        }
        // The removed file is not counted any more.
        assert!(drive.writer.bytes() > 3 << 19 && drive.writer.bytes() <= 2 << 20);
        drive.send(1);
        let why = "the history exceeded tacho.retention_unshipped, not shipped yet";
        check_removal_marker(&drive, why);
        let messages = drive.writer.messages();
        let warnings = messages.iter().filter_map(|message| match message {
            Message::Warning(text) => Some(text.as_str()),
            _ => None,
        });
        let warnings: Vec<&str> = warnings.collect();
        let wanted = format!(
            "removed the oldest history file \"{}\" before it was shipped: the history exceeds \"tacho.retention_unshipped\"",
            storage
                .directory()
                .join(oldest.numbers.name(Kind::Sealed))
                .display()
        );
        assert_eq!(warnings, [wanted.as_str()]);
    }
}

#[test]
fn shipped_files_go_by_age_or_size() {
    for (limit, why) in [
        (
            ("retention_size_mb", "1"),
            "the history exceeded tacho.retention_size",
        ),
        (("retention_age_s", "900"), "older than tacho.retention_age"),
    ] {
        let storage = MemoryStorage::new();
        let unshipped = ("retention_unshipped_mb", "2");
        let limits = [limit, unshipped, ("min_free_space_mb", "0")];
        let mut drive = Drive::with(&storage, wide(42), &limits);
        while drive.writer.bytes() < 3 << 19 {
            drive.send(1);
        }
        let numbers = |drive: &Drive, at: usize| drive.writer.stored_files()[at].numbers;
        let [first, second, third] = [0, 1, 2].map(|at| numbers(&drive, at));
        assert_eq!(first.first, 1);
        tell_shipped(&storage, second.last);
        while numbers(&drive, 0) == first {
            drive.send(1);
        }
        // The third file stays, although the directory is still too large or the file too old.
        assert_eq!(numbers(&drive, 0), third);
        drive.send(1);
        let marker = status(&drive, "history_removed").unwrap();
        assert!(
            marker.starts_with("2 files of ") && marker.ends_with(why),
            "{marker}"
        );
    }
}

#[test]
fn room_for_recording_comes_before_unshipped_files() {
    let storage = MemoryStorage::new();
    let limits = [("retention_unshipped_mb", "1000")];
    let mut drive = Drive::with(&storage, sampler(43), &limits);
    drive.send(1_900);
    storage.set_free((1 << 30) - 100);
    drive.send(8);
    storage.set_free(1 << 40);
    drive.send(1);
    check_removal_marker(
        &drive,
        "less space was free than tacho.min_free_space, not shipped yet",
    );
}
