//! A writer that keeps unshipped files, and the program that ships them, with a
//! store that is up or down.
#![allow(clippy::unwrap_used, missing_docs)]

use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tacho_tape::files::directory::{Kind, Numbers, parse_name};
use tacho_tape::files::shipped::{Shipped, is_shipped_name};
use tacho_tape::files::storage::OsStorage;
use tacho_tape::format::frame::Frame;
use tacho_tape::testing::{Load, Sampler};
use tacho_tape::write::background::work;
use tacho_tape::write::clock::Now;
use tacho_tape::write::message::Message;
use tacho_tape::write::writer::{Code, Writer};
use tacho_tape::{Part, Snapshot};

const HOUR_MS: i64 = 3_600_000;
/// Retention keeps two hours, and one megabyte of unshipped files.
const SETTINGS: [(&str, &str); 3] = [
    ("retention_age_s", "7200"),
    ("retention_unshipped_mb", "1"),
    ("min_free_space_mb", "0"),
];

/// Number of ticks by hour.
type Ticks = BTreeMap<i64, u64>;

struct Server {
    directory: PathBuf,
    writer: Writer,
    sampler: Sampler,
    recorded: Ticks,
    messages: Vec<Message>,
}

impl Server {
    fn start(directory: &Path) -> Server {
        let load = Load {
            sessions: 24,
            active: 100,
            same: 0,
            trouble: 0,
            interval_ms: 4_000,
            ..Load::default()
        };
        let mut server = Server {
            directory: directory.to_path_buf(),
            writer: Writer::open(Arc::new(OsStorage::new(directory)), 7).unwrap(),
            sampler: Sampler::new(1, load),
            recorded: Ticks::new(),
            messages: Vec::new(),
        };
        let hello = server.sampler.hello(&SETTINGS);
        server.push(&hello);
        server
    }

    fn push(&mut self, frame: &[u8]) {
        // The writer's clock shows the time of the ticks, so markers have this time, too.
        let now = Now {
            wall_ms: self.sampler.slot_ms,
            mono_ms: self.sampler.slot_ms,
        };
        let code = self
            .writer
            .push(&Frame::parse(frame).unwrap().unwrap(), now);
        assert_eq!(code, Code::Written);
    }

    /// Records until `done`, and until all files but the current log are sealed.
    fn until(&mut self, done: impl Fn(&Server) -> bool) {
        while !done(self) {
            let (frame, ticks, _) = self.sampler.frame();
            self.push(&frame);
            for (_, slot_ms) in ticks {
                *self
                    .recorded
                    .entry(slot_ms.div_euclid(HOUR_MS))
                    .or_default() += 1;
            }
            let storage = OsStorage::new(&self.directory);
            for job in self.writer.jobs() {
                let done = work(&storage, job, &AtomicBool::new(false));
                self.writer.done(done);
            }
            self.messages.extend(self.writer.messages());
        }
    }

    /// Records `hours`.
    fn hours(&mut self, hours: i64) {
        let end = self.sampler.slot_ms + hours * HOUR_MS;
        self.until(|server| server.sampler.slot_ms >= end);
    }

    fn files(&self) -> Vec<(Numbers, Kind)> {
        let names = fs::read_dir(&self.directory).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<_> = names.filter_map(|name| parse_name(&name)).collect();
        files.retain(|file| file.1 != Kind::Temporary);
        files.sort();
        files
    }

    fn oldest(&self) -> u64 {
        self.files()[0].0.first
    }

    /// The number up to which files are shipped, from the file that tells
    /// retention.
    fn told(&self) -> Option<u64> {
        let names = fs::read_dir(&self.directory).unwrap();
        let mut names = names.map(|entry| entry.unwrap().path());
        let name = names.find(|path| is_shipped_name(path.file_name().unwrap().to_str().unwrap()));
        Some(
            Shipped::parse(&fs::read_to_string(name?).unwrap())
                .unwrap()
                .until,
        )
    }

    fn warnings(&self) -> Vec<&str> {
        let texts = self.messages.iter().map(|message| match message {
            Message::Log(text) | Message::Warning(text) => text.as_str(),
            Message::Error(text) | Message::Trouble(text) => text.as_str(),
        });
        texts.collect()
    }

