//! Alarms that go on, alarms that were over lately, and messages that could not be sent yet: the
//! only state, in one file of JSON.

use crate::measure::{Reading, Readings};
use crate::rules::{Config, Limits, Mute, Rule, Severity};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use tacho_source::{Failure, Server};

/// Maximum number of messages that wait to be sent; the oldest are dropped.
const OUTBOX: usize = 200;
/// A server that is missing for this time is forgotten, µs: its alarm is over.
const FORGOTTEN_US: i64 = 30 * DAY_US;
const DAY_US: i64 = 86_400_000_000;

/// An alarm that goes on, or that was over lately.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    pub server: String,
    pub rule: Rule,
    pub object: String,
    pub severity: Severity,
    #[serde(deserialize_with = "or_infinity")]
    pub value: f64,
    #[serde(deserialize_with = "or_infinity")]
    pub limit: f64,
    pub summary: String,
    /// Time at which the alarm began, µs since 1970.
    pub began_us: i64,
    /// Time at which the alarm was over, µs since 1970; `None` while it goes on.
    pub ended_us: Option<i64>,
    /// True if a message has told that the alarm began.
    pub is_told: bool,
    /// First findings of `changes` when it began.
    #[serde(default)]
    pub findings: Vec<String>,
}

/// JSON has no infinity: null stands for it. Example: the value of a recorder that never recorded.
fn or_infinity<'de, D: Deserializer<'de>>(number: D) -> Result<f64, D::Error> {
    Option::deserialize(number).map(|number| number.unwrap_or(f64::INFINITY))
}

/// A message that is to be sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub alarm: Alarm,
    pub page: Option<String>,
    /// Places that have taken it, or that get it no more.
    #[serde(default)]
    pub sent: Vec<String>,
    /// Refusals by place.
    #[serde(default)]
    pub refused: BTreeMap<String, Refusals>,
}

/// The refusals of a message by a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refusals {
    pub times: u32,
    /// Time of the first one, µs since 1970.
    pub since_us: i64,
}

/// Content of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub alarms: Vec<Alarm>,
    pub outbox: Vec<Message>,
    /// The servers that were seen, by name; of each the begin of the last day, µs since 1970.
    #[serde(default)]
    pub servers: BTreeMap<String, i64>,
    /// The options that named these servers.
    #[serde(default)]
    pub places: String,
}

impl State {
    /// Reads the file; a missing file is an empty state.
    ///
    /// # Errors
    /// It cannot be read, or was written by something else.
    pub fn read(path: &Path) -> Result<State, Failure> {
        let shown = path.display();
        match std::fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| {
                let message = format!("file \"{shown}\" is not a state of tacho watch: {error}");
                Failure::usage(message).hint("Remove it: alarms that go on are sent once more.")
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(State::default()),
            Err(error) => Err(Failure::io(&format!("read file \"{shown}\""), &error)),
        }
    }

