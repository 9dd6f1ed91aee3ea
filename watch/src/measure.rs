//! Measures a server by the rules: asks the reader functions about the newest moment of its
//! history. Nothing is remembered between two looks, so that the answer about a moment of the past
//! is the answer that was given then.

use crate::rules::{Limits, Rule};
use std::collections::BTreeMap;
use tacho_source::rows::{Status, ask};
use tacho_source::{Server, Source, State};
use tacho_tape::query::report::disk_name;
use tacho_tape::query::{
    Blocking, BlockingRow, Numeric, PlanChanges, QueryResult, ServerHistory, ServerHistoryRow,
    Timeline,
};

/// Number of buckets in the time for which a load must be above its limit.
const BUCKETS: i64 = 4;
/// A bucket counts if at least this share of it was observed, in percent.
const COVERAGE: f64 = 50.0;
const SECOND: i64 = 1_000_000;

/// An object whose value has not reached the limit at which its alarm is over.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub rule: Rule,
    /// The measured thing, for example "process 7", "query 42" or the name of a replication slot.
    /// Empty for the whole server.
    pub object: String,
    pub value: f64,
    /// True if the value has reached the limit at which an alarm begins.
    pub fires: bool,
    /// Time since which the value is above its limit, as far as the rule knows it, µs since 1970.
    pub began_us: i64,
    /// One line for people.
    pub summary: String,
}

/// The readings of a server.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    pub found: Vec<Reading>,
    /// Rules that were measured; alarms of other rules stay as they are.
    pub measured: Vec<Rule>,
    /// Rules that could not be measured, and why.
    pub failed: Vec<(Rule, String)>,
}

/// Measures a server at a moment, µs since 1970.
pub fn measure(
    source: &dyn Source,
    server: &Server,
    limits: &BTreeMap<Rule, Limits>,
    now_us: i64,
    is_replay: bool,
) -> Readings {
    let mut readings = Readings::default();
    let look = Look {
        source,
        server: &server.name,
        moment_us: now_us,
    };
    let newest_us = match is_replay {
        true => Some(now_us),
        false => recorded(source, server, limits, now_us, &mut readings),
    };
    let Some(moment_us) = newest_us else {
        return readings;
    };
    let look = Look { moment_us, ..look };
    for (rule, limits) in limits.iter().filter(|(_, limits)| limits.is_on) {
        let found = match rule {
            Rule::Recorder | Rule::Space => continue,
            Rule::Load => look.load(limits),
            Rule::Queue => look.queue(limits).map(Some),
            Rule::PlanChange => look.plan_change(limits).map(Some),
            Rule::Wraparound => look.metric(Rule::Wraparound, limits).map(Some),
            Rule::Slot => look.slot(limits).map(Some),
            Rule::Replication => look.metric(Rule::Replication, limits).map(Some),
            Rule::Disk => look.disk(limits).map(Some),
        };
        match found {
            Ok(None) => (),
            Ok(Some(found)) => {
                readings.found.extend(found);
                readings.measured.push(*rule);
            }
            Err(error) => readings.failed.push((*rule, error.message)),
        }
    }
    readings
}

/// Measures the recorder. Returns the newest recorded moment, or nothing if the recorder is silent
/// for too long: then the other rules have nothing to measure.
fn recorded(
    source: &dyn Source,
    server: &Server,
    limits: &BTreeMap<Rule, Limits>,
    now_us: i64,
    readings: &mut Readings,
) -> Option<i64> {
    let status = match server.state {
        State::Recorded => Status::ask(source, &server.name).map_err(|error| error.message),
        state => Err(format!("the history is {}", state.name())),
    };
    let newest = status.map(|status| status.time("last_tick_time"));
    let (age, summary) = match &newest {
        Ok(Some(newest)) => {
            let age = (now_us - newest) as f64 / 1e6;
            (age, format!("nothing was recorded for {age:.0} s"))
        }
        Ok(None) => (f64::INFINITY, "nothing was recorded yet".to_string()),
        Err(message) => (f64::INFINITY, format!("nothing can be read: {message}")),
    };
    let newest = newest.ok().flatten();
    if let Some(limits) = limits.get(&Rule::Recorder).filter(|limits| limits.is_on) {
        readings.measured.push(Rule::Recorder);
        if age > limits.clear {
            readings.found.push(Reading {
                rule: Rule::Recorder,
                object: String::new(),
                value: age,
                fires: age > limits.above,
                began_us: newest.unwrap_or(now_us),
                summary,
            });
        }
    }
    if let Some(limits) = limits.get(&Rule::Space).filter(|limits| limits.is_on) {
        readings.measured.push(Rule::Space);
        readings.found.extend(space(server, limits, now_us));
    }
    let silent = limits.get(&Rule::Recorder).map_or(120.0, |l| l.above);
    newest.filter(|_| age <= silent)
}

