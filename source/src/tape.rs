//! Answers from tapes, computed in this process. Tapes stay open after a question:
//! the next question to one reads only what was written since.

use crate::arguments;
use crate::question::Question;
use crate::source::{Ask, Server, Source, State, pick_server};
use jiff::tz::TimeZone;
use quick_cache::sync::Cache;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tacho_tape::files::directory::{self, NODE};
use tacho_tape::locate::{self, DEFAULT, Surroundings};
use tacho_tape::query::{self, Function, INSUFFICIENT_PRIVILEGE, QueryError, QueryResult, Sink};
use tacho_tape::write::marks;
use tacho_tape::{Error, Shared, Snapshot, Tape};

/// Number of levels of directories below a root that a search for tapes enters.
const DEPTH: usize = 4;
/// Maximum number of tapes that stay open.
const OPEN: usize = 64;

/// Opens the history of a directory.
///
/// # Errors
/// The directory could not be read.
pub fn open(directory: &Path) -> QueryResult<Snapshot> {
    Ok(Snapshot::open(directory)?)
}

/// Hint for a directory without history.
const WHICH: &str = "Specify the directory of the history files: the setting tacho.directory, by default tacho in the data directory.";

/// Hint for files that this process may not read.
const OWNER: &str = "The files belong to the user of the server, or of tacho record: run this as that user, for example by sudo -u postgres.";

/// A directory that holds no history.
pub fn no_history(directory: &Path) -> QueryError {
    let message = format!("directory \"{}\" has no history", directory.display());
    with_step(QueryError::new("58P01", message), directory)
}

/// Adds the step for a person who named a directory that has no history, or whose
/// files may not be read.
pub fn with_step(error: QueryError, directory: &Path) -> QueryError {
    let history = locate::of_data_directory(directory);
    let is_data = directory.join("PG_VERSION").is_file();
    match (error.sqlstate, is_data) {
        (INSUFFICIENT_PRIVILEGE, _) => error.hint(OWNER),
        (_, true) if history.is_dir() => error.hint(format!(
            "This is a data directory; its history is in \"{}\".",
            history.display()
        )),
        (_, true) => error.hint(
            "This is a data directory without a history. Run tacho doctor to see what is missing.",
        ),
        _ => error.hint(WHICH),
    }
}

/// Checks that a directory has history.
///
/// # Errors
/// The directory could not be read, or nothing was recorded there.
pub fn expect_history(directory: &Path) -> QueryResult<()> {
    match directory_state(directory) {
        Ok((State::Recorded, _)) => Ok(()),
        Ok(_) => Err(no_history(directory)),
        Err(error) => {
            let error = Error::io("read directory", directory, error);
            Err(with_step(QueryError::from(error), directory))
        }
    }
}

/// Tapes with a name, and all tapes below some directories.
pub struct Tapes {
    named: BTreeMap<String, PathBuf>,
    roots: Vec<PathBuf>,
    /// Most bytes of columns that are kept.
    bytes: u64,
    /// Result of the last search below the roots.
    found: Mutex<BTreeMap<String, PathBuf>>,
    open: Mutex<Open>,
}

/// The most recently asked tapes, which stay open.
struct Open {
    shared: Shared,
    tapes: Arc<Cache<PathBuf, Arc<Tape>>>,
}

