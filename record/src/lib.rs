//! `tacho record` records the performance history of a server through a connection, into the same
//! files as the extension's writer. `tacho doctor` uses its check of a server.
#![deny(unsafe_code)]

mod activity;
mod aside;
mod batch;
mod budget;
mod changed_settings;
pub mod check;
mod clock;
mod config;
#[cfg(test)]
mod conformance_tests;
pub mod finding;
#[cfg(test)]
mod fuzz_tests;
mod health;
mod http;
mod identity;
mod literals;
mod locks;
mod log;
mod many;
mod measures;
mod names;
mod options;
mod output;
mod recorder;
mod relations;
mod rows;
mod sample;
mod statements;
mod texts;
mod trouble;
pub mod vendor;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use log::Log;
use options::Options;
use output::Output;
use recorder::Recorder;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tacho_source::arguments::CONNECTION_OPTIONS;
use tacho_tape::error::Kind;
use tacho_tape::query::plain_lines;
use tacho_tape::write::recording::Recording;

/// Maximum time to wait for another writer of the directory to end.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// Interval at which a waiting thread checks whether to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A request to end, shared by threads.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// The flag, for questions: they end when it is set.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// True if it is time to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks all threads to end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if the request was made since the last call.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }

    /// Waits for `time`, or until the request is made.
    pub fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.is_set() && Instant::now() < until {
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    fn on_signals(&self, signals: &[i32]) -> io::Result<()> {
        for signal in signals {
            signal_hook::flag::register(*signal, self.0.clone())?;
        }
        Ok(())
    }
}

/// Runs the program. Exit codes: 0 ended by a signal, 1 failure, 2 usage, 3 a check found
/// something missing, 5 another writer holds the directory.
pub fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => return refuse(&error),
    };
    let (stop, reload) = (Stop::default(), Stop::default());
    let hup: &[i32] = options.config.as_ref().map_or(&[], |_| &[SIGHUP]);
    let installed = stop.on_signals(&[SIGINT, SIGTERM]);
    if let Err(error) = installed.and_then(|()| reload.on_signals(hup)) {
        return fail(1, &format!("could not install signal handlers: {error}"));
    }
    if let Some(file) = &options.config {
        return match options.check {
            true => check::check_file(file, &stop),
            false => many::run(file, &stop, &reload),
        };
    }
    match options.target() {
        Err(error) => fail(2, &error.to_string()),
        Ok(target) if options.check => check::check_server(&options.settings, &target, &stop),
        Ok(target) => record(&options, target, stop),
    }
}

/// Explains a wrong command line, or prints the help. psql's options get an answer that names the
/// connection string instead.
fn refuse(error: &clap::Error) -> ExitCode {
    let given = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(given))) => given.as_str(),
        _ => error.exit(),
    };
    if !CONNECTION_OPTIONS.contains(&given) {
        error.exit();
    }
    let hint = "Pass the connection as one string: tacho record \"host=HOST port=5432 dbname=DB \
        user=USER\" --tape DIR";
    fail(
        2,
        &format!("unrecognized option \"{given}\"\nHINT:  {hint}"),
    )
}

/// Records one server.
fn record(options: &Options, target: tacho_dsn::Options, stop: Stop) -> ExitCode {
    let directory = options.tape.clone().unwrap_or_default();
    match Recording::open(&directory, LOCK_WAIT) {
        Ok(recording) => {
            let output = Output::new(recording, Log::default(), Arc::default());
            match Recorder::new(&options.settings, target, &directory, output, stop).run() {
                Ok(()) => ExitCode::SUCCESS,
                Err(message) => fail(1, &message),
            }
        }
        Err(error) if error.kind == Kind::Locked => {
            let hint = "A server or another tacho record writes there. Use a separate directory for each server.";
            fail(5, &format!("{error}\nHINT:  {hint}"))
        }
        Err(error) => {
            let hint = "Specify a directory that this user can write to. It is created if it does not exist.";
            fail(1, &format!("{error}\nHINT:  {hint}"))
        }
    }
}

/// Prints why the program ends; detail and hint stand on lines of their own.
fn fail(code: u8, message: &str) -> ExitCode {
    let text = plain_lines(message)
        .replace("\nDETAIL:  ", "\ndetail: ")
        .replace("\nHINT:  ", "\nhint: ");
    let _ = io::stderr().write_all(format!("error: {text}\n").as_bytes());
    ExitCode::from(code)
}
