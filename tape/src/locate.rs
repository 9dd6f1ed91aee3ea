//! Where the history is when nobody says it. Of PostgreSQL this knows the names
//! of files: a postmaster's working directory is its data directory, whose
//! `postmaster.pid` begins with the number of the process.

use crate::files::storage::open_regular;
use crate::query::{QueryError, QueryResult};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The setting that names the tape of a server.
const SETTING: &str = "tacho.directory";
/// Its default: below the data directory.
pub const DEFAULT: &str = "tacho";
/// What a file is read of at most; those that are read here are small.
const READ_BYTES: u64 = 1 << 20;

/// What tells where a history is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The directory of the history files: `TACHO_TAPE`.
    pub tape: Option<PathBuf>,
    /// The data directory of a server: `PGDATA`.
    pub data: Option<PathBuf>,
    /// Where the system shows processes: `/proc`.
    pub processes: PathBuf,
}

impl Surroundings {
    /// The environment and the host of this process. An empty variable counts
    /// as none.
    pub fn here() -> Self {
        let path = |name| std::env::var_os(name).filter(|v| !v.is_empty());
        Surroundings {
            tape: path("TACHO_TAPE").map(PathBuf::from),
            data: path("PGDATA").map(PathBuf::from),
            processes: "/proc".into(),
        }
    }

    /// The directory of the history files: the one that is named, else that of
    /// the data directory that is named, else that of the server that runs on
    /// this host. Whether there is a history in the first two is not looked at.
    ///
    /// # Errors
    /// SQLSTATE 22023 if no server runs that has a history, or several do.
    pub fn tape(&self) -> QueryResult<PathBuf> {
        let mut tapes = self.tapes()?;
        match (tapes.pop_first(), tapes.is_empty()) {
            (Some(tape), true) => Ok(tape),
            (first, _) => {
                tapes.extend(first);
                Err(several(&tapes))
            }
        }
    }

    /// The same where several servers may run: all of theirs.
    ///
    /// # Errors
    /// SQLSTATE 22023 if no server runs that has a history.
    pub fn tapes(&self) -> QueryResult<BTreeSet<PathBuf>> {
        let data = self.data.as_deref().map(of_data_directory);
        if let Some(named) = self.tape.clone().or(data) {
            return Ok([named].into());
        }
        let found = running(&self.processes);
        match found.tapes.is_empty() {
            true => Err(none(found.hidden)),
            false => Ok(found.tapes),
        }
    }
}

/// The directory that is named, else what [`Surroundings::here`] tell.
///
/// # Errors
/// See [`Surroundings::tape`].
pub fn tape(named: Option<&Path>) -> QueryResult<PathBuf> {
    match named {
        Some(tape) => Ok(tape.to_path_buf()),
        None => Surroundings::here().tape(),
    }
}

/// The servers that run on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// Data directories.
    pub data: BTreeSet<PathBuf>,
    /// Directories of history files, those that exist.
    pub tapes: BTreeSet<PathBuf>,
    /// There are servers whose data directory this user may not see.
    pub hidden: bool,
}

/// Finds the servers that run, and their tapes, by what the system shows of
/// processes (`/proc`).
pub fn running(processes: &Path) -> Running {
    let mut running = Running::default();
    for entry in fs::read_dir(processes).into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        match fs::read_link(entry.path().join("cwd")) {
            Ok(data) if is_postmaster(&data, pid) => {
                let tape = of_data_directory(&data);
                running
                    .tapes
                    .extend(Some(tape).filter(|tape| tape.is_dir()));
                running.data.insert(data);
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let name = text(&entry.path().join("comm"));
                running.hidden |= name.is_some_and(|name| name.trim_end() == "postgres");
            }
            _ => (),
        }
    }
    running
}