impl Open {
    fn new(bytes: u64) -> Open {
        Open {
            shared: Shared::new(bytes),
            tapes: Arc::new(Cache::new(OPEN)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tapes {
    /// Creates it without a tape. Keeps at most `bytes` of decoded columns for later questions.
    pub fn new(bytes: u64) -> Tapes {
        Tapes {
            named: BTreeMap::new(),
            roots: Vec::new(),
            bytes,
            found: Mutex::default(),
            open: Mutex::new(Open::new(bytes)),
        }
    }

    /// Adds a tape: `NAME=DIR` or `DIR`. Without a name it gets the last part of its
    /// path that is not `tacho`, mostly the data directory's. A directory with a `=`
    /// in its path is written with a name, or with `./` before.
    ///
    /// # Errors
    /// The name is taken or missing.
    pub fn add(&mut self, text: &str) -> QueryResult<()> {
        let (name, directory) = match text.split_once('=') {
            Some((name, directory)) if !name.contains('/') => (name.to_string(), directory),
            _ => (name_of(Path::new(text)), text),
        };
        let invalid = |what| QueryError::invalid(format!("{what} \"{text}\""));
        let hint = "Use the form NAME=DIRECTORY.";
        if name.is_empty() || directory.is_empty() {
            return Err(invalid("missing name or directory in").hint(hint));
        }
        match self.named.insert(name, PathBuf::from(directory)) {
            None => Ok(()),
            Some(_) => Err(invalid("duplicate name in").hint(hint)),
        }
    }

    /// Adds the tape that the environment names, otherwise the tapes of servers that
    /// run on this host. Two tapes of the same name are named by their paths.
    ///
    /// # Errors
    /// No tape is named, and no server with one runs here (`22023`).
    pub fn add_local(&mut self, here: &Surroundings) -> QueryResult<()> {
        let tapes = here.tapes()?;
        let names: Vec<String> = tapes.iter().map(|tape| name_of(tape)).collect();
        for (tape, name) in tapes.iter().zip(&names) {
            let is_only = names.iter().filter(|other| *other == name).count() == 1;
            let path = || tape.to_string_lossy().into_owned();
            let name = if is_only { name.clone() } else { path() };
            self.named.insert(name, tape.clone());
        }
        Ok(())
    }

    /// Adds all tapes below a directory, at most four levels deep, named by their
    /// paths from there. Symbolic links are not followed. The search is repeated
    /// when [`Source::servers`] is called, and when a question names an unknown
    /// tape.
    pub fn add_root(&mut self, directory: PathBuf) {
        self.roots.push(directory);
    }

    /// Name and directory of every tape. A given name hides a found one.
    fn all(&self) -> BTreeMap<String, PathBuf> {
        let mut all = BTreeMap::new();
        for root in &self.roots {
            let mut found = BTreeSet::new();
            find(root, DEPTH, &mut found);
            for directory in found {
                let name = directory.strip_prefix(root).unwrap_or(&directory);
                let name = match name.as_os_str().is_empty() {
                    true => name_of(root),
                    false => name.to_string_lossy().into_owned(),
                };
                all.entry(name).or_insert(directory);
            }
        }
        all.extend(self.named.clone());
        lock(&self.found).clone_from(&all);
        all
    }

    /// The tape with a name, or the only one.
    fn directory(&self, name: Option<&str>) -> QueryResult<PathBuf> {
        let known = |name| {
            let named = self.named.get(name).cloned();
            named.or_else(|| lock(&self.found).get(name).cloned())
        };
        if let Some(known) = name.and_then(known) {
            return Ok(known);
        }
        let mut all = self.all();
        let chosen = pick_server(name, all.keys().cloned().collect())?;
        all.remove(&chosen)
            .ok_or_else(|| QueryError::undefined(format!("server \"{chosen}\" does not exist")))
    }

    /// The names of all tapes, also of those below roots.
    pub fn names(&self) -> Vec<String> {
        self.all().into_keys().collect()
    }

    /// Number of directories that were given, tapes and roots.
    pub fn given(&self) -> usize {
        self.named.len() + self.roots.len()
    }

    /// The given directories that have a problem: the state of each, such as `State::Empty` without
    /// history, and the error.
    pub fn problems(&self) -> Vec<(State, QueryError)> {
        let tapes = self.named.values().filter_map(|tape| wrong_tape(tape));
        let roots = self.roots.iter().filter_map(|root| wrong_root(root));
        tapes.chain(roots).collect()
    }

    /// Whether a given tape has the name.
    pub fn is_named(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    /// Bytes of the kept columns.
    pub fn kept_bytes(&self) -> u64 {
        lock(&self.open).shared.bytes()
    }

    /// The current history of a directory.
    fn snapshot(&self, directory: &Path) -> QueryResult<Arc<Snapshot>> {
        let (shared, tapes) = {
            let open = lock(&self.open);
            (open.shared.clone(), Arc::clone(&open.tapes))
        };
        let opened = || Ok::<_, QueryError>(Arc::new(Tape::open(directory, &shared)));
        let refreshed = tapes.get_or_insert_with(directory, opened)?.refresh();
        if refreshed.is_err() {
            tapes.remove(directory);
            lock(&self.found).retain(|_, found| found != directory);
        }
        Ok(refreshed?)
    }
}

fn wrong_tape(directory: &Path) -> Option<(State, QueryError)> {
    let error = expect_history(directory).err()?;
    let is_empty = matches!(directory_state(directory), Ok((State::Empty, _)));
    let state = if is_empty {
        State::Empty
    } else {
        State::Missing
    };
    Some((state, error))
}

fn wrong_root(directory: &Path) -> Option<(State, QueryError)> {
    let hint = "Specify a directory that contains histories.";
    if let Err(error) = std::fs::read_dir(directory) {
        let error = QueryError::from(Error::io("read directory", directory, error));
        return Some((State::Missing, error.hint(hint)));
    }
    let mut found = BTreeSet::new();
    find(directory, DEPTH, &mut found);
    let shown = directory.display();
    let message = format!("directory \"{shown}\" contains no history");
    let error = QueryError::new("58P01", message).hint(hint);
    found.is_empty().then_some((State::Empty, error))
}

/// Name of a tape, from its path.
fn name_of(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut parts = absolute.iter().rev().map(OsStr::to_string_lossy);
    let last = parts.next().filter(|last| last != "/").unwrap_or_default();
    let above = parts.next().filter(|above| last == DEFAULT && above != "/");
    above.unwrap_or(last).into_owned()
}

/// Adds the tapes in a directory and below.
fn find(directory: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    if let Ok((State::Recorded, _)) = directory_state(directory) {
        found.insert(directory.to_path_buf());
    } else if let (1.., Ok(entries)) = (depth, std::fs::read_dir(directory)) {
        let folders = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.for_each(|entry| find(&entry.path(), depth - 1, found));
    }
}

/// State of a directory by the names of its files, and since when recording waits
/// for space, ms since 1970.
fn directory_state(directory: &Path) -> io::Result<(State, Option<i64>)> {
    let (mut state, mut paused) = (State::Empty, None);
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if name == NODE || directory::parse_name(&name).is_some() {
            state = State::Recorded;
        }
        paused = paused.or(directory::parse_mark(&name));
    }
    Ok((state, paused))
}

impl Source for Tapes {
    fn servers(&self) -> Vec<Server> {
        let server = |(name, directory): (String, PathBuf)| {
            let looked = directory_state(&directory).unwrap_or_else(|error| match error.kind() {
                ErrorKind::PermissionDenied => (State::Refused, None),
                _ => (State::Missing, None),
            });
            let (state, paused_ms) = looked;
            Server {
                name,
                state,
                paused_ms,
            }
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
        let question = Question::new(function, ask.arguments.clone(), || Ok(TimeZone::UTC), true)?;
        let asked = question.question()?;
        let mut context = question.context();
        context.texts = ask.texts;
        context.threads = ask.threads;
        context.cancel = cancel;
        context.memory_bytes = Some(ask.memory_bytes);
        let snapshot = self.snapshot(&directory)?;
        if snapshot.nodes().is_empty() && snapshot.damage().is_empty() {
            return Err(no_history(&directory));
        }
        asked.run(&context, &snapshot, sink)
    }

    fn mark(&self, server: Option<&str>, text: &str) -> QueryResult<()> {
        marks::write_mark(&self.directory(server)?, text)
    }

    fn marks(&self, _server: &str) -> bool {
        true
    }

    fn place(&self, server: &str) -> Vec<String> {
        let directory = self.directory(Some(server)).unwrap_or_default();
        match std::path::absolute(&directory) {
            Ok(path) => vec!["--tape".into(), path.to_string_lossy().into_owned()],
            Err(_) => Vec::new(),
        }
    }

    fn forget(&self) {
        let kept = std::mem::replace(&mut *lock(&self.open), Open::new(self.bytes));
        // The tapes are freed outside the lock, so that no question waits for this.
        drop(kept);
    }
}