fn space(server: &Server, limits: &Limits, now_us: i64) -> Option<Reading> {
    let since_us = server.paused_ms? * 1000;
    let value = (now_us - since_us) as f64 / 1e6;
    Some(Reading {
        rule: Rule::Space,
        object: String::new(),
        value,
        fires: value > limits.above,
        began_us: since_us,
        summary: "recording waits for disk space".into(),
    })
}

/// A server and the newest moment of its history.
struct Look<'a> {
    source: &'a dyn Source,
    server: &'a str,
    moment_us: i64,
}

impl Look<'_> {
    /// Measures the load per CPU in [`BUCKETS`] buckets. The alarm fires if all of them are above
    /// the limit, so a short peak is no alarm. It is over when all of them are at or below the
    /// limit for the end. `None` if too little was observed to say that, such as after a gap.
    fn load(&self, limits: &Limits) -> QueryResult<Option<Vec<Reading>>> {
        let bucket = (limits.hold_us / BUCKETS).max(SECOND);
        let until = self.moment_us - self.moment_us % bucket;
        let since = until - bucket * BUCKETS;
        let asked = Timeline {
            since: Some(since),
            until: Some(until),
            bucket: Some(bucket),
            ..Timeline::default()
        };
        let rows = ask(self.source, self.server, &asked)?;
        let shares = rows.iter().filter_map(|row| {
            let (load, cpus) = (row.avg_aas?.to_f64(), row.vcpus?.to_f64());
            let is_observed = row.coverage_pct?.to_f64() >= COVERAGE;
            (is_observed && cpus > 0.0).then_some((load, cpus))
        });
        let shares: Vec<(f64, f64)> = shares.collect();
        Ok(self.load_reading(&shares, limits, since))
    }

    /// The reading of the observed buckets: load and number of CPUs of each.
    fn load_reading(
        &self,
        shares: &[(f64, f64)],
        limits: &Limits,
        since: i64,
    ) -> Option<Vec<Reading>> {
        let is_whole = shares.len() as i64 == BUCKETS;
        let least = shares
            .iter()
            .map(|(load, cpus)| load / cpus)
            .fold(f64::INFINITY, f64::min);
        let most = shares
            .iter()
            .map(|(load, cpus)| load / cpus)
            .fold(0.0, f64::max);
        if most <= limits.clear {
            return is_whole.then(Vec::new);
        }
        let count = shares.len() as f64;
        let load = shares.iter().map(|(load, _)| load).sum::<f64>() / count;
        let cpus = shares.last().map_or(0.0, |(_, cpus)| *cpus);
        Some(vec![Reading {
            rule: Rule::Load,
            object: String::new(),
            value: load / cpus,
            fires: is_whole && least > limits.above,
            began_us: since,
            summary: format!("{load:.1} sessions are active on {cpus} CPUs"),
        }])
    }

    /// Gives one reading for each head of a lock queue. Its value is the time in seconds that the
    /// session behind it has waited longest.
    fn queue(&self, limits: &Limits) -> QueryResult<Vec<Reading>> {
        let asked = Blocking {
            at: Some(self.moment_us),
            n: None,
            ..Blocking::default()
        };
        let mut found: Vec<Reading> = Vec::new();
        let mut state = String::new();
        for row in ask(self.source, self.server, &asked)? {
            if row.level == Some(0) {
                let known = row.state.as_deref();
                state = known.map_or_else(String::new, |state| format!(", which is {state}"));
                found.push(Reading {
                    rule: Rule::Queue,
                    object: head(&row),
                    value: 0.0,
                    fires: false,
                    began_us: self.moment_us,
                    summary: String::new(),
                });
            }
            let Some(reading) = found.last_mut() else {
                continue;
            };
            let waited_us = row.waited.unwrap_or(0);
            let seconds = waited_us as f64 / 1e6;
            if seconds > reading.value {
                reading.value = seconds;
                reading.fires = seconds >= limits.above;
                reading.began_us = self.moment_us - waited_us;
                let head = &reading.object;
                reading.summary =
                    format!("a session waits for {seconds:.0} s behind {head}{state}");
            }
        }
        if found.iter().any(|reading| reading.value == 0.0) {
            self.queue_of_window(limits, &mut found)?;
        }
        found.retain(|reading| reading.value > limits.clear);
        Ok(found)
    }

    /// For histories without times of single waits, such as imported ones. The value of a head is
    /// then the time between its first and its last sample as a head. It counts if the waits behind
    /// it add up to at least half of that time.
    fn queue_of_window(&self, limits: &Limits, found: &mut [Reading]) -> QueryResult<()> {
        let length = (limits.above * 1e6) as i64 * BUCKETS;
        let asked = Blocking {
            since: Some(self.moment_us - length),
            until: Some(self.moment_us + SECOND),
            n: None,
            ..Blocking::default()
        };
        let rows = ask(self.source, self.server, &asked)?;
        for reading in found.iter_mut().filter(|reading| reading.value == 0.0) {
            let is_it = |row: &&BlockingRow| head(row) == reading.object;
            let Some(row) = rows.iter().find(is_it) else {
                continue;
            };
            let (Some(first), Some(last)) = (row.first_seen, row.last_seen) else {
                continue;
            };
            let seconds = (last - first) as f64 / 1e6;
            let blocked = row.blocked_seconds.map_or(0.0, Numeric::to_f64);
            if blocked >= seconds / 2.0 {
                reading.value = seconds;
                reading.fires = seconds >= limits.above;
                reading.began_us = first;
                reading.summary =
                    format!("others wait for {seconds:.0} s behind {}", reading.object);
            }
        }
        Ok(())
    }

    fn plan_change(&self, limits: &Limits) -> QueryResult<Vec<Reading>> {
        let asked = PlanChanges {
            since: Some(self.moment_us - limits.hold_us),
            until: Some(self.moment_us),
            ..PlanChanges::default()
        };
        let rows = ask(self.source, self.server, &asked)?;
        let reading = |row: tacho_tape::query::PlanChangesRow| {
            let (ratio, query) = (row.ratio?.to_f64(), row.query_id?);
            let mean = |mean: Option<Numeric>| mean.map_or(0.0, Numeric::to_f64);
            let (old, new) = (mean(row.old_mean_exec_time), mean(row.new_mean_exec_time));
            (ratio >= limits.clear).then(|| Reading {
                rule: Rule::PlanChange,
                object: format!("query {query}"),
                value: ratio,
                fires: ratio >= limits.above,
                began_us: row.changed_at.unwrap_or(self.moment_us),
                summary: format!(
                    "query {query} turned to another plan: {new:.1} ms a call instead of {old:.1}"
                ),
            })
        };
        Ok(rows.into_iter().filter_map(reading).collect())
    }

    /// The rows of these metrics for the time that a value must be above its limit (`hold_us`), at
    /// least a minute.
    fn history(&self, metrics: &str, limits: &Limits) -> QueryResult<Vec<ServerHistoryRow>> {
        let length = limits.hold_us.max(60 * SECOND);
        let asked = ServerHistory {
            since: Some(self.moment_us - length),
            until: Some(self.moment_us),
            bucket: Some(length),
            metric: Some(metrics.to_string()),
            ..ServerHistory::default()
        };
        ask(self.source, self.server, &asked)
    }

    /// Measures a metric. The alarm fires if the least reading is above the limit. It is over when
    /// the greatest reading is at or below the limit for the end.
    fn metric(&self, rule: Rule, limits: &Limits) -> QueryResult<Vec<Reading>> {
        let name = match rule {
            Rule::Replication => "replica_replay_lag",
            _ => "oldest_xid_age",
        };
        let mut found = BTreeMap::new();
        for row in self.history(name, limits)? {
            let object = row.object.as_deref().unwrap_or_default().to_string();
            let range = found.entry(object).or_insert((f64::INFINITY, 0.0));
            widen(range, &row);
        }
        let readings = found
            .into_iter()
            .filter(|(_, range)| range.1 > limits.clear);
        let readings = readings.map(|(object, (least, most))| Reading {
            rule,
            value: most,
            fires: least > limits.above,
            began_us: self.moment_us - limits.hold_us,
            summary: match rule {
                Rule::Replication => {
                    format!("replica {object} is {:.1} GB of log behind", most / 1e9)
                }
                _ => format!(
                    "the oldest transaction id is {:.0} million behind; the limit is 2,147",
                    most / 1e6
                ),
            },
            object,
        });
        Ok(readings.collect())
    }

    /// Gives one reading for each replication slot that no process used in the whole time. Its
    /// value is the WAL that the slot keeps, in bytes.
    fn slot(&self, limits: &Limits) -> QueryResult<Vec<Reading>> {
        let rows = self.history("slot_retained,slot_active", limits)?;
        let slots = by_object(&rows, "slot_active").into_iter();
        let idle = slots.filter(|(_, slot)| slot.beside_most == 0.0 && slot.range.1 > limits.clear);
        let range = idle.map(|(object, slot)| (object, slot.range));
        let readings = range.map(|(object, (least, most))| Reading {
            rule: Rule::Slot,
            object: object.to_string(),
            value: most,
            fires: least > limits.above,
            began_us: self.moment_us - limits.hold_us,
            summary: format!(
                "slot {object} keeps {:.1} GB of log that no process takes",
                most / 1e9
            ),
        });
        Ok(readings.collect())
    }

    /// Gives one reading for each file system: the part in percent that the server cannot use any
    /// more.
    fn disk(&self, limits: &Limits) -> QueryResult<Vec<Reading>> {
        let rows = self.history("disk_free,disk_size", limits)?;
        let all = by_object(&rows, "disk_size").into_iter();
        let known = all.filter(|(_, disk)| disk.beside_newest > 0.0);
        let readings = known.map(|(object, disk)| {
            let ((least_free, most_free), size) = (disk.range, disk.beside_newest);
            let full = |free: f64| 100.0 * (1.0 - free / size);
            Reading {
                rule: Rule::Disk,
                object: object.to_string(),
                value: full(least_free),
                fires: full(most_free) > limits.above,
                began_us: self.moment_us - limits.hold_us,
                summary: format!(
                    "the disk of the {} is {:.1} % full: {} are left",
                    disk_name(object),
                    full(least_free),
                    bytes(least_free)
                ),
            }
        });
        Ok(readings
            .filter(|reading| reading.value > limits.clear)
            .collect())
    }
}

