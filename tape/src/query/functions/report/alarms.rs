//! Alarms: measurements of the server that are bad, as sentences. The report, the page and its view
//! of the server show the same alarms.

use crate::query::ask::row::Numeric;
use crate::query::functions::structs::ServerHistoryRow;
use std::collections::BTreeMap;

const MB: f64 = 1024.0 * 1024.0;
const GB: f64 = 1024.0 * MB;
/// New sessions per second that cost a server more than their queries do.
const CHURN: f64 = 20.0;

/// The metrics of the rules.
pub const METRICS: [&str; 30] = [
    "connections",
    "max_connections",
    "sessions",
    "logins_failed",
    "logins_refused",
    "sessions_killed",
    "sessions_fatal",
    "sessions_abandoned",
    "xact_rollback",
    "xact_commit",
    "deadlocks",
    "conflicts",
    "oldest_xid_age",
    "temp_bytes",
    "checkpoints_requested",
    "wal_archive_failed",
    "replica_replay_lag",
    "replica_replay_delay",
    "recovery_lag_bytes",
    "slot_active",
    "slot_retained",
    "load_1",
    "vcpus",
    "pressure_memory_some",
    "memory_available",
    "memory_total",
    "swap_used",
    "cpu_throttled",
    "disk_free",
    "disk_size",
];

/// How urgent an alarm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The server may stop, or a part of it has stopped.
    Critical,
    /// Somebody should look at it.
    Warning,
}

impl Severity {
    /// The word for it, in answers.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
        }
    }
}

/// A measurement that is bad in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// How urgent it is.
    pub severity: Severity,
    /// The metric of `server_history` that shows it.
    pub metric: &'static str,
    /// The sentence, with the figure, without a full stop.
    pub text: String,
}

/// The alarms of the rows of `server_history` about a whole window, the most urgent first. A busy
/// host is a consequence more often than a cause, so it comes last.
pub fn alarms(rows: &[ServerHistoryRow]) -> Vec<Alarm> {
    let of = Measured::new(rows);
    let rules: [fn(&Measured) -> Vec<Alarm>; 6] = [
        of_connections,
        of_transactions,
        of_files,
        of_log,
        of_replication,
        of_host,
    ];
    let mut found: Vec<Alarm> = rules.iter().flat_map(|rule| rule(&of)).collect();
    found.sort_by_key(|alarm| alarm.severity);
    found
}

/// Values of a metric of one object in the window.
#[derive(Clone, Copy, Debug)]
struct Range {
    min: f64,
    max: f64,
    /// Increase of a counter.
    total: f64,
}

/// Values by metric and object; the object "" is the whole server.
struct Measured<'a>(BTreeMap<&'a str, BTreeMap<&'a str, Range>>);

