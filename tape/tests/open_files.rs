//! A fleet of tapes keeps few files open, and answers as if all were open. Files are real;
//! descriptors are counted in `/proc`. There is one test, because descriptors belong to the whole
//! process.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tacho_tape::files::directory::{Kind, file_name};
use tacho_tape::files::storage::OsStorage;
use tacho_tape::query::{Field, QueryResult, Sink, Value};
use tacho_tape::testing::{Arguments, run, run_now};
use tacho_tape::testing::{Load, Sampler, schema};
use tacho_tape::write::seal::seal_log;
use tacho_tape::{Shared, Snapshot, Tape};

const TAPES: usize = 200;
/// Number of sealed files of a tape; it also has a log.
const SEALED: u64 = 3;
const THREADS: usize = 8;

/// A tape of sealed files and a log.
fn make(directory: &Path, seed: u64) {
    fs::create_dir_all(directory).unwrap();
    let storage = OsStorage::new(directory);
    let mut sampler = Sampler::new(seed, Load::default());
    for number in 1..=SEALED + 1 {
        let mut log = sampler.begin_log(9);
        (0..20).for_each(|_| log.extend(sampler.frame().0));
        fs::write(directory.join(file_name(number, Kind::Log)), log).unwrap();
        if number <= SEALED {
            seal_log(&storage, number, u64::MAX).unwrap();
        }
    }
}

#[derive(Default, PartialEq, Debug)]
struct Rows(Vec<String>);

impl Sink for Rows {
    fn begin(&mut self, fields: &[Field]) -> QueryResult<()> {
        self.0.push(format!("{}", fields.len()));
        Ok(())
    }

    fn row(&mut self, values: Vec<Value>) -> QueryResult<()> {
        self.0.push(format!("{values:?}"));
        Ok(())
    }
}

fn top(ask: impl FnOnce(&Arguments, &mut Rows) -> QueryResult<()>) -> Rows {
    let catalog = schema();
    let mut spec = Arguments::new(&catalog, 1_790_001_000_000_000);
    (spec.dimension, spec.since_us) = (Some("wait_event".into()), Some(1_789_999_000_000_000));
    let mut rows = Rows::default();
    ask(&spec, &mut rows).unwrap();
    rows
}

fn fresh(directory: &Path) -> Rows {
    let snapshot = Snapshot::open(directory).unwrap();
    top(|spec, rows| run("top", spec, &snapshot, rows))
}

fn of_tape(tape: &Tape) -> Rows {
    top(|spec, rows| run_now("top", spec, tape, rows))
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn two_hundred_tapes_keep_256_descriptors_and_answer_as_one_that_is_opened() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("open_files");
    let _ = fs::remove_dir_all(&root);
    let directory = |number: usize| root.join(format!("{number}"));
    let models = 5;
    for seed in 0..models {
        make(&directory(seed), seed as u64);
    }
    let expected: Vec<Rows> = (0..models).map(|seed| fresh(&directory(seed))).collect();
    let copies: Vec<PathBuf> = (models..TAPES).map(directory).collect();
    for (number, copy) in copies.iter().enumerate() {
        fs::create_dir(copy).unwrap();
        for entry in fs::read_dir(directory(number % models)).unwrap() {
            let from = entry.unwrap().path();
            fs::copy(&from, copy.join(from.file_name().unwrap())).unwrap();
        }
    }

    let shared = Shared::new(1 << 20);
    let open = |number| Tape::open(&directory(number), &shared);
    let tapes: Vec<Tape> = (0..TAPES).map(open).collect();
    let before = descriptors();
    let (next, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let ask = || {
        while let Some(tape) = {
            let number = next.fetch_add(1, Ordering::Relaxed);
            (number < 2 * TAPES).then_some(number % TAPES)
        } {
            assert_eq!(of_tape(&tapes[tape]), expected[tape % models]);
            most.fetch_max(descriptors(), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        (0..THREADS).for_each(|_| drop(scope.spawn(ask)));
    });
    let (most, after) = (most.into_inner() - before, descriptors() - before);
    // Each thread lists descriptors, and may hold a file for a moment.
    assert!(most <= 224 + 2 * THREADS, "{most}");
    assert!((200..=224).contains(&after), "{after}");
    fs::remove_dir_all(&root).unwrap();
}
