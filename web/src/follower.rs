//! Follows one server and sends events about new ticks, markers and its state.

use crate::problem::put_error;
use axum::body::Bytes;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};
use tacho_source::rows::{self, Status, count};
use tacho_source::{Source, State, time};
use tacho_tape::query::json::{Object, numeric, quote, value};
use tacho_tape::query::{
    Aas, Markers, MarkersRow, Numeric, QueryError, QueryResult, Row, Timeline, Value,
};
use tokio::sync::mpsc::Sender;

/// One second in µs.
pub const SECOND: i64 = 1_000_000;
/// Longest absence of a client, in µs, after which it still gets the missed ticks.
pub const REPLAY: i64 = 600 * SECOND;
/// Markers up to this many µs before the last tick may be new to clients, because their writer may
/// have been down.
const MARKERS: i64 = 3600 * SECOND;
/// Interval of health events; a changed state is sent at once.
const HEALTH: Duration = Duration::from_secs(10);
/// The next tick is late if this many µs and two intervals have passed since the last tick.
const LATE: i64 = 5 * SECOND;
/// The wait class of samples without a wait event, as filters name it.
const NO_WAIT: &str = "(null)";

/// State of following one server.
#[derive(Default)]
pub struct Follower {
    server: String,
    /// Queues of the listeners.
    pub listeners: Vec<Sender<Bytes>>,
    /// True if a thread follows the server.
    pub has_begun: bool,
    /// True if the thread has ended.
    pub has_ended: bool,
    /// Ticks before this time were sent; in µs since 1970. `None` before the first.
    pub told_until: Option<i64>,
    /// Time in µs since 1970 and number of the newest tick.
    last: (Option<i64>, Option<String>),
    interval: i64,
    coverage: Option<String>,
    missed: u64,
    /// Hashes of the known markers.
    markers: BTreeSet<u64>,
    knows_markers: bool,
    state: &'static str,
    error: Option<QueryError>,
    paused_ms: Option<i64>,
    health_told: Option<Instant>,
}

/// A second with ticks.
pub struct Tick {
    server: String,
    start: i64,
    classes: Vec<(String, i128)>,
    vcpus: Option<f64>,
    expected: u64,
    observed: u64,
    failed: u64,
}

/// An event in the form that is sent.
pub fn event(name: &str, id: Option<i64>, data: &str) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {}\n", rfc3339(id)));
    format!("event: {name}\n{id}data: {data}\n\n").into()
}

/// The event that tells a client that it has missed earlier events.
pub fn reset(server: &str) -> Bytes {
    let mut data = Object::default();
    data.put("server", &quote(server));
    event("reset", None, &data.json())
}

fn rfc3339(us: i64) -> String {
    time::timestamp(us).to_string()
}

fn quoted(us: i64) -> String {
    value(&Value::Time(us))
}

impl Tick {
    /// The event about this second for clients; empty without ticks. A client that reconnects
    /// continues after this event.
    pub fn told(&self) -> Bytes {
        if self.observed + self.failed == 0 {
            return Bytes::new();
        }
        let (mut data, mut classes) = (Object::default(), Object::default());
        for (class, aas) in &self.classes {
            classes.put(class, &numeric(*aas));
        }
        let aas = self.classes.iter().map(|class| class.1).sum();
        let end = self.start + SECOND;
        data.put("server", &quote(&self.server))
            .put("period_start", &quoted(self.start))
            .put("period_end", &quoted(end))
            .put("avg_aas", &numeric(aas))
            .put("classes", &classes.json())
            .put(
                "vcpus",
                &self.vcpus.map_or("null".into(), |v| v.to_string()),
            )
            .put("ticks_expected", &self.expected.to_string())
            .put("ticks_observed", &self.observed.to_string())
            .put("ticks_failed", &self.failed.to_string());
        event("tick", Some(end), &data.json())
    }

    fn is_whole(&self) -> bool {
        self.observed + self.failed >= self.expected
    }
}

