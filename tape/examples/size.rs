//! Bytes per session-sample in logs, blocks and day files, and speed of sealing and merging, for
//! random load, as Markdown:
//! `cargo run --release -p tacho-tape --features testing --example size [NAME]`.
//! Speed is rows per second of CPU time.

use std::sync::atomic::AtomicBool;
use tacho_tape::files::directory::{Kind, Numbers, file_name};
use tacho_tape::testing::memory::MemoryStorage;
use tacho_tape::testing::{Load, Sampler};
use tacho_tape::write::merge::{MergeJob, merge};
use tacho_tape::write::seal::seal_log;

/// Sessions that change at half of their samples.
fn load(sessions: usize) -> Load {
    Load {
        sessions,
        active: 60,
        same: 50,
        trouble: 0,
        churn: 0,
        queries: 200,
        ..Load::default()
    }
}

/// All sessions at each tick, each sample unlike the one before.
fn wild(sessions: usize) -> Load {
    Load {
        active: 100,
        same: 0,
        ..load(sessions)
    }
}

fn main() -> tacho_tape::Result<()> {
    println!(
        "| Load | Samples | Log, B a sample | Blocks | Merged | Sealed, M rows/s | Merged, M rows/s |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for sessions in [10, 50, 100, 200, 500, 1_000] {
        let name = format!("{sessions} sessions, 1 s, an hour");
        measure(&name, load(sessions), 6, 600)?;
    }
    measure("50 sessions, all executions new", wild(50), 6, 600)?;
    measure("500 sessions, all executions new", wild(500), 6, 600)?;
    for sessions in [50, 200, 1_000] {
        let load = Load {
            interval_ms: 10,
            ticks_per_frame: 100,
            same: 99,
            ..load(sessions)
        };
        let name = format!("{sessions} sessions, 10 ms, a minute");
        measure(&name, load, 6, 10)?;
    }
    measure("no session, 1 s, a day", load(0), 144, 600)
}

/// CPU time of this thread, which does all the work.
fn cpu_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = times.split(' ').next().and_then(|ns| ns.parse().ok());
    ns.unwrap_or(f64::NAN) / 1e9
}

/// Seals and merges logs with `frames` frames each. With an argument, only if the name contains it.
fn measure(name: &str, load: Load, logs: u64, frames: usize) -> tacho_tape::Result<()> {
    if std::env::args().nth(1).is_some_and(|a| !name.contains(&a)) {
        return Ok(());
    }
    let mut sampler = Sampler::new(1, load);
    let storage = MemoryStorage::new();
    let (mut samples, mut log) = (0, 0);
    for number in 1..=logs {
        let mut bytes = sampler.begin_log(0);
        for _ in 0..frames {
            let (frame, _, seen) = sampler.frame();
            bytes.extend(frame);
            samples += seen.len();
        }
        log += bytes.len() as u64;
        storage.put(&file_name(number, Kind::Log), &bytes);
    }
    let begin = cpu_seconds();
    let mut sealed = 0;
    for number in 1..=logs {
        sealed += seal_log(&storage, number, u64::MAX)?.bytes;
    }
    let seal_seconds = cpu_seconds() - begin;
    let job = MergeJob {
        files: (1..=logs).map(Numbers::one).collect(),
        thin_ms: None,
        text_limit: u64::MAX,
    };
    let begin = cpu_seconds();
    let merged = merge(&storage, &job, &AtomicBool::new(false))?;
    let merge_seconds = cpu_seconds() - begin;
    let merged = merged.map_or(0, |m| m.bytes);
    if samples == 0 {
        println!("| {name} | 0 | {log} B | {sealed} B | {merged} B | | |");
        return Ok(());
    }
    let per = |bytes: u64| bytes as f64 / samples as f64;
    let speed = |seconds: f64| samples as f64 / seconds / 1e6;
    println!(
        "| {name} | {samples} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
        per(log),
        per(sealed),
        per(merged),
        speed(seal_seconds),
        speed(merge_seconds)
    );
    Ok(())
}
