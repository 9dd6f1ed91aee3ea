//! All servers in one answer, the one in most trouble first.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::{Scratch, Server, WINDOW};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use tacho_tape::testing::{Load, Sampler};

/// Histories `quiet` and `busy`, and a missing one.
fn three(name: &str) -> (Scratch, Server) {
    let scratch = Scratch::new(name);
    for (number, (server, sessions)) in [("quiet", 1), ("busy", 9)].into_iter().enumerate() {
        let load = Load {
            sessions,
            ..Load::default()
        };
        let mut sampler = Sampler::new(7 + number as u64, load);
        sampler
            .write_tape(&scratch.0.join(server), 300, &[])
            .unwrap();
    }
    let path = |server: &str| format!("{server}={}", scratch.0.join(server).display());
    let (busy, gone) = (path("busy"), path("gone"));
    let server = Server::known(
        &scratch.0.join("quiet"),
        &["--tape", &busy, "--tape", &gone],
    );
    (scratch, server)
}

fn texts<'a>(rows: &'a Value, name: &str) -> Vec<&'a str> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[name].as_str().unwrap()).collect()
}

#[test]
fn each_server_has_the_figures_of_its_own_answers() {
    let (_scratch, server) = three("fleet");
    let answer = server.get(&format!("/api/v1/fleet?{WINDOW}&bucket=1min"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    assert_eq!(answer["notices"], serde_json::json!([]));
    let rows = &answer["rows"];
    assert_eq!(texts(rows, "server"), ["busy", "quiet", "gone"]);
    assert_eq!(texts(rows, "state"), ["recorded", "recorded", "missing"]);
    for (row, name) in [(&rows[0], "busy"), (&rows[1], "quiet")] {
        let own = |function: &str, more: &str| {
            server
                .get(&format!("/api/v1/{function}?server={name}&{WINDOW}{more}"))
                .json()["rows"]
                .clone()
        };
        let (whole, steps) = (own("aas", ""), own("timeline", "&bucket=1min"));
        for figure in ["avg_aas", "peak_sessions", "vcpus", "coverage_pct"] {
            assert_eq!(row[figure], whole[0][figure], "{name} {figure}");
        }
        let steps: Vec<Value> = steps
            .as_array()
            .unwrap()
            .iter()
            .map(|step| step["avg_aas"].clone())
            .collect();
        assert_eq!(steps.len(), 11);
        assert_eq!(row["loads"], Value::Array(steps), "{name}");
        assert!(whole[0]["avg_aas"].as_f64().unwrap() > 0.0, "{name}");
    }
    assert_eq!(rows[2]["avg_aas"], Value::Null);
    assert_eq!(rows[2]["loads"], serde_json::json!([]));
}

#[test]
fn a_window_that_makes_no_sense_is_refused_once() {
    let (scratch, server) = three("fleet-refused");
    let problem = |query: &str| server.get(&format!("/api/v1/fleet?{query}")).problem();
    assert_eq!(problem("since=never").0, 400);
    assert_eq!(problem("server=busy").1, "fleet has no argument \"server\"");
    assert_eq!(
        problem("application=web").1,
        "fleet has no argument \"application\""
    );
    let stranger = Server::start(&scratch.0.join("quiet"), &[]);
    assert_eq!(stranger.get("/api/v1/fleet").status, 401);
}

#[test]
fn more_servers_than_it_asks_are_counted() {
    let scratch = Scratch::shop("fleet-many");
    let others: Vec<String> = (0..300)
        .map(|n| format!("--tape=n{n}=/nothing/{n}"))
        .collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let server = Server::known(&scratch.tape(), &others);
    let answer = server.get(&format!("/api/v1/fleet?{WINDOW}")).json();
    assert_eq!(answer["rows"].as_array().unwrap().len(), 256);
    assert_eq!(answer["rows"][0]["server"], "shop");
    assert_eq!(answer["notices"][0]["message"], "45 servers are left out");
}

#[test]
fn fleet_requests_wait_for_places_and_leave_one_for_others() {
    let (scratch, server) = three("fleet-places");
    let one = Server::known(&scratch.0.join("busy"), &["--questions", "1"]);
    for server in [&server, &one] {
        let path = format!("/api/v1/fleet?{WINDOW}&bucket=1s");
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| server.get(&path).status))
                .collect();
            for status in asked {
                assert_eq!(status.join().unwrap(), 200);
            }
        });
    }
    // With two places, fleet requests always leave one for others.
    let two = Server::known(&scratch.0.join("busy"), &["--questions", "2"]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let fleet = |_| {
            scope.spawn(|| {
                for _ in 0..10 {
                    let path = format!("/api/v1/fleet?{WINDOW}&bucket=1s");
                    assert_eq!(two.get(&path).status, 200);
                }
            })
        };
        let fleets: Vec<_> = (0..4).map(fleet).collect();
        let other = scope.spawn(|| {
            let mut asked = 0;
            while !ended.load(Ordering::Relaxed) || asked == 0 {
                assert_eq!(two.get(&format!("/api/v1/aas?{WINDOW}")).status, 200);
                asked += 1;
            }
        });
        let fleets: Vec<_> = fleets.into_iter().map(|fleet| fleet.join()).collect();
        ended.store(true, Ordering::Relaxed);
        other.join().unwrap();
        assert!(fleets.iter().all(Result::is_ok));
    });
}
