//! A run of pgbench: throughput from its output, latencies from its log of
//! single transactions.

use super::access::Access;
use super::plan::Point;
use super::process::{Running, Stop, run};
use super::scenario::{Pgbench, Variant, Workload};
use super::share::Sampling;
use super::stats::percentile;
use super::store::Metrics;
use super::usage;
use super::waits::{Profile, Waits};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A variant under a load.
pub struct Load<'a> {
    /// Access to the server.
    pub access: &'a Access,
    /// The load.
    pub load: &'a Pgbench,
    /// The measured variant.
    pub variant: &'a Variant,
    /// The point of the scenario.
    pub point: &'a Point,
}

impl Load<'_> {
    /// Warms up, measures, and returns numbers and waits. The number `transactions` counts both
    /// phases.
    pub fn measure(&self, pid: Option<u32>, stop: &Stop) -> Result<(Metrics, Profile)> {
        let mut metrics = Metrics::new();
        let mut transactions = 0.0;
        self.clean(stop)?;
        if self.load.warmup > 0 {
            let text = self.run(self.load.warmup, None, stop)?;
            transactions += said(&text, "number of transactions actually processed: ")?;
        }
        let logs = self.access.scratch.join("latency");
        remove_logs(&logs)?;
        let lsn = "select pg_current_wal_insert_lsn() - '0/0'";
        let (cpu, wal) = (usage::Cpu::start(pid)?, self.access.number(lsn, stop)?);
        let waits = Waits::start(self.access)?;
        let sampling = self.sampling(pid, stop)?;
        let text = self.run(self.load.seconds, Some(&logs), stop)?;
        let share = sampling.map(|s| s.end(&self.variant.preload, stop));
        let profile = waits.end()?;
        let cpu = cpu.end()?;
        let wal = self.access.number(lsn, stop)? - wal;
        let measured = said(&text, "number of transactions actually processed: ")?;
        transactions += measured;

        metrics.insert("tps".into(), said(&text, "tps = ")?);
        metrics.insert("transactions".into(), transactions);
        metrics.insert("wal_kb".into(), wal / 1024.0);
        if let Some(share) = share.transpose()? {
            metrics.insert("library_percent".into(), share.own);
            metrics.insert("caused_percent".into(), share.caused);
        }
        if let Some(cpu) = cpu {
            metrics.insert("cpu_s".into(), cpu);
            metrics.insert("cpu_us".into(), cpu * 1e6 / measured.max(1.0));
        }
        if let Some(memory) = pid.map(usage::memory_mb).transpose()?.flatten() {
            metrics.insert("memory_mb".into(), memory);
        }
        add_latencies(&mut metrics, read_logs(&logs)?);
        remove_logs(&logs)?;
        Ok((metrics, profile))
    }

    /// Starts to sample the sessions of the load, if the scenario wants that.
    fn sampling(&self, pid: Option<u32>, stop: &Stop) -> Result<Option<Sampling>> {
        match pid {
            Some(pid) if self.load.shares => Sampling::start(pid, &self.access.scratch, stop),
            _ => Ok(None),
        }
    }

    /// pgbench's own scripts change the same few rows again and again. Removes
    /// what the previous run has left of them, as pgbench does.
    fn clean(&self, stop: &Stop) -> Result<()> {
        if self
            .workload()?
            .builtin
            .as_deref()
            .is_none_or(|name| name == "select-only")
        {
            return Ok(());
        }
        let vacuum = "vacuum pgbench_branches, pgbench_tellers";
        run(self.access.psql_loaded().args(["-c", vacuum]), stop).map(drop)
    }

    /// Runs pgbench. With `logs` it writes a line for each transaction, and runs
    /// the number of transactions to measure.
    fn run(&self, seconds: u32, logs: Option<&Path>, stop: &Stop) -> Result<String> {
        let mut pgbench = self.command()?;
        let clients = self.point.clients.unwrap_or(1);
        let each = self.load.transactions / clients;
        match logs.is_some() && each > 0 {
            true => pgbench.args(["-t", &each.to_string()]),
            false => pgbench.args(["-T", &seconds.to_string()]),
        };
        if let Some(logs) = logs {
            pgbench.arg("-l").arg("--log-prefix").arg(logs);
        }
        let poll = self.poll()?;
        let text = Running::start(pgbench.stdin(Stdio::null()))?.finish(stop)?;
        drop(poll);
        Ok(text)
    }

    fn command(&self) -> Result<Command> {
        let clients = self.point.clients.unwrap_or(1);
        let mut pgbench = self.access.pgbench();
        pgbench
            .args(["-n", "-c", &clients.to_string()])
            .args(["-j", &clients.min(threads()).to_string()])
            .args(["-M", &self.load.protocol]);
        if self.load.rate > 0 {
            pgbench.args(["-R", &self.load.rate.to_string()]);
        }
        let workload = self.workload()?;
        match (&workload.builtin, &workload.script) {
            (Some(builtin), _) => pgbench.args(["-b", builtin]),
            (None, script) => {
                let file = self.access.scratch.join("workload.sql");
                fs::write(&file, script.as_deref().unwrap_or_default())?;
                pgbench.arg("-f").arg(file)
            }
        };
        Ok(pgbench)
    }

    fn workload(&self) -> Result<&Workload> {
        let name = self.point.workload.as_deref();
        let mut workloads = self.load.workloads.iter();
        workloads
            .find(|w| Some(w.name.as_str()) == name)
            .with_context(|| format!("workload \"{}\" does not exist", name.unwrap_or_default()))
    }

    /// Starts the collector, which reads the variant's view beside the load; `None` if the variant
    /// has no `poll`.
    fn poll(&self) -> Result<Option<Running>> {
        let poll = self.variant.poll.as_ref();
        let seconds = self.variant.poll_seconds.unwrap_or(5.0);
        poll.map(|sql| self.access.watch(sql, seconds)).transpose()
    }
}

