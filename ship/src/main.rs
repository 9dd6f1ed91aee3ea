//! `tacho-ship`: ships closed hours of a tape as Parquet to object storage. Exit
//! codes: 0 everything is shipped, 1 failure or damage, 2 usage.
#![deny(unsafe_code)]

mod bucket;
mod command;
mod contents;
mod fault;
mod field;
mod hours;
mod limits;
mod names;
mod options;
mod pace;
mod place;
mod redact;
mod retention;
mod samples;
mod scratch;
mod server;
#[cfg(test)]
mod shipped;
mod shipper;
#[cfg(test)]
mod shipper_tests;
mod table;
mod texts;
mod waits;

use bucket::Bucket;
use clap::Parser;
use command::Commands;
use jiff::Timestamp;
use limits::{Limits, STOP_REQUESTED, wait};
use options::Options;
use pace::{Pace, Paced};
use place::{Directory, Place, Result};
use redact::Redaction;
use retention::Retention;
use shipper::{LookResult, Settings, Shipper};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tacho_source::expect_history;
use tacho_tape::files::directory::LOCK;
use tacho_tape::files::lock::is_held;
use tacho_tape::files::node::recorded_node;
use tacho_tape::files::storage::OsStorage;
use tacho_tape::query::{QueryError, plain_lines};
use tacho_tape::{Shared, Snapshot, Tape};

/// Bytes of decoded columns kept between two looks.
const CACHE_BYTES: u64 = 16 << 20;

/// Maximum number of looks without `--every`, and the pause between two.
const ATTEMPTS: usize = 5;
const PAUSE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            say(&format!("error: {}", labelled(&message)));
            ExitCode::FAILURE
        }
    }
}

/// A message with the labels of detail and hint as programs print them.
fn labelled(message: &str) -> String {
    message
        .replace("\nDETAIL:  ", "\ndetail: ")
        .replace("\nHINT:  ", "\nhint: ")
}

fn say(text: &str) {
    let line = format!("{}\n", plain_lines(text));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Ships once, or with `--every` until a signal. False if something was damaged.
fn run(options: &Options) -> Result<bool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|e| format!("could not install signal handlers: {e}"))?;
    }
    let mut retention = match options.tell_retention {
        true => {
            // A missing directory cannot be checked.
            if options.tape.is_dir() {
                expect_history(&options.tape).map_err(wrong_place)?;
            }
            Some(Retention::open(options)?)
        }
        false => None,
    };
    for other in retention.iter().flat_map(Retention::others) {
        say(&format!("note: {}", labelled(other)));
    }
    let place = place(options, &stop)?;
    let mut shipper = Shipper::new(&*place, settings(options)?);
    let tape = Tape::open(&options.tape, &Shared::new(CACHE_BYTES));
    let mut look = |go_on: &dyn Fn() -> bool| {
        let (snapshot, are_written) = open_snapshot(&options.tape, &tape)?;
        shipper.logs_are_written(*are_written.as_ref().unwrap_or(&true));
        let done = shipper.ship_due_hours(&snapshot, Timestamp::now().as_millisecond(), go_on)?;
        if let Some(retention) = retention.as_mut().filter(|_| go_on()) {
            retention.announce(shipper.shipped_until(&snapshot)?)?;
        }
        let mut held = shipper.held().to_vec();
        if let Err(error) = are_written {
            let lock = options.tape.join(LOCK);
            let (lock, what) = (
                lock.display(),
                "cannot tell whether a process is writing logs",
            );
            held.push(format!("{what}: could not open file \"{lock}\": {error}"));
        }
        Ok((done, held))
    };
    let go_on = || !stop.load(Ordering::Relaxed);
    let Some(every) = options.every else {
        return once(|| look(&go_on), &go_on);
    };
    let mut told = Vec::new();
    while go_on() {
        // The next look ships what this one could not.
        match look(&go_on) {
            Ok((mut done, mut held)) => {
                let now = [&done.damage[..], &done.left_out, &held].concat();
                for said in [&mut done.damage, &mut done.left_out, &mut held] {
                    said.retain(|line| !told.contains(line));
                }
                if done != LookResult::default() || !held.is_empty() {
                    print_result(&done, &held);
                }
                told = now;
            }
            Err(message) => say(&format!("warning: {message}")),
        }
        wait(every, &go_on);
    }
    Ok(true)
}

