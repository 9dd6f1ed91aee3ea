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
/// Time between two ticks, in seconds.
const TICK: i64 = 10;
/// Begin of all sessions.
const START: &str = "2026-01-01T00:00:00Z";
/// Time in seconds for which a transaction is open before others wait for it.
const OPEN: i64 = 40;
/// Incidents: begin in seconds of the week, length in seconds, and true for a lock queue, false for
/// more load than CPUs.
const INCIDENTS: [(i64, i64, bool); 6] = [
    (DAY + 10 * HOUR, 120, true),
    (2 * DAY + 11 * HOUR, 600, false),
    (3 * DAY + 15 * HOUR, 300, true),
    (4 * DAY + 9 * HOUR, 420, false),
    (5 * DAY + 20 * HOUR, 90, true),
    (6 * DAY + 3 * HOUR + 1800, 900, false),
];

fn week() -> String {
    let mut text = "time,pid,backend_start,backend_type,state,wait_event_type,wait_event,query_id,blocked_by,vcpus,xact_start\n"
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
            writeln!(
                text,
                "{time},{pid},{START},{kind},{state},{wait},{query},{holder},4,"
            )
            .unwrap();
        };
        let client = "client backend";
        // an import knows no tick without a session, and a gap is no end of an alarm
        row(800, client, "idle", "Client,ClientRead", 0, "");
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
            let is_now = (begin..begin + seconds).contains(&second);
            for pid in 0..if is_now && is_queue { 3 } else { 0 } {
                row(600 + pid, client, "active", "Lock,transactionid", 12, "500");
            }
            for pid in 0..if is_now && !is_queue { 9 } else { 0 } {
                row(700 + pid, client, "active", ",", 40, "");
            }
        }
        // the holder of a lock began its transaction before others wait for it
        for (begin, seconds, is_queue) in INCIDENTS {
            if is_queue && (begin - OPEN..begin + seconds).contains(&second) {
                let xact = jiff::Timestamp::from_second(BEGIN + begin - OPEN).unwrap();
                writeln!(
                    text,
                    "{time},500,{START},{client},idle in transaction,Client,ClientRead,13,,4,{xact}"
                )
                .unwrap();
            }
        }
    }
    text
}

/// A message: seconds of the week, and what it says.
#[derive(Debug)]
struct Told {
    began_or_ended: i64,
    status: String,
    rule: String,
    /// Lines below: findings, then the address of the page.
    more: Vec<String>,
}

impl Told {
    fn all(printed: &str) -> Vec<Told> {
        let mut all: Vec<Told> = Vec::new();
        for line in printed.lines() {
            if let Some(more) = line.strip_prefix("    ") {
                all.last_mut().unwrap().more.push(more.into());
                continue;
            }
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(words[2], "shop", "{line}");
            all.push(Told {
                began_or_ended: second(words[0]),
                status: words[1].into(),
                rule: words[3].trim_end_matches(':').into(),
                more: Vec::new(),
            });
        }
        all
    }

    /// When the alarm was sent: its page ends there.
    fn sent(&self) -> i64 {
        let until = self.more.last().unwrap().split_once("&until=").unwrap().1;
        second(until.split('&').next().unwrap())
    }
}

/// The second of the week of a printed time.
fn second(time: &str) -> i64 {
    time.parse::<jiff::Timestamp>().unwrap().as_second() - BEGIN
}

/// Alarms and ends of a week by the default rules.
fn told() -> Vec<Told> {
    let mut history = History::begin(BEGIN);
    history.import(&week(), &["--interval", "10s"]);
    history.at = BEGIN + 7 * DAY;
    Told::all(&history.replay("page = 'https://tacho.example'\n", BEGIN + 600))
}

/// True if an alarm of a rule was sent in an incident, or up to a minute after it.
fn is_of(incident: &(i64, i64, bool), alarm: &Told) -> bool {
    let (begin, seconds, is_queue) = *incident;
    let rule = if is_queue { "queue" } else { "load" };
    alarm.rule == rule && (begin..begin + seconds + 60).contains(&alarm.sent())
}

#[test]
fn each_incident_of_a_week_is_one_alarm_and_false_ones_are_less_than_one_a_day() {
    let told = told();
    let alarms: Vec<&Told> = told.iter().filter(|t| t.status == "alarm").collect();
    let ends: Vec<&Told> = told.iter().filter(|t| t.status == "over").collect();
    for incident in &INCIDENTS {
        let (begin, seconds, is_queue) = *incident;
        let of_it: Vec<_> = alarms
            .iter()
            .filter(|alarm| is_of(incident, alarm))
            .collect();
        let [alarm] = of_it[..] else {
            panic!("{incident:?}: {told:#?}")
        };
        // the limit of the rule (30 s, 2 min), then at most two looks, each after 30 s
        let limit = if is_queue { 30 } else { 120 };
        let late = alarm.sent() - begin - limit;
        assert!((0..=60).contains(&late), "{incident:?}: {late} s late");
        // the first finding is the cause: the holder of the lock, or the new query
        let cause: &[&str] = match is_queue {
            true => &[
                "session 500, idle in transaction",
                "3 sessions wait behind it",
            ],
            false => &["clients began to run query 40, from 0.00 to 9.00 sessions"],
        };
        let is_named = cause.iter().all(|part| alarm.more[0].contains(part));
        assert!(is_named, "{incident:?}: {alarm:#?}");
        let page = alarm.more.last().unwrap();
        let since = jiff::Timestamp::from_second(BEGIN + alarm.began_or_ended - 600).unwrap();
        let expected = format!("https://tacho.example/?server=shop&since={since}&until=");
        assert!(page.starts_with(&expected), "{page}");
        assert_eq!(page.ends_with("&tab=locks"), is_queue, "{page}");
        // The alarm has exactly one end.
        let end = begin + seconds;
        let ends = ends.iter().filter(|over| {
            over.rule == alarm.rule && (end..end + 240).contains(&over.began_or_ended)
        });
        assert_eq!(ends.count(), 1, "{incident:?}: {told:#?}");
    }
    let is_false = |alarm: &&&Told| !INCIDENTS.iter().any(|one| is_of(one, alarm));
    let wrong: Vec<_> = alarms.iter().filter(is_false).collect();
    for day in 0..7 {
        let of_day = wrong.iter().filter(|alarm| alarm.sent() / DAY == day);
        assert!(of_day.count() <= 1, "day {day}: {wrong:#?}");
    }
    assert_eq!(alarms.len(), ends.len(), "{told:#?}");
}