    /// Writes the file as a whole: a crash leaves the state before or after.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |e| Failure::io(&format!("write file \"{}\"", path.display()), &e);
        let text = serde_json::to_string_pretty(self).map_err(|e| failed(e.into()))?;
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let mut file = std::fs::File::create(&new).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(&new, path).map_err(failed)
    }

    /// Takes the readings of a server. Returns the alarms that began and those that are over, each
    /// once.
    pub fn take(
        &mut self,
        config: &Config,
        server: &str,
        readings: &Readings,
        now_us: i64,
    ) -> Vec<Alarm> {
        let mut told = Vec::new();
        for rule in &readings.measured {
            let Some(limits) = config.limits.get(rule) else {
                continue;
            };
            let found: Vec<&Reading> = readings.found.iter().filter(|r| r.rule == *rule).collect();
            for reading in &found {
                self.reading(server, reading, limits, now_us);
            }
            told.extend(self.end(server, *rule, &found, now_us));
        }
        for (rule, _) in config.limits.iter().filter(|(_, limits)| !limits.is_on) {
            told.extend(self.end(server, *rule, &[], now_us));
        }
        for alarm in self
            .alarms
            .iter_mut()
            .filter(|alarm| alarm.server == server)
        {
            if is_due(alarm, &config.mutes, now_us) {
                alarm.is_told = true;
                told.push(alarm.clone());
            }
        }
        self.forget(config, now_us);
        told
    }

    /// Begins the alarm of a reading, or updates it.
    fn reading(&mut self, server: &str, reading: &Reading, limits: &Limits, now_us: i64) {
        let is_it = |alarm: &&mut Alarm| {
            (alarm.server.as_str(), alarm.rule, &alarm.object)
                == (server, reading.rule, &reading.object)
        };
        let known = self.alarms.iter_mut().find(is_it);
        let known = match known {
            Some(known) if known.ended_us.is_none() => {
                known.value = reading.value;
                known.summary.clone_from(&reading.summary);
                return;
            }
            known => known,
        };
        let is_quiet = known
            .as_ref()
            .and_then(|known| known.ended_us)
            .is_some_and(|ended| now_us < ended + limits.quiet_us);
        if !reading.fires || is_quiet {
            return;
        }
        let alarm = Alarm {
            server: server.to_string(),
            rule: reading.rule,
            object: reading.object.clone(),
            severity: limits.severity,
            value: reading.value,
            limit: limits.above,
            summary: reading.summary.clone(),
            began_us: reading.began_us,
            ended_us: None,
            is_told: false,
            findings: Vec::new(),
        };
        match known {
            Some(known) => *known = alarm,
            None => self.alarms.push(alarm),
        }
    }

    /// Ends alarms of a rule that has no reading of their object any more.
    fn end(&mut self, server: &str, rule: Rule, found: &[&Reading], now_us: i64) -> Vec<Alarm> {
        let goes_on = |alarm: &Alarm| found.iter().any(|reading| reading.object == alarm.object);
        let mut ended = Vec::new();
        for alarm in &mut self.alarms {
            let is_of_rule = alarm.server == server && alarm.rule == rule;
            if is_of_rule && alarm.ended_us.is_none() && !goes_on(alarm) {
                alarm.ended_us = Some(now_us);
                if alarm.is_told {
                    ended.push(alarm.clone());
                }
            }
        }
        ended
    }

    /// Forgets alarms whose quiet time is over.
    fn forget(&mut self, config: &Config, now_us: i64) {
        self.alarms.retain(|alarm| {
            let quiet = config
                .limits
                .get(&alarm.rule)
                .map_or(0, |limits| limits.quiet_us);
            alarm.ended_us.is_none_or(|ended| now_us < ended + quiet)
        });
    }

    /// Ends alarms of servers that are not watched any more.
    pub fn end_others(&mut self, servers: &[&str], now_us: i64) -> Vec<Alarm> {
        let mut ended = Vec::new();
        for alarm in &mut self.alarms {
            if alarm.ended_us.is_none() && !servers.contains(&alarm.server.as_str()) {
                alarm.ended_us = Some(now_us);
                if alarm.is_told {
                    ended.push(alarm.clone());
                }
            }
        }
        ended
    }

    /// Keeps the findings of an alarm for later messages about it.
    pub fn found(&mut self, told: &Alarm) {
        let is_it = |alarm: &&mut Alarm| {
            (&alarm.server, alarm.rule, &alarm.object) == (&told.server, told.rule, &told.object)
        };
        if let Some(alarm) = self.alarms.iter_mut().find(is_it) {
            alarm.findings.clone_from(&told.findings);
        }
    }

    /// Adds a message.
    pub fn post(&mut self, message: Message) {
        self.outbox.push(message);
        let over = self.outbox.len().saturating_sub(OUTBOX);
        self.outbox.drain(..over);
    }

    /// Adds the servers that were seen before and are gone, such as a history below `--root` that
    /// was removed or cannot be read: the rule `recorder` tells that they are missing. If other
    /// options name the servers, the servers before are not watched any more.
    pub fn with_vanished(
        &mut self,
        mut servers: Vec<Server>,
        places: &str,
        now_us: i64,
    ) -> Vec<Server> {
        if self.places != places {
            self.servers.clear();
            self.places = places.to_string();
        }
        for server in &servers {
            let day_us = now_us - now_us.rem_euclid(DAY_US);
            self.servers.insert(server.name.clone(), day_us);
        }
        self.servers.retain(|_, seen| now_us - *seen < FORGOTTEN_US);
        for name in self.servers.keys() {
            if servers.iter().all(|server| server.name != *name) {
                servers.push(Server {
                    name: name.clone(),
                    state: tacho_source::State::Missing,
                    paused_ms: None,
                });
            }
        }
        servers
    }

    /// Alarms that go on and whose beginning a message has told.
    pub fn going_on(&self) -> impl Iterator<Item = &Alarm> {
        let alarms = self.alarms.iter();
        alarms.filter(|alarm| alarm.ended_us.is_none() && alarm.is_told)
    }
}

