//! Measures the time of a refresh. `refresh DIR [DAYS]` makes a directory of a year and a log, and
//! prints µs of refreshes without new history and with one new tick.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use tacho_tape::files::directory::{Kind, Numbers, file_name};
use tacho_tape::files::storage::{OsStorage, Storage};
use tacho_tape::format::log::LogHeader;
use tacho_tape::testing::repeat::repeat_day;
use tacho_tape::testing::{Load, Sampler, log_bytes};
use tacho_tape::write::merge::{MergeJob, merge};
use tacho_tape::write::seal::seal_log;
use tacho_tape::{Error, Identity, Result, Shared, Tape};

/// Number of ticks in a log of the year, one a minute.
const LOG_TICKS: u64 = 60;
const DAY_TICKS: u64 = 24 * LOG_TICKS;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = args.first() else {
        eprintln!("usage: refresh DIR [DAYS]");
        std::process::exit(2);
    };
    let directory = Path::new(directory);
    let days = args.get(1).and_then(|days| days.parse().ok());
    let days = days.unwrap_or(365);
    let storage = OsStorage::new(directory);
    year(directory, &storage, days)?;
    let mut sampler = Sampler::new(2, Load::default());
    sampler.slot_ms += 2 * 86_400_000;
    let header = header(2, (days + 2) * DAY_TICKS);
    let mut frames = vec![sampler.hello(&[])];
    frames.extend((0..300).map(|_| sampler.frame().0));
    let log = directory.join(file_name(days + 2, Kind::Log));
    write(&log, &log_bytes(&header, &frames))?;

    let tape = Tape::open(directory, &Shared::default());
    let refresh = || -> Result<f64> {
        let begin = Instant::now();
        tape.refresh()?;
        Ok(begin.elapsed().as_secs_f64() * 1e6)
    };
    println!("first: {:.0} µs", refresh()?);
    // If a directory changed a moment ago, every refresh lists it.
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    println!("second: {:.0} µs", refresh()?);
    let (mut nothing, mut tick) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        write(&log, &sampler.frame().0)?;
        tick.push(refresh()?);
        nothing.push(refresh()?);
    }
    println!("nothing new: {}", spread(nothing));
    println!("one tick: {}", spread(tick));
    Ok(())
}

fn spread(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    format!(
        "{:.0} µs at least, {:.0} in the middle, {:.0} at 95 %",
        at(0),
        at(50),
        at(95)
    )
}

fn header(incarnation: u64, tick_base: u64) -> LogHeader {
    LogHeader {
        identity: Identity {
            node: 9,
            ..Identity::default()
        },
        incarnation,
        tick_base,
        first_sequence: 1,
        created_ms: 0,
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path);
    let done = file.and_then(|mut file| file.write_all(bytes));
    done.map_err(|e| Error::io("write file", path, e))
}

/// A day of 24 groups, repeated.
fn year(directory: &Path, storage: &OsStorage, days: u64) -> Result<()> {
    let load = Load {
        interval_ms: 60_000,
        ..Load::default()
    };
    let mut sampler = Sampler::new(1, load);
    sampler.slot_ms = 1_790_035_200_000;
    for number in 1..=24 {
        let header = LogHeader {
            first_sequence: sampler.sequence,
            ..header(1, 0)
        };
        sampler.forget();
        let mut frames = vec![sampler.hello(&[])];
        frames.extend((0..LOG_TICKS).map(|_| sampler.frame().0));
        let log = directory.join(file_name(number, Kind::Log));
        write(&log, &log_bytes(&header, &frames))?;
        seal_log(storage, number, u64::MAX)?;
    }
    let day = Numbers { first: 1, last: 24 };
    let job = MergeJob {
        files: (1..=24).map(Numbers::one).collect(),
        thin_ms: None,
        text_limit: u64::MAX,
    };
    merge(storage, &job, &AtomicBool::new(false))?;
    let one = file_name(1, Kind::Sealed);
    let renamed = storage.rename(&day.name(Kind::Sealed), &one);
    renamed.map_err(|e| Error::io("rename file", directory, e))?;
    repeat_day(storage, 1, days)
}
