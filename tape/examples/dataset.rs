//! Random days of session samples as CSV for `tacho import sessions -`. The same arguments give
//! the same bytes:
//! `dataset uniform|skewed|churn [--ages] [--hours N] [--seed N]`.
//!
//! uniform: 50 sessions active at every second. Each sample has one of 21 wait events and one of
//! 200 random query ids, independent of the sample before. This is the worst case for compression
//! (12.04 bits of entropy a sample).
//!
//! skewed: 120 clients by a daily curve, queries by Zipf's law, executions of many ticks, a pile-up
//! behind one lock every two hours, reconnections, all columns.
//!
//! churn: ten samples a second, each of a backend of its own; 5,000 query ids an hour, 200
//! applications.
//!
//! --ages adds query_start, xact_start and state_change.
//!
//! --seed makes another day of the same kind: other query ids, other draws.

use std::io::{self, BufWriter, Write};
use tacho_tape::testing::Random;

const EVENTS: [(&str, &str); 21] = [
    ("IO", "DataFileRead"),
    ("IO", "DataFileWrite"),
    ("IO", "DataFileExtend"),
    ("IO", "WALWrite"),
    ("IO", "WALSync"),
    ("IO", "BuffileRead"),
    ("IO", "BuffileWrite"),
    ("LWLock", "WALWrite"),
    ("LWLock", "WALInsert"),
    ("LWLock", "BufferMapping"),
    ("LWLock", "BufferContent"),
    ("LWLock", "ProcArray"),
    ("LWLock", "LockManager"),
    ("LWLock", "SubtransSLRU"),
    ("Lock", "transactionid"),
    ("Lock", "tuple"),
    ("Lock", "relation"),
    ("Lock", "extend"),
    ("IPC", "MessageQueueSend"),
    ("IPC", "ParallelFinish"),
    ("Timeout", "VacuumDelay"),
];
/// 2026-03-02 00:00:00 UTC.
const BEGIN_MS: i64 = 1_772_409_600_000;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ages = args.iter().any(|a| a == "--ages");
    let ticks = number(&args, "--hours").unwrap_or(24) * 3_600;
    let seed = number(&args, "--seed");
    let random = |usual| Random(seed.map_or(usual, i64::unsigned_abs));
    let mut out = BufWriter::with_capacity(1 << 18, io::stdout().lock());
    match args.first().map(String::as_str) {
        Some("uniform") => uniform(random(1), &mut out, ticks, ages)?,
        Some("skewed") => Skewed::new(random(2), ages).write(&mut out, ticks)?,
        Some("churn") => churn(random(3), &mut out, ticks)?,
        _ => {
            eprintln!("usage: dataset uniform|skewed|churn [--ages] [--hours N] [--seed N]");
            std::process::exit(2);
        }
    }
    out.flush()
}

/// The value of an option.
fn number(args: &[String], name: &str) -> Option<i64> {
    let at = args.iter().position(|a| a == name)?;
    args.get(at + 1)?.parse().ok()
}

/// A point in time as the import reads it.
struct Time(i64);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (days, ms) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        // Days since 0000-03-01, then years and months that begin in March.
        let z = days + 719_468;
        let (era, day) = (z.div_euclid(146_097), z.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (year, month) = match month < 10 {
            true => (era * 400 + year, month + 3),
            false => (era * 400 + year + 1, month - 9),
        };
        let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
        let ms = ms % 1_000;
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}.{ms:03}+00"
        )
    }
}

fn query_ids(random: &mut Random, n: usize) -> Vec<i64> {
    let mut id = || (random.below(1 << 32) << 32 | random.below(1 << 32)) as i64;
    (0..n).map(|_| id()).collect()
}