/// All seconds of a window, also those without ticks.
///
/// # Errors
/// As [`Source::ask`].
pub fn ticks(source: &dyn Source, server: &str, since: i64, until: i64) -> QueryResult<Vec<Tick>> {
    let rows = Timeline {
        since: Some(since),
        until: Some(until),
        bucket: Some(SECOND),
        by: Some("wait_event_type".to_string()),
        n: None,
        ..Timeline::default()
    };
    let rows = rows::ask(source, server, &rows)?;
    let mut ticks: Vec<Tick> = Vec::new();
    for row in rows {
        let Some(start) = row.bucket_start else {
            continue;
        };
        if ticks.last().is_none_or(|tick| tick.start != start) {
            ticks.push(Tick {
                server: server.to_string(),
                start,
                classes: Vec::new(),
                vcpus: row.vcpus.map(Numeric::to_f64),
                expected: count(row.ticks_expected),
                observed: count(row.ticks_observed),
                failed: count(row.ticks_failed),
            });
        }
        let aas = row.avg_aas.unwrap_or_default().0;
        if let (1.., Some(tick)) = (aas, ticks.last_mut()) {
            let class = row.key.as_deref().unwrap_or(NO_WAIT).to_string();
            tick.classes.push((class, aas));
        }
    }
    Ok(ticks)
}

/// The event of a marker, and a hash that stays the same for this marker.
fn marker(server: &str, row: &MarkersRow) -> (u64, Bytes) {
    let names = MarkersRow::FIELDS.iter().map(|field| field.0);
    let values = row.clone().values().into_iter().map(|v| value(&v));
    let members: BTreeMap<&str, String> = names.zip(values).collect();
    let mut hasher = DefaultHasher::new();
    members.hash(&mut hasher);
    let id = hasher.finish();
    let mut data = Object::default();
    data.put("server", &quote(server));
    data.put("id", &quote(&format!("{id:016x}")));
    for (name, value) in members {
        data.put(name, &value);
    }
    (id, event("marker", None, &data.json()))
}

impl Follower {
    /// Creates a follower without listeners.
    pub fn of(server: &str) -> Follower {
        Follower {
            server: server.to_string(),
            ..Follower::default()
        }
    }

    /// Sends new ticks, markers and changes of the state to the listeners. Returns
    /// false without listeners.
    pub fn look(&mut self, source: &dyn Source) -> bool {
        self.listeners.retain(|listener| !listener.is_closed());
        if self.listeners.is_empty() {
            return false;
        }
        let is_due = self.health_told.is_none_or(|at| at.elapsed() >= HEALTH);
        self.error = self.look_for_ticks(source, is_due).err();
        let before = self.state;
        self.judge(source, is_due);
        if is_due || before != self.state {
            self.health_told = Some(Instant::now());
            let told = self.event_of_health();
            self.tell(&told);
        }
        true
    }

    /// Sends events to all listeners. Drops listeners whose queue is full.
    fn tell(&mut self, events: &Bytes) {
        let is_sent = |listener: &Sender<Bytes>| listener.try_send(events.clone()).is_ok();
        self.listeners.retain(is_sent);
    }

    fn look_for_ticks(&mut self, source: &dyn Source, is_due: bool) -> QueryResult<()> {
        let status = Status::ask(source, &self.server)?;
        let last = status.time("last_tick_time");
        let number = status.metric("last_tick").map(str::to_string);
        self.coverage = status.metric("coverage_last_hour_pct").map(str::to_string);
        let is_new = self.last != (last, number.clone());
        self.last = (last, number);
        let Some(last) = last.filter(|_| is_new || is_due) else {
            return Ok(());
        };
        if is_due {
            self.interval = interval(source, &self.server, last)?;
        }
        let is_first = !std::mem::replace(&mut self.knows_markers, true);
        let markers = self.new_markers(source)?;
        if !is_first {
            markers.iter().for_each(|marker| self.tell(marker));
        }
        match is_new {
            true => self.tell_ticks(source, last),
            false => Ok(()),
        }
    }