/// Threads of pgbench: half of the cores. The server needs the rest.
fn threads() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cores.div_ceil(2)).unwrap_or(1)
}

/// The number that follows a heading in pgbench's output.
fn said(text: &str, heading: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(heading));
    let number = line.and_then(|l| l.split([' ', '/']).next());
    number
        .and_then(|n| n.parse().ok())
        .with_context(|| format!("pgbench did not report \"{}\"", heading.trim()))
}

/// Log files: the prefix, a PID, and a thread.
fn log_files(prefix: &Path) -> Result<Vec<PathBuf>> {
    let (Some(parent), Some(name)) = (prefix.parent(), prefix.file_name()) else {
        return Ok(Vec::new());
    };
    let start = format!("{}.", name.to_string_lossy());
    let mut files = Vec::new();
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&start) {
            files.push(entry.path());
        }
    }
    Ok(files)
}

fn remove_logs(prefix: &Path) -> Result<()> {
    for file in log_files(prefix)? {
        fs::remove_file(file)?;
    }
    Ok(())
}

/// Latencies of all transactions in µs; failed transactions have none.
fn read_logs(prefix: &Path) -> Result<Vec<u64>> {
    let mut latencies = Vec::new();
    for file in log_files(prefix)? {
        let text = fs::read_to_string(file)?;
        latencies.extend(text.lines().filter_map(latency));
    }
    Ok(latencies)
}

/// Latency of a transaction in µs: the third field of its line in the log.
fn latency(line: &str) -> Option<u64> {
    line.split(' ').nth(2)?.parse().ok()
}

fn add_latencies(metrics: &mut Metrics, mut latencies: Vec<u64>) {
    latencies.sort_unstable();
    let shares = [
        ("p50_ms", 0.5),
        ("p95_ms", 0.95),
        ("p99_ms", 0.99),
        ("p999_ms", 0.999),
        ("max_ms", 1.0),
    ];
    for (name, share) in shares {
        if let Some(us) = percentile(&latencies, share) {
            metrics.insert(name.to_owned(), us as f64 / 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_and_counts_come_from_the_output_of_pgbench() {
        let text = "number of transactions actually processed: 1200/1200\n\
                    tps = 599.5 (without initial connection time)\n";
        let transactions = said(text, "number of transactions actually processed: ");
        assert_eq!(transactions.expect("said"), 1200.0);
        assert_eq!(said(text, "tps = ").expect("said"), 599.5);
        let error = said("", "tps = ").expect_err("silent");
        assert_eq!(format!("{error}"), "pgbench did not report \"tps =\"");
    }

    #[test]
    fn failed_transactions_have_no_latency() {
        assert_eq!(latency("0 199 2241 0 1175850568 995598"), Some(2241));
        assert_eq!(latency("0 200 failed 0 1175850569 608"), None);
    }

    #[test]
    fn latencies_become_percentiles_in_milliseconds() {
        let mut metrics = Metrics::new();
        add_latencies(&mut metrics, (1..=1000).rev().collect());
        assert_eq!((metrics["p50_ms"], metrics["max_ms"]), (0.5, 1.0));
        assert_eq!(metrics["p999_ms"], 0.999);
        let mut none = Metrics::new();
        add_latencies(&mut none, Vec::new());
        assert!(none.is_empty());
    }
}
