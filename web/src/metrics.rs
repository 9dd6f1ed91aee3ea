//! `/metrics` in the format of OpenMetrics. Labels have a bound: servers are
//! named by whoever starts this program, functions and classes of wait events
//! by the code; never a process, a query or a text.

use crate::scrape::Tally;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry, Unit};
use std::fmt;
use std::sync::atomic::AtomicU64;
use tacho_source::memory;
use tacho_tape::query;

/// What a scraper is told it gets.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A function that does not exist, whatever it was called.
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
}

type Seconds = Counter<f64, AtomicU64>;
type Level = Gauge<f64, AtomicU64>;

/// What this program counts of itself.
#[derive(Clone, Default)]
pub struct Counters {
    questions: Family<Question, Counter>,
}

impl Counters {
    /// The name of a function as a label.
    pub fn function(&self, name: &str) -> &'static str {
        query::find(name).map_or(UNKNOWN, |function| function.name)
    }

    /// A question of a function ended: `answered`, `failed`, `canceled` or
    /// `refused`.
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

    /// A gauge of every server of which it is known.
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

    /// A counter of every server.
    fn counts(&mut self, name: &str, help: &str, servers: &[Tally], of: fn(&Tally) -> u64) {
        let family = Family::<Of, Counter>::default();
        for tally in servers {
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

/// The page that is scraped.
///
/// # Errors
/// Never: a text takes everything.
pub fn encode(
    counters: &Counters,
    (running, listeners): (usize, usize),
    servers: &[Tally],
) -> Result<String, fmt::Error> {
    let mut page = Page(Registry::with_prefix("tacho"));
    add_load(&mut page, servers);
    add_recorders(&mut page, servers);
    page.add(
        "web_questions",
        "Questions that ended",
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
    let help = "Clients that are told what is recorded at this moment";
    page.add("web_listeners", help, listening);
    let used = Level::default();
    used.set(memory::used() as f64);
    let help = "Memory that this program has taken";
    page.add_in("web_memory", help, Unit::Bytes, used);
    let mut out = String::new();
    text::encode(&mut out, &page.0)?;
    Ok(out)
}

fn add_load(page: &mut Page, servers: &[Tally]) {
    let (sessions, observed) = (
        Family::<Wait, Seconds>::default(),
        Family::<Of, Seconds>::default(),
    );
    for tally in servers {
        for (class, seconds) in &tally.session_seconds {
            let labels = Wait {
                server: tally.server.clone(),
                wait_event_type: class.clone(),
            };
            sessions.get_or_create(&labels).inc_by(*seconds);
        }
        let seconds = tally.observed_seconds;
        observed.get_or_create(&tally.into()).inc_by(seconds);
    }
    page.add_in(
        "session",
        "Time of sessions in the load, since this program started; by observed time it is the load",
        Unit::Seconds,
        sessions,
    );
    page.add_in(
        "observed",
        "Time observed, since this program started",
        Unit::Seconds,
        observed,
    );
}

fn add_recorders(page: &mut Page, servers: &[Tally]) {
    page.counts(
        "ticks_expected",
        "Ticks that there should be",
        servers,
        |t| t.ticks_expected,
    );
    page.counts("ticks_observed", "Ticks that were taken", servers, |t| {
        t.ticks_observed
    });
    page.counts("ticks_failed", "Ticks that failed", servers, |t| {
        t.ticks_failed
    });
    page.levels(
        ("readable", "1 where the history can be read", None),
        servers,
        |t| Some(f64::from(u8::from(t.readable))),
    );
    let times = Some(Unit::Seconds);
    page.levels(
        ("last_tick_timestamp", "Time of the last tick", times),
        servers,
        |t| t.last_tick,
    );
    let times = Some(Unit::Seconds);
    page.levels(
        ("first_tick_timestamp", "Time of the oldest tick", times),
        servers,
        |t| t.first_tick,
    );
    let bytes = Some(Unit::Bytes);
    page.levels(
        ("history", "Size of the history files", bytes),
        servers,
        |t| t.bytes,
    );
    let bytes = Some(Unit::Bytes);
    page.levels(
        ("damaged", "What of the history files is damaged", bytes),
        servers,
        |t| t.damaged_bytes,
    );
    page.levels(("vcpus", "CPUs of the server", None), servers, |t| t.vcpus);
}