    fn tell_ticks(&mut self, source: &dyn Source, last: i64) -> QueryResult<()> {
        let newest = last - last.rem_euclid(SECOND);
        let until = newest + SECOND;
        // Ticks before the first listener are history and not told.
        if self.told_until.is_none() && self.health_told.is_none() {
            let ticks = ticks(source, &self.server, newest, until)?;
            let is_whole = ticks.last().is_some_and(Tick::is_whole);
            self.told_until = Some(if is_whole { until } else { newest });
            return Ok(());
        }
        let from = self.told_until.unwrap_or(newest);
        let is_way_back = from > until;
        let from = match until - from > REPLAY || is_way_back {
            true => {
                let told = reset(&self.server);
                self.tell(&told);
                newest
            }
            false => from,
        };
        self.told_until = Some(from);
        if from == until {
            return Ok(());
        }
        // Sent as one message: any number of ticks takes one place in the queue.
        let mut told = Vec::new();
        for tick in ticks(source, &self.server, from, until)? {
            // More ticks of the last second may still be written.
            if tick.start == newest && !tick.is_whole() {
                break;
            }
            self.told_until = Some(tick.start + SECOND);
            self.missed += tick.expected - (tick.observed + tick.failed).min(tick.expected);
            told.extend_from_slice(&tick.told());
        }
        if !told.is_empty() {
            self.tell(&told.into());
        }
        Ok(())
    }

    /// Events of markers that are new.
    ///
    /// # Errors
    /// As [`Source::ask`].
    pub fn new_markers(&mut self, source: &dyn Source) -> QueryResult<Vec<Bytes>> {
        let last = self
            .last
            .0
            .unwrap_or_else(|| Timestamp::now().as_microsecond());
        let window = Markers {
            since: Some(last - MARKERS),
            ..Markers::default()
        };
        let rows = rows::ask(source, &self.server, &window)?;
        let all: Vec<(u64, Bytes)> = rows.iter().map(|row| marker(&self.server, row)).collect();
        let known = std::mem::take(&mut self.markers);
        self.markers = all.iter().map(|marker| marker.0).collect();
        let news = all.into_iter().filter(|marker| !known.contains(&marker.0));
        Ok(news.map(|marker| marker.1).collect())
    }

    /// Sets the state: whether recording goes on.
    fn judge(&mut self, source: &dyn Source, is_due: bool) {
        let age = |last| Timestamp::now().as_microsecond().saturating_sub(last);
        let is_late = |last| age(last) > LATE + 2 * self.interval;
        let late = self.last.0.is_none_or(is_late);
        if late || is_due || self.error.is_some() {
            let all = source.servers();
            let own = all.iter().find(|server| server.name == self.server);
            self.paused_ms = own.and_then(|server| server.paused_ms);
            self.state = match (own.map_or(State::Missing, |own| own.state), &self.error) {
                (State::Recorded, Some(_)) => "failed",
                (State::Recorded, None) if self.paused_ms.is_some() && late => "paused",
                (State::Recorded, None) if late => "late",
                (State::Recorded, None) => "recording",
                (state, _) => state.name(),
            };
        } else {
            self.state = "recording";
        }
    }

    /// The health event: whether recording goes on.
    pub fn event_of_health(&self) -> Bytes {
        let mut data = Object::default();
        let time = |us: Option<i64>| us.map_or("null".to_string(), quoted);
        let last = self.last.0;
        let age = last.map(|last| Timestamp::now().as_microsecond().saturating_sub(last));
        let age = age.map_or("null".to_string(), |age| (age / SECOND).to_string());
        let paused = self.paused_ms.map(|ms| ms.saturating_mul(1_000));
        data.put("server", &quote(&self.server))
            .put("state", &quote(self.state))
            .put("last_tick_time", &time(last))
            .put("last_tick_age_s", &age)
            .put("paused_since", &time(paused))
            .put("ticks_missed", &self.missed.to_string())
            .put(
                "coverage_last_hour_pct",
                self.coverage.as_deref().unwrap_or("null"),
            );
        if let Some(error) = &self.error {
            put_error(&mut data, error);
        }
        event("health", None, &data.json())
    }
}

/// The average time between ticks in µs, over the last ten minutes of the history.
fn interval(source: &dyn Source, server: &str, last: i64) -> QueryResult<i64> {
    let until = last + SECOND;
    let window = Aas {
        since: Some(until - REPLAY),
        until: Some(until),
        ..Aas::default()
    };
    let rows = rows::ask(source, server, &window)?;
    let expected = rows.first().and_then(|row| row.ticks_expected);
    Ok(REPLAY / expected.unwrap_or(0).max(1))
}
