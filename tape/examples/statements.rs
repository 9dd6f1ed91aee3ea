//! A random day of statistics of statements as CSV for `tacho import statements -`, and the same
//! day after thinning: `statements day [ENTRIES]`, `statements thin DIR MINUTES`.
//!
//! Executions follow Zipf's law and a daily curve. Their number is such that in a minute a random
//! half of the entries have none. Time, CPU, blocks and histogram of each minute vary
//! independently. The same arguments give the same bytes. `thin` rewrites the day file of a
//! directory as the writer does when the file is older than a tier.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tacho_tape::files::directory::{self, Kind};
use tacho_tape::files::storage::OsStorage;
use tacho_tape::testing::Random;
use tacho_tape::write::merge::{MergeJob, merge};

const BUCKETS: usize = 24;
const COLUMNS: &str = "time,elapsed_ms,user_oid,username,database_oid,database,query_id,toplevel,\
calls,total_exec_time,square_exec_time,rows,shared_blks_hit,shared_blks_read,\
shared_blks_dirtied,shared_blks_written,temp_blks_read,temp_blks_written,shared_blk_read_time,\
wal_records,wal_fpi,wal_bytes,user_time,system_time,run_queue_time,read_bytes,minor_faults,\
voluntary_switches,involuntary_switches,n_sampled,errors";

/// An entry, and the cost of one of its executions.
struct Entry {
    query_id: i64,
    user: u64,
    database: u64,
    /// Executions a minute.
    rate: f64,
    /// Mean time in µs.
    mean: f64,
    rows: u64,
    blocks: u64,
    /// Number of blocks that are read, of a hundred.
    read: u64,
    writes: bool,
    sorts: bool,
}

fn share(random: &mut Random) -> f64 {
    random.below(1 << 53) as f64 / (1_u64 << 53) as f64
}

/// Approximates a normal distribution with mean 0 and deviation 1.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| share(random)).sum::<f64>() - 6.0
}

/// A random number of events whose expected number is `expected`.
fn happens(random: &mut Random, expected: f64) -> u64 {
    if expected > 50.0 {
        return (expected + normal(random) * expected.sqrt()).max(0.0) as u64;
    }
    let (limit, mut n, mut p) = ((-expected).exp(), 0, share(random));
    while p > limit {
        n += 1;
        p *= share(random);
    }
    n
}

