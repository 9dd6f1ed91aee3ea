//! The condition of each server. Its thread writes it; the health page reads
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tacho_tape::query::plain_lines;

/// A frame that is not on disk after this time is a fault.
const STUCK: Duration = Duration::from_secs(10);

/// Maximum number of refusals that are kept: a server may phrase each one differently.
const MOST_REFUSED: usize = 100;

/// Condition of one server.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// Description of the connected server; `None` without a connection.
    pub connected: Option<String>,
    /// Reason why nothing is recorded.
    pub trouble: Option<String>,
    /// Refused questions, a line each.
    pub refused: BTreeSet<String>,
    pub connects: u64,
    pub ticks: u64,
    pub late_ticks: u64,
    pub missed_slots: u64,
    pub lost_frames: u64,
    /// Sum of the times that ticks waited for their answers, µs.
    pub waited_us: u64,
    pub last_tick: Option<Instant>,
    /// A last tick that is older than this is a fault.
    pub max_tick_age: Duration,
    /// Time since which a call of the file system has been running; `None` if
    /// none runs.
    pub writing: Option<Instant>,
    /// Time since which frames have been waiting to be written; `None` if none
    /// wait.
    pub waiting: Option<Instant>,
    pub waiting_frames: usize,
    /// Last error of the file system.
    pub disk: Option<String>,
}

impl Condition {
    /// Notes a refusal.
    pub fn refuse(&mut self, line: String) {
        if self.refused.len() < MOST_REFUSED {
            self.refused.insert(line);
        }
    }

    /// Age of the last tick; `None` before the first.
    pub fn age(&self) -> Option<Duration> {
        self.last_tick.map(|at| at.elapsed())
    }

    /// Time for which nothing could be written, or for which a call of the file
    /// system has not returned.
    pub fn unwritten(&self) -> Duration {
        let since = [self.writing, self.waiting].into_iter().flatten().min();
        since.map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// True if the disk is full or hangs.
    pub fn is_stuck(&self) -> bool {
        self.unwritten() > STUCK
    }

    /// Reason why this server is not recorded properly, if it is not.
    fn fault(&self) -> Option<String> {
        if self.is_stuck() {
            let seconds = self.unwritten().as_secs();
            let reason = self
                .disk
                .as_deref()
                .unwrap_or("the file system does not respond");
            let frames = self.waiting_frames;
            return Some(format!(
                "not written for {seconds} s: {reason}; waiting frames: {frames}"
            ));
        }
        if let Some(trouble) = &self.trouble {
            return Some(format!("not recorded: {trouble}"));
        }
        let is_old = self.age().is_some_and(|age| age > self.max_tick_age);
        is_old.then(|| "not recorded: no tick has been received".to_string())
    }
}

/// Shared condition of one server.
#[derive(Debug, Default)]
pub struct Health(Mutex<Condition>);

impl Health {
    /// Changes the condition, which no other thread sees meanwhile.
    pub fn update(&self, change: impl FnOnce(&mut Condition)) {
        change(&mut locked(&self.0));
    }

    /// Runs a call of the file system, which may not return.
    pub fn while_writing<T>(&self, call: impl FnOnce() -> T) -> T {
        self.update(|c| c.writing = Some(Instant::now()));
        let result = call();
        self.update(|c| c.writing = None);
        result
    }

    /// A copy of the current condition.
    pub fn now(&self) -> Condition {
        locked(&self.0).clone()
    }
}

/// Conditions of all servers, by name.
#[derive(Default)]
pub struct HealthTable(Mutex<BTreeMap<String, Arc<Health>>>);

impl HealthTable {
    /// Adds a server.
    pub fn add(&self, name: &str) -> Arc<Health> {
        let health = Arc::new(Health::default());
        locked(&self.0).insert(name.to_string(), health.clone());
        health
    }

    /// Removes a server.
    pub fn remove(&self, name: &str) {
        locked(&self.0).remove(name);
    }

