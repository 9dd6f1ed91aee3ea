//! Makes a day from one recorded hour. `played DIR` keeps the six sealed files of an hour at the
//! begin of a directory. It repeats them 24 times with new times; the last repetition has the
//! original times. It merges all into one file. Prints the length in bytes of the hour's files, of
//! their copies and of the merged file. Then: `tacho inspect --sizes DIR`.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use tacho_tape::error::Error;
use tacho_tape::files::directory::{HistoryFile, list};
use tacho_tape::files::storage::{OsStorage, Storage};
use tacho_tape::testing::repeat::repeat;
use tacho_tape::write::merge::{MergeJob, merge};

const HOUR_MS: i64 = 3_600_000;
const FILES: usize = 6;
const TIMES: u64 = 24;

fn main() -> tacho_tape::Result<()> {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: played DIR");
        std::process::exit(2);
    };
    let storage = OsStorage::new(Path::new(&directory));
    let files = list(&storage)?;
    let (hour, others) = files.split_at_checked(FILES).unwrap_or((&files, &[]));
    let remove = |file: &HistoryFile| storage.remove(&file.name());
    let removed = others.iter().try_for_each(remove);
    removed.map_err(|e| Error::io("remove file", storage.directory(), e))?;
    let hour: Vec<u64> = hour.iter().map(|file| file.numbers.first).collect();
    let recorded = bytes(&storage)?;
    repeat(&storage, &hour, TIMES, HOUR_MS)?;
    let played = bytes(&storage)?;
    let job = MergeJob {
        files: list(&storage)?.iter().map(|file| file.numbers).collect(),
        thin_ms: None,
        text_limit: u64::MAX,
    };
    merge(&storage, &job, &AtomicBool::new(false))?;
    let merged = bytes(&storage)?;
    println!("hour {recorded} B, played {TIMES} times {played} B, merged {merged} B");
    Ok(())
}

/// Length of a directory's history files in bytes.
fn bytes(storage: &OsStorage) -> tacho_tape::Result<u64> {
    list(storage)?.iter().try_fold(0, |sum, file| {
        let path = storage.directory().join(file.name());
        let found = std::fs::metadata(&path).map_err(|e| Error::io("look at file", &path, e));
        Ok(sum + found?.len())
    })
}
