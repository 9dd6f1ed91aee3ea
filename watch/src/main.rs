//! `tacho-watch`: looks at histories by rules, and tells when something begins and when it is
//! over. It writes nothing but its state file. Exit codes: 0 ended, 1 failure, 2 usage; with
//! --once the codes of Nagios: 0 all is well, 1 warning, 2 critical, 3 not known.

mod measure;
mod message;
mod rules;
mod send;
mod state;

use clap::{ArgAction, Parser, ValueHint};
use measure::{Readings, measure};
use message::{findings, message};
use rules::{Config, Severity};
use send::Sender;
use state::{Alarm, Message, State};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use tacho_remote::SourceOptions;
use tacho_source::memory::Counting;
use tacho_source::{Failure, Server, Source, time};
use tacho_tape::query::plain_text;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Name of our sessions, unless a connection string gives another.
const APPLICATION: &str = "tacho watch";
/// Bytes of columns that are kept between two looks.
const CACHE_BYTES: u64 = 32 << 20;
/// Exit code of --once if a rule could not be measured.
const UNKNOWN: u8 = 3;

/// Alarms from the performance history of PostgreSQL.
#[derive(Parser)]
#[command(name = "tacho watch", version, disable_help_flag = true)]
struct Options {
    /// Show this help
    #[arg(long = "help", short = '?', action = ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten)]
    places: SourceOptions,

    /// Rules, and where alarms go (TOML); without it the rules have their defaults and alarms
    /// are printed
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,

    /// File with the alarms that go on, so that each is sent once; needed to send
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    state: Option<PathBuf>,

    /// Look once, print one line, and end with the exit code of a Nagios check
    #[arg(long)]
    once: bool,

    /// Print the alarms that the rules would have given from this time on, and send none
    #[arg(long, short, value_name = "TIME", conflicts_with_all = ["once", "state"])]
    since: Option<String>,

    /// End of that time [default: now]
    #[arg(long, short, value_name = "TIME", requires = "since")]
    until: Option<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let _ = io::stderr().write_all(failure.lines().as_bytes());
            ExitCode::from(if options.once { UNKNOWN } else { failure.code })
        }
    }
}

fn run(options: &Options) -> Result<u8, Failure> {
    let config = options.config.as_deref().map(Config::read).transpose()?;
    let config = config.unwrap_or_default();
    let source = options.places.source(CACHE_BYTES, APPLICATION)?;
    if let Some(since) = &options.since {
        return replay(&config, &source, since, options.until.as_deref());
    }
    if options.state.is_none() && !config.send.is_empty() {
        let failure = Failure::usage("alarms are sent, but no file keeps which were sent".into());
        return Err(failure.hint("Give --state FILE, such as /var/lib/tacho-watch/state."));
    }
    let mut watch = Watch {
        sender: Sender::new(config.send.clone()),
        config,
        source: &source,
        options,
    };
    let mut state = match &options.state {
        Some(path) => State::read(path)?,
        None => State::default(),
    };
    if options.once {
        return watch.once(&mut state);
    }
    loop {
        watch.look(&mut state)?;
        std::thread::sleep(watch.config.every);
    }
}

/// Looks at all servers again and again.
struct Watch<'a> {
    config: Config,
    sender: Sender,
    source: &'a dyn Source,
    options: &'a Options,
}

/// Result of one look.
#[derive(Default)]
struct Seen {
    servers: usize,
    failed: Vec<String>,
}

