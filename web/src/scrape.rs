//! Figures of servers for `/metrics`. A counter covers the day (UTC) of the history's last
//! tick, up to the second in which that tick began. Closed hours are read once, the current
//! hour at each scrape. So each tick counts once, and a restarted program continues with
//! the same values.
//!
//! A day begins with a turn ([`Turn`]). A scraper that asks every half minute sees the end
//! of the previous day, then zeros, then the new day. Nothing is lost between two scrapes.
//! Every counter falls once, which tells Prometheus that it was reset.

use crate::lock::lock;
use crate::objects::{self, Series, Values};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tacho_source::rows::{self, Status, count};
use tacho_source::{Source, State, catalog};
use tacho_tape::query::{
    self, Markers, Numeric, QueryResult, Request, ServerHistory, ServerHistoryRow, Timeline,
    TimelineRow, Top,
};

/// A sample without a value of a dimension, as filters name it.
const NULL: &str = "(null)";
/// Duration of each step of a turn, µs.
const TURN: i64 = 30 * SECOND;
/// One second in µs.
const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
const DAY: i64 = 24 * HOUR;
/// Gauges are means of the readings of the last 60 s before the last tick.
const READINGS: i64 = 60 * SECOND;
/// Gauges of a server are left out if its last tick is older than this, in µs.
const STALE: i64 = 300 * SECOND;

/// The figures of a server.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Name of the server.
    pub server: String,
    /// True if the server answered this time.
    pub readable: bool,
    /// True if the server has answered once. Until then its counters are unknown.
    pub is_counted: bool,
    /// Counters; objects without series are joined.
    pub sums: Sums,
    /// Means of the last readings; objects without series are joined.
    pub gauges: Values<f64>,
    /// Seconds since 1970 of the last tick.
    pub last_tick: Option<f64>,
    /// Seconds since 1970 of the oldest tick.
    pub first_tick: Option<f64>,
    /// CPU seconds that the last tick took.
    pub tick_cost: Option<f64>,
    /// Size of the history files in bytes.
    pub bytes: Option<f64>,
    /// Number of damaged bytes in the history files.
    pub damaged_bytes: Option<f64>,
    /// Number of CPUs of the server.
    pub vcpus: Option<f64>,
    /// Counters of all objects.
    counted: Sums,
    series: Series,
    /// The counters of the day's closed hours, and the end of these hours in µs since 1970.
    closed: (i64, Sums),
    /// Begin of the time that the next scrape counts, µs since 1970.
    counted_to: i64,
    /// Step of the turn at the last count.
    turn: Turn,
    /// The counters of the previous day. The first two fields are the day and the step of its turn
    /// for which they were computed. In step `Day` only the previous day's last hour is counted:
    /// its objects get series from the start of the day.
    before: (i64, Turn, Sums),
}

/// The steps of a turn: counters pass from the previous day to this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    /// Counters still show the day before.
    Before,
    /// Counters are 0.
    Zero,
    /// Counters show the day.
    #[default]
    Day,
}

/// Counters as whole numbers: their sums are the same in any order.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Time of sessions in the load by wait class and state, in ten-thousandths of a
    /// second.
    pub sessions: BTreeMap<(String, String), i128>,
    /// Time observed, ms.
    pub observed_ms: i64,
    /// Ticks taken.
    pub ticks_observed: u64,
    /// Ticks that failed.
    pub ticks_failed: u64,
    /// Ticks that were not taken.
    pub ticks_missed: u64,
    /// Markers by kind.
    pub markers: BTreeMap<String, u64>,
    /// Increases by measurement and object, in ten-thousandths of the unit.
    pub server: Values<i128>,
}

/// Reads the figures of all servers.
pub struct Scraper {
    source: Arc<dyn Source>,
    /// The tally of each server, by name. Locked during a scrape, so that another one waits.
    tallies: Arc<Mutex<BTreeMap<String, Tally>>>,
}

/// The history of one server, to ask for windows.
struct Asked<'a> {
    source: &'a dyn Source,
    server: &'a str,
}

impl Scraper {
    /// Counts nothing before the first scrape.
    pub fn new(source: Arc<dyn Source>) -> Scraper {
        let tallies = Arc::default();
        Scraper { source, tallies }
    }

    /// Counts everything new, and returns the figures of each server. Waits for files.
    pub fn scrape(&self) -> Vec<Tally> {
        let mut tallies = lock(&self.tallies);
        let servers = self.source.servers();
        tallies.retain(|name, _| servers.iter().any(|server| server.name == *name));
        for server in servers {
            let tally = tallies.entry(server.name.clone()).or_default();
            tally.server = server.name;
            let recorded = server.state == State::Recorded;
            tally.readable = recorded && tally.count(&*self.source).is_ok();
        }
        tallies.values().cloned().collect()
    }
}

