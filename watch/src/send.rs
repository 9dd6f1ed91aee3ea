//! Sends messages to all places that the rules name: a command, a webhook, an alertmanager. A
//! message that could not be sent to a place is sent to it again at the next look.

use crate::rules::Send;
use crate::state::{Message, State};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

/// Maximum time that sending a message to a place may take.
const PATIENCE: Duration = Duration::from_secs(10);
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
    pub fn send(&self, state: &mut State) -> Vec<String> {
        let mut failed = Vec::new();
        for message in &mut state.outbox {
            for (name, place) in self.places() {
                if message.sent.iter().any(|sent| sent == name) {
                    continue;
                }
                match self.one(&place, message) {
                    Ok(()) => message.sent.push(name.into()),
                    Err(error) => failed.push(format!("could not send to {name}: {error}")),
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
            .map(|error| format!("could not send to alertmanager: {error}"))
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

    fn one(&self, place: &Place, message: &Message) -> Result<(), String> {
        match place {
            Place::Command(words) => run(words, message),
            Place::Webhook(at) => self.post(at, &message.json().to_string()),
            Place::Alertmanager(at) => self.post(at, &format!("[{}]", message.alert())),
        }
    }

    fn post(&self, at: &str, body: &str) -> Result<(), String> {
        let request = self
            .agent
            .post(at)
            .header("content-type", "application/json");
        let answer = request.send(body).map_err(|error| error.to_string())?;
        match answer.status().is_success() {
            true => Ok(()),
            false => Err(format!("the answer was {}", answer.status())),
        }
    }
}

enum Place<'a> {
    Command(&'a [String]),
    Webhook(&'a str),
    Alertmanager(&'a str),
}

/// Runs a command with the message on its standard input; ends it when it takes too long.
fn run(words: &[String], message: &Message) -> Result<(), String> {
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("TACHO_STATUS", message.status())
        .env("TACHO_SERVER", &message.alarm.server)
        .env("TACHO_RULE", message.alarm.rule.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A command that reads nothing is right, too. The text fits into the pipe.
        let _ = writeln!(input, "{}", message.json());
    }
    let begun = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("{program}: {status}")),
            None if begun.elapsed() < PATIENCE => std::thread::sleep(LOOK),
            None => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(format!(
        "{program} did not end within {} s",
        PATIENCE.as_secs()
    ))
}
