//! Compares events of a real server with its answers, while the history is
//! written.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Scratch, Server, sampler};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use tacho_tape::testing::Sampler;

struct Event {
    name: String,
    id: Option<String>,
    data: Value,
}

/// A client of `/api/v1/live`.
struct Client(BufReader<TcpStream>);

impl Client {
    fn new(server: &Server, query: &str, last: Option<&str>) -> Client {
        let lines = last.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
        let mut stream = server.connect();
        let head = server.head(&format!("/api/v1/live{query}"), &lines);
        stream.write_all(head.as_bytes()).unwrap();
        let mut client = Client(BufReader::new(stream));
        assert_eq!(client.line().unwrap(), "HTTP/1.1 200 OK");
        while client.line().is_some_and(|line| !line.is_empty()) {}
        client
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(1..) => Some(line.trim_end().to_string()),
            _ => None,
        }
    }

    /// The next event; skips the lines of the chunked transfer. `None` is the
    /// end.
    fn event(&mut self) -> Option<Event> {
        let mut fields = BTreeMap::new();
        while let Some(line) = self.line() {
            if let Some((name, value)) = line.split_once(": ") {
                fields.insert(name.to_string(), value.to_string());
            } else if line.is_empty() && fields.contains_key("data") {
                return Some(Event {
                    name: fields["event"].clone(),
                    id: fields.get("id").cloned(),
                    data: serde_json::from_str(&fields["data"]).unwrap(),
                });
            }
        }
        None
    }

    fn named(&mut self, name: &str) -> Event {
        loop {
            let event = self.event().unwrap();
            if event.name == name {
                return event;
            }
        }
    }
}

fn write(scratch: &Scratch, sampler: &mut Sampler, frames: usize) {
    let log = scratch.tape().join("0000000001.open");
    let mut log = std::fs::File::options().append(true).open(log).unwrap();
    for _ in 0..frames {
        log.write_all(&sampler.frame().0).unwrap();
    }
}

/// Sums by wait class of a second, from the timeline.
fn asked(server: &Server, tick: &Value) -> BTreeMap<String, String> {
    let of = |name: &str| tick[name].as_str().unwrap();
    let window = format!("since={}&until={}", of("period_start"), of("period_end"));
    let path = format!("/api/v1/timeline?{window}&bucket=1s&by=wait_event_type&n=all");
    let rows = server.get(&path).json();
    let rows = rows["rows"].as_array().unwrap().iter();
    let class = |row: &Value| {
        let key = row["key"].as_str().unwrap_or("(null)");
        (key.to_string(), row["avg_aas"].to_string())
    };
    rows.map(class)
        .filter(|class| class.1 != "0.0000")
        .collect()
}

fn told(tick: &Value) -> BTreeMap<String, String> {
    let classes = tick["classes"].as_object().unwrap().iter();
    classes
        .map(|(key, aas)| (key.clone(), aas.to_string()))
        .collect()
}

#[test]
fn each_tick_is_sent_once_to_each_listener_also_after_a_pause() {
    let scratch = Scratch::new("live");
    let mut sampler = sampler();
    sampler.write_tape(&scratch.tape(), 60, &[]).unwrap();
    let server = Server::known(&scratch.tape(), &[]);
    let mut clients = [
        Client::new(&server, "", None),
        Client::new(&server, "?server=shop", None),
    ];
    let health = clients[0].named("health").data;
    assert_eq!(health["server"], "shop");
    assert_eq!(health["state"], "late");
    assert_eq!(server.metric("tacho_web_listeners"), 2.0);
    write(&scratch, &mut sampler, 40);
    let all = |client: &mut Client, until: Option<&str>| {
        let mut ticks = Vec::new();
        let is_last = |ticks: &[(String, Value)]| {
            let last = ticks.last().map(|tick| &*tick.0);
            ticks.len() == 30 || (last.is_some() && last == until)
        };
        while !is_last(&ticks) {
            let tick = client.named("tick");
            ticks.push((tick.id.unwrap(), tick.data));
        }
        ticks
    };
    let first = all(&mut clients[0], None);
    assert_eq!(all(&mut clients[1], None), first);
    for (id, tick) in &first {
        assert_eq!(tick["period_end"].as_str(), Some(&**id));
        assert_eq!(told(tick), asked(&server, tick), "{id}");
        let sum: f64 = told(tick)
            .values()
            .map(|aas| aas.parse::<f64>().unwrap())
            .sum();
        assert!((sum - tick["avg_aas"].to_string().parse::<f64>().unwrap()).abs() < 1e-9);
    }
    let ids: Vec<&String> = first.iter().map(|tick| &tick.0).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    // A client that comes back after any of them gets the rest, once.
    for from in [0, 7, 28] {
        let last = &first[from].0;
        let mut back = Client::new(&server, "", Some(last));
        let rest = all(&mut back, Some(&first[29].0));
        assert_eq!(rest, first[from + 1..], "{from}");
        let mut asks = Client::new(&server, &format!("?since={last}"), None);
        assert_eq!(asks.named("tick").data, first[from + 1].1);
    }
    // Without listeners nothing is followed.
    drop(clients);
    server.wait_for("tacho_web_listeners", 0.0);
    write(&scratch, &mut sampler, 5);
    let mut late = Client::new(&server, "", Some(&first[29].0));
    assert!(late.named("tick").id.unwrap() > first[29].0);
    // An old event gets a `reset`: the page has to ask.
    let mut old = Client::new(&server, "", Some("2026-09-01T00:00:00Z"));
    assert_eq!(old.named("reset").data["server"], "shop");
}

