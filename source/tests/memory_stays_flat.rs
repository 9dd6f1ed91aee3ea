//! A process that answers many questions about a growing history uses no more
//! memory than the limit of its cache.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use tacho_source::memory::{Counting, used};
use tacho_tape::files::directory::{Kind, file_name};
use tacho_tape::files::storage::OsStorage;
use tacho_tape::query::{self, Field, QueryResult, Sink, Value};
use tacho_tape::testing::{self, Arguments, Load, Random, Sampler};
use tacho_tape::write::seal::seal_log;
use tacho_tape::{Schema, Shared, Tape};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most bytes of kept columns: fewer than the questions decode.
const CACHE: u64 = 256 << 10;
/// Largest difference of memory in use between two rounds. Differences mostly
/// come from other columns in the cache. A loss of 330 bytes per question would
/// exceed this in four rounds.
const SLACK: u64 = 128 << 10;

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Rows(usize);

impl Sink for Rows {
    fn begin(&mut self, _: &[Field]) -> QueryResult<()> {
        Ok(())
    }

    fn row(&mut self, _: Vec<Value>) -> QueryResult<()> {
        self.0 += 1;
        Ok(())
    }
}

/// Writes twelve sealed files of two minutes and an open log. Returns the
/// sampler, and the slot time of the first tick.
fn history(directory: &Path) -> (i64, Sampler) {
    let load = Load {
        sessions: 20,
        ..Load::default()
    };
    let mut sampler = Sampler::new(7, load);
    let begin_ms = sampler.slot_ms;
    let storage = OsStorage::new(directory);
    for number in 1..=13 {
        let mut log = sampler.begin_log(7);
        (0..120).for_each(|_| log.extend(sampler.frame().0));
        std::fs::write(directory.join(file_name(number, Kind::Log)), log).unwrap();
        if number < 13 {
            seal_log(&storage, number, u64::MAX).unwrap();
        }
    }
    (begin_ms, sampler)
}

/// A random function about a random piece of the history.
fn ask(
    tape: &Tape,
    catalog: &Schema,
    random: &mut Random,
    (begin_ms, end_ms): (i64, i64),
) -> usize {
    let functions = query::list();
    let function = &functions[random.below(functions.len() as u64) as usize];
    let mut spec = Arguments::new(catalog, 1_000 * end_ms);
    let length = random.below((end_ms - begin_ms) as u64) as i64;
    let since = begin_ms + random.below((end_ms - begin_ms - length + 1) as u64) as i64;
    spec.since_us = Some(1_000 * since);
    spec.until_us = Some(1_000 * (since + length).max(since + 1_000));
    if function.name == "compare" {
        spec.before = (spec.since_us, spec.until_us);
    }
    let dimensions = ["wait_event", "query_id", "username", "pid", "root_blocker"];
    if function.name == "top" {
        let dimension = dimensions[random.below(5) as usize];
        spec.dimension = Some(dimension.into());
    }
    spec.threads = 4;
    let mut rows = Rows(0);
    let done = testing::run_now(function.name, &spec, tape, &mut rows);
    done.unwrap_or_else(|error| panic!("{}: {error:?}", function.name));
    rows.0
}

#[test]
fn memory_stays_flat_over_many_questions_of_a_history_that_grows() {
    let path = std::env::temp_dir().join(format!("tacho-flat-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let scratch = Scratch(path);
    std::fs::create_dir(&scratch.0).unwrap();
    let (begin_ms, mut sampler) = history(&scratch.0);
    let catalog = tacho_tape::catalog::samples();
    let shared = Shared::new(CACHE);
    let tape = Tape::open(&scratch.0, &shared);
    let log = scratch.0.join(file_name(13, Kind::Log));
    let mut random = Random(3);
    let mut rows = 0;
    let mut round = || {
        for _ in 0..100 {
            rows += ask(&tape, &catalog, &mut random, (begin_ms, sampler.slot_ms));
        }
        let mut bytes = std::fs::read(&log).unwrap();
        bytes.extend(sampler.frame().0);
        std::fs::write(&log, bytes).unwrap();
        used()
    };
    round();
    let first = round();
    let others: Vec<u64> = (0..4).map(|_| round()).collect();
    for used in &others {
        assert!(used.abs_diff(first) <= SLACK, "{first}, then {others:?}");
    }
    assert!(shared.bytes() <= CACHE && rows > 1_000, "{rows} rows");
}