impl Watch<'_> {
    /// Looks once: prints and sends what has begun and what is over.
    fn look(&mut self, state: &mut State) -> Result<Seen, Failure> {
        let now_us = now_us();
        let before = state.clone();
        let places = self.options.places.named();
        let servers = state.with_vanished(self.source.servers(), &places, now_us);
        let mut seen = Seen {
            servers: servers.len(),
            failed: Vec::new(),
        };
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let mut told = state.end_others(&names, now_us);
        for server in &servers {
            let readings = measure(self.source, server, &self.config.limits, now_us, false);
            told.extend(state.take(&self.config, &server.name, &readings, now_us));
            seen.failed.extend(failures(server, &readings));
        }
        for mut alarm in told {
            if alarm.ended_us.is_none() {
                alarm.findings = findings(self.source, &alarm, now_us);
                state.found(&alarm);
            }
            let message = message(self.config.page.as_deref(), alarm, now_us);
            if !self.options.once {
                say(&message);
            }
            if !self.config.send.is_empty() {
                state.post(message);
            }
        }
        self.send(state, &before, now_us, &mut seen)?;
        if !self.options.once {
            seen.failed.iter().for_each(|line| complain(line));
        }
        Ok(seen)
    }

    /// Saves the state before messages leave and after: a message may be sent twice after a crash,
    /// and is never lost.
    fn send(
        &self,
        state: &mut State,
        before: &State,
        now_us: i64,
        seen: &mut Seen,
    ) -> Result<(), Failure> {
        self.save(state, before)?;
        let unsent = state.clone();
        let is_new = |alarm: &&Alarm| {
            let mut waiting = unsent.outbox.iter();
            !waiting.any(|message| message.alarm.began_us == alarm.began_us)
        };
        let page = self.config.page.as_deref();
        let going_on = state.going_on().filter(is_new).cloned();
        let going_on: Vec<Message> = going_on.map(|alarm| message(page, alarm, now_us)).collect();
        seen.failed.extend(self.sender.send(state, now_us));
        seen.failed.extend(self.sender.remind(&going_on));
        self.save(state, &unsent)
    }

    fn save(&self, state: &State, before: &State) -> Result<(), Failure> {
        match &self.options.state {
            Some(path) if state != before => state.write(path),
            _ => Ok(()),
        }
    }

    /// One look as a check of Nagios: a line, and an exit code.
    fn once(&mut self, state: &mut State) -> Result<u8, Failure> {
        let seen = self.look(state)?;
        let alarms: Vec<&Alarm> = state.going_on().collect();
        let worst = alarms.iter().map(|alarm| alarm.severity).max();
        let (code, word) = match worst {
            Some(Severity::Critical) => (2, "CRITICAL"),
            Some(Severity::Warning) => (1, "WARNING"),
            None if seen.failed.is_empty() && seen.servers > 0 => (0, "OK"),
            None => (UNKNOWN, "UNKNOWN"),
        };
        let mut lines: Vec<String> = alarms
            .iter()
            .map(|alarm| format!("{} {}: {}", alarm.server, alarm.rule.name(), alarm.summary))
            .collect();
        lines.extend(seen.failed.iter().cloned());
        if lines.is_empty() {
            lines.push(match seen.servers {
                0 => "there is no server to watch".into(),
                1 => "1 server, no alarm".into(),
                n => format!("{n} servers, no alarm"),
            });
        }
        let line = format!(
            "TACHO {word} - {} | alarms={}",
            lines.join("; "),
            alarms.len()
        );
        let _ = writeln!(io::stdout(), "{}", plain_text(&line));
        Ok(code)
    }
}

/// Prints the alarms that the rules would have given.
fn replay(
    config: &Config,
    source: &dyn Source,
    since: &str,
    until: Option<&str>,
) -> Result<u8, Failure> {
    let (now, zone) = (now_us(), time::local());
    let moment = |text: &str| time::moment(text, now, &zone).map_err(Failure::query);
    let until = until.map(moment).transpose()?.unwrap_or(now);
    let step = i64::try_from(config.every.as_micros()).unwrap_or(i64::MAX);
    let mut state = State::default();
    let servers = source.servers();
    let mut at = moment(since)?;
    while at < until {
        for server in &servers {
            let readings = measure(source, server, &config.limits, at, true);
            for mut alarm in state.take(config, &server.name, &readings, at) {
                if alarm.ended_us.is_none() {
                    alarm.findings = findings(source, &alarm, at);
                }
                say(&message(config.page.as_deref(), alarm, at));
            }
        }
        at = at.saturating_add(step);
    }
    Ok(0)
}

fn failures(server: &Server, readings: &Readings) -> Vec<String> {
    let line = |(rule, why): &(rules::Rule, String)| {
        format!("{}: could not measure {}: {why}", server.name, rule.name())
    };
    readings.failed.iter().map(line).collect()
}

/// Prints a message; of an alarm that begins also its findings and the address of the page.
fn say(message: &Message) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{}", message.line());
    let is_over = message.alarm.ended_us.is_some();
    let more = message.alarm.findings.iter().chain(&message.page);
    for line in more.filter(|_| !is_over) {
        let _ = writeln!(out, "    {line}");
    }
    let _ = out.flush();
}

fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", plain_text(line));
}

fn now_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Rule;

    #[test]
    fn a_history_that_vanished_is_missing_and_no_alarm_of_it_ends() {
        let server = |name: &str| Server {
            name: name.into(),
            state: tacho_source::State::Recorded,
            paused_ms: None,
        };
        let mut state = State::default();
        let day = 86_400_000_000;
        let both = state.with_vanished(vec![server("a"), server("b")], "root", 0);
        assert_eq!(both, [server("a"), server("b")]);
        let servers = state.with_vanished(vec![server("b")], "root", day);
        let missing = Server {
            state: tacho_source::State::Missing,
            ..server("a")
        };
        assert_eq!(servers, [server("b"), missing.clone()]);
        let source = tacho_source::Tapes::new(0);
        let limits = Config::default().limits;
        let readings = measure(&source, &missing, &limits, 5, false);
        assert_eq!(readings.measured, [Rule::Recorder, Rule::Space]);
        let summaries: Vec<&str> = readings.found.iter().map(|r| &*r.summary).collect();
        assert_eq!(summaries, ["nothing can be read: the history is missing"]);
        let late = state.with_vanished(vec![server("b")], "root", 29 * day);
        assert_eq!(late, [server("b"), missing]);
        let forgotten = state.with_vanished(vec![server("b")], "root", 30 * day);
        assert_eq!(forgotten, [server("b")]);
        let back = state.with_vanished(vec![server("a"), server("b")], "root", 31 * day);
        assert_eq!(back, both);
        let others = state.with_vanished(vec![server("b")], "another root", 32 * day);
        assert_eq!(others, [server("b")]);
    }
}
