//! Finds the history if the user names none. It reads files of PostgreSQL but does not connect: the
//! working directory of a postmaster is its data directory, and the first line of `postmaster.pid`
//! there is its process id.

use crate::files::storage::open_regular;
use crate::query::{QueryError, QueryResult};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Setting of a server that names the directory of its history files.
const SETTING: &str = "tacho.directory";
/// Default of the setting `tacho.directory`, relative to the data directory.
pub const DEFAULT: &str = "tacho";
/// Maximum number of bytes read from a file; the files read here are small.
const READ_BYTES: u64 = 1 << 20;

/// Sources for finding a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The directory of the history files: `TACHO_TAPE`.
    pub tape: Option<PathBuf>,
    /// The data directory of a server: `PGDATA`.
    pub data: Option<PathBuf>,
    /// Directory of the system's processes: `/proc`.
    pub processes: PathBuf,
}

impl Surroundings {
    /// The environment and the host of this process. An empty variable counts as unset.
    pub fn here() -> Self {
        let path = |name| std::env::var_os(name).filter(|v| !v.is_empty());
        Surroundings {
            tape: path("TACHO_TAPE").map(PathBuf::from),
            data: path("PGDATA").map(PathBuf::from),
            processes: "/proc".into(),
        }
    }

    /// The directory of the history files. It is `tape` if set, otherwise the tape of `data` if
    /// set, otherwise the tape of the server that runs on this host. The first two are not checked
    /// for a history.
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

    /// Same as [`Surroundings::tape`] if several servers may run: returns the tapes of all.
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

/// The named directory, otherwise the tape of [`Surroundings::here`].
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
    /// Data directories of these servers.
    pub data: BTreeSet<PathBuf>,
    /// Directories of history files of these servers, as far as they exist.
    pub tapes: BTreeSet<PathBuf>,
    /// True if there are servers whose data directory this user may not see.
    pub hidden: bool,
}

/// Finds the running servers and their tapes in the system's directory of processes (`/proc`).
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

/// The directory of history files for a data directory. It looks into plain files in this order:
/// the arguments of the last start, the settings of `ALTER SYSTEM`, and the configuration file
/// without its includes.
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

/// True if this is the data directory of the postmaster with this process id.
fn is_postmaster(data: &Path, pid: u32) -> bool {
    let file = text(&data.join("postmaster.pid"));
    let first = file.as_ref().and_then(|file| file.lines().next());
    first.and_then(|line| line.trim().parse().ok()) == Some(pid)
}

/// The first [`READ_BYTES`] of a regular file. `None` for other files, because reading a FIFO or a
/// device could wait.
fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = open_regular(OpenOptions::new().read(true), path).ok()?;
    file.take(READ_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last `NAME=VALUE` among the words of `postmaster.opts`, which stand in double quotes. In a
/// word it may follow `-c` or `--`.
fn argument<'t>(started: &'t str, name: &str) -> Option<&'t str> {
    let words = started.split('"').skip(1).step_by(2);
    let values = words.filter_map(|word| {
        let word = word.strip_prefix("--").unwrap_or(word);
        let word = word.strip_prefix("-c").unwrap_or(word);
        word.strip_prefix(name)?.strip_prefix('=')
    });
    values.last().filter(|value| !value.is_empty())
}

/// The last value of the setting in a configuration file.
fn setting(file: &str) -> Option<String> {
    file.lines()
        .filter_map(assigned)
        .next_back()
        .filter(|v| !v.is_empty())
}

/// The value of a line `tacho.directory = 'value'`. The equals sign is optional, and so are quotes
/// around a plain word.
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

/// A value up to its closing quote. A quote within it is doubled or follows a backslash.
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
    let error =
        QueryError::invalid("no history directory specified, and no server running here has one");
    let error = match hidden {
        true => error.detail("The data directories of servers of other users are not readable."),
        false => error,
    };
    error.hint(
        "Specify the directory with --tape or in TACHO_TAPE: it is the setting tacho.directory, by default tacho in the data directory.",
    )
}

fn several(tapes: &BTreeSet<PathBuf>) -> QueryError {
    let names = tapes.iter().map(|tape| format!("\"{}\"", tape.display()));
    let names = names.collect::<Vec<_>>().join(", ");
    QueryError::invalid("more than one server running here has a history")
        .detail(format!("The directories are {names}."))
        .hint("Specify one directory with --tape or in TACHO_TAPE.")
}