fn bytes(value: f64) -> String {
    match value {
        small if small < 1e9 => format!("{:.0} MB", small / 1e6),
        large => format!("{:.1} GB", large / 1e9),
    }
}

/// An object of two metrics: one that is measured, and one beside it.
struct Pair {
    /// Least and greatest value of the metric that is measured.
    range: (f64, f64),
    /// Newest value of the metric beside it.
    beside_newest: f64,
    /// Greatest value of the metric beside it.
    beside_most: f64,
}

/// The values of two metrics by object; `beside` names the metric that is not measured.
fn by_object<'r>(rows: &'r [ServerHistoryRow], beside: &str) -> BTreeMap<&'r str, Pair> {
    let mut found = BTreeMap::new();
    for row in rows {
        let object = row.object.as_deref().unwrap_or_default();
        let pair = found.entry(object).or_insert(Pair {
            range: (f64::INFINITY, 0.0),
            beside_newest: 0.0,
            beside_most: 0.0,
        });
        match (row.metric.as_deref() == Some(beside), row.max) {
            (true, Some(value)) => {
                pair.beside_newest = value.to_f64();
                pair.beside_most = pair.beside_most.max(pair.beside_newest);
            }
            (true, None) => (),
            (false, _) => widen(&mut pair.range, row),
        }
    }
    found
}