/// Executions a minute of the most frequent entry. Entry number i has an i-th of this rate. With
/// it, half of the entries are expected to be idle in a minute.
fn busiest(entries: usize) -> f64 {
    let idle = |c: f64| (1..=entries).map(|i| (-c / i as f64).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 10.0 * entries as f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if idle(middle) > entries as f64 / 2.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn entries(random: &mut Random, n: usize) -> Vec<Entry> {
    let most = busiest(n);
    let entry = |i: usize| Entry {
        query_id: (random.below(1 << 32) << 32 | random.below(1 << 32)) as i64,
        user: random.below(8),
        database: random.below(4),
        rate: most / (i + 1) as f64,
        mean: (share(random) * 8.0 + 3.0).exp(),
        rows: [0, 1, 1, 1, 10, 100][random.below(6) as usize],
        blocks: 3 + (share(random) * 6.0).exp() as u64,
        read: [0, 0, 1, 5][random.below(4) as usize],
        writes: random.chance(20),
        sorts: random.chance(3),
    };
    (0..n).map(entry).collect()
}

/// One row: the counts of an entry in a minute. Times are in units of 10 µs.
fn row(random: &mut Random, entry: &Entry, calls: u64) -> (Vec<u64>, [u64; BUCKETS]) {
    let mut histogram = [0; BUCKETS];
    let (mut total, mut square) = (0.0, 0.0);
    // At most 64 executions are drawn; each stands for several if there are more.
    let draws = calls.min(64);
    for draw in 0..draws {
        let stands_for = calls / draws + u64::from(draw < calls % draws);
        let us = entry.mean * (normal(random) * 0.5).exp();
        histogram[(us.max(1.0).log2() as usize).min(BUCKETS - 1)] += stands_for;
        total += us * stands_for as f64;
        square += us * us * stands_for as f64;
    }
    let blocks = happens(random, (calls * entry.blocks) as f64);
    let read = happens(random, (blocks * entry.read) as f64 / 100.0).min(blocks);
    let sampled = match entry.rate > 4.0 && entry.mean < 10_000.0 {
        true => 16 * happens(random, calls as f64 / 16.0),
        false => calls,
    };
    let cpu = total * sampled as f64 / calls as f64 / 10.0;
    let written = u64::from(entry.writes) * calls;
    let sorted = u64::from(entry.sorts) * calls * 8;
    let wal = happens(random, written as f64 * 3.0);
    let values = vec![
        calls,
        (total / 10.0) as u64,
        (square / 10_000.0) as u64,
        happens(random, (calls * entry.rows) as f64),
        blocks - read,
        read,
        happens(random, written as f64 * 0.8),
        0,
        sorted,
        sorted,
        read * (3 + random.below(20)),
        wal,
        happens(random, written as f64 * 0.02),
        wal * (60 + random.below(40)),
        (cpu * (0.6 + 0.2 * share(random))) as u64,
        (cpu * 0.1 * share(random)) as u64,
        (cpu * 0.05 * share(random)) as u64,
        if read > 0 {
            happens(random, read as f64 / 4.0) * 8192
        } else {
            0
        },
        happens(random, sampled as f64 * 0.2),
        happens(random, read as f64),
        happens(random, cpu / 400.0),
        sampled,
        happens(random, calls as f64 / 2_000.0),
    ];
    (values, histogram)
}

/// Time from the last of `calls` calls to the end of their minute, in ms plus 1.
fn since_call(random: &mut Random, calls: u64) -> u64 {
    let last = share(random).powf(1.0 / calls as f64);
    1 + (60_000.0 * (1.0 - last)) as u64
}

fn day(out: &mut impl Write, n: usize) -> io::Result<()> {
    let mut random = Random(5);
    let mut random_calls = Random(6);
    let entries = entries(&mut random, n);
    write!(out, "{COLUMNS}")?;
    for bucket in 0..BUCKETS {
        write!(out, ",histogram_{bucket}")?;
    }
    writeln!(out, ",since_call_ms")?;
    for minute in 0..1_440 {
        let angle = f64::from(minute) / 1_440.0 * std::f64::consts::TAU;
        let load = 1.0 - 0.5 * angle.cos();
        let time = format!("2026-03-02T{:02}:{:02}:59Z", minute / 60, minute % 60);
        for entry in &entries {
            let calls = happens(&mut random, entry.rate * load);
            if calls == 0 {
                continue;
            }
            let (
                Entry {
                    user,
                    database,
                    query_id,
                    ..
                },
                (values, histogram),
            ) = (entry, row(&mut random, entry, calls));
            write!(
                out,
                "{time},60000,{0},user_{user},{1},db_{database},{query_id},1",
                10 + user,
                16_384 + database
            )?;
            for value in values.iter().chain(&histogram) {
                write!(out, ",{value}")?;
            }
            writeln!(out, ",{}", since_call(&mut random_calls, calls))?;
        }
    }
    Ok(())
}

fn thin(directory: &Path, minutes: u64) -> tacho_tape::Result<()> {
    let storage = OsStorage::new(directory);
    let files = directory::list(&storage).unwrap_or_default();
    for file in files.iter().filter(|f| f.kind == Kind::Sealed) {
        let job = MergeJob {
            files: vec![file.numbers],
            thin_ms: Some(minutes * 60_000),
            text_limit: u64::MAX,
        };
        merge(&storage, &job, &AtomicBool::new(false))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["day"] => day(&mut BufWriter::new(io::stdout().lock()), 5_000)?,
        ["day", n] => day(&mut BufWriter::new(io::stdout().lock()), n.parse()?)?,
        ["thin", directory, minutes] => thin(Path::new(directory), minutes.parse()?)?,
        _ => {
            eprintln!("usage: statements day [ENTRIES] | thin DIR MINUTES");
            std::process::exit(2);
        }
    }
    Ok(())
}