#[test]
fn a_second_is_sent_once_complete() {
    let scratch = Scratch::new("live-whole");
    let load = tacho_tape::testing::Load {
        interval_ms: 100,
        ticks_per_frame: 4,
        ..Default::default()
    };
    let mut sampler = Sampler::new(7, load);
    sampler.write_tape(&scratch.tape(), 100, &[]).unwrap();
    let server = Server::known(&scratch.tape(), &[]);
    let mut client = Client::new(&server, "", None);
    write(&scratch, &mut sampler, 40);
    for _ in 0..5 {
        let tick = client.named("tick").data;
        assert_eq!(told(&tick), asked(&server, &tick));
        write(&scratch, &mut sampler, 4);
    }
}

#[test]
fn only_a_listener_that_reads_too_slowly_is_dropped() {
    let scratch = Scratch::new("live-slow");
    let mut sampler = sampler();
    sampler.write_tape(&scratch.tape(), 60, &[]).unwrap();
    let server = Server::known(&scratch.tape(), &["--connections", "8"]);
    let slow: Vec<Client> = (0..3).map(|_| Client::new(&server, "", None)).collect();
    let mut quick = Client::new(&server, "", None);
    assert_eq!(server.get("/api/v1/live").problem().0, 429);
    while server.metric("tacho_web_listeners") > 1.0 {
        write(&scratch, &mut sampler, 550);
        let last = server.metric("tacho_last_tick_timestamp_seconds{server=\"shop\"}");
        let last = jiff::Timestamp::from_second(last as i64)
            .unwrap()
            .to_string();
        while *quick.named("tick").data["period_start"].as_str().unwrap() < *last {}
    }
    drop(slow);
    write(&scratch, &mut sampler, 5);
    quick.named("tick");
    assert_eq!(server.get("/api/v1/servers").status, 200);
}

#[test]
fn an_invalid_request_for_events_is_a_problem() {
    let scratch = Scratch::shop("live-odd");
    let server = Server::known(&scratch.tape(), &[]);
    for (query, status) in [
        ("?server=other", 404),
        ("?since=soon", 400),
        ("?n=1", 400),
        ("?server=a&server=b", 400),
    ] {
        let answer = server.get(&format!("/api/v1/live{query}"));
        assert_eq!(answer.problem().0, status, "{query}");
    }
    let bad = server.get_with("/api/v1/live", "Last-Event-ID: x\r\n");
    assert_eq!(bad.problem().0, 400);
}

#[test]
fn health_has_the_reason_for_missing_ticks() {
    let scratch = Scratch::new("live-health");
    let tape = scratch.tape();
    std::fs::create_dir_all(&tape).unwrap();
    let server = Server::known(&tape, &[]);
    let mut client = Client::new(&server, "", None);
    let health = client.named("health").data;
    assert_eq!(health["state"], "empty");
    assert_eq!(health["sqlstate"], "58P01");
    let mut sampler = sampler();
    sampler.write_tape(&tape, 60, &[]).unwrap();
    // The first tick of a history is sent as well.
    client.named("tick");
    assert_eq!(client.named("health").data["state"], "late");
    std::fs::write(tape.join("paused-1790000000000"), "").unwrap();
    assert_eq!(client.named("health").data["state"], "paused");
    std::fs::remove_dir_all(&tape).unwrap();
    assert_eq!(client.named("health").data["state"], "missing");
}
