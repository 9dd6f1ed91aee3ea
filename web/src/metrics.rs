//! `/metrics` in the format of OpenMetrics, or in the older text format of Prometheus. All
//! labels have a limited number of values. The user who starts this program names servers. The
//! code names functions, wait classes, states and kinds of markers. `scrape.rs` limits
//! databases, replicas, slots and kinds of I/O. Labels never contain a process, a query or a
//! text.

use crate::scrape::Tally;
use axum::http::{HeaderMap, header};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry, Unit};
use std::fmt;
use std::sync::atomic::AtomicU64;
use tacho_source::catalog::{Measurement, measurements};
use tacho_source::memory;
use tacho_tape::query;

/// A format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.0.
    Open,
    /// The text format 0.0.4 of Prometheus.
    Text,
}

/// Units of the catalog that become seconds, and the number of these units in a second.
const TIMES: [(&str, f64); 2] = [("ms", 1e3), ("us", 1e6)];
/// Number of parts of a unit in which increases are counted.
const PARTS: f64 = 1e4;

/// Label for functions that do not exist, whatever their name.
const UNKNOWN: &str = "unknown";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Question {
    function: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    server: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Wait {
    server: String,
    wait_event_type: String,
    state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    server: String,
    kind: String,
}

/// Labels of a server and an object of it.
type Labels = Vec<(&'static str, String)>;

type Seconds = Counter<f64, AtomicU64>;
type Level = Gauge<f64, AtomicU64>;

/// Counters of this program itself.
#[derive(Clone, Default)]
pub struct Counters {
    questions: Family<Question, Counter>,
}

impl Counters {
    /// The name of a function as a label; [`UNKNOWN`] for other names.
    pub fn function(&self, name: &str) -> &'static str {
        query::find(name).map_or(UNKNOWN, |function| function.name)
    }

    /// Counts the end of a question: `answered`, `failed`, `canceled` or `refused`.
    pub fn ended(&self, function: &'static str, outcome: &'static str) {
        let labels = Question { function, outcome };
        self.questions.get_or_create(&labels).inc();
    }
}

/// Metrics under construction.
struct Page(Registry);

impl Page {
    fn add<M: Metric>(&mut self, name: &str, help: &str, metric: M) {
        self.0.register(name, help, metric);
    }

    fn add_in<M: Metric>(&mut self, name: &str, help: &str, unit: Unit, metric: M) {
        self.0.register_with_unit(name, help, unit, metric);
    }

    /// Adds a gauge with all servers whose value is known.
    fn levels(
        &mut self,
        (name, help, unit): (&str, &str, Option<Unit>),
        servers: &[Tally],
        of: fn(&Tally) -> Option<f64>,
    ) {
        let family = Family::<Of, Level>::default();
        for tally in servers {
            if let Some(level) = of(tally) {
                family.get_or_create(&tally.into()).set(level);
            }
        }
        match unit {
            Some(unit) => self.add_in(name, help, unit, family),
            None => self.add(name, help, family),
        }
    }

    /// Adds a counter with all servers.
    fn counts(&mut self, name: &str, help: &str, servers: &[Tally], of: fn(&Tally) -> u64) {
        let family = Family::<Of, Counter>::default();
        for tally in servers.iter().filter(|tally| tally.is_counted) {
            family.get_or_create(&tally.into()).inc_by(of(tally));
        }
        self.add(name, help, family);
    }
}

impl From<&Tally> for Of {
    fn from(tally: &Tally) -> Of {
        Of {
            server: tally.server.clone(),
        }
    }
}

impl Format {
    /// The format a client prefers: OpenMetrics if its `Accept` says so.
    pub fn wanted(headers: &HeaderMap) -> Format {
        let all = headers.get_all(header::ACCEPT).iter();
        let mut open = 0.0;
        let mut text = 0.0;
        for range in all
            .filter_map(|v| v.to_str().ok())
            .flat_map(|v| v.split(','))
        {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            let quality = quality.map_or(1.0, |q| q.parse::<f64>().unwrap_or(0.0));
            match kind.to_ascii_lowercase().as_str() {
                "application/openmetrics-text" => open = quality.max(open),
                "text/plain" => text = quality.max(text),
                _ => (),
            }
        }
        if open > 0.0 && open >= text {
            Format::Open
        } else {
            Format::Text
        }
    }

    /// Media type of the format.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// Converts OpenMetrics to this format.
    fn of(self, open: String) -> String {
        match self {
            Format::Open => open,
            Format::Text => older(&open),
        }
    }
}

/// Converts OpenMetrics to the text format. There, a counter has the name of its samples, units
/// appear in names only, and no line marks the end.
fn older(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    let mut help = "";
    for line in open.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let about = help.split_once(' ').map_or("", |(_, about)| about);
            let total = if kind == "counter" { "_total" } else { "" };
            text += &format!("# HELP {name}{total} {about}\n# TYPE {name}{total} {kind}\n");
        } else if !line.starts_with('#') {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// Metrics of servers.
///
/// # Errors
/// Never: writing to a text does not fail.
pub fn of_servers(servers: &[Tally], format: Format) -> Result<String, fmt::Error> {
    written(&page_of(servers), format)
}

/// Metrics of servers, and of this program itself.
///
/// # Errors
/// As [`of_servers`].
pub fn encode(
    counters: &Counters,
    (running, listeners): (usize, usize),
    servers: &[Tally],
    format: Format,
) -> Result<String, fmt::Error> {
    let mut page = page_of(servers);
    page.add(
        "web_questions",
        "Questions answered",
        counters.questions.clone(),
    );
    let running_now = Level::default();
    running_now.set(running as f64);
    page.add(
        "web_running",
        "Questions that are being answered",
        running_now,
    );
    let listening = Level::default();
    listening.set(listeners as f64);
    let help = "Clients of /api/v1/live";
    page.add("web_listeners", help, listening);
    let used = Level::default();
    used.set(memory::used() as f64);
    let help = "Resident memory of this program";
    page.add_in("web_memory", help, Unit::Bytes, used);
    written(&page, format)
}

fn page_of(servers: &[Tally]) -> Page {
    let mut page = Page(Registry::with_prefix("tacho"));
    add_load(&mut page, servers);
    add_recorders(&mut page, servers);
    for measurement in measurements() {
        add_measured(&mut page, &measurement, servers);
    }
    page
}

fn written(page: &Page, format: Format) -> Result<String, fmt::Error> {
    let mut out = String::new();
    text::encode(&mut out, &page.0)?;
    Ok(format.of(out))
}

fn add_load(page: &mut Page, servers: &[Tally]) {
    let (sessions, observed) = (
        Family::<Wait, Seconds>::default(),
        Family::<Of, Seconds>::default(),
    );
    for tally in servers.iter().filter(|tally| tally.is_counted) {
        for ((class, state), time) in &tally.sums.sessions {
            let labels = Wait {
                server: tally.server.clone(),
                wait_event_type: class.clone(),
                state: state.clone(),
            };
            let seconds = *time as f64 / PARTS;
            sessions.get_or_create(&labels).inc_by(seconds);
        }
        let seconds = tally.sums.observed_ms as f64 / 1e3;
        observed.get_or_create(&tally.into()).inc_by(seconds);
    }
    page.add_in(
        "session",
        "Active session time of the day; divided by the observed time it is the load",
        Unit::Seconds,
        sessions,
    );
    page.add_in(
        "observed",
        "Time observed, of the day",
        Unit::Seconds,
        observed,
    );
}

fn add_recorders(page: &mut Page, servers: &[Tally]) {
    page.counts("ticks_observed", "Ticks that were taken", servers, |t| {
        t.sums.ticks_observed
    });
    page.counts("ticks_failed", "Ticks that failed", servers, |t| {
        t.sums.ticks_failed
    });
    page.counts("ticks_missed", "Ticks that were not taken", servers, |t| {
        t.sums.ticks_missed
    });
    add_markers(page, servers);
    page.levels(
        ("readable", "1 if the history can be read", None),
        servers,
        |t| Some(f64::from(u8::from(t.readable))),
    );
    let times = || Some(Unit::Seconds);
    page.levels(
        ("last_tick_timestamp", "Time of the last tick", times()),
        servers,
        |t| t.last_tick,
    );
    page.levels(
        ("first_tick_timestamp", "Time of the oldest tick", times()),
        servers,
        |t| t.first_tick,
    );
    page.levels(
        (
            "last_tick_cost",
            "CPU time that the last tick took",
            times(),
        ),
        servers,
        |t| t.tick_cost,
    );
    let bytes = || Some(Unit::Bytes);
    page.levels(
        ("history", "Size of the history files", bytes()),
        servers,
        |t| t.bytes,
    );
    page.levels(
        ("damaged", "Damaged bytes of the history files", bytes()),
        servers,
        |t| t.damaged_bytes,
    );
    page.levels(("vcpus", "CPUs of the server", None), servers, |t| t.vcpus);
}

fn add_markers(page: &mut Page, servers: &[Tally]) {
    let family = Family::<Kind, Counter>::default();
    for tally in servers {
        for (kind, count) in &tally.sums.markers {
            let labels = Kind {
                server: tally.server.clone(),
                kind: kind.clone(),
            };
            family.get_or_create(&labels).inc_by(*count);
        }
    }
    page.add("markers", "Events in the history, such as gaps", family);
}

/// Adds a measurement of those servers that have it.
fn add_measured(page: &mut Page, measurement: &Measurement, servers: &[Tally]) {
    let (name, object, unit, parts) = shown(measurement);
    let labels = |tally: &Tally, of: &str| -> Labels {
        let server = [("server", tally.server.clone())].into_iter();
        server
            .chain(object.map(|object| (object, of.to_string())))
            .collect()
    };
    let (counters, levels) = (
        Family::<Labels, Seconds>::default(),
        Family::<Labels, Level>::default(),
    );
    let mut is_known = false;
    for tally in servers {
        let totals = tally.sums.server.iter();
        for ((_, of), total) in totals.filter(|(key, _)| key.0 == measurement.name) {
            let counter = counters.get_or_create(&labels(tally, of));
            counter.inc_by(*total as f64 / PARTS / parts);
            is_known = true;
        }
        let means = tally.gauges.iter();
        for ((_, of), mean) in means.filter(|(key, _)| key.0 == measurement.name) {
            levels.get_or_create(&labels(tally, of)).set(mean / parts);
            is_known = true;
        }
    }
    let about = sentence(measurement.about);
    match (is_known, measurement.counts, unit) {
        (false, _, _) => (),
        (_, true, Some(unit)) => page.add_in(&name, &about, unit, counters),
        (_, true, None) => page.add(&name, &about, counters),
        (_, false, Some(unit)) => page.add_in(&name, &about, unit, levels),
        (_, false, None) => page.add(&name, &about, levels),
    }
}

/// Shown name (without unit), label of the object, unit, and the stored parts per unit.
fn shown(measurement: &Measurement) -> (String, Option<&'static str>, Option<Unit>, f64) {
    let object = measurement.table.strip_prefix("server_");
    let kind = object.unwrap_or(measurement.table);
    let name = measurement.name;
    let name = name
        .strip_prefix(kind)
        .map_or(name, |n| n.trim_start_matches('_'));
    let time = TIMES.iter().find(|time| time.0 == measurement.unit);
    let (unit, parts) = match (time, measurement.unit) {
        (Some((_, parts)), _) => (Some(Unit::Seconds), *parts),
        (None, "bytes") => (Some(Unit::Bytes), 1.0),
        (None, _) => (None, 1.0),
    };
    let name = name.strip_suffix("_bytes").unwrap_or(name);
    (format!("{kind}_{name}"), object, unit, parts)
}

fn sentence(about: &str) -> String {
    let mut letters = about.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_client_that_accepts_openmetrics_gets_it() {
        let wanted = |accept| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            Format::wanted(&headers)
        };
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(wanted(prometheus), Format::Open);
        assert_eq!(wanted("Application/OpenMetrics-Text"), Format::Open);
        for accept in ["*/*", "text/plain", "application/openmetrics-text;q=0"] {
            assert_eq!(wanted(accept), Format::Text, "{accept}");
        }
        let rather_text = "application/openmetrics-text;q=0.2, text/plain";
        assert_eq!(wanted(rather_text), Format::Text);
        assert_eq!(Format::wanted(&HeaderMap::new()), Format::Text);
    }

    #[test]
    fn names_have_a_subject_and_end_in_base_units() {
        let name = |name: &str| {
            let measurement = measurements().find(|m| m.name == name).unwrap();
            let (name, object, unit, parts) = shown(&measurement);
            let unit = unit.map_or(String::new(), |u| u.as_str().to_string());
            (name, object.unwrap_or_default(), unit, parts)
        };
        let expected = |name: &str, object, unit: &str, parts| {
            (name.to_string(), object, unit.to_string(), parts)
        };
        for (given, is) in [
            ("wal_bytes", expected("server_wal", "", "bytes", 1.0)),
            ("cpu_user", expected("server_cpu_user", "", "seconds", 1e3)),
            ("load_1", expected("server_load_1", "", "", 1.0)),
            (
                "blks_hit",
                expected("database_blks_hit", "database", "", 1.0),
            ),
            (
                "blk_read_time",
                expected("database_blk_read_time", "database", "seconds", 1e6),
            ),
            (
                "slot_retained",
                expected("slot_retained", "slot", "bytes", 1.0),
            ),
            ("io_read_bytes", expected("io_read", "io", "bytes", 1.0)),
            (
                "io_fsync_time",
                expected("io_fsync_time", "io", "seconds", 1e6),
            ),
            (
                "replica_sent_lag",
                expected("replica_sent_lag", "replica", "bytes", 1.0),
            ),
            (
                "recovery_lag_bytes",
                expected("server_recovery_lag", "", "bytes", 1.0),
            ),
            (
                "recovery_lag",
                expected("server_recovery_lag", "", "seconds", 1e3),
            ),
        ] {
            assert_eq!(name(given), is);
        }
    }

    #[test]
    fn the_older_format_is_made_of_the_newer() {
        let open = "# HELP a_b_seconds Time.\n# TYPE a_b_seconds counter\n# UNIT a_b_seconds seconds\na_b_seconds_total{x=\"#\"} 1.5\n# HELP c C.\n# TYPE c gauge\nc 2.0\n# EOF\n";
        let text = "# HELP a_b_seconds_total Time.\n# TYPE a_b_seconds_total counter\na_b_seconds_total{x=\"#\"} 1.5\n# HELP c C.\n# TYPE c gauge\nc 2.0\n";
        assert_eq!(older(open), text);
    }
}
