//! What `/metrics` says of servers. Counters begin with 0 when this program
//! starts; each scrape adds the ticks between the last one it has counted and
//! the last one that is whole, so no tick counts twice and none is missed.

use crate::desk::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tacho_source::rows::Rows;
use tacho_source::{Source, State, time};
use tacho_tape::query::QueryResult;

/// The class of samples without a wait event, as filters call it.
const NO_WAIT: &str = "(null)";

/// What is known of a server.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Its name.
    pub server: String,
    /// It answered.
    pub readable: bool,
    /// Seconds of sessions in the load by class of wait event.
    pub session_seconds: BTreeMap<String, f64>,
    /// Seconds observed.
    pub observed_seconds: f64,
    /// Ticks there should be.
    pub ticks_expected: u64,
    /// Ticks taken.
    pub ticks_observed: u64,
    /// Ticks that failed.
    pub ticks_failed: u64,
    /// Seconds since 1970 of the last tick.
    pub last_tick: Option<f64>,
    /// Seconds since 1970 of the oldest tick.
    pub first_tick: Option<f64>,
    /// Bytes of files.
    pub bytes: Option<f64>,
    /// Bytes that are damaged.
    pub damaged_bytes: Option<f64>,
    /// CPUs.
    pub vcpus: Option<f64>,
    /// Where counting goes on: the begin of the second of the last tick, as
    /// `status` says it.
    counted_to: Option<String>,
}

/// Asks for what is scraped.
pub struct Scraper {
    source: Arc<dyn Source>,
    /// By server. Held while somebody scrapes: another one waits.
    tallies: Arc<Mutex<BTreeMap<String, Tally>>>,
}

impl Scraper {
    /// Counts from the first scrape on.
    pub fn new(source: Arc<dyn Source>) -> Scraper {
        let tallies = Arc::default();
        Scraper { source, tallies }
    }

    /// Counts on, and says what is known of each server.
    pub async fn scrape(&self) -> Vec<Tally> {
        let (source, tallies) = (Arc::clone(&self.source), Arc::clone(&self.tallies));
        let scraped = tokio::task::spawn_blocking(move || {
            let mut tallies = lock(&tallies);
            let servers = source.servers();
            tallies.retain(|name, _| servers.iter().any(|server| server.name == *name));
            for server in servers {
                let tally = tallies.entry(server.name.clone()).or_default();
                tally.server = server.name;
                let recorded = server.state == State::Recorded;
                tally.readable = recorded && tally.count(source.as_ref()).is_ok();
            }
            tallies.values().cloned().collect()
        });
        scraped.await.unwrap_or_default()
    }
}

impl Tally {
    fn count(&mut self, source: &dyn Source) -> QueryResult<()> {
        let status = self.ask(source, "status", &[])?;
        let number = |metric| status.metric(metric)?.parse::<f64>().ok();
        let seconds = |metric| Some(status.time(metric)? as f64 / 1e6);
        (self.last_tick, self.first_tick) = (seconds("last_tick_time"), seconds("first_tick_time"));
        (self.bytes, self.damaged_bytes) = (number("bytes"), number("damaged_bytes"));
        let Some(until) = status.metric("last_tick_time") else {
            return Ok(());
        };
        match self.counted_to.clone() {
            Some(since) if since.as_str() < until => self.add(source, &since, until)?,
            Some(_) => return Ok(()),
            None => (),
        }
        self.counted_to = Some(until.to_string());
        Ok(())
    }

    /// Adds a window.
    fn add(&mut self, source: &dyn Source, since: &str, until: &str) -> QueryResult<()> {
        let window = [("since", since), ("until", until)];
        let classes = [("dimension", "wait_event_type"), ("n", "all")];
        let top = self.ask(source, "top", &[window, classes].concat())?;
        let load = self.ask(source, "aas", &window)?;
        for row in &top.0 {
            let class = row.text("key").unwrap_or(NO_WAIT).to_string();
            let seconds = row.number("backend_seconds").unwrap_or(0.0);
            *self.session_seconds.entry(class).or_default() += seconds;
        }
        if let Some(row) = load.0.first() {
            let length = seconds_between(since, until);
            let percent = row.number("coverage_pct").unwrap_or(0.0);
            self.observed_seconds += length * percent / 100.0;
            self.ticks_expected += row.count("ticks_expected");
            self.ticks_observed += row.count("ticks_observed");
            self.ticks_failed += row.count("ticks_failed");
            self.vcpus = row.number("vcpus").or(self.vcpus);
        }
        Ok(())
    }

    fn ask(
        &self,
        source: &dyn Source,
        function: &str,
        arguments: &[(&str, &str)],
    ) -> QueryResult<Rows> {
        Rows::ask(source, &self.server, function, arguments)
    }
}

/// Length of a window of whole seconds.
fn seconds_between(since: &str, until: &str) -> f64 {
    let at = |text| time::moment(text, 0, &jiff::tz::TimeZone::UTC).unwrap_or(0);
    at(until).saturating_sub(at(since)) as f64 / 1e6
}