/// True if a message has to tell the beginning of an alarm: it goes on and is not muted.
fn is_due(alarm: &Alarm, mutes: &[Mute], now_us: i64) -> bool {
    let is_muted = |mute: &Mute| mute.is_of(&alarm.server, alarm.rule, &alarm.object, now_us);
    alarm.ended_us.is_none() && !alarm.is_told && !mutes.iter().any(is_muted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000;

    fn reading(value: f64, fires: bool) -> Reading {
        Reading {
            rule: Rule::Load,
            object: String::new(),
            value,
            fires,
            began_us: 0,
            summary: format!("{value}"),
        }
    }

    /// Looks at minutes 1, 2, …: a value above 1 fires, one up to 0.8 is over. Returns the
    /// minute of each message.
    fn told(config: &Config, values: &[f64]) -> Vec<String> {
        let mut state = State::default();
        let mut lines = Vec::new();
        for (minute, value) in (1..).zip(values) {
            let found = (*value > 0.8).then(|| reading(*value, *value > 1.0));
            let readings = Readings {
                found: found.into_iter().collect(),
                measured: vec![Rule::Load],
                failed: Vec::new(),
            };
            for alarm in state.take(config, "a", &readings, minute * MINUTE) {
                let what = if alarm.ended_us.is_some() {
                    "over"
                } else {
                    "alarm"
                };
                lines.push(format!("{minute} {what}"));
            }
        }
        lines
    }

    #[test]
    fn an_alarm_is_sent_once_and_its_end_once() {
        let config = Config::default();
        assert_eq!(
            told(&config, &[0.9, 1.1, 1.2, 0.9, 1.1, 0.9, 0.5, 0.4]),
            ["2 alarm", "7 over"]
        );
        assert!(told(&config, &[0.9, 1.0, 0.9, 0.2]).is_empty());
    }

    #[test]
    fn no_alarm_follows_within_the_quiet_time() {
        let config = Config::parse("[rules.load]\nquiet = '3m'\n").unwrap();
        let values = [1.1, 0.1, 1.1, 1.1, 1.1, 0.1];
        assert_eq!(
            told(&config, &values),
            ["1 alarm", "2 over", "5 alarm", "6 over"]
        );
    }

    #[test]
    fn a_muted_alarm_is_sent_when_the_mute_ends_unless_it_was_over_before() {
        let config =
            Config::parse("[[mute]]\nrule = 'load'\nuntil = '1970-01-01T00:03:00Z'\n").unwrap();
        assert_eq!(
            told(&config, &[1.1, 1.1, 1.1, 1.1, 0.1]),
            ["4 alarm", "5 over"]
        );
        assert!(told(&config, &[1.1, 0.1, 0.1, 0.1, 0.1]).is_empty());
    }

    #[test]
    fn an_alarm_ends_when_its_rule_is_switched_off() {
        let mut state = State::default();
        let fires = Readings {
            found: vec![reading(2.0, true)],
            measured: vec![Rule::Load],
            failed: Vec::new(),
        };
        assert_eq!(state.take(&Config::default(), "a", &fires, MINUTE).len(), 1);
        assert_eq!(state.take(&Config::default(), "b", &fires, MINUTE).len(), 1);
        let off = Config::parse("[rules.load]\non = false\n").unwrap();
        let over = state.take(&off, "a", &Readings::default(), 2 * MINUTE);
        let over: Vec<_> = over.iter().map(|a| (&*a.server, a.ended_us)).collect();
        assert_eq!(over, [("a", Some(2 * MINUTE))]);
        let going_on: Vec<&str> = state.going_on().map(|alarm| &*alarm.server).collect();
        assert_eq!(going_on, ["b"]);
    }

    #[test]
    fn a_value_without_bound_survives_the_file() {
        let mut state = State::default();
        let fires = Readings {
            found: vec![reading(f64::INFINITY, true)],
            measured: vec![Rule::Load],
            failed: Vec::new(),
        };
        let told = state.take(&Config::default(), "a", &fires, MINUTE);
        state.post(Message {
            alarm: told[0].clone(),
            page: None,
            sent: Vec::new(),
            refused: BTreeMap::new(),
        });
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        state.write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("\"value\": null").count(), 2);
        assert_eq!(State::read(&path).map_err(|e| e.lines()).unwrap(), state);
    }

    #[test]
    fn a_rule_that_cannot_be_measured_leaves_its_alarm() {
        let config = Config::default();
        let mut state = State::default();
        let fires = Readings {
            found: vec![reading(2.0, true)],
            measured: vec![Rule::Load],
            failed: Vec::new(),
        };
        assert_eq!(state.take(&config, "a", &fires, MINUTE).len(), 1);
        assert!(
            state
                .take(&config, "a", &Readings::default(), 2 * MINUTE)
                .is_empty()
        );
        assert_eq!(state.going_on().count(), 1);
        assert!(state.end_others(&["a"], 3 * MINUTE).is_empty());
        assert_eq!(state.end_others(&["b"], 3 * MINUTE).len(), 1);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        state.write(&path).unwrap();
        assert_eq!(State::read(&path).map_err(|e| e.lines()).unwrap(), state);
        std::fs::write(&path, "{").unwrap();
        assert!(
            State::read(&path)
                .unwrap_err()
                .lines()
                .contains("not a state of tacho watch")
        );
    }
}
