//! Wait profile of a run. A session of its own reads pg_stat_activity four times
//! a second, in the same way for every variant.

use super::access::{Access, LOADED};
use super::process::Running;
use anyhow::Result;
use std::collections::BTreeMap;

/// Load by wait event, in average active sessions.
pub type Profile = BTreeMap<String, f64>;

/// Reading in progress.
#[derive(Debug)]
pub struct Waits(Running);

impl Waits {
    /// Begins to read from the database of the load.
    pub fn start(access: &Access) -> Result<Self> {
        Self::of(access, LOADED)
    }

    /// Begins to read from a database.
    pub fn of(access: &Access, database: &str) -> Result<Self> {
        let question = format!(
            "select coalesce(wait_event_type || ':' || wait_event, 'CPU*') \
             from pg_stat_activity where state = 'active' \
             and backend_type in ('client backend', 'parallel worker') \
             and datname = '{database}' and pid <> pg_backend_pid() and wait_event_type is distinct from 'Client' \
             union all select 'tick'"
        );
        access.watch(&question, 0.25).map(Self)
    }

    /// Ends the reading, and returns the profile.
    pub fn end(self) -> Result<Profile> {
        Ok(profile(&self.0.end()?))
    }
}

/// Sessions per tick, by wait event.
fn profile(text: &str) -> Profile {
    let ticks = text.lines().filter(|line| *line == "tick").count();
    let mut profile = Profile::new();
    for line in text.lines().filter(|l| !l.is_empty() && *l != "tick") {
        *profile.entry(line.to_owned()).or_default() += 1.0 / ticks.max(1) as f64;
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_sessions_per_tick() {
        let profile = profile("CPU*\nCPU*\ntick\n\nLock:tuple\nCPU*\ntick\n");
        assert_eq!(profile["CPU*"], 1.5);
        assert_eq!(profile["Lock:tuple"], 0.5);
    }
}