impl Tally {
    fn count(&mut self, source: &dyn Source) -> QueryResult<()> {
        let server = self.server.clone();
        let asked = Asked {
            source,
            server: &server,
        };
        let status = Status::ask(source, &server)?;
        let number = |metric| status.metric(metric)?.parse::<f64>().ok();
        let seconds = |metric| Some(status.time(metric)? as f64 / 1e6);
        (self.last_tick, self.first_tick) = (seconds("last_tick_time"), seconds("first_tick_time"));
        (self.bytes, self.damaged_bytes) = (number("bytes"), number("damaged_bytes"));
        let cost = number("last_tick_cost_us").or(number("tick_cost_us"));
        self.tick_cost = cost.map(|us| us / 1e6);
        let Some(last) = status.time("last_tick_time") else {
            self.sums.begin(&Sums::default());
            self.is_counted = true;
            return Ok(());
        };
        let until = last - last.rem_euclid(SECOND);
        if until > self.counted_to {
            self.count_to(&asked, until)?;
        }
        if jiff::Timestamp::now().as_microsecond() - last > STALE {
            self.gauges.clear();
        }
        Ok(())
    }

    fn count_to(&mut self, asked: &Asked, until: i64) -> QueryResult<()> {
        let day = until - until.rem_euclid(DAY);
        let hour = until - until.rem_euclid(HOUR);
        if self.closed.0 != hour {
            self.closed = (hour, asked.sums(day, hour)?.0);
        }
        let turn = self.turn_of(asked, day, until)?;
        if (self.before.0, self.before.1) != (day, turn) {
            let since = day - if turn == Turn::Day { HOUR } else { DAY };
            let mut sums = asked.sums(since, day)?.0;
            sums.markers = asked.markers(day - DAY)?;
            self.before = (day, turn, sums);
        }
        let (mut sums, vcpus) = asked.sums(hour, until)?;
        sums.add(&self.closed.1);
        sums.markers = asked.markers(day)?;
        match turn {
            Turn::Before => sums = self.before.2.clone(),
            Turn::Zero => sums = Sums::default(),
            // A part that has become damaged was counted before; counters must not fall.
            Turn::Day if self.turn == turn && self.counted_to > day => sums.at_least(&self.counted),
            Turn::Day => (),
        }
        sums.begin(&self.before.2);
        let gauges = asked.gauges(until)?;
        self.series
            .begin(if turn == Turn::Before { day - DAY } else { day });
        self.show(sums, gauges);
        self.vcpus = vcpus.or(self.vcpus);
        (self.counted_to, self.turn, self.is_counted) = (until, turn, true);
        Ok(())
    }

    /// Gives series to the busiest objects: first by the day before, then by today.
    fn show(&mut self, sums: Sums, gauges: Values<f64>) {
        self.series.fill(&self.before.2.server);
        self.series.fill(&sums.server);
        self.series.fill(&rounded(&gauges));
        self.gauges = self.series.bounded(gauges, f64::max);
        self.counted = sums.clone();
        self.sums = Sums {
            server: self.series.bounded(sums.server, |a, b| a + b),
            ..sums
        };
    }

    /// Step of the turn at `until`. The first day of a history has no turn.
    fn turn_of(&self, asked: &Asked, day: i64, until: i64) -> QueryResult<Turn> {
        let is_first = self
            .first_tick
            .is_some_and(|first| first * 1e6 >= day as f64);
        if is_first || self.closed.1.ticks() > 0 {
            return Ok(Turn::Day);
        }
        for (turn, length) in [(Turn::Day, 2 * TURN), (Turn::Zero, TURN)] {
            if asked.has_ticks(day, until - length)? {
                return Ok(turn);
            }
        }
        Ok(Turn::Before)
    }
}

impl Sums {
    /// Adds, with 0, the counters that may still come: of each wait class and state, of each kind
    /// of marker, and of the objects in `before`.
    fn begin(&mut self, before: &Sums) {
        for class in query::wait_classes() {
            for state in query::LOAD_STATES {
                let key = (class.to_string(), state.to_string());
                self.sessions.entry(key).or_default();
            }
        }
        for kind in catalog::schema().labels("marker") {
            self.markers.entry(kind.label.clone()).or_default();
        }
        for key in before.server.keys() {
            self.server.entry(key.clone()).or_default();
        }
    }