/// The directory of history files that the server of a data directory has, as
/// far as plain files tell: arguments of its last start, then the settings of
/// `ALTER SYSTEM`, then the configuration file without what it includes.
pub fn of_data_directory(data: &Path) -> PathBuf {
    let started = text(&data.join("postmaster.opts")).unwrap_or_default();
    let configuration = match argument(&started, "config_file") {
        Some(file) => data.join(file),
        None => data.join("postgresql.conf"),
    };
    let within = |file: &Path| text(file).and_then(|text| setting(&text));
    let named = argument(&started, SETTING).map(str::to_string);
    let named = named.or_else(|| within(&data.join("postgresql.auto.conf")));
    let named = named.or_else(|| within(&configuration));
    data.join(named.as_deref().unwrap_or(DEFAULT))
}

/// Whether a directory is the data directory of the postmaster with this number.
fn is_postmaster(data: &Path, pid: u32) -> bool {
    let file = text(&data.join("postmaster.pid"));
    let first = file.as_ref().and_then(|file| file.lines().next());
    first.and_then(|line| line.trim().parse().ok()) == Some(pid)
}

/// The text of a regular file; `None` for all else, which could make wait.
fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = open_regular(OpenOptions::new().read(true), path).ok()?;
    file.take(READ_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last `NAME=VALUE` among the words of `postmaster.opts`, each in double
/// quotes: after `-c`, or behind `--`.
fn argument<'t>(started: &'t str, name: &str) -> Option<&'t str> {
    let words = started.split('"').skip(1).step_by(2);
    let values = words.filter_map(|word| {
        let word = word.strip_prefix("--").unwrap_or(word);
        let word = word.strip_prefix("-c").unwrap_or(word);
        word.strip_prefix(name)?.strip_prefix('=')
    });
    values.last().filter(|value| !value.is_empty())
}

/// What a configuration file says of the setting, last.
fn setting(file: &str) -> Option<String> {
    file.lines()
        .filter_map(assigned)
        .next_back()
        .filter(|v| !v.is_empty())
}

/// The value of a line `tacho.directory = 'value'`; the equals sign, and quotes
/// around a plain word, may be missing.
fn assigned(line: &str) -> Option<String> {
    let line = line.trim_start();
    let name = line.get(..SETTING.len())?;
    let rest = &line[SETTING.len()..];
    let ends = rest.starts_with(|c: char| c == '=' || c.is_whitespace());
    if !ends || !name.eq_ignore_ascii_case(SETTING) {
        return None;
    }
    let value = rest.trim_start();
    let value = value.strip_prefix('=').unwrap_or(value).trim_start();
    match value.strip_prefix('\'') {
        Some(quoted) => unquoted(quoted),
        None => value
            .split(|c: char| c == '#' || c.is_whitespace())
            .next()
            .map(str::to_string),
    }
}

/// A value up to its closing quote. A quote within is doubled or behind a
/// backslash.
fn unquoted(quoted: &str) -> Option<String> {
    let mut value = String::new();
    let mut chars = quoted.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' if chars.next_if_eq(&'\'').is_none() => return Some(value),
            '\\' => value.push(chars.next()?),
            c => value.push(c),
        }
    }
    None
}

fn none(hidden: bool) -> QueryError {
    let error = QueryError::invalid("no history is named, and no server that runs here has one");
    let error = match hidden {
        true => {
            error.detail("Servers of other users run here; where their data is cannot be seen.")
        }
        false => error,
    };
    error.hint(
        "Name its directory with --tape or in TACHO_TAPE: the setting tacho.directory, by default tacho in the data directory.",
    )
}

fn several(tapes: &BTreeSet<PathBuf>) -> QueryError {
    let names = tapes.iter().map(|tape| format!("\"{}\"", tape.display()));
    let names = names.collect::<Vec<_>>().join(", ");
    QueryError::invalid("several servers that run here have a history")
        .detail(format!("It is in {names}."))
        .hint("Name one directory with --tape or in TACHO_TAPE.")
}
