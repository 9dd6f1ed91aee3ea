//! `tacho inspect`: what history files hold, every byte checked. Exit code 1
//! when anything is damaged.

use crate::catalog;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tacho_tape::Part;
use tacho_tape::directory::Kind;
use tacho_tape::inspect::{FileReport, check_node, history_files, inspect};
use tacho_tape::log::LogDamage;
use tacho_tape::repair::{Outcome, Repaired, repair};
use tacho_tape::storage::OsStorage;

/// Arguments of `tacho inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// A history file, or a directory of them
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,

    /// Write the files to this new directory: whole ones as they are, of damaged ones what can be read
    #[arg(long, value_name = "DIR")]
    repair: Option<PathBuf>,
}

/// Prints what the files hold, or repairs them.
pub fn run(args: &Args) -> ExitCode {
    if let Some(to) = &args.repair {
        return repair_to(&args.path, to);
    }
    let files = match args.path.is_dir() {
        true => history_files(&args.path),
        false => Ok(vec![args.path.clone()]),
    };
    let files = match files {
        Ok(files) => files,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut whole = files.iter().filter(|file| show(file)).count() == files.len();
    if args.path.is_dir()
        && let Err(error) = check_node(&args.path)
    {
        eprintln!("error: {error}");
        whole = false;
    }
    match whole {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Repairs into a new directory.
fn repair_to(path: &Path, to: &Path) -> ExitCode {
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
        eprintln!(
            "error: could not create directory \"{}\": {error}",
            to.display()
        );
        eprintln!("hint: Give a directory that does not exist yet.");
        return ExitCode::FAILURE;
    }
    let (from, target) = (OsStorage::new(directory), OsStorage::new(to));
    let known = catalog::schema().clone().with_runs();
    match repair(&from, &target, only, &known) {
        Ok(done) if done.is_empty() => {
            eprintln!("error: no history file at \"{}\"", path.display());
            ExitCode::FAILURE
        }
        Ok(done) => {
            let whole = done.iter().filter(|file| show_repaired(file)).count();
            ExitCode::from(u8::from(whole < done.len()))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints what became of a file; false when it was damaged.
fn show_repaired(file: &Repaired) -> bool {
    match &file.outcome {
        Outcome::Copied => println!("{} copied", file.name),
        Outcome::Lost(reason) => println!("{} lost: {reason}", file.name),
        Outcome::Repaired { damage, lost } => {
            println!("{} repaired", file.name);
            damage.iter().for_each(print_damage);
            lost.iter().for_each(|lost| println!("  {lost}"));
        }
    }
    file.outcome == Outcome::Copied
}

/// Prints one file; false when it is damaged.
fn show(path: &Path) -> bool {
    match inspect(path) {
        Ok(report) => {
            print(&report);
            report.damage.is_empty()
        }
        Err(error) => {
            eprintln!("error: {error}");
            false
        }
    }
}

fn print(report: &FileReport) {
    let kind = match report.kind {
        Kind::Log => "log",
        _ => "sealed",
    };
    let identity = &report.identity;
    println!("{} {kind} {} bytes", report.name, report.bytes);
    println!(
        "  node {:016x} system {} timeline {}",
        identity.node, identity.system_identifier, identity.timeline
    );
    for (number, part) in report.parts.iter().enumerate() {
        print_part(number + 1, part);
    }
    if report.torn_bytes > 0 {
        println!("  {} bytes of a frame that was cut off", report.torn_bytes);
    }
    report.damage.iter().for_each(print_damage);
}

fn print_damage(damage: &LogDamage) {
    let (offset, bytes) = (damage.offset, damage.bytes);
    let between = match (damage.since_ms, damage.until_ms) {
        (None, None) => String::new(),
        (since, until) => format!(", between {} and {}", time(since), time(until)),
    };
    println!(
        "  damage at offset {offset}, {bytes} bytes{between}: {}",
        damage.reason
    );
}

fn print_part(number: usize, part: &Part) {
    let info = part.info();
    match info.first_tick <= info.last_tick {
        true => println!(
            "  group {number} ticks {} to {}, {} to {}",
            info.first_tick,
            info.last_tick,
            time(Some(info.min_ms)),
            time(Some(info.max_ms))
        ),
        false => println!("  group {number} without ticks"),
    }
    let tables = part.schema().tables.iter();
    let rows = tables.map(|t| (&t.name, part.rows(&t.name)));
    let rows = rows
        .filter(|r| r.1 > 0)
        .map(|(name, rows)| format!("{name} {rows}"));
    println!("    rows: {}", rows.collect::<Vec<_>>().join(", "));
    if info.lost_definitions > 0 {
        println!(
            "    {} rows refer to a lost definition",
            info.lost_definitions
        );
    }
    if info.dropped_rows > 0 {
        println!("    {} rows were left out", info.dropped_rows);
    }
}

fn time(ms: Option<i64>) -> String {
    let time = ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "an unknown time".into(), |t| t.to_string())
}
