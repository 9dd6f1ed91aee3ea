//! Files of every version of the format of sealed files, and their contents as text. The present
//! reader must read the same contents. Until the present version is released,
//! `TACHO_GOLDEN=write cargo test -p tacho-tape --features testing --test golden`
//! writes its files again after the bytes change.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tacho_tape::files::directory::{Kind, Numbers};
use tacho_tape::files::storage::{OsStorage, Storage};
use tacho_tape::format::log::LogHeader;
use tacho_tape::format::schema::ColumnType;
use tacho_tape::testing::{Load, Sampler, log_bytes};
use tacho_tape::write::merge::{MergeJob, merge};
use tacho_tape::write::seal::seal_log;
use tacho_tape::{Part, Snapshot};

fn versions() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = std::fs::read_dir(golden).unwrap();
    let mut versions: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    versions.sort();
    versions
}

/// Every table of a part, column by column. Columns of zeros are left out.
fn describe(part: &Part, out: &mut String) {
    let info = part.info();
    let name = info.file.file_name().unwrap().to_string_lossy();
    writeln!(
        out,
        "part {name} ticks {} to {} times {} to {} {:?}",
        info.first_tick, info.last_tick, info.min_ms, info.max_ms, info.identity
    )
    .unwrap();
    for table in &part.schema().tables {
        for column in &table.columns {
            let (t, c) = (&table.name, &column.name);
            if column.ty == ColumnType::Bytes {
                let strings = part.bytes(t, c).unwrap();
                let strings: Vec<_> = strings.iter().map(String::from_utf8_lossy).collect();
                if strings.iter().any(|s| !s.is_empty()) {
                    writeln!(out, "  {t}.{c} {strings:?}").unwrap();
                }
                continue;
            }
            let numbers = part.ints(t, c).unwrap();
            if numbers.iter().any(|n| *n != 0) {
                writeln!(out, "  {t}.{c} {:?}", &numbers[..]).unwrap();
            }
        }
    }
}

fn answer(directory: &Path) -> String {
    let store = Snapshot::open(directory).unwrap();
    assert_eq!(store.damage(), []);
    let mut out = String::new();
    for node in store.nodes() {
        store
            .parts(node.id)
            .for_each(|part| describe(part, &mut out));
    }
    out
}

/// A sealed file, a log, and a merged file with thinned statistics: some minutes of three sessions.
fn write(directory: &Path) {
    let load = Load {
        sessions: 3,
        ticks_per_frame: 2,
        queries: 4,
        ..Load::default()
    };
    let mut sampler = Sampler::new(1, load);
    for number in 1..=4 {
        let mut header = LogHeader {
            incarnation: 5,
            first_sequence: sampler.sequence,
            ..LogHeader::default()
        };
        header.identity.node = 0xA1;
        header.identity.system_identifier = 77;
        sampler.forget();
        let mut frames = vec![sampler.hello(&[])];
        frames.extend((0..10).map(|_| sampler.frame().0));
        let log = directory.join(format!("{number:010}.open"));
        std::fs::write(log, log_bytes(&header, &frames)).unwrap();
    }
    let storage = OsStorage::new(directory);
    let job = MergeJob {
        files: vec![Numbers::one(3), Numbers::one(4)],
        thin_ms: Some(600_000),
        text_limit: u64::MAX,
    };
    for numbers in [Numbers::one(1), job.numbers()] {
        let _ = storage.remove(&numbers.name(Kind::Sealed));
    }
    for number in [1, 3, 4] {
        seal_log(&storage, number, u64::MAX).unwrap();
    }
    merge(&storage, &job, &AtomicBool::new(false)).unwrap();
}

#[test]
fn files_of_every_version_give_the_same_answers() {
    let versions = versions();
    assert!(!versions.is_empty());
    let renew = std::env::var_os("TACHO_GOLDEN").is_some_and(|v| v == "write");
    for (index, version) in versions.iter().enumerate() {
        let expected = version.join("answer.txt");
        if renew && index + 1 == versions.len() {
            write(version);
            std::fs::write(&expected, answer(version)).unwrap();
        }
        let expected = std::fs::read_to_string(&expected).unwrap();
        let got = answer(version);
        let mut lines = got.lines().zip(expected.lines());
        let first = lines.find(|(got, expected)| got != expected);
        assert_eq!(first, None, "{}", version.display());
        assert_eq!(got.lines().count(), expected.lines().count());
    }
}
