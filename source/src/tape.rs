//! Answers from tapes: directories of history files, asked in this process.

use crate::arguments;
use crate::question::Question;
use crate::source::{Ask, Server, Source, State};
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tacho_tape::Store;
use tacho_tape::directory::{self, NODE};
use tacho_tape::query::{self, Function, QueryError, QueryResult, Sink};

/// How deep below a root a tape is looked for.
const DEPTH: usize = 4;

/// The history of a directory as it is now.
///
/// # Errors
/// It could not be read.
pub fn open(directory: &Path) -> QueryResult<Store> {
    Ok(Store::open(directory)?)
}

/// A directory that holds no history.
pub fn no_history(directory: &Path) -> QueryError {
    let directory = directory.display();
    QueryError::new("58P01", format!("directory \"{directory}\" has no history")).hint(
        "Give the directory of the history files: the setting tacho.directory, by default tacho in the data directory.",
    )
}

/// A source of tapes, each named, and of every tape below some directories.
#[derive(Debug, Default)]
pub struct Tapes {
    named: BTreeMap<String, PathBuf>,
    roots: Vec<PathBuf>,
}

impl Tapes {
    /// Adds a tape: `DIR`, called as its last part, or `NAME=DIR`. A directory
    /// whose own name has a `=` is written with a name, or with `./` before.
    ///
    /// # Errors
    /// The name is taken, or there is none.
    pub fn add(&mut self, text: &str) -> QueryResult<()> {
        let (name, directory) = match text.split_once('=') {
            Some((name, directory)) if !name.contains('/') => (name.to_string(), directory),
            _ => (last_part(text), text),
        };
        let invalid = |what| QueryError::invalid(format!("{what} \"{text}\""));
        let hint = "Write it as NAME=DIRECTORY.";
        if name.is_empty() || directory.is_empty() {
            return Err(invalid("no name or no directory in").hint(hint));
        }
        match self.named.insert(name, PathBuf::from(directory)) {
            None => Ok(()),
            Some(_) => Err(invalid("another tape has the name of").hint(hint)),
        }
    }

    /// Adds every tape below a directory, named by its path from there. They
    /// are looked for again with each question, at most four levels deep;
    /// symbolic links are not followed.
    pub fn add_root(&mut self, directory: PathBuf) {
        self.roots.push(directory);
    }

    /// Name and directory of every tape. A name that was given hides one found.
    fn all(&self) -> BTreeMap<String, PathBuf> {
        let mut all = BTreeMap::new();
        for root in &self.roots {
            let mut found = BTreeSet::new();
            find(root, DEPTH, &mut found);
            for directory in found {
                let name = directory.strip_prefix(root).unwrap_or(&directory);
                let name = match name.as_os_str().is_empty() {
                    true => last_part(&root.to_string_lossy()),
                    false => name.to_string_lossy().into_owned(),
                };
                all.entry(name).or_insert(directory);
            }
        }
        all.extend(self.named.clone());
        all
    }

    /// The tape with a name, or the only one.
    fn directory(&self, name: Option<&str>) -> QueryResult<PathBuf> {
        let mut all = self.all();
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        let names = match names.is_empty() {
            true => "There is none.".to_string(),
            false => format!("Available are {}.", names.join(", ")),
        };
        let found = match name {
            Some(name) => all.remove(name),
            None if all.len() == 1 => all.pop_first().map(|(_, directory)| directory),
            None => None,
        };
        found.ok_or_else(|| {
            let message = match name {
                Some(name) => format!("server \"{name}\" does not exist"),
                None => "which server is not said".to_string(),
            };
            QueryError::undefined(message).hint(names)
        })
    }
}

/// The last part of a path that has a name.
fn last_part(path: &str) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    let name = absolute.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The tapes in a directory and below.
fn find(directory: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    if let Ok(State::Recorded) = state(directory) {
        found.insert(directory.to_path_buf());
    } else if let (1.., Ok(entries)) = (depth, std::fs::read_dir(directory)) {
        let folders = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.for_each(|entry| find(&entry.path(), depth - 1, found));
    }
}

/// What a directory is, by the names of its files.
fn state(directory: &Path) -> io::Result<State> {
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if name == NODE || directory::parse_name(&name).is_some() {
            return Ok(State::Recorded);
        }
    }
    Ok(State::Empty)
}

impl Source for Tapes {
    fn servers(&self) -> Vec<Server> {
        let server = |(name, directory): (String, PathBuf)| Server {
            name,
            state: state(&directory).unwrap_or_else(|error| match error.kind() {
                ErrorKind::PermissionDenied => State::Refused,
                _ => State::Missing,
            }),
        };
        self.all().into_iter().map(server).collect()
    }

    fn functions(&self) -> &'static [Function] {
        query::list()
    }

    fn ask(&self, ask: &Ask, cancel: &AtomicBool, sink: &mut dyn Sink) -> QueryResult<()> {
        let function = query::find(&ask.function)?;
        arguments::check(function, ask.arguments.keys().map(String::as_str))?;
        let directory = self.directory(ask.server.as_deref())?;
        let question = Question::new(function, ask.arguments.clone(), || TimeZone::UTC, true)?;
        let mut spec = question.spec()?;
        spec.texts = ask.texts;
        spec.threads = ask.threads;
        spec.memory_bytes = Some(ask.memory_bytes);
        let store = open(&directory)?;
        if store.nodes().is_empty() && store.damage().is_empty() {
            return Err(no_history(&directory));
        }
        query::run(function.name, &spec, &store, cancel, sink)
    }
}
