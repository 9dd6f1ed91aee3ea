//! Compares `/metrics` with the answers of functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Scratch, Server, command, sampler};
use std::collections::BTreeMap;
use std::io::Write;
use tacho_tape::testing::Sampler;

/// Begin of a day; the sampler begins at 14:13:20.
const DAY: i64 = 1_789_948_800_000;
const HOUR: i64 = 3_600_000;

fn append(scratch: &Scratch, sampler: &mut Sampler, frames: usize) {
    let log = scratch.tape().join("0000000001.open");
    let mut log = std::fs::File::options().append(true).open(log).unwrap();
    for _ in 0..frames {
        log.write_all(&sampler.frame().0).unwrap();
    }
}

/// Samples by name with labels, without the program's own.
fn values(text: &str) -> BTreeMap<String, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let samples = samples.filter(|line| !line.starts_with("tacho_web_"));
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_string(), value.parse().unwrap())
    };
    samples.map(value).collect()
}

fn scraped(server: &Server) -> BTreeMap<String, f64> {
    values(&server.get("/metrics").text())
}

fn sum(values: &BTreeMap<String, f64>, metric: &str) -> f64 {
    let named = values.iter().filter(|(name, _)| name.starts_with(metric));
    named.map(|(_, value)| value).sum()
}

/// The counters equal the answer of `aas` for the day up to the second of the last
/// tick.
fn agrees(server: &Server, since_ms: i64) {
    let values = scraped(server);
    let last = sum(&values, "tacho_last_tick_timestamp_seconds");
    let at = |ms| jiff::Timestamp::from_millisecond(ms).unwrap().to_string();
    let until = at(last as i64 * 1000);
    let aas = server.get(&format!("/api/v1/aas?since={}&until={until}", at(since_ms)));
    let row = &aas.json()["rows"][0];
    let expected = |name: &str| -> f64 { row[name].to_string().parse().unwrap() };
    let sessions = sum(&values, "tacho_session_seconds_total{");
    let observed = sum(&values, "tacho_observed_seconds_total{");
    assert!(sessions > 10.0 && observed > 10.0, "{values:?}");
    assert!(
        (sessions - expected("backend_seconds")).abs() < 0.000_1,
        "{row}"
    );
    assert!(
        (sessions / observed - expected("avg_aas")).abs() < 0.000_1,
        "{row}"
    );
    let taken = sum(&values, "tacho_ticks_observed_total{");
    assert_eq!(taken, expected("ticks_observed"));
    let failed = sum(&values, "tacho_ticks_failed_total{");
    assert_eq!(failed, expected("ticks_failed"));
    assert_eq!(sum(&values, "tacho_readable{server=\"shop\"}"), 1.0);
}

#[test]
fn counters_are_the_load_of_the_day_for_every_scraper() {
    let scratch = Scratch::new("counters");
    let mut sampler = sampler();
    sampler.write_tape(&scratch.tape(), 60, &[]).unwrap();
    let server = Server::known(&scratch.tape(), &[]);
    agrees(&server, DAY);
    let mut before = scraped(&server);
    // Within the hour, in the next one, hours later.
    for begin in [0, DAY + 15 * HOUR, DAY + 20 * HOUR + 2_000] {
        sampler.slot_ms = sampler.slot_ms.max(begin);
        append(&scratch, &mut sampler, 100);
        agrees(&server, DAY);
        let now = scraped(&server);
        for (name, value) in before.iter().filter(|(name, _)| name.contains("_total{")) {
            assert!(now[name] >= *value, "{name} fell to {}", now[name]);
        }
        assert!(sum(&now, "tacho_observed") > sum(&before, "tacho_observed"));
        // Without new ticks nothing is counted, and a new program shows the same.
        assert_eq!(scraped(&server), now);
        assert_eq!(scraped(&Server::known(&scratch.tape(), &[])), now);
        before = now;
    }
    // Counters start at 0 with each day.
    sampler.slot_ms = DAY + 24 * HOUR;
    append(&scratch, &mut sampler, 100);
    agrees(&server, DAY + 24 * HOUR);
    assert_eq!(
        scraped(&Server::known(&scratch.tape(), &[])),
        scraped(&server)
    );
}