    /// Ticks in the tape now.
    fn kept(&self) -> Ticks {
        let tape = Snapshot::open(&self.directory).unwrap();
        let nodes = tape.nodes();
        let mut kept = Ticks::new();
        for part in nodes.iter().flat_map(|node| tape.parts(node.id)) {
            for slot_ms in slots(part) {
                *kept.entry(slot_ms.div_euclid(HOUR_MS)).or_default() += 1;
            }
        }
        kept
    }
}

fn slots(part: &Part) -> Vec<i64> {
    part.ints("tick", "slot_time").unwrap().to_vec()
}

/// A store that is up as long as a file exists.
struct Store {
    root: tempfile::TempDir,
}

impl Store {
    fn new() -> Store {
        Store {
            root: tempfile::tempdir().unwrap(),
        }
    }

    fn is_up(&self, up: bool) {
        let file = self.root.path().join("up");
        match up {
            true => drop(File::create(file).unwrap()),
            false => fs::remove_file(file).unwrap(),
        }
    }

    fn ship(&self, tape: &Path) -> Output {
        self.ship_by(tape, "")
    }

    /// Ships by a command with a text at its end.
    fn ship_by(&self, tape: &Path, end: &str) -> Output {
        let root = self.root.path().display();
        let put = format!(
            "test -e {root}/up && f={root}/%n && mkdir -p \"${{f%%/*}}\" && cp %f \"$f\"{end}"
        );
        let list = format!("test -e {root}/up && {{ ls {root}/%n 2> {root}/none || true; }}");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacho-ship"));
        command.arg("--tape").arg(tape).arg("--tell-retention");
        let of_store = ["--server", "shop", "--command", &put, "--list", &list];
        command.args(of_store).output().unwrap()
    }

    /// Shipped ticks; each hour is shipped once.
    fn shipped(&self) -> Ticks {
        let days = fs::read_dir(self.root.path().join("ticks/server=shop")).unwrap();
        let files = days.flat_map(|day| fs::read_dir(day.unwrap().path()).unwrap());
        let mut shipped = Ticks::new();
        for file in files {
            let file = File::open(file.unwrap().path()).unwrap();
            let reader = SerializedFileReader::new(file).unwrap();
            let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
            let hour = row.get_column_iter().find(|cell| cell.0 == "hour").unwrap();
            let parquet::record::Field::TimestampMicros(us) = hour.1 else {
                panic!("{hour:?}");
            };
            let rows = reader.metadata().file_metadata().num_rows() as u64;
            assert_eq!(shipped.insert(us / 1_000 / HOUR_MS, rows), None);
        }
        shipped
    }
}

fn said(done: &Output) -> String {
    String::from_utf8(done.stderr.clone()).unwrap()
}

