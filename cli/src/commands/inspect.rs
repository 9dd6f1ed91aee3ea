//! `tacho inspect`: lists the content of history files and checks every byte. Exit code 1 if
//! anything is damaged.

mod sizes;

use super::say;
use crate::readers::report;
use clap::ValueHint;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tacho_source::catalog;
use tacho_tape::files::directory::Kind;
use tacho_tape::files::storage::OsStorage;
use tacho_tape::format::part::LogDamage;
use tacho_tape::query::inspect::{FileReport, check_node, history_files, inspect};
use tacho_tape::query::plain_lines;
use tacho_tape::write::repair::{Outcome, Repaired, repair};
use tacho_tape::{Part, locate};

/// Arguments of `tacho inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// A history file, or a directory of them [default: as --tape of the other commands]
    #[arg(value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    path: Option<PathBuf>,

    /// Write the files to this new directory: undamaged files as they are, and the readable parts of damaged files
    #[arg(long, value_name = "DIR")]
    repair: Option<PathBuf>,

    /// Print the bytes of each table and column; their sum is the size of the files
    #[arg(long, conflicts_with = "repair")]
    sizes: bool,

    /// Print the sizes as JSON
    #[arg(long, requires = "sizes")]
    json: bool,
}

/// Prints the content of the files, or repairs them.
pub fn run(args: &Args) -> ExitCode {
    let path = match locate::tape(args.path.as_deref()) {
        Ok(path) => path,
        Err(error) => return report(&error),
    };
    let mut out = Lines::default();
    let whole = match &args.repair {
        Some(to) => repair_to(&path, to, &mut out),
        None if args.sizes => sizes::show(&path, args.json, &mut out),
        None => show_all(&path, &mut out),
    };
    let written = out.end();
    match whole && written {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Standard output. Write errors are kept, because the findings decide the exit code even without a
/// reader.
#[derive(Default)]
struct Lines {
    failed: Option<io::Error>,
}

impl Lines {
    fn line(&mut self, line: impl Display) {
        if self.failed.is_none() {
            let line = plain_lines(&line.to_string());
            self.failed = writeln!(io::stdout(), "{line}").err();
        }
    }

    /// False if a line could not be written, except because the reader has gone.
    fn end(self) -> bool {
        match self.failed {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                say(format_args!("error: could not write output: {error}"));
                false
            }
            _ => true,
        }
    }
}

/// The history files at a path; prints a message if there are none.
fn files_at(path: &Path) -> Option<Vec<PathBuf>> {
    let files = match path.is_dir() {
        true => history_files(path),
        false => Ok(vec![path.to_path_buf()]),
    };
    match files {
        Err(error) => say(format_args!("error: {error}")),
        Ok(files) if !files.is_empty() => return Some(files),
        Ok(_) => {
            let path = path.display();
            say(format_args!("error: no history file at \"{path}\""));
        }
    }
    None
}

/// Prints all files; false if something is damaged.
fn show_all(path: &Path, out: &mut Lines) -> bool {
    let Some(files) = files_at(path) else {
        return false;
    };
    let whole = files.iter().filter(|file| show(file, out)).count() == files.len();
    if path.is_dir()
        && let Err(error) = check_node(path)
    {
        say(format_args!("error: {error}"));
        return false;
    }
    whole
}

/// Repairs into a new directory; false if something was damaged.
fn repair_to(path: &Path, to: &Path, out: &mut Lines) -> bool {
    let (directory, only) = match path.is_dir() {
        true => (path, None),
        false => {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
            let name = path.file_name().and_then(|n| n.to_str());
            (parent.unwrap_or(Path::new(".")), Some(name.unwrap_or("")))
        }
    };
    let created = match to.exists() {
        true => Err(ErrorKind::AlreadyExists.into()),
        false => OsStorage::create_directory(to),
    };
    if let Err(error) = created {
        let to = to.display();
        say(format_args!(
            "error: could not create directory \"{to}\": {error}"
        ));
        say("hint: Specify a directory that does not exist yet.");
        return false;
    }
    let (from, target) = (OsStorage::new(directory), OsStorage::new(to));
    let known = catalog::schema().clone().with_runs();
    match repair(&from, &target, only, &known) {
        Ok(done) if done.is_empty() => {
            let path = path.display();
            say(format_args!("error: no history file at \"{path}\""));
            false
        }
        Ok(done) => {
            let whole = done.iter().filter(|file| show_repaired(file, out));
            whole.count() == done.len()
        }
        Err(error) => {
            say(format_args!("error: {error}"));
            false
        }
    }
}

/// Prints the result for a file; false if the file was damaged.
fn show_repaired(file: &Repaired, out: &mut Lines) -> bool {
    match &file.outcome {
        Outcome::Copied => out.line(format_args!("{} copied", file.name)),
        Outcome::Lost(reason) => out.line(format_args!("{} lost: {reason}", file.name)),
        Outcome::Repaired { damage, lost } => {
            out.line(format_args!("{} repaired", file.name));
            damage.iter().for_each(|damage| print_damage(damage, out));
            lost.iter()
                .for_each(|lost| out.line(format_args!("  {lost}")));
        }
    }
    file.outcome == Outcome::Copied
}

/// Prints one file; false if it is damaged.
fn show(path: &Path, out: &mut Lines) -> bool {
    match inspect(path) {
        Ok(report) => {
            print(&report, out);
            report.damage.is_empty()
        }
        Err(error) => {
            say(format_args!("error: {error}"));
            false
        }
    }
}

fn print(report: &FileReport, out: &mut Lines) {
    let kind = match report.kind {
        Kind::Log => "log",
        _ => "sealed",
    };
    let identity = &report.identity;
    out.line(format_args!(
        "{} {kind} {} bytes",
        report.name, report.bytes
    ));
    out.line(format_args!(
        "  node {:016x} system {} timeline {}",
        identity.node, identity.system_identifier, identity.timeline
    ));
    for (number, part) in report.parts.iter().enumerate() {
        print_part(number + 1, part, out);
    }
    for removal in &report.removals {
        let detail = removal
            .detail
            .as_deref()
            .unwrap_or("no details are recorded");
        out.line(format_args!(
            "  history removed at {}: {detail}, {} to {}",
            time(Some(removal.time_ms)),
            time(Some(removal.since_ms)),
            time(Some(removal.until_ms))
        ));
    }
    if report.torn_bytes > 0 {
        out.line(format_args!(
            "  {} bytes of an incomplete frame",
            report.torn_bytes
        ));
    }
    let damage = report.damage.iter();
    damage.for_each(|damage| print_damage(damage, out));
}

fn print_damage(damage: &LogDamage, out: &mut Lines) {
    let (offset, bytes) = (damage.offset, damage.bytes);
    let between = match (damage.since_ms, damage.until_ms) {
        (None, None) => String::new(),
        (since, until) => format!(", between {} and {}", time(since), time(until)),
    };
    out.line(format_args!(
        "  damage at offset {offset}, {bytes} bytes{between}: {}",
        damage.reason
    ));
}

fn print_part(number: usize, part: &Part, out: &mut Lines) {
    let info = part.info();
    match info.first_tick <= info.last_tick {
        true => out.line(format_args!(
            "  group {number} ticks {} to {}, {} to {}",
            info.first_tick,
            info.last_tick,
            time(Some(info.min_ms)),
            time(Some(info.max_ms))
        )),
        false => out.line(format_args!("  group {number} without ticks")),
    }
    let tables = part.schema().tables.iter();
    let rows = tables.map(|t| (&t.name, part.rows(&t.name)));
    let rows = rows
        .filter(|r| r.1 > 0)
        .map(|(name, rows)| format!("{name} {rows}"));
    out.line(format_args!(
        "    rows: {}",
        rows.collect::<Vec<_>>().join(", ")
    ));
    if info.lost_definitions > 0 {
        out.line(format_args!(
            "    {} rows refer to a lost definition",
            info.lost_definitions
        ));
    }
    if info.dropped_rows > 0 {
        out.line(format_args!("    {} rows were left out", info.dropped_rows));
    }
}

fn time(ms: Option<i64>) -> String {
    let time = ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "an unknown time".into(), |t| t.to_string())
}
