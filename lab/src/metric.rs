//! Measured numbers of a run: names, units, and the better direction.

/// The better direction of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    More,
    /// Less is better.
    Less,
}

/// A measured number.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Name in the results.
    pub name: &'static str,
    /// Name in the report, with its unit.
    pub label: &'static str,
    /// The better direction.
    pub better: Better,
    /// Decimals in the report.
    pub decimals: usize,
}

const fn metric(
    name: &'static str,
    label: &'static str,
    better: Better,
    decimals: usize,
) -> Metric {
    Metric {
        name,
        label,
        better,
        decimals,
    }
}

/// All metrics of the runner, in the order of the report.
pub const METRICS: &[Metric] = &[
    metric("tps", "transactions/s", Better::More, 0),
    metric("seconds", "duration, s", Better::Less, 3),
    metric("p50_ms", "latency p50, ms", Better::Less, 3),
    metric("p95_ms", "latency p95, ms", Better::Less, 3),
    metric("p99_ms", "latency p99, ms", Better::Less, 3),
    metric("p999_ms", "latency p99.9, ms", Better::Less, 3),
    metric("max_ms", "latency max, ms", Better::Less, 3),
    metric("ms", "median time, ms", Better::Less, 2),
    metric("size_mib", "size, MiB", Better::Less, 2),
    metric("bytes_row", "bytes a row", Better::Less, 2),
    metric("write_s", "write, s", Better::Less, 2),
    metric("read_s", "read, s", Better::Less, 3),
    metric("cpu_s", "CPU, s", Better::Less, 2),
    metric("cpu_us", "CPU per transaction, µs", Better::Less, 1),
    metric(
        "library_percent",
        "CPU in the variant's libraries, %",
        Better::Less,
        2,
    ),
    metric("caused_percent", "... and for them, %", Better::Less, 2),
    metric("wal_kb", "WAL, kB", Better::Less, 0),
    metric("memory_mb", "memory, MB", Better::Less, 1),
    metric("blocks", "blocks read", Better::Less, 0),
    metric("blocks_per_s", "blocks read/s", Better::More, 0),
    metric("cpu_ns", "CPU of a statement, ns", Better::Less, 0),
    metric("instructions", "instructions", Better::Less, 0),
    metric("syscalls", "system calls", Better::Less, 3),
    metric("lines", "lines touched", Better::Less, 0),
    metric("pages", "pages touched", Better::Less, 0),
];

/// The metric of a name.
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|m| m.name == name)
}
