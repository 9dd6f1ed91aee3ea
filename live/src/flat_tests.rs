//! A terminal that follows a history for hours uses no more memory than after
//! some minutes.

use crate::paint::Depth;
use crate::views_tests::{Seen, paint};
use crossterm::event::KeyCode::{self, Char, Down, Enter, Esc, Left};
use std::path::Path;
use std::process::Command;
use tacho_source::memory::{Counting, used};
use tacho_tape::files::directory::{Kind, file_name};
use tacho_tape::files::storage::OsStorage;
use tacho_tape::testing::{Load, Sampler};
use tacho_tape::write::seal::seal_log;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Set if this test runs alone in its process: memory is counted per process.
const ALONE: &str = "TACHO_LIVE_ALONE";
const NAME: &str = "flat_tests::memory_stays_flat_over_a_thousand_refreshes";
/// Number of ticks in a log, and number of sealed files that are kept.
const LOG: u64 = 20;
const KEPT: u64 = 8;
/// Number of ticks in a round.
const ROUND: u64 = 8 * LOG;
/// Largest difference between two rounds, in bytes. A loss of 100 bytes per
/// refresh would exceed it after four rounds.
const SLACK: u64 = 64 << 10;

/// Writes a history, seals it and removes old files, as a recorder does.
struct Writer<'a> {
    directory: &'a Path,
    sampler: Sampler,
    number: u64,
    bytes: Vec<u8>,
    ticks: u64,
}

impl Writer<'_> {
    fn tick(&mut self) {
        if self.ticks.is_multiple_of(LOG) {
            let storage = OsStorage::new(self.directory);
            if self.number > 0 {
                seal_log(&storage, self.number, u64::MAX).unwrap();
            }
            if self.number > KEPT {
                let old = file_name(self.number - KEPT, Kind::Sealed);
                std::fs::remove_file(self.directory.join(old)).unwrap();
            }
            self.bytes = self.sampler.begin_log(7);
            self.number += 1;
        }
        self.ticks += 1;
        self.bytes.extend(self.sampler.frame().0);
        let log = self.directory.join(file_name(self.number, Kind::Log));
        std::fs::write(log, &self.bytes).unwrap();
    }
}

/// Every list, with and without a cursor, and back.
const WAYS: [&[KeyCode]; 8] = [
    &[],
    &[Enter, Down, Enter],
    &[Esc, Esc, Char('q')],
    &[Char('s'), Enter, Esc],
    &[Char('b')],
    &[Left, Left, Char('e'), Char('v')],
    &[
        Char('v'),
        Char('v'),
        Char('v'),
        Char('w'),
        Esc,
        Char('c'),
        Char('q'),
        Char('p'),
    ],
    &[Char('x'), Esc, Esc, Esc, Esc],
];

fn follow() {
    let path = std::env::temp_dir().join(format!("tacho-live-flat-{}", std::process::id()));
    let scratch = crate::common::Scratch(path.clone());
    std::fs::create_dir_all(&path).unwrap();
    let load = Load {
        sessions: 12,
        // The picture is full of history after half a round.
        interval_ms: 5_000,
        queries: 50,
        ..Load::default()
    };
    let mut writer = Writer {
        directory: &path,
        sampler: Sampler::new(7, load),
        number: 0,
        bytes: Vec::new(),
        ticks: 0,
    };
    writer.tick();
    let mut seen = Seen::new(&path, (80, 24), paint(Depth::True, false), None);
    let mut ends = Vec::new();
    let mut round = || {
        for tick in 0..ROUND {
            writer.tick();
            seen.now = 1_000 * writer.sampler.slot_ms;
            seen.look();
            if tick.is_multiple_of(ROUND / 8) {
                let way = WAYS[usize::try_from(8 * tick / ROUND).unwrap()];
                seen.press(way);
            }
            seen.buffer();
            ends.push(seen.app.view.end);
        }
        used() - u64::try_from(writer.bytes.capacity()).unwrap()
    };
    // The kept files and the cache of columns fill up.
    round();
    let first = round();
    let others: Vec<u64> = (0..5).map(|_| round()).collect();
    for used in &others {
        assert!(used.abs_diff(first) <= SLACK, "{first}, then {others:?}");
    }
    // Every refresh has seen a tick.
    assert!(ends.windows(2).all(|two| two[0] < two[1]));
    drop(scratch);
}

#[test]
fn memory_stays_flat_over_a_thousand_refreshes() {
    if std::env::var_os(ALONE).is_some() {
        return follow();
    }
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", NAME, "--nocapture"]).env(ALONE, "1");
    let output = alone.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
