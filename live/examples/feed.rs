//! Writes a history as a server of 1,000 sessions would, a tick a second, for
//! `bench/live.sh`: `feed DIRECTORY ACTIVE_PERCENT SECONDS`. There are five
//! minutes already when it begins.

use std::io::{Error, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tacho_tape::testing::{Load, Sampler};

/// Seconds that are there at the begin.
const BEFORE: i64 = 300;

fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().ok_or(Error::other("an argument is missing"));
    let directory = PathBuf::from(next()?);
    let active: u64 = next()?.parse().map_err(Error::other)?;
    let seconds: u32 = next()?.parse().map_err(Error::other)?;
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
    let before = usize::try_from(BEFORE).unwrap_or(0);
    sampler.write_tape(&directory, before, &[])?;
    let log = directory.join("0000000001.open");
    let mut log = std::fs::File::options().append(true).open(log)?;
    let begun = Instant::now();
    for second in 0..seconds {
        log.write_all(&sampler.frame().0)?;
        let next = Duration::from_secs(u64::from(second) + 1);
        std::thread::sleep(next.saturating_sub(begun.elapsed()));
    }
    Ok(())
}
