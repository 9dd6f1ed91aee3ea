//! Sends messages to all places that the rules name: a command, a webhook, an alertmanager. A
//! message that could not be sent to a place is sent to it again at the next look.

use crate::rules::{Rule, Send};
use crate::state::{Message, Refusals, State};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

/// Maximum time that sending a message to a place may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A message is given up at a place that has refused it this often, and for this time in µs.
const REFUSALS: u32 = 10;
/// After an answer that says that the message is wrong, such as 400.
const WRONG_US: i64 = 3_600_000_000;
/// After any other refusal, such as 503 or the failure of a command.
const REFUSED_US: i64 = 24 * WRONG_US;
/// Answers that say that the message is wrong. Other answers 4xx are about the address or the rights:
/// they may end with the next change of the receiver.
const WRONG: [u16; 4] = [400, 413, 415, 422];
/// Pause between two looks at a command that runs.
const LOOK: Duration = Duration::from_millis(20);

/// Sends messages.
pub struct Sender {
    places: Send,
    agent: Agent,
}

impl Sender {
    pub fn new(places: Send) -> Sender {
        // A second call returns an error, which is right: the provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::PlatformVerifier)
            .build();
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .max_redirects(0)
            .tls_config(tls)
            .build();
        Sender {
            places,
            agent: config.into(),
        }
    }

    /// Sends the messages in the outbox. Returns the reasons why places did not take a message.
    /// If a place refuses a message, later messages about the same alarm wait: "over" never comes
    /// before "alarm". A message that a place refuses for too long is given up there. If a place does
    /// not answer, all later messages to it wait.
    pub fn send(&self, state: &mut State, now_us: i64) -> Vec<String> {
        let mut failed = Vec::new();
        let mut refused: Vec<(&str, Subject)> = Vec::new();
        let mut silent: Vec<&str> = Vec::new();
        for message in &mut state.outbox {
            for (name, place) in self.places() {
                let subject = subject(message);
                let waits = silent.contains(&name) || refused.contains(&(name, subject.clone()));
                if waits || message.sent.iter().any(|sent| sent == name) {
                    continue;
                }
                let Err(error) = self.one(&place, message) else {
                    message.sent.push(name.into());
                    continue;
                };
                failed.push(format!("could not send to {name}: {}", error.why()));
                match &error {
                    Failed::Silent(_) => silent.push(name),
                    error => match message.given_up(name, error.patience_us(), now_us) {
                        Some(line) => failed.push(line),
                        None => refused.push((name, subject)),
                    },
                }
            }
        }
        let all = self.places().count();
        state.outbox.retain(|message| message.sent.len() < all);
        failed
    }

    /// Tells an alertmanager which alarms go on: it takes an alarm for over when it hears nothing
    /// for some minutes. Returns the reason if that failed.
    pub fn remind(&self, messages: &[Message]) -> Option<String> {
        let place = self.places.alertmanager.as_deref()?;
        let alerts: Vec<_> = messages.iter().map(Message::alert).collect();
        if alerts.is_empty() {
            return None;
        }
        let body = serde_json::Value::from(alerts).to_string();
        let sent = self.post(place, &body);
        sent.err()
            .map(|error| format!("could not send to alertmanager: {}", error.why()))
    }

    fn places(&self) -> impl Iterator<Item = (&'static str, Place<'_>)> {
        let Send {
            command,
            webhook,
            alertmanager,
        } = &self.places;
        let command = (!command.is_empty()).then_some(("command", Place::Command(command)));
        let webhook = webhook.as_deref().map(|at| ("webhook", Place::Webhook(at)));
        let manager = alertmanager.as_deref();
        let manager = manager.map(|at| ("alertmanager", Place::Alertmanager(at)));
        command.into_iter().chain(webhook).chain(manager)
    }

    fn one(&self, place: &Place, message: &Message) -> Result<(), Failed> {
        match place {
            Place::Command(words) => run(words, message),
            Place::Webhook(at) => self.post(at, &message.json().to_string()),
            Place::Alertmanager(at) => self.post(at, &format!("[{}]", message.alert())),
        }
    }

    fn post(&self, at: &str, body: &str) -> Result<(), Failed> {
        let request = self
            .agent
            .post(at)
            .header("content-type", "application/json");
        let answer = request.send(body).map_err(Failed::silent)?;
        match answer.status().is_success() {
            true => Ok(()),
            false => {
                let status = answer.status();
                let why = format!("the answer was {status}");
                Err(match WRONG.contains(&status.as_u16()) {
                    true => Failed::Wrong(why),
                    false => Failed::Refused(why),
                })
            }
        }
    }
}

/// Why a place did not take a message.
enum Failed {
    /// The place said that the message is wrong.
    Wrong(String),
    /// The place said no to this message, perhaps for now.
    Refused(String),
    /// The place did not answer.
    Silent(String),
}

impl Failed {
    fn silent(error: impl ToString) -> Failed {
        Failed::Silent(error.to_string())
    }

    fn why(&self) -> &str {
        match self {
            Failed::Wrong(why) | Failed::Refused(why) | Failed::Silent(why) => why,
        }
    }

    /// Time in µs after which a message that is refused like this is given up.
    fn patience_us(&self) -> i64 {
        match self {
            Failed::Wrong(_) => WRONG_US,
            Failed::Refused(_) | Failed::Silent(_) => REFUSED_US,
        }
    }
}