#[test]
fn unshipped_files_wait_for_the_store_up_to_a_bound() {
    let (tape, store) = (tempfile::tempdir().unwrap(), Store::new());
    let mut server = Server::start(tape.path());
    store.is_up(true);
    server.hours(2);
    let done = store.ship(tape.path());
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let first = server.told().unwrap();
    assert!(first > 0 && server.oldest() == 1);

    // The store is down: shipped files are removed at two hours, others stay.
    store.is_up(false);
    server.hours(4);
    let done = store.ship(tape.path());
    assert!(
        said(&done).starts_with("error: command failed"),
        "{}",
        said(&done)
    );
    assert_eq!((server.told(), server.oldest()), (Some(first), first + 1));
    assert_eq!(server.warnings(), Vec::<&str>::new());

    // The store comes back: no hour is missing.
    store.is_up(true);
    let done = store.ship(tape.path());
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
    let second = server.told().unwrap();
    assert!(second > first);
    let closed = |ticks: &Ticks, shipped: &Ticks| {
        let last = *shipped.keys().last().unwrap();
        let closed = ticks.iter().filter(|tick| *tick.0 <= last);
        closed
            .map(|(hour, ticks)| (*hour, *ticks))
            .collect::<Ticks>()
    };
    assert_eq!(store.shipped(), closed(&server.recorded, &store.shipped()));
    server.hours(3);
    assert!(server.oldest() > first + 1);

    // The store stays down: the directory is bounded, and a message names the
    // removed hours.
    store.is_up(false);
    server.until(|server| server.oldest() > second + 1);
    let told = "before it was shipped: the history exceeds \"tacho.retention_unshipped\"";
    let warnings = server.warnings();
    assert!(
        !warnings.is_empty() && warnings.iter().all(|text| text.ends_with(told)),
        "{warnings:?}"
    );
    assert!(server.writer.bytes() <= 1 << 20);
    server.hours(1);
    store.is_up(true);
    let done = store.ship(tape.path());
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));

    let lost = said(&done).matches("warning: history of ").count();
    assert!(
        lost > 0 && said(&done).contains(", not shipped yet\n"),
        "{}",
        said(&done)
    );

    // Everything that was not removed is shipped.
    let (shipped, kept) = (store.shipped(), server.kept());
    for (hour, ticks) in &closed(&kept, &shipped) {
        let known = [ticks, &server.recorded[hour]];
        assert!(
            known.contains(&&shipped[hour]),
            "{hour} {shipped:?} {kept:?}"
        );
    }
    let missing = closed(&server.recorded, &shipped);
    assert!(
        missing
            .iter()
            .any(|(hour, ticks)| shipped.get(hour) != Some(ticks))
    );
}

#[test]
fn a_note_of_an_earlier_command_is_named() {
    let (tape, store) = (tempfile::tempdir().unwrap(), Store::new());
    let mut server = Server::start(tape.path());
    store.is_up(true);
    server.hours(2);
    let first = store.ship(tape.path());
    assert!(!said(&first).contains("retention"), "{}", said(&first));
    let names = fs::read_dir(tape.path()).unwrap();
    let mut paths = names.map(|entry| entry.unwrap().path());
    let path = paths.find(|path| is_shipped_name(path.file_name().unwrap().to_str().unwrap()));
    let path = path.unwrap();
    let note = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = note.lines().collect();
    let id = path.to_str().unwrap().rsplit('-').next().unwrap();
    assert_eq!(
        [lines[0], lines[2], lines[3]],
        [
            "tacho shipped 1",
            &format!("place --command {id}"),
            "server shop"
        ]
    );
    assert!(
        lines[4].starts_with("time 20") && lines.len() == 5,
        "{note}"
    );

    // The old note keeps its number; the edited command has a note of its own.
    let told = |done: &Output| -> Option<String> {
        let text = said(done);
        let line = text.lines().find(|line| line.contains("retention"))?;
        Some(line.to_string())
    };
    let until = lines[1];
    let wanted = format!(
        "note: retention also waits for the destination of file \"{}\": --command {id}, server shop, {}, shipped {until}",
        path.display(),
        lines[4]
    );
    let second = store.ship_by(tape.path(), " # edited");
    assert_eq!(told(&second), Some(wanted.clone()));
    assert!(said(&second).contains("\nhint: Remove this file if you have given up"));
    assert_eq!(told(&store.ship_by(tape.path(), " # edited")), None);
    server.hours(1);
    let third = store.ship_by(tape.path(), " # edited");
    assert_eq!(third.status.code(), Some(0), "{}", said(&third));
    assert_eq!(told(&store.ship_by(tape.path(), " # edited")), Some(wanted));
    assert_eq!(fs::read_to_string(&path).unwrap(), note);
}

#[test]
fn an_unwritable_directory_is_reported_before_shipping() {
    let (tape, store) = (tempfile::tempdir().unwrap(), Store::new());
    let gone = tape.path().join("gone");
    let done = store.ship(&gone);
    let told = said(&done);
    let wanted = format!("error: could not write file \"{}/shipped-", gone.display());
    assert!(told.starts_with(&wanted), "{told}");
    let hint = "hint: Run tacho ship as the owner of the directory and on the history itself, not on a copy, or without --tell-retention.\n";
    assert!(told.ends_with(hint), "{told}");
    assert_eq!(done.status.code(), Some(1));
}