    fn ticks(&self) -> u64 {
        self.ticks_observed + self.ticks_failed
    }

    fn add(&mut self, other: &Sums) {
        for (key, more) in &other.sessions {
            *self.sessions.entry(key.clone()).or_default() += more;
        }
        for (key, more) in &other.server {
            *self.server.entry(key.clone()).or_default() += more;
        }
        self.observed_ms += other.observed_ms;
        self.ticks_observed += other.ticks_observed;
        self.ticks_failed += other.ticks_failed;
        self.ticks_missed += other.ticks_missed;
    }

    fn at_least(&mut self, before: &Sums) {
        raise(&mut self.sessions, &before.sessions);
        raise(&mut self.server, &before.server);
        raise(&mut self.markers, &before.markers);
        self.observed_ms = self.observed_ms.max(before.observed_ms);
        self.ticks_observed = self.ticks_observed.max(before.ticks_observed);
        self.ticks_failed = self.ticks_failed.max(before.ticks_failed);
        self.ticks_missed = self.ticks_missed.max(before.ticks_missed);
    }

    /// Adds the observed time and the ticks of one hour, as far as the hour lies within a window.
    fn add_load(&mut self, row: &TimelineRow, (since, until): (i64, i64)) {
        let start = row.bucket_start.unwrap_or(since);
        let length_us = until.min(start + HOUR) - since.max(start);
        // Rounded to 10 ms, the unit of intervals: printed values are rounded, too.
        let observed = i128::from(length_us) * row.coverage_pct.unwrap_or_default().0;
        let hundredths = (observed + 5_000_000_000) / 10_000_000_000;
        self.observed_ms += 10 * i64::try_from(hundredths).unwrap_or(0);
        let taken = count(row.ticks_observed);
        let failed = count(row.ticks_failed);
        self.ticks_observed += taken;
        self.ticks_failed += failed;
        self.ticks_missed += count(row.ticks_expected).saturating_sub(taken + failed);
    }
}

/// Keeps values from falling or disappearing.
fn raise<K: Ord + Clone, V: Ord + Copy>(values: &mut BTreeMap<K, V>, before: &BTreeMap<K, V>) {
    for (key, value) in before {
        let now = values.entry(key.clone()).or_insert(*value);
        *now = (*now).max(*value);
    }
}

impl Asked<'_> {
    fn ask<R: Request>(&self, request: &R) -> QueryResult<Vec<R::Row>> {
        rows::ask(self.source, self.server, request)
    }

    /// All measurements of a window.
    fn readings(&self, since: i64, until: i64) -> QueryResult<Vec<ServerHistoryRow>> {
        self.ask(&ServerHistory {
            since: Some(since),
            until: Some(until),
            ..ServerHistory::default()
        })
    }

    /// The observed time of a window, hour by hour.
    fn by_hour(&self, since: i64, until: i64) -> QueryResult<Vec<TimelineRow>> {
        self.ask(&Timeline {
            since: Some(since),
            until: Some(until),
            bucket: Some(HOUR),
            ..Timeline::default()
        })
    }

    /// True if there is a tick in a window.
    fn has_ticks(&self, since: i64, until: i64) -> QueryResult<bool> {
        if since >= until {
            return Ok(false);
        }
        let mut sums = Sums::default();
        for row in &self.by_hour(since, until)? {
            sums.add_load(row, (since, until));
        }
        Ok(sums.ticks() > 0)
    }

    /// The counters of a window of whole seconds, and the CPUs at its end.
    fn sums(&self, since: i64, until: i64) -> QueryResult<(Sums, Option<f64>)> {
        let (mut sums, mut vcpus) = (Sums::default(), None);
        if since == until {
            return Ok((sums, vcpus));
        }
        for row in &self.by_hour(since, until)? {
            sums.add_load(row, (since, until));
            vcpus = row.vcpus.map(Numeric::to_f64).or(vcpus);
        }
        let classes = Top {
            since: Some(since),
            until: Some(until),
            dimension: Some("wait_event_type".to_string()),
            by: Some("state".to_string()),
            n: None,
            ..Top::default()
        };
        for row in self.ask(&classes)? {
            let named = |key: Option<Arc<str>>| key.as_deref().unwrap_or(NULL).to_string();
            let time = sums
                .sessions
                .entry((named(row.key), named(row.by_key)))
                .or_default();
            *time += row.backend_seconds.unwrap_or_default().0;
        }
        let readings = self.readings(since, until)?;
        let total = |row: &ServerHistoryRow| Some(row.total.unwrap_or_default().0);
        sums.server = measured(&readings, true, total, |a, b| a + b);
        Ok((sums, vcpus))
    }

    /// Means of the measurements in the 60 s before `until` (µs since 1970). Among objects with the
    /// same name the largest counts.
    fn gauges(&self, until: i64) -> QueryResult<Values<f64>> {
        let readings = self.readings(until - READINGS, until)?;
        let mean = |row: &ServerHistoryRow| row.avg.map(Numeric::to_f64);
        Ok(measured(&readings, false, mean, f64::max))
    }

    /// Markers of a day by kind, without those that only reach into it.
    fn markers(&self, day: i64) -> QueryResult<BTreeMap<String, u64>> {
        let mut kinds = BTreeMap::new();
        let window = Markers {
            since: Some(day),
            until: Some(day + DAY),
            ..Markers::default()
        };
        for row in self.ask(&window)? {
            let is_within = row.marker_time.is_some_and(|time| time >= day);
            if let (Some(kind), true) = (row.kind, is_within) {
                *kinds.entry(kind.to_string()).or_default() += 1;
            }
        }
        Ok(kinds)
    }
}