fn uniform(mut random: Random, out: &mut impl Write, ticks: i64, ages: bool) -> io::Result<()> {
    let queries = query_ids(&mut random, 200);
    let more = if ages {
        ",query_start,xact_start,state_change"
    } else {
        ""
    };
    writeln!(out, "time,pid,wait_event_type,wait_event,query_id{more}")?;
    for tick in 0..ticks {
        let now = BEGIN_MS + tick * 1_000;
        let time = Time(now).to_string();
        for session in 0..50 {
            let (class, event) = EVENTS[random.below(21) as usize];
            let query = queries[random.below(200) as usize];
            write!(out, "{time},{},{class},{event},{query}", 1_000 + session)?;
            if ages {
                // A query with any age below the interval. Half of the queries begin their
                // transaction.
                let query = now - random.below(1_000) as i64;
                let xact = query - random.below(2) as i64 * random.below(1_000) as i64;
                let (query, xact) = (Time(query), Time(xact));
                write!(out, ",{query},{xact},{query}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

fn churn(mut random: Random, out: &mut impl Write, ticks: i64) -> io::Result<()> {
    writeln!(
        out,
        "time,pid,backend_start,application,wait_event_type,wait_event,query_id"
    )?;
    let mut queries = Vec::new();
    for tick in 0..ticks {
        if tick % 3_600 == 0 {
            queries = query_ids(&mut random, 5_000);
        }
        let now = BEGIN_MS + tick * 1_000;
        let time = Time(now).to_string();
        for backend in 0..10 {
            let pid = 1_000 + (tick * 10 + backend) % 4_000_000;
            let start = Time(now - random.below(1_000) as i64);
            let (class, event) = EVENTS[random.below(21) as usize];
            let query = queries[random.below(5_000) as usize];
            let application = random.below(200);
            writeln!(
                out,
                "{time},{pid},{start},service {application},{class},{event},{query}"
            )?;
        }
    }
    Ok(())
}

const CLIENTS: usize = 120;
const STATEMENTS: usize = 2_000;

/// A connection and its current activity.
#[derive(Clone, Default)]
struct Client {
    pid: u64,
    start_ms: i64,
    application: usize,
    user: usize,
    /// Ticks until its activity ends; 0 = between two activities.
    left: u64,
    active: bool,
    in_transaction: bool,
    query: usize,
    wait: Option<usize>,
    query_start: i64,
    xact_start: i64,
}

struct Skewed {
    random: Random,
    ages: bool,
    clients: Vec<Client>,
    queries: Vec<i64>,
    /// Cumulated weights of the queries.
    weights: Vec<u64>,
    next_pid: u64,
}

impl Skewed {
    fn new(mut random: Random, ages: bool) -> Self {
        let queries = query_ids(&mut random, STATEMENTS);
        let mut sum = 0;
        let weights = (1..=STATEMENTS as u64).map(|rank| {
            sum += 1_000_000 / rank;
            sum
        });
        Skewed {
            weights: weights.collect(),
            random,
            ages,
            clients: vec![Client::default(); CLIENTS],
            queries,
            next_pid: 20_000,
        }
    }

    fn write(mut self, out: &mut impl Write, ticks: i64) -> io::Result<()> {
        let more = if self.ages {
            ",query_start,xact_start,state_change"
        } else {
            ""
        };
        writeln!(
            out,
            "time,pid,backend_start,backend_type,database,username,application,client_addr,\
             state,wait_event_type,wait_event,cpu,query_id,plan_id,blocked_by{more}"
        )?;
        for tick in 0..ticks {
            let now = BEGIN_MS + tick * 1_000;
            for client in 0..CLIENTS {
                self.advance(client, tick, now);
            }
            self.rows(out, tick, now)?;
        }
        Ok(())
    }

    /// Busy clients per mille: a day with a noon and a night.
    fn busy(tick: i64) -> u64 {
        let minute = tick / 60 % 1_440;
        let from_noon = (minute - 780).unsigned_abs();
        60 + 180 * (720u64.saturating_sub(from_noon)) / 720
    }

    /// True for five minutes every two hours, when half of the clients wait for one lock.
    fn storm(tick: i64) -> bool {
        tick % 7_200 >= 6_900
    }

    fn advance(&mut self, index: usize, tick: i64, now: i64) {
        let random = &mut self.random;
        let client = &mut self.clients[index];
        if client.pid == 0 || (client.left == 0 && random.below(600) == 0) {
            self.next_pid += 1 + random.below(3);
            client.pid = self.next_pid;
            client.start_ms = now - random.below(1_000) as i64;
            client.application = index % 9;
            client.user = index % 5;
        }
        if client.left > 0 {
            client.left -= 1;
            if client.active && random.below(4) == 0 {
                client.wait = wait(random);
            }
            return;
        }
        client.in_transaction = client.active && random.below(8) == 0;
        let stormy = Skewed::storm(tick) && index.is_multiple_of(2) && index > 0;
        client.active = stormy || client.in_transaction || random.below(1_000) < Skewed::busy(tick);
        client.left = match (stormy, client.in_transaction) {
            (true, _) => 20 + random.below(200),
            (_, true) => random.below(3),
            _ if client.active => match random.below(10) {
                0 => 10 + random.below(110),
                1..4 => 1 + random.below(9),
                _ => 0,
            },
            _ => random.below(5),
        };
        if !client.active || client.in_transaction {
            return;
        }
        let at = random.below(*self.weights.last().unwrap_or(&1));
        client.query = if stormy {
            3
        } else {
            self.weights.partition_point(|w| *w <= at)
        };
        client.wait = if stormy { Some(14) } else { wait(random) };
        client.query_start = now - random.below(1_000) as i64;
        client.xact_start = client.query_start;
        if random.below(3) == 0 {
            client.xact_start -= random.below(4_000) as i64;
        }
    }

    fn rows(&mut self, out: &mut impl Write, tick: i64, now: i64) -> io::Result<()> {
        let time = Time(now).to_string();
        let holder = self.clients[0].pid;
        let mut empty = true;
        for (index, client) in self.clients.iter().enumerate().filter(|c| c.1.active) {
            empty = false;
            let (class, event) = client.wait.map_or(("", ""), |w| EVENTS[w]);
            let (state, class, event) = match client.in_transaction {
                true => ("idle in transaction", "Client", "ClientRead"),
                false => ("active", class, event),
            };
            let cpu = if class.is_empty() { "CPU*" } else { "" };
            let blocked = (Skewed::storm(tick) && client.wait == Some(14)).then_some(holder);
            let blocked = blocked.map(|pid| pid.to_string()).unwrap_or_default();
            write!(
                out,
                "{time},{},{},client backend,shop{},app{},service {},10.0.0.{},{state},{class},{event},{cpu},{},{},{blocked}",
                client.pid,
                Time(client.start_ms),
                client.user / 2,
                client.user,
                client.application,
                index % 16,
                self.queries[client.query],
                client.query % 3 + 1,
            )?;
            if self.ages {
                let (query, xact) = (Time(client.query_start), Time(client.xact_start));
                write!(out, ",{query},{xact},{query}")?;
            }
            writeln!(out)?;
        }
        match empty {
            true => writeln!(
                out,
                "{time}{}",
                ",".repeat(14 + if self.ages { 3 } else { 0 })
            ),
            false => Ok(()),
        }
    }
}

fn wait(random: &mut Random) -> Option<usize> {
    match random.below(10) {
        0..4 => None,
        4..8 => Some(random.below(4) as usize),
        _ => Some(random.below(21) as usize),
    }
}
