//! How each server is doing: told by its thread, read by who asks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// How a server is doing.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// Which server answers, while there is a connection.
    pub connected: Option<String>,
    /// Why nothing is recorded.
    pub trouble: Option<String>,
    /// What it refuses to tell.
    pub refused: BTreeSet<String>,
    pub connects: u64,
    pub ticks: u64,
    pub late_ticks: u64,
    pub missed_slots: u64,
    pub lost_frames: u64,
    /// Time until the answers of ticks were there, µs.
    pub waited_us: u64,
    pub last_tick: Option<Instant>,
}

/// The condition of one server.
#[derive(Debug, Default)]
pub struct Health(Mutex<Condition>);

impl Health {
    /// Something changed.
    pub fn update(&self, change: impl FnOnce(&mut Condition)) {
        change(&mut locked(&self.0));
    }

    /// How it is now.
    pub fn now(&self) -> Condition {
        locked(&self.0).clone()
    }
}

/// All servers by name.
#[derive(Default)]
pub struct Board(Mutex<BTreeMap<String, Arc<Health>>>);

impl Board {
    /// A server is recorded from now on.
    pub fn add(&self, name: &str) -> Arc<Health> {
        let health = Arc::new(Health::default());
        locked(&self.0).insert(name.to_string(), health.clone());
        health
    }

    /// It is no more.
    pub fn remove(&self, name: &str) {
        locked(&self.0).remove(name);
    }

    /// All as they are now.
    pub fn now(&self) -> Vec<(String, Condition)> {
        let servers = locked(&self.0).clone();
        servers
            .into_iter()
            .map(|(name, health)| (name, health.now()))
            .collect()
    }
}

/// What another thread left half done is at worst an old number.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The page: a line a server, and below it what it refuses. The second value
/// is true when all are recorded.
pub fn page(servers: &[(String, Condition)]) -> (String, bool) {
    let is_well = |c: &Condition| c.trouble.is_none() && c.last_tick.is_some();
    let well = servers.iter().filter(|(_, c)| is_well(c)).count();
    let mut text = format!("{well} of {} servers are recorded\n\n", servers.len());
    for (name, c) in servers {
        let state = match (&c.trouble, &c.connected) {
            (Some(trouble), _) => format!("not recorded: {trouble}"),
            (None, Some(server)) => server.clone(),
            (None, None) => "connecting".to_string(),
        };
        let age = c.last_tick.map_or("none".to_string(), |at| {
            format!("{} s ago", at.elapsed().as_secs())
        });
        let _ = writeln!(
            text,
            "{name}: {state}\n    last tick {age}, {} ticks, {} late, {} slots missed, {} connects",
            c.ticks, c.late_ticks, c.missed_slots, c.connects
        );
        for refused in &c.refused {
            let _ = writeln!(text, "    refused: {refused}");
        }
    }
    (text, well == servers.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_why_a_server_is_not_recorded() {
        let board = Board::default();
        let (a, b) = (board.add("a"), board.add("b"));
        a.update(|c| {
            c.connected = Some("PostgreSQL 15".to_string());
            c.last_tick = Some(Instant::now());
            c.ticks = 7;
            c.refused.insert("no right".to_string());
        });
        b.update(|c| c.trouble = Some("no route".to_string()));
        let (text, is_well) = page(&board.now());
        assert_eq!(
            text,
            "1 of 2 servers are recorded\n\n\
             a: PostgreSQL 15\n    last tick 0 s ago, 7 ticks, 0 late, 0 slots missed, 0 connects\n    \
             refused: no right\n\
             b: not recorded: no route\n    last tick none, 0 ticks, 0 late, 0 slots missed, 0 connects\n"
        );
        assert!(!is_well);
        board.remove("b");
        assert!(page(&board.now()).1);
    }
}
