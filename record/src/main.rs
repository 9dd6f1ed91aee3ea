//! `tacho-record`: records the performance history of a server that one may
//! only connect to, into the same files as the extension's writer. Exit codes:
//! 0 ended by a signal, 1 failure, 2 usage, 5 another writer holds the directory.
#![deny(unsafe_code)]

mod batch;
mod check;
mod clock;
mod identity;
mod locks;
mod measures;
mod names;
mod options;
mod output;
mod recorder;
mod rows;
mod sample;
mod statements;
mod texts;

use clap::Parser;
use options::Options;
use output::Output;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tacho_tape::error::Kind;
use tacho_tape::recording::Recording;

/// How long another writer of the directory may take to end.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Somebody wants us to end.
#[derive(Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// For questions, which end when it is set.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// It is time to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn on_signals(&self) -> io::Result<()> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, self.0.clone())?;
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let stop = Stop::default();
    if let Err(error) = stop.on_signals() {
        return fail(1, &format!("could not install signal handlers: {error}"));
    }
    let target = match options.target() {
        Ok(target) => target,
        Err(error) => return fail(2, &error.to_string()),
    };
    if options.check {
        return check::run(&options, &target, &stop);
    }
    let directory = options.tape.clone().unwrap_or_default();
    match Recording::open(&directory, LOCK_WAIT) {
        Ok(recording) => {
            match recorder::Recorder::new(&options, target, Output::new(recording), stop).run() {
                Ok(()) => ExitCode::SUCCESS,
                Err(message) => fail(1, &message),
            }
        }
        Err(error) if error.kind == Kind::Locked => fail(5, &error.to_string()),
        Err(error) => fail(1, &error.to_string()),
    }
}

/// Says why the program ends, detail and hint on lines of their own.
fn fail(code: u8, message: &str) -> ExitCode {
    let text = message
        .replace("\nDETAIL:  ", "\ndetail: ")
        .replace("\nHINT:  ", "\nhint: ");
    let _ = io::stderr().write_all(format!("error: {text}\n").as_bytes());
    ExitCode::from(code)
}