fn widen(range: &mut (f64, f64), row: &ServerHistoryRow) {
    if let (Some(least), Some(most)) = (row.min, row.max) {
        range.0 = range.0.min(least.to_f64());
        range.1 = range.1.max(most.to_f64());
    }
}

/// Name of the head of a queue, such as "process 7".
fn head(row: &BlockingRow) -> String {
    match (row.pid, &row.prepared_gid) {
        (Some(pid), _) => format!("process {pid}"),
        (None, Some(gid)) => format!("prepared transaction {gid}"),
        (None, None) => "an unknown session".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(metric: &str, object: &str, min: i128, max: i128) -> ServerHistoryRow {
        ServerHistoryRow {
            metric: Some(metric.into()),
            object: Some(object.into()),
            min: Some(Numeric(min * 10_000)),
            max: Some(Numeric(max * 10_000)),
            ..ServerHistoryRow::default()
        }
    }

    #[test]
    fn a_slot_that_was_used_in_an_earlier_bucket_was_used() {
        let rows = [
            row("slot_active", "a", 0, 1),
            row("slot_retained", "a", 5, 9),
            row("slot_active", "a", 0, 0),
            row("slot_retained", "a", 7, 8),
        ];
        let found = by_object(&rows, "slot_active");
        let slot = &found["a"];
        assert_eq!(slot.range, (5.0, 9.0));
        assert_eq!((slot.beside_newest, slot.beside_most), (0.0, 1.0));
    }

    #[test]
    fn a_load_that_was_not_observed_is_not_measured() {
        let look = Look {
            source: &tacho_source::Tapes::new(0),
            server: "a",
            moment_us: 100,
        };
        let limits = Rule::Load.defaults();
        let found = |shares: &[(f64, f64)]| look.load_reading(shares, &limits, 0);
        let is_alarm = |shares| found(shares).map(|found| found.first().map(|load| load.fires));
        assert_eq!(is_alarm(&[]), None);
        assert_eq!(is_alarm(&[(1.0, 4.0); 3]), None);
        assert_eq!(is_alarm(&[(1.0, 4.0); 4]), Some(None));
        assert_eq!(is_alarm(&[(9.0, 4.0); 3]), Some(Some(false)));
        assert_eq!(is_alarm(&[(9.0, 4.0); 4]), Some(Some(true)));
    }
}