#[test]
fn a_day_begins_with_the_end_of_the_one_before_and_with_zeros() {
    let scratch = Scratch::new("turn");
    let mut sampler = sampler();
    sampler.write_tape(&scratch.tape(), 60, &[]).unwrap();
    let server = Server::known(&scratch.tape(), &[]);
    let counters = || {
        let mut values = scraped(&server);
        values.retain(|name, _| name.contains("_total{"));
        assert!(values.keys().eq(scraped_by(&scratch).keys()));
        values
    };
    let lock = "tacho_session_seconds_total{server=\"shop\",wait_event_type=\"BufferPin\",state=\"active\"}";
    assert!(counters().contains_key(lock));
    assert_eq!(
        counters()["tacho_markers_total{server=\"shop\",kind=\"promotion\"}"],
        0.0
    );
    let before = counters();
    let observed = "tacho_observed_seconds_total{server=\"shop\"}";
    let mut record = |ms: i64, frames| {
        sampler.slot_ms = sampler.slot_ms.max(DAY + 24 * HOUR + ms);
        append(&scratch, &mut sampler, frames);
    };
    record(0, 5);
    // The last tick is counted, too, which no scrape had seen before.
    let turned = counters();
    assert!(turned[observed] > before[observed], "{turned:?}");
    assert!(before.iter().all(|(name, value)| turned[name] >= *value));
    record(33_000, 5);
    assert!(counters().values().all(|value| *value == 0.0));
    record(75_000, 30);
    agrees(&server, DAY + 24 * HOUR);
}

/// Counters of a program that starts now.
fn scraped_by(scratch: &Scratch) -> BTreeMap<String, f64> {
    let mut values = scraped(&Server::known(&scratch.tape(), &[]));
    values.retain(|name, _| name.contains("_total{"));
    values
}

#[test]
fn labels_have_a_bound_and_formats_are_negotiated() {
    let scratch = Scratch::shop("formats");
    let server = Server::known(&scratch.tape(), &[]);
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let open = server.get_with("/metrics", accept);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(open.header("content-type"), Some(kind));
    assert!(open.text().ends_with("# EOF\n"));
    let plain = server.get("/metrics");
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(plain.header("content-type"), Some(kind));
    assert!(
        plain
            .text()
            .contains("# TYPE tacho_observed_seconds_total counter\n")
    );
    assert_eq!(values(&open.text()), values(&plain.text()));
    let text = plain.text();
    let labels = text.lines().filter(|line| !line.starts_with('#'));
    let labels = labels.flat_map(|line| line.split(['{', ',']));
    let labels = labels.filter_map(|label| label.split_once("=\""));
    let known = [
        "server",
        "wait_event_type",
        "state",
        "kind",
        "database",
        "replica",
        "slot",
        "function",
        "outcome",
    ];
    for (label, _) in labels {
        assert!(known.contains(&label), "{label}");
    }
}

#[test]
fn metrics_are_printed_once() {
    let scratch = Scratch::shop("once");
    let printed = command(&scratch.tape(), &["--metrics"]).output().unwrap();
    assert_eq!(printed.status.code(), Some(0));
    let printed = String::from_utf8(printed.stdout).unwrap();
    let served = Server::known(&scratch.tape(), &[]).get("/metrics").text();
    assert!(!printed.contains("tacho_web_"), "{printed}");
    assert_eq!(values(&printed), values(&served));
    let missing = command(&scratch.0.join("none"), &["--metrics"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(1));
    let said = String::from_utf8(missing.stderr).unwrap();
    let shown = scratch.0.join("none");
    let wanted = format!(
        "error: could not read directory \"{}\": No such file or directory (os error 2)\nhint: Specify the directory of",
        shown.display()
    );
    assert!(said.starts_with(&wanted), "{said}");
    let missing = String::from_utf8(missing.stdout).unwrap();
    assert!(
        missing.contains("tacho_readable{server=\"none\"} 0"),
        "{missing}"
    );
    // The counters of a server that never answered are unknown.
    assert!(!missing.contains("_total{"), "{missing}");
}