    /// Copies of all conditions.
    pub fn now(&self) -> Vec<(String, Condition)> {
        let servers = locked(&self.0).clone();
        servers
            .into_iter()
            .map(|(name, health)| (name, health.now()))
            .collect()
    }
}

/// A thread that panicked while holding the lock leaves at worst an old number.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The page: a line per server, and its refusals below. The second value is
/// true if all servers are recorded.
pub fn page(servers: &[(String, Condition)]) -> (String, bool) {
    let is_well = |c: &Condition| c.fault().is_none() && c.last_tick.is_some();
    let well = servers.iter().filter(|(_, c)| is_well(c)).count();
    let mut text = format!("{well} of {} servers are recorded\n\n", servers.len());
    for (name, c) in servers {
        let state = match (c.fault(), &c.connected) {
            (Some(fault), _) => fault,
            (None, Some(server)) => server.clone(),
            (None, None) => "connecting".to_string(),
        };
        let age = c
            .age()
            .map_or("none".to_string(), |age| format!("{} s ago", age.as_secs()));
        let _ = writeln!(
            text,
            "{name}: {state}\n    last tick {age}, {} ticks, {} late, {} slots missed, {} connects",
            c.ticks, c.late_ticks, c.missed_slots, c.connects
        );
        for refused in &c.refused {
            let _ = writeln!(text, "    refused: {refused}");
        }
    }
    (plain_lines(&text), well == servers.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_reason_for_a_missing_recording() {
        let table = HealthTable::default();
        let (a, b) = (table.add("a"), table.add("b"));
        a.update(|c| {
            c.connected = Some("PostgreSQL 15".to_string());
            c.last_tick = Some(Instant::now());
            c.max_tick_age = Duration::from_secs(10);
            c.ticks = 7;
            c.refuse("no right to \x1b[1mx".to_string());
        });
        b.update(|c| c.trouble = Some("no route".to_string()));
        let (text, is_well) = page(&table.now());
        assert_eq!(
            text,
            "1 of 2 servers are recorded\n\n\
             a: PostgreSQL 15\n    last tick 0 s ago, 7 ticks, 0 late, 0 slots missed, 0 connects\n    \
             refused: no right to \u{fffd}[1mx\n\
             b: not recorded: no route\n    last tick none, 0 ticks, 0 late, 0 slots missed, 0 connects\n"
        );
        assert!(!is_well);
        table.remove("b");
        assert!(page(&table.now()).1);
    }

    #[test]
    fn a_server_that_refuses_in_ever_other_words_takes_no_memory_for_it() {
        let mut condition = Condition::default();
        (0..1_000).for_each(|number| condition.refuse(format!("refusal {number}")));
        assert_eq!(condition.refused.len(), MOST_REFUSED);
    }

    #[test]
    fn a_server_whose_ticks_ended_or_are_not_written_is_not_well() {
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds));
        let well = Condition {
            last_tick: ago(8),
            max_tick_age: Duration::from_secs(10),
            ..Condition::default()
        };
        let line = |condition: &Condition| {
            let (text, is_well) = page(&[("a".to_string(), condition.clone())]);
            (text.lines().nth(2).unwrap_or_default().to_string(), is_well)
        };
        assert_eq!(line(&well), ("a: connecting".to_string(), true));
        let mut silent = well.clone();
        silent.last_tick = ago(11);
        assert_eq!(
            line(&silent),
            (
                "a: not recorded: no tick has been received".to_string(),
                false
            )
        );
        let mut hangs = well.clone();
        hangs.writing = ago(3_600);
        assert_eq!(
            line(&hangs),
            (
                "a: not written for 3600 s: the file system does not respond; waiting frames: 0"
                    .to_string(),
                false
            )
        );
        let mut full = well.clone();
        (full.waiting, full.waiting_frames) = (ago(60), 60);
        full.disk = Some("no space".to_string());
        assert_eq!(
            line(&full),
            (
                "a: not written for 60 s: no space; waiting frames: 60".to_string(),
                false
            )
        );
        full.waiting = ago(5);
        assert!(line(&full).1, "a short wait is none");
    }
}