/// Gauges as whole numbers, which can be ordered.
fn rounded(gauges: &Values<f64>) -> Values<i64> {
    let round = |(key, value): (&(_, _), &f64)| (Clone::clone(key), value.round() as i64);
    gauges.iter().map(round).collect()
}

/// Rows that are counters, or those that are gauges, by measurement and object. Objects
/// with the same name are joined.
fn measured<V>(
    rows: &[ServerHistoryRow],
    counts: bool,
    value: impl Fn(&ServerHistoryRow) -> Option<V>,
    join: impl Fn(V, V) -> V,
) -> Values<V> {
    let mut values = Values::new();
    for row in rows {
        let known = catalog::measurements();
        let mut known = known.filter(|m| m.counts == counts);
        let name = row.metric.as_deref();
        let found = known.find(|m| Some(m.name) == name);
        if let (Some(measurement), Some(value)) = (found, value(row)) {
            let object = row.object.as_deref().map_or(NULL.to_string(), named);
            objects::add(&mut values, (measurement.name, object), value, &join);
        }
    }
    values
}

/// The name of an object. PostgreSQL's programs put processes and ids into the names of
/// objects that they use for a while (`pg_basebackup_4711`, `pg_16394_sync_16385_7`).
fn named(object: &str) -> String {
    let rest = object.strip_prefix("pg_").unwrap_or_default();
    let numbered = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let is_backup = rest.strip_prefix("basebackup_").is_some_and(numbered);
    let is_sync = numbered(rest) && rest.contains("_sync_");
    match (is_backup, is_sync) {
        (true, _) => "pg_basebackup".to_string(),
        (_, true) => "pg_sync".to_string(),
        _ => object.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_of_our_words_is_there_from_the_begin_on() {
        let mut sums = Sums::default();
        let key = ("CPU".to_string(), "active".to_string());
        sums.sessions.insert(key.clone(), 7);
        let deadlocks = ("deadlocks", "shop".to_string());
        let before = Sums {
            server: [(deadlocks.clone(), 9)].into(),
            ..Sums::default()
        };
        sums.begin(&before);
        assert_eq!(sums.sessions.get(&key), Some(&7));
        let lock = ("Lock".to_string(), "fastpath function call".to_string());
        assert_eq!(sums.sessions.get(&lock), Some(&0));
        assert_eq!(sums.sessions.len(), 22);
        assert_eq!(sums.markers.get("gap"), Some(&0));
        assert_eq!(sums.server, [(deadlocks, 0)].into());
    }

    #[test]
    fn names_by_process_are_one() {
        assert_eq!(named("pg_basebackup_4711"), "pg_basebackup");
        assert_eq!(named("pg_16394_sync_16385_7123"), "pg_sync");
        for own in ["pg_basebackup_weekly", "node_2", "pg_16394", "pg_standby_1"] {
            assert_eq!(named(own), own);
        }
    }

    #[test]
    fn a_counter_does_not_fall_when_history_is_damaged() {
        let of = |ms, cpu: i128| Sums {
            observed_ms: ms,
            sessions: [(("CPU*".to_string(), "active".to_string()), cpu)].into(),
            ..Sums::default()
        };
        let mut sums = of(500, 20);
        sums.at_least(&of(600, 10));
        let key = ("CPU*".to_string(), "active".to_string());
        assert_eq!(
            (sums.observed_ms, sums.sessions.get(&key)),
            (600, Some(&20))
        );
        let mut less = Sums::default();
        less.at_least(&sums);
        assert_eq!(less.sessions.get(&key), Some(&20));
    }
}