impl Message {
    /// Notes a refusal by a place. Returns a line if the message is given up there.
    fn given_up(&mut self, place: &str, patience_us: i64, now_us: i64) -> Option<String> {
        let first = Refusals {
            times: 0,
            since_us: now_us,
        };
        let refused = self.refused.entry(place.to_string()).or_insert(first);
        refused.times = refused.times.saturating_add(1);
        let times = refused.times;
        if times < REFUSALS || now_us - refused.since_us < patience_us {
            return None;
        }
        self.sent.push(place.to_string());
        Some(format!(
            "gave up after {times} refusals by {place}: {}",
            self.line()
        ))
    }
}

/// Server, rule and object of an alarm.
type Subject = (String, Rule, String);

fn subject(message: &Message) -> Subject {
    let alarm = &message.alarm;
    (alarm.server.clone(), alarm.rule, alarm.object.clone())
}

enum Place<'a> {
    Command(&'a [String]),
    Webhook(&'a str),
    Alertmanager(&'a str),
}

/// Runs a command with the message on its standard input; ends it when it takes too long.
fn run(words: &[String], message: &Message) -> Result<(), Failed> {
    let empty = || Failed::silent("the command is empty");
    let (program, arguments) = words.split_first().ok_or_else(empty)?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("TACHO_STATUS", message.status())
        .env("TACHO_SERVER", &message.alarm.server)
        .env("TACHO_RULE", message.alarm.rule.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(Failed::silent)?;
    if let Some(mut input) = child.stdin.take() {
        // A command that reads nothing is right, too. The text fits into the pipe.
        let _ = writeln!(input, "{}", message.json());
    }
    let begun = Instant::now();
    loop {
        match child.try_wait().map_err(Failed::silent)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(Failed::Refused(format!("{program}: {status}"))),
            None if begun.elapsed() < PATIENCE => std::thread::sleep(LOOK),
            None => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(Failed::Silent(format!(
        "{program} did not end within {} s",
        PATIENCE.as_secs()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Severity;
    use crate::state::Alarm;
    use std::collections::BTreeMap;

    fn message(object: &str, ended_us: Option<i64>) -> Message {
        Message {
            alarm: Alarm {
                server: "shop".into(),
                rule: Rule::Queue,
                object: object.into(),
                severity: Severity::Critical,
                value: 41.0,
                limit: 30.0,
                summary: String::new(),
                began_us: 0,
                ended_us,
                is_told: true,
                findings: Vec::new(),
            },
            page: None,
            sent: Vec::new(),
            refused: BTreeMap::new(),
        }
    }

    /// Sends the beginning and the end of an alarm, and the beginning of another one.
    fn send(command: &[&str]) -> (Vec<String>, State) {
        let places = Send {
            command: command.iter().map(|word| (*word).to_string()).collect(),
            ..Send::default()
        };
        let mut state = State::default();
        state.post(message("process 7", None));
        state.post(message("process 7", Some(9)));
        state.post(message("process 8", None));
        (Sender::new(places).send(&mut state, 0), state)
    }

    #[test]
    fn the_end_of_an_alarm_waits_for_its_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let script = format!("cat >>{}; exit 3", out.display());
        let (failed, state) = send(&["sh", "-c", &script]);
        assert_eq!(failed.len(), 2, "{failed:?}");
        assert_eq!(state.outbox.len(), 3);
        let text = std::fs::read_to_string(&out).unwrap();
        let taken = text.lines().map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            [&message["object"], &message["status"]].map(|text| text.as_str().unwrap().to_string())
        });
        let taken: Vec<_> = taken.collect();
        assert_eq!(taken, [["process 7", "alarm"], ["process 8", "alarm"]]);
    }

    #[test]
    fn a_place_that_does_not_answer_is_tried_once_in_a_look() {
        let (failed, state) = send(&["/nowhere/page-me"]);
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!(state.outbox.len(), 3);
    }

    #[test]
    fn a_message_that_is_always_refused_is_given_up_after_a_day() {
        let places = Send {
            command: ["sh", "-c", "exit 3"].map(String::from).to_vec(),
            ..Send::default()
        };
        let sender = Sender::new(places);
        let mut state = State::default();
        state.post(message("process 7", None));
        state.post(message("process 7", Some(9)));
        let minute = |n: i64| n * 60_000_000;
        for hour in 0..24 {
            let failed = sender.send(&mut state, minute(60 * hour));
            assert_eq!(failed, ["could not send to command: sh: exit status: 3"]);
        }
        assert_eq!(state.outbox.len(), 2);
        let failed = sender.send(&mut state, minute(24 * 60));
        assert_eq!(failed.len(), 3, "{failed:?}");
        assert_eq!(
            failed[1].split(": ").next(),
            Some("gave up after 25 refusals by command")
        );
        // the end of the alarm waits no longer, and has its own day
        assert_eq!(state.outbox.len(), 1);
        assert_eq!(state.outbox[0].alarm.ended_us, Some(9));
        assert_eq!(state.outbox[0].refused["command"].since_us, minute(24 * 60));
    }

    #[test]
    fn a_message_that_is_wrong_is_given_up_after_an_hour_and_ten_refusals() {
        let mut message = message("process 7", None);
        let minute = |n: i64| n * 60_000_000;
        for n in 0..9 {
            assert_eq!(message.given_up("webhook", WRONG_US, minute(20 * n)), None);
        }
        let given_up = message.given_up("webhook", WRONG_US, minute(180)).unwrap();
        assert!(given_up.starts_with("gave up after 10 refusals by webhook: "));
        assert_eq!(message.sent, ["webhook"]);
    }
}
