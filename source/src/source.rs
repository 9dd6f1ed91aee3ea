//! What a source of answers is.

use crate::arguments::texts;
use crate::question::Arguments;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tacho_tape::query::{Function, QueryError, QueryResult, Request, Row, Sink};

/// Servers whose history can be asked for, by any number of threads at once.
pub trait Source: Send + Sync {
    /// The servers there are at this moment, in order of names.
    fn servers(&self) -> Vec<Server>;

    /// The functions that can be asked; [`crate::arguments::arguments`]
    /// describes what they take.
    fn functions(&self) -> &'static [Function];

    /// Asks a function: its columns and rows go to `sink`, then what is to be
    /// known about the answer. Setting `cancel` ends the question soon.
    ///
    /// # Errors
    /// There is no such server or function (`42704`), an argument makes no
    /// sense (class `22`), there is no history (`58P01`) or it could not be
    /// read, the sink failed, or the question was cancelled (`57014`).
    fn ask(&self, ask: &Ask, cancel: &AtomicBool, sink: &mut dyn Sink) -> QueryResult<()>;

    /// Writes a marker of this moment into the history of a server, the only one
    /// where none is named. The history has it with the next tick.
    ///
    /// # Errors
    /// There is no such server (`42704`), this source only reads (`0A000`), or
    /// what [`tacho_tape::write::marks::leave`] says.
    fn mark(&self, _server: Option<&str>, _text: &str) -> QueryResult<()> {
        let error = QueryError::new("0A000", "markers cannot be written here");
        Err(error.hint("Run tacho mark where the history files are."))
    }

    /// Whether [`Source::mark`] can write into the history of a server, if its
    /// files may be written and somebody records.
    fn marks(&self, _server: &str) -> bool {
        false
    }

    /// The words that name a server on a command line: `--tape DIR`, or
    /// `--dsn CONNINFO` without a password; none where there is no such server, or
    /// it cannot be named.
    fn place(&self, _server: &str) -> Vec<String> {
        Vec::new()
    }

    /// How often it may be looked whether a server has recorded something new.
    fn pace(&self, _server: &str) -> Duration {
        Duration::from_millis(200)
    }

    /// Gives back the memory of what is kept for later questions. Those that run
    /// keep what they have until they end.
    fn forget(&self) {}
}

/// A server whose history a source has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// What it is asked for by.
    pub name: String,
    /// Whether it can be asked.
    pub state: State,
    /// Recording waits for space since then, ms since 1970.
    pub paused_ms: Option<i64>,
}

/// The one of some names that is meant: the only one where none is said.
///
/// # Errors
/// It is not there, or there are several (`42704`).
pub fn choose(name: Option<&str>, mut names: Vec<String>) -> QueryResult<String> {
    let found = match name {
        Some(name) => names.iter().position(|known| known == name),
        None => (names.len() == 1).then_some(0),
    };
    match found {
        Some(found) => Ok(names.swap_remove(found)),
        None => {
            let message = match name {
                Some(name) => format!("server \"{name}\" does not exist"),
                None => "which server is not said".to_string(),
            };
            Err(QueryError::undefined(message).hint(match names.is_empty() {
                true => "There is none.".to_string(),
                false => format!("Available are {}.", names.join(", ")),
            }))
        }
    }
}

/// Whether a server can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is history.
    Recorded,
    /// A directory without history, yet or any more, or a database without
    /// tacho.
    Empty,
    /// There is no directory.
    Missing,
    /// The directory may not be read, or the server may not be asked.
    Refused,
    /// There is no connection to the server.
    Unreachable,
}

impl State {
    /// As programs read it.
    pub fn name(self) -> &'static str {
        match self {
            State::Recorded => "recorded",
            State::Empty => "empty",
            State::Missing => "missing",
            State::Refused => "refused",
            State::Unreachable => "unreachable",
        }
    }
}

/// What one question may take where nobody says.
const MEMORY_BYTES: u64 = 64 << 20;

/// A question to a source.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Which server; the only one where there is one.
    pub server: Option<String>,
    /// Which function.
    pub function: String,
    /// Its arguments. Times without an offset are those of UTC.
    pub arguments: Arguments,
    /// Texts of queries are answered.
    pub texts: bool,
    /// Bytes that the answer may take while it is made.
    pub memory_bytes: u64,
    /// Threads that may work for it.
    pub threads: usize,
}

impl Ask {
    /// A request, for what a program makes of the answer itself: texts of queries
    /// are not answered, and times without an offset are those of UTC.
    pub fn of<R: Request>(server: Option<&str>, request: &R) -> Ask {
        Ask {
            server: server.map(str::to_string),
            function: R::Row::FUNCTION.to_string(),
            arguments: texts(request),
            texts: false,
            memory_bytes: MEMORY_BYTES,
            threads: 1,
        }
    }
}