/// The history now, and whether some process writes its logs. If no process holds
/// the directory, the history is read again: the last writer may have added to it
/// before.
fn open_snapshot(directory: &Path, tape: &Tape) -> Result<(Arc<Snapshot>, io::Result<bool>)> {
    expect_history(directory).map_err(wrong_place)?;
    let refresh = || tape.refresh().map_err(|e| e.to_string());
    let snapshot = refresh()?;
    if !has_logs(&snapshot) {
        return Ok((snapshot, Ok(false)));
    }
    match is_held(directory) {
        Ok(false) => Ok((refresh()?, Ok(false))),
        held => Ok((snapshot, held)),
    }
}

fn has_logs(tape: &Snapshot) -> bool {
    let nodes = tape.nodes();
    let mut parts = nodes.iter().flat_map(|node| tape.parts(node.id));
    parts.any(|part| part.info().open)
}

fn wrong_place(error: QueryError) -> String {
    let hint = error
        .hint
        .map_or(String::new(), |hint| format!("\nHINT:  {hint}"));
    error.message + &hint
}

/// Result of a look, and the hours that it holds back.
type Looked = (LookResult, Vec<String>);

/// Looks until everything that can be shipped is shipped. A file may disappear
/// between two looks because it was merged.
fn once(mut look: impl FnMut() -> Result<Looked>, go_on: &dyn Fn() -> bool) -> Result<bool> {
    let (mut done, mut held) = look()?;
    for _ in 1..ATTEMPTS {
        if done.again.is_empty() || !go_on() {
            break;
        }
        wait(PAUSE, go_on);
        let (next, now) = look()?;
        (done, held) = (done.and(next), now);
    }
    print_result(&done, &held);
    Ok(done.damage.is_empty() && done.again.is_empty())
}

fn place(options: &Options, stop: &Arc<AtomicBool>) -> Result<Box<dyn Place>> {
    let limits = |timeout| Limits {
        stop: stop.clone(),
        timeout,
    };
    let place: Box<dyn Place> = match (&options.to, &options.command, &options.list) {
        (_, Some(put), Some(list)) => Box::new(Commands::new(
            put,
            list,
            limits(Some(options.command_limit)),
        )?),
        (Some(to), ..) if Bucket::is_address(to) => {
            Box::new(Bucket::open(to, limits(Some(options.request_limit)))?)
        }
        (to, ..) => Box::new(Directory::open(to.as_deref().unwrap_or_default())?),
    };
    let pace = Pace::new(options.limit_rate, options.limit_cpu);
    Ok(Box::new(Paced::new(place, pace, limits(None))))
}

fn print_result(done: &LookResult, held: &[String]) {
    for damage in &done.damage {
        say(&format!("warning: skipped unreadable data: {damage}"));
    }
    for lost in &done.lost {
        say(&format!("warning: {lost}"));
    }
    for note in done.left_out.iter().chain(held) {
        say(&format!("note: {note}"));
    }
    for reason in &done.again {
        let line = match reason == STOP_REQUESTED {
            true => format!("note: not all hours are shipped: {reason}"),
            false => format!("warning: not shipped, will be retried: {reason}"),
        };
        say(&line);
    }
    let LookResult {
        hours,
        objects,
        bytes,
        ..
    } = done;
    say(&format!(
        "shipped hours {hours}, objects {objects}, bytes {bytes}"
    ));
}

fn settings(options: &Options) -> Result<Settings> {
    let salt = options.salt.as_deref().map(read_salt).transpose()?;
    let recorded = recorded_node(&OsStorage::new(&options.tape));
    let host = recorded.ok().flatten().map(|recorded| recorded.place.host);
    Ok(Settings {
        server: options.server.clone(),
        labels: options.label.clone(),
        redaction: Redaction {
            rules: options.redact.clone(),
            salt,
        },
        host: host.filter(|host| !host.is_empty()),
    })
}

/// Least length of a salt, in bytes: a shorter one could be guessed.
const SALT: usize = 16;

/// Reads the secret without the newline at its end: `echo` writes one, other
/// programs do not.
fn read_salt(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    let failed = |e| format!("could not read file \"{name}\": {e}");
    let mut file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.mode();
    if mode & 0o077 != 0 {
        return Err(format!(
            "salt in file \"{name}\" has group or world access\nDETAIL:  Its mode is {:04o}; it must be 0600 or less.",
            mode & 0o7777
        ));
    }
    let mut salt = Vec::new();
    file.read_to_end(&mut salt).map_err(failed)?;
    for end in [b'\n', b'\r'] {
        salt.pop_if(|last| *last == end);
    }
    match salt.len() < SALT {
        true => Err(format!(
            "salt in file \"{name}\" has fewer than {SALT} bytes"
        )),
        false => Ok(salt),
    }
}
