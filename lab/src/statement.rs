//! A run of one statement, timed by psql, with empty caches if wanted.

use super::access::{Access, LOADED};
use super::process::{Running, Stop};
use super::scenario::Statement;
use super::store::Metrics;
use super::usage;
use super::waits::{Profile, Waits};
use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise, syncfs};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Method of emptying caches, for the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMethod {
    /// Drops all of the kernel's page cache.
    All,
    /// Evicts the pages of the data directory's files (posix_fadvise).
    Files,
}

impl CacheMethod {
    /// The method that this user may use here.
    pub fn here() -> Self {
        match OpenOptions::new().write(true).open(DROP_CACHES) {
            Ok(_) => Self::All,
            Err(_) => Self::Files,
        }
    }

    /// Text of the report.
    pub fn text(self) -> &'static str {
        match self {
            Self::All => "the kernel's caches were dropped before each run",
            Self::Files => {
                "pages of the data directory were evicted before each run (posix_fadvise; \
                 caches of the storage remain)"
            }
        }
    }
}

/// Runs the statement and returns numbers and waits.
pub fn measure(
    access: &Access,
    pid: Option<u32>,
    statement: &Statement,
    stop: &Stop,
) -> Result<(Metrics, Profile)> {
    let blocks = format!("select blks_read from pg_stat_database where datname = '{LOADED}'");
    let before = access.number(&blocks, stop)?;
    let cpu = usage::Cpu::start(pid)?;
    let waits = Waits::start(access)?;
    let text = run(access, statement, stop)?;
    let profile = waits.end()?;
    let cpu = cpu.end()?;
    let seconds = milliseconds(&text)? / 1e3;
    let blocks = access.number(&blocks, stop)? - before;
    let metrics = [
        ("seconds", Some(seconds)),
        ("cpu_s", cpu),
        ("blocks", Some(blocks)),
        ("blocks_per_s", Some(blocks / seconds)),
    ];
    let named = metrics.map(|(name, value)| Some((name.to_owned(), value?)));
    Ok((named.into_iter().flatten().collect(), profile))
}

fn run(access: &Access, statement: &Statement, stop: &Stop) -> Result<String> {
    let mut psql = access.psql_loaded();
    let mut running = Running::start(psql.env("PGAPPNAME", "statement").stdin(Stdio::piped()))?;
    let script = format!("\\timing on\n{};\n", statement.sql);
    let mut input = running.input().context("psql has no input")?;
    input.write_all(script.as_bytes())?;
    drop(input);
    running.finish(stop)
}

/// Parses psql's `Time: 1234.567 ms (00:01.234)`.
pub fn milliseconds(text: &str) -> Result<f64> {
    let line = text.lines().rev().find_map(|l| l.strip_prefix("Time: "));
    line.and_then(|l| l.split(' ').next()?.parse().ok())
        .context("psql did not report the time of the statement")
}

/// Empties the caches of a stopped server.
pub fn empty_caches(data: &Path) -> Result<()> {
    syncfs(File::open(data)?)?;
    match CacheMethod::here() {
        CacheMethod::All => fs::write(DROP_CACHES, "3").context("could not drop caches"),
        CacheMethod::Files => evict(&data.join("base")),
    }
}

fn evict(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            evict(&entry.path())?;
        } else {
            fadvise(File::open(entry.path())?, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_taken_from_psql() {
        let text = "Time: 0.1 ms\nANALYZE\nTime: 2763.250 ms (00:02.763)\n";
        assert_eq!(milliseconds(text).expect("said"), 2763.25);
        assert!(milliseconds("ANALYZE\n").is_err());
    }
}
