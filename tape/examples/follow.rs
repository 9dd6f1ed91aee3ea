//! Measures the time from the write of a tick until a reader that follows the tape sees it:
//! `follow DIR [SECONDS]` refreshes a tape that is being written and asks for new samples, again
//! and again. Each tick must have samples, so at least one session must always be active.
//!
//! Prints the number of ticks, and the number of tick numbers between them without rows (slots
//! without a tick have none). Also prints ms from the last write in the directory to the rows.
//! Below a second the sampler writes all ticks of a second at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tacho_tape::catalog::samples;
use tacho_tape::query::{Context, QueryResult, Samples};
use tacho_tape::{Shared, Tape};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(2);
const SECOND: i64 = 1_000_000;

fn main() -> QueryResult<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = args.first() else {
        eprintln!("usage: follow DIR [SECONDS]");
        std::process::exit(2);
    };
    let seconds = args.get(1).and_then(|seconds| seconds.parse().ok());
    let tape = Tape::open(Path::new(directory), &Shared::default());
    let begin = now_us();
    let end = begin + seconds.unwrap_or(60) * SECOND;
    let catalog = samples();
    let (mut seen, mut newest) = (BTreeMap::new(), begin);
    while now_us() < end {
        let question = Samples {
            since: Some(newest + 1),
            n: None,
            ..Samples::default()
        };
        let context = Context::new(&catalog, now_us());
        let rows = tape.refresh()?.samples(&question, &context)?.rows;
        let lag = now_us() - written_us(directory);
        for (tick, time) in rows.iter().filter_map(|row| row.tick.zip(row.sample_time)) {
            newest = newest.max(time);
            seen.entry(tick).or_insert(lag);
        }
        std::thread::sleep(PAUSE);
    }
    println!("{}", told(seen));
    Ok(())
}

fn now_us() -> i64 {
    us(SystemTime::now())
}

fn us(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}

/// Time of the last write to a file.
fn written_us(directory: &str) -> i64 {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let written = files.filter_map(|file| file.metadata().ok()?.modified().ok());
    written.map(us).max().unwrap_or(0)
}

/// Reports, from each tick's number and its delay in µs.
fn told(seen: BTreeMap<i64, i64>) -> String {
    let (Some(first), Some(last)) = (seen.keys().next(), seen.keys().last()) else {
        return "no tick was seen".to_string();
    };
    let missing = last - first + 1 - seen.len() as i64;
    let mut lags: Vec<i64> = seen.values().copied().collect();
    lags.sort_unstable();
    let at = |percent: usize| lags[(lags.len() - 1) * percent / 100] as f64 / 1_000.0;
    let [middle, most_of, most] = [50, 99, 100].map(at);
    format!(
        "{} ticks, {missing} numbers without rows; seen after {middle:.1} ms in the middle, {most_of:.1} at 99 %, {most:.1} at most",
        seen.len()
    )
}