impl<'a> Measured<'a> {
    fn new(rows: &'a [ServerHistoryRow]) -> Measured<'a> {
        let mut metrics = BTreeMap::<&str, BTreeMap<&str, Range>>::new();
        let number = |value: Option<Numeric>| value.map(Numeric::to_f64);
        for row in rows {
            let (Some(metric), Some(max)) = (row.metric.as_deref(), number(row.max)) else {
                continue;
            };
            let range = Range {
                min: number(row.min).unwrap_or(max),
                max,
                total: number(row.total).unwrap_or(0.0),
            };
            let object = row.object.as_deref().unwrap_or_default();
            metrics.entry(metric).or_default().insert(object, range);
        }
        Measured(metrics)
    }

    /// The objects of a metric.
    fn each(&self, metric: &str) -> impl Iterator<Item = (&'a str, Range)> + '_ {
        debug_assert!(METRICS.contains(&metric), "{metric} is not asked for");
        let objects = self.0.get(metric).into_iter().flatten();
        objects.map(|(object, range)| (*object, *range))
    }

    /// The largest value; 0 if the metric was not measured.
    fn max(&self, metric: &str) -> f64 {
        self.each(metric).map(|(_, r)| r.max).fold(0.0, f64::max)
    }

    /// The smallest value; `None` if the metric was not measured.
    fn min(&self, metric: &str) -> Option<f64> {
        self.each(metric).map(|(_, r)| r.min).reduce(f64::min)
    }

    /// Increase of a counter, summed over its objects.
    fn total(&self, metric: &str) -> f64 {
        self.each(metric).map(|(_, r)| r.total).sum()
    }
}

/// An alarm, if `urgent` or `bad`.
fn alarm(
    metric: &'static str,
    bad: bool,
    urgent: bool,
    text: impl FnOnce() -> String,
) -> Option<Alarm> {
    (bad || urgent).then(|| Alarm {
        severity: if urgent {
            Severity::Critical
        } else {
            Severity::Warning
        },
        metric,
        text: text(),
    })
}

/// An alarm if a counter has counted `least` events or more.
fn events(of: &Measured, metric: &'static str, least: f64, one: &str, many: &str) -> Option<Alarm> {
    let total = of.total(metric);
    alarm(metric, total >= least, false, || {
        let name = if total.round() == 1.0 { one } else { many };
        format!("{} {name}", count(total))
    })
}

fn of_connections(of: &Measured) -> Vec<Alarm> {
    let (used, most) = (of.max("connections"), of.max("max_connections"));
    let is_part = |part: f64| most > 0.0 && used >= part * most;
    let churn = of.max("sessions");
    let all = [
        alarm("connections", is_part(0.8), is_part(0.95), || {
            format!("{} of {} connections", count(used), count(most))
        }),
        alarm("sessions", churn >= CHURN, false, || {
            format!("up to {} new sessions per second", count(churn))
        }),
        events(of, "logins_failed", 5.0, "failed login", "failed logins"),
        events(
            of,
            "logins_refused",
            1.0,
            "connection refused",
            "connections refused",
        ),
        events(
            of,
            "sessions_killed",
            1.0,
            "session killed",
            "sessions killed",
        ),
        events(
            of,
            "sessions_fatal",
            1.0,
            "session ended by an error",
            "sessions ended by an error",
        ),
        events(
            of,
            "sessions_abandoned",
            1.0,
            "client went away",
            "clients went away",
        ),
    ];
    all.into_iter().flatten().collect()
}

fn of_transactions(of: &Measured) -> Vec<Alarm> {
    let bad = of.total("xact_rollback");
    let whole = bad + of.total("xact_commit");
    let age = of.max("oldest_xid_age");
    let all = [
        alarm(
            "xact_rollback",
            bad >= 10.0 && bad > 0.1 * whole,
            false,
            || {
                format!(
                    "{} rollbacks, {} of all transactions",
                    count(bad),
                    percent(100.0 * bad / whole)
                )
            },
        ),
        events(of, "deadlocks", 1.0, "deadlock", "deadlocks"),
        events(
            of,
            "conflicts",
            1.0,
            "query cancelled by recovery",
            "queries cancelled by recovery",
        ),
        alarm("oldest_xid_age", age > 1e9, age > 1.8e9, || {
            format!("oldest transaction id is {} old", count(age))
        }),
    ];
    all.into_iter().flatten().collect()
}

fn of_files(of: &Measured) -> Vec<Alarm> {
    let written = of.total("temp_bytes");
    let temporary = alarm("temp_bytes", written > 256.0 * MB, false, || {
        format!("{} of temporary files", bytes(written))
    });
    temporary.into_iter().collect()
}

fn of_log(of: &Measured) -> Vec<Alarm> {
    let failed = of.total("wal_archive_failed");
    let name = if failed.round() == 1.0 {
        "failure"
    } else {
        "failures"
    };
    let all = [
        events(
            of,
            "checkpoints_requested",
            2.0,
            "forced checkpoint",
            "forced checkpoints",
        ),
        alarm("wal_archive_failed", false, failed >= 1.0, || {
            format!("{} {name} to archive", count(failed))
        }),
    ];
    all.into_iter().flatten().collect()
}

fn of_replication(of: &Measured) -> Vec<Alarm> {
    let behind = of.max("replica_replay_lag");
    let late_ms = of.max("replica_replay_delay") / 1000.0;
    let waiting = of.max("recovery_lag_bytes");
    let all = [
        alarm(
            "replica_replay_lag",
            behind > 16.0 * MB,
            behind > GB,
            || format!("a replica was {} behind", bytes(behind)),
        ),
        alarm("replica_replay_delay", late_ms > 10_000.0, false, || {
            format!("a replica replayed {} late", duration(late_ms))
        }),
        slot(of),
        alarm("recovery_lag_bytes", waiting > 64.0 * MB, false, || {
            format!("{} not replayed", bytes(waiting))
        }),
    ];
    all.into_iter().flatten().collect()
}

/// The slot that keeps most of the log, if that is much. A slot without a process keeps more and
/// more.
fn slot(of: &Measured) -> Option<Alarm> {
    let is_free = |slot: &str| {
        of.each("slot_active")
            .any(|(name, r)| name == slot && r.max < 1.0)
    };
    let much = of.each("slot_retained");
    let much = much.filter(|(slot, r)| r.max > GB || (r.max > 64.0 * MB && is_free(slot)));
    let (slot, kept) = much.max_by(|a, b| a.1.max.total_cmp(&b.1.max))?;
    let free = if is_free(slot) {
        ", which no process uses,"
    } else {
        ""
    };
    alarm("slot_retained", true, kept.max > 10.0 * GB, || {
        format!("slot {slot}{free} keeps {} of log", bytes(kept.max))
    })
}

fn of_host(of: &Measured) -> Vec<Alarm> {
    let (load, cpus) = (of.max("load_1"), of.max("vcpus"));
    let pressure = of.max("pressure_memory_some");
    let left = of.min("memory_available").unwrap_or(f64::INFINITY);
    let swap = of.max("swap_used");
    let grown = swap - of.min("swap_used").unwrap_or(swap);
    let stopped_us = of.total("cpu_throttled");
    let all = [
        disk(of),
        alarm("load_1", cpus > 0.0 && load > 2.0 * cpus, false, || {
            format!("load {load:.1} on {cpus} CPUs")
        }),
        alarm("pressure_memory_some", false, pressure > 200_000.0, || {
            format!("pressure of memory {}", percent(pressure / 10_000.0))
        }),
        alarm(
            "memory_available",
            false,
            left < 0.05 * of.max("memory_total"),
            || format!("{} of memory left", bytes(left)),
        ),
        alarm("swap_used", grown > 16.0 * MB, false, || {
            format!("use of swap changed, up to {}", bytes(swap))
        }),
        alarm("cpu_throttled", stopped_us >= 1e6, false, || {
            format!(
                "stopped for {} by the quota of the cgroup",
                duration(stopped_us / 1000.0)
            )
        }),
    ];
    all.into_iter().flatten().collect()
}

/// The fullest file system, if it is 90 % full.
fn disk(of: &Measured) -> Option<Alarm> {
    let size = |disk: &str| of.each("disk_size").find(|(name, _)| *name == disk);
    let parts = of.each("disk_free").filter_map(|(disk, free)| {
        // A file system may grow in the window, and some do not know their size.
        let size = size(disk)?.1.min;
        (size > 0.0).then_some((disk, free.min, free.min / size))
    });
    let (disk, left, part) = parts.min_by(|a, b| a.2.total_cmp(&b.2))?;
    alarm("disk_free", part < 0.1, part < 0.05, || {
        format!(
            "{} left on the disk of the {}",
            bytes(left),
            disk_name(disk)
        )
    })
}

/// The object of `disk_free` as a sentence names it. The directory of a tablespace begins with a
/// slash.
pub fn disk_name(object: &str) -> String {
    match object.starts_with('/') {
        true => format!("tablespace {object}"),
        false => object.to_string(),
    }
}

// ---- figures ----

/// Three significant digits and the largest unit that fits.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let fits = |unit: &&(f64, &str)| value.abs() >= unit.0 * 0.9995;
    let (size, name) = units.iter().rfind(fits).unwrap_or(&units[0]);
    let shown = value / size;
    let decimals = match shown.abs() {
        large if large >= 99.95 => 0,
        large if large >= 9.995 => 1,
        _ => 2,
    };
    format!("{shown:.decimals$}{name}")
}

fn bytes(value: f64) -> String {
    let units = [
        (1.0, " B"),
        (1024.0, " kB"),
        (MB, " MB"),
        (GB, " GB"),
        (1024.0 * GB, " TB"),
    ];
    scaled(value, &units)
}

fn duration(ms: f64) -> String {
    scaled(ms, &[(1.0, " ms"), (1e3, " s"), (6e4, " min")])
}

/// A whole number with commas, and with a unit from 100,000 on.
fn count(value: f64) -> String {
    if value >= 100_000.0 {
        return scaled(value, &[(1e3, "k"), (1e6, "M"), (1e9, "G")]);
    }
    let digits = format!("{:.0}", value.round());
    match digits.len() {
        4.. => format!(
            "{},{}",
            &digits[..digits.len() - 3],
            &digits[digits.len() - 3..]
        ),
        _ => digits,
    }
}

fn percent(value: f64) -> String {
    let decimals = usize::from(value > 0.0 && value < 10.0);
    format!("{value:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        metric: &str,
        object: Option<&str>,
        min: i64,
        max: i64,
        total: Option<i64>,
    ) -> ServerHistoryRow {
        let number = |value: i64| Some(Numeric(i128::from(value) * 10_000));
        ServerHistoryRow {
            metric: Some(metric.into()),
            object: object.map(Into::into),
            min: number(min),
            max: number(max),
            total: total.and_then(number),
            ..ServerHistoryRow::default()
        }
    }

    fn said(rows: &[ServerHistoryRow]) -> Vec<String> {
        let found = alarms(rows).into_iter();
        found
            .map(|a| format!("{} {}: {}", a.severity.name(), a.metric, a.text))
            .collect()
    }

    #[test]
    fn urgent_alarms_come_first() {
        const MB: i64 = 1 << 20;
        let found = said(&[
            row("connections", None, 40, 97, None),
            row("max_connections", None, 100, 100, None),
            row("logins_failed", None, 0, 1, Some(6)),
            row("sessions", Some("shop"), 0, 30, Some(900)),
            row("deadlocks", Some("shop"), 0, 4, Some(39)),
            row("deadlocks", Some("crm"), 0, 1, Some(1)),
            row("xact_rollback", Some("shop"), 0, 9, Some(1_968)),
            row("xact_commit", Some("shop"), 0, 9, Some(5_000)),
            row("slot_retained", Some("left"), 0, 300 * MB, None),
            row("slot_active", Some("left"), 0, 0, None),
            row("slot_retained", Some("used"), 0, 400 * MB, None),
            row("slot_active", Some("used"), 1, 1, None),
            row("disk_free", Some("/mnt/fast"), 8 * MB, 9 * MB, None),
            row("disk_size", Some("/mnt/fast"), 100 * MB, 100 * MB, None),
            row("disk_free", Some("unknown size"), 0, 0, None),
            row("disk_size", Some("unknown size"), 0, 0, None),
            row("disk_free", Some("grown"), 20 * MB, 900 * MB, None),
            row("disk_size", Some("grown"), 100 * MB, 1_000 * MB, None),
            row("load_1", None, 1, 9, None),
            row("vcpus", None, 4, 4, None),
        ]);
        let expected = [
            "critical connections: 97 of 100 connections",
            "warning sessions: up to 30 new sessions per second",
            "warning logins_failed: 6 failed logins",
            "warning xact_rollback: 1,968 rollbacks, 28 % of all transactions",
            "warning deadlocks: 40 deadlocks",
            "warning slot_retained: slot left, which no process uses, keeps 300 MB of log",
            "warning disk_free: 8.00 MB left on the disk of the tablespace /mnt/fast",
            "warning load_1: load 9.0 on 4 CPUs",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_quiet_server_has_no_alarm() {
        let found = said(&[
            row("connections", None, 4, 5, None),
            row("max_connections", None, 100, 100, None),
            row("deadlocks", Some("shop"), 0, 0, Some(0)),
            row("checkpoints_requested", None, 0, 1, Some(1)),
            row("disk_free", Some("data directory"), 50, 50, None),
            row("disk_size", Some("data directory"), 100, 100, None),
            row("memory_available", None, 50, 60, None),
            row("memory_total", None, 100, 100, None),
        ]);
        assert_eq!(found, Vec::<String>::new());
        assert_eq!(said(&[]), Vec::<String>::new());
    }
}
