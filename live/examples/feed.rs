//! Writes the history of a server with 1,000 sessions, a tick per second, for `bench/live.sh`:
//! `feed DIRECTORY ACTIVE_PERCENT SECONDS [SPEED]`. SPEED is a factor of time; the file
//! `DIRECTORY.clock` has the current time (`bench/clock.c`). At the start there are forty minutes
//! already, more than 200 columns show. Logs are sealed as the writer does, and sealed files are
//! kept for an hour.

use std::fs::{File, remove_file};
use std::io::{Error, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tacho_tape::files::directory::{Kind, file_name};
use tacho_tape::files::storage::OsStorage;
use tacho_tape::testing::{Load, Sampler};
use tacho_tape::write::seal::seal_log;
use tacho_tape::write::writer::{LOG_MS, LOG_ROWS};

/// Seconds of history at the start.
const BEFORE: i64 = 2_400;
/// Sealed files that are kept.
const KEPT: u64 = 7;

fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().ok_or(Error::other("an argument is missing"));
    let directory = PathBuf::from(next()?);
    let active: u64 = next()?.parse().map_err(Error::other)?;
    let seconds: u32 = next()?.parse().map_err(Error::other)?;
    let speed: u32 = next().map_or(Ok(1), |word| word.parse().map_err(Error::other))?;
    std::fs::create_dir_all(&directory)?;
    let load = Load {
        sessions: 1_000,
        active,
        same: 80,
        trouble: 0,
        queries: 500,
        ..Load::default()
    };
    let mut sampler = Sampler::new(7, load);
    let now_s = jiff::Timestamp::now().as_second();
    sampler.slot_ms = (now_s - BEFORE) * 1_000;
    // A log has a limit of rows and of time: this number of ticks fits.
    let rows_a_tick = active * 10;
    let ticks = (LOG_ROWS / rows_a_tick).min(LOG_MS as u64 / 1_000);
    let (mut number, mut left) = (0, 0);
    let mut log = None;
    let mut tick = |sampler: &mut Sampler| {
        if left == 0 {
            number += 1;
            left = ticks;
            log = Some(begin(&directory, number, sampler)?);
        }
        left -= 1;
        log.as_mut()
            .map_or(Ok(()), |log: &mut File| log.write_all(&sampler.frame().0))
    };
    (0..BEFORE).try_for_each(|_| tick(&mut sampler))?;
    let clock = File::create(directory.with_extension("clock"))?;
    let begun = Instant::now();
    for second in 0..seconds {
        tick(&mut sampler)?;
        clock.write_all_at(&time_us(&sampler).to_ne_bytes(), 0)?;
        let next = Duration::from_secs(u64::from(second) + 1) / speed.max(1);
        std::thread::sleep(next.saturating_sub(begun.elapsed()));
    }
    Ok(())
}

/// End of the second of the last written tick.
fn time_us(sampler: &Sampler) -> i64 {
    (sampler.slot_ms + 1_000) * 1_000
}

/// Begins a log and seals the previous one.
fn begin(directory: &Path, number: u64, sampler: &mut Sampler) -> Result<File, Error> {
    let path = directory.join(file_name(number, Kind::Log));
    std::fs::write(&path, sampler.begin_log(7))?;
    if number > 1 {
        let storage = OsStorage::new(directory);
        seal_log(&storage, number - 1, u64::MAX).map_err(Error::other)?;
    }
    if number > KEPT {
        remove_file(directory.join(file_name(number - KEPT, Kind::Sealed)))?;
    }
    File::options().append(true).open(path)
}
