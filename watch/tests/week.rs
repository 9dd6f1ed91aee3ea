//! A made week: each night a backup and a batch, vacuum every two hours, one day of double load, and
//! six incidents.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::History;
use std::fmt::Write as _;

/// 2026-11-02, a Monday.
const BEGIN: i64 = 1_793_577_600;
const DAY: i64 = 86_400;
const HOUR: i64 = 3600;
/// Time between two ticks, seconds.
const TICK: i64 = 10;
/// Incidents: begin, seconds, and whether it is a lock queue or more load than CPUs.
const INCIDENTS: [(i64, i64, bool); 6] = [
    (DAY + 10 * HOUR, 120, true),
    (2 * DAY + 11 * HOUR, 600, false),
    (3 * DAY + 15 * HOUR, 300, true),
    (4 * DAY + 9 * HOUR, 420, false),
    (5 * DAY + 20 * HOUR, 90, true),
    (6 * DAY + 3 * HOUR + 1800, 900, false),
];

fn week() -> String {
    let mut text = "time,pid,backend_start,backend_type,state,wait_event_type,wait_event,query_id,blocked_by,vcpus\n"
        .to_string();
    let mut seed = 7_u64;
    let mut chance = |parts: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % parts
    };
    for second in (0..7 * DAY).step_by(TICK as usize) {
        let time = jiff::Timestamp::from_second(BEGIN + second).unwrap();
        let mut row = |pid: u32, kind: &str, state: &str, wait: &str, query: u32, holder: &str| {
            let start = "2026-01-01T00:00:00Z";
            writeln!(
                text,
                "{time},{pid},{start},{kind},{state},{wait},{query},{holder},4"
            )
            .unwrap();
        };
        let client = "client backend";
        let (day, hour) = (second / DAY, second % DAY / HOUR);
        let usual = if (7..=21).contains(&hour) { 14 } else { 4 };
        let usual = if day == 2 { usual * 2 } else { usual };
        for pid in 0..8 {
            if chance(80) < usual {
                row(100 + pid, client, "active", ",", 11 + pid % 3, "");
            }
        }
        if hour == 1 {
            row(200, client, "active", "Client,ClientWrite", 20, "");
            row(201, client, "active", "IO,DataFileRead", 21, "");
        }
        for pid in 0..if hour == 2 { 3 } else { 0 } {
            row(210 + pid, client, "active", ",", 30 + pid, "");
        }
        if second % (2 * HOUR) < 400 {
            row(
                300,
                "autovacuum worker",
                "active",
                "Timeout,VacuumDelay",
                0,
                "",
            );
        }
        if chance(500) == 0 {
            row(400, client, "active", "Lock,transactionid", 12, "101");
        }
        for (begin, seconds, is_queue) in INCIDENTS {
            if !(begin..begin + seconds).contains(&second) {
                continue;
            }
            for pid in 0..if is_queue { 3 } else { 9 } {
                match is_queue {
                    true => row(600 + pid, client, "active", "Lock,transactionid", 12, "500"),
                    false => row(700 + pid, client, "active", ",", 40, ""),
                }
            }
            if is_queue {
                row(
                    500,
                    client,
                    "idle in transaction",
                    "Client,ClientRead",
                    13,
                    "",
                );
            }
        }
    }
    text
}

#[test]
fn each_incident_of_a_week_is_one_alarm_and_false_ones_are_less_than_one_a_day() {
    let mut history = History::begin(BEGIN);
    history.import(&week(), &["--interval", "10s"]);
    history.at = BEGIN + 7 * DAY;
    let told = history.replayed("", BEGIN + 600);
    // second of the week, "alarm" or "over", rule
    let told: Vec<(i64, &str, &str)> = told
        .iter()
        .map(|line| {
            let words: Vec<&str> = line.split([' ', ':']).filter(|w| !w.is_empty()).collect();
            let time: jiff::Timestamp = line.split(' ').next().unwrap().parse().unwrap();
            let rule = words.iter().find(|word| ["queue", "load"].contains(word));
            let status = words.iter().find(|word| ["alarm", "over"].contains(word));
            (time.as_second() - BEGIN, *status.unwrap(), *rule.unwrap())
        })
        .collect();
    let alarms: Vec<_> = told
        .iter()
        .filter(|(_, status, _)| *status == "alarm")
        .collect();
    let overs = told
        .iter()
        .filter(|(_, status, _)| *status == "over")
        .count();
    assert_eq!(alarms.len(), overs, "{told:?}");
    let is_in = |(begin, seconds, _): &(i64, i64, bool), at: i64| {
        (begin - 120..=begin + seconds).contains(&at)
    };
    for incident in &INCIDENTS {
        let rule = if incident.2 { "queue" } else { "load" };
        let of_it = alarms
            .iter()
            .filter(|(at, _, of)| *of == rule && is_in(incident, *at));
        assert_eq!(of_it.count(), 1, "{incident:?}: {told:?}");
    }
    let is_false = |at: i64| !INCIDENTS.iter().any(|incident| is_in(incident, at));
    let wrong = alarms.iter().filter(|(at, _, _)| is_false(*at)).count();
    assert!(wrong <= 7, "{wrong}: {told:?}");
}
