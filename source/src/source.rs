//! The trait `Source`, and questions to it.

use crate::arguments::texts;
use crate::question::Arguments;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tacho_tape::query::{Function, QueryError, QueryResult, Request, Row, Sink};

/// Servers and their history. Many threads may ask at once.
pub trait Source: Send + Sync {
    /// The servers at this moment, ordered by name.
    fn servers(&self) -> Vec<Server>;

    /// The available functions. [`crate::arguments::arguments`] describes their
    /// arguments.
    fn functions(&self) -> &'static [Function];

    /// Asks a function. Its columns and rows go to `sink`, then the notices.
    /// Setting `cancel` ends the question soon.
    ///
    /// # Errors
    /// - The server or the function does not exist (`42704`), or an argument is invalid (class
    ///   `22`).
    /// - There is no history (`58P01`), or it could not be read.
    /// - The sink failed, or the question was cancelled (`57014`).
    fn ask(&self, ask: &Ask, cancel: &AtomicBool, sink: &mut dyn Sink) -> QueryResult<()>;

    /// Writes a marker of this moment into the history of a server. Without a name
    /// it means the only server. The history has the marker with the next tick.
    ///
    /// # Errors
    /// The server does not exist (`42704`), this source only reads (`0A000`), or an
    /// error of [`tacho_tape::write::marks::write_mark`].
    fn mark(&self, _server: Option<&str>, _text: &str) -> QueryResult<()> {
        let error = QueryError::new("0A000", "markers cannot be written to this source");
        Err(error.hint("Run tacho mark where the history files are."))
    }

    /// Whether [`Source::mark`] can write into the history of a server, provided
    /// that its files may be written and a recorder runs.
    fn marks(&self, _server: &str) -> bool {
        false
    }

    /// The words that name a server on a command line: `--tape DIR`, or `--dsn
    /// CONNINFO` without a password. Empty if there is no such server, or it
    /// cannot be named.
    fn place(&self, _server: &str) -> Vec<String> {
        Vec::new()
    }

    /// Shortest interval at which to look for new history of a server.
    fn pace(&self, _server: &str) -> Duration {
        Duration::from_millis(200)
    }

    /// Frees the memory kept for later questions. Running questions keep theirs
    /// until they end.
    fn forget(&self) {}
}

/// A server whose history a source has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Name of the server in questions.
    pub name: String,
    /// Whether it has history, and can be reached.
    pub state: State,
    /// Time since which recording waits for space, ms since 1970; `None` if it does not wait.
    pub paused_ms: Option<i64>,
}

/// Picks a server: the one with the name, or without a name the only one.
///
/// # Errors
/// No server has the name; or no name is given and there are several servers or none (`42704`).
pub fn pick_server(name: Option<&str>, mut names: Vec<String>) -> QueryResult<String> {
    let found = match name {
        Some(name) => names.iter().position(|known| known == name),
        None => (names.len() == 1).then_some(0),
    };
    match found {
        Some(found) => Ok(names.swap_remove(found)),
        None => {
            let message = match name {
                Some(name) => format!("server \"{name}\" does not exist"),
                None => "no server specified".to_string(),
            };
            Err(QueryError::undefined(message).hint(match names.is_empty() {
                true => "No server is available.".to_string(),
                false => format!("Available are {}.", names.join(", ")),
            }))
        }
    }
}

/// Whether a server has history, and can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The server has history.
    Recorded,
    /// A directory without history (yet, or any more), or a database without
    /// tacho.
    Empty,
    /// The directory does not exist.
    Missing,
    /// The directory is not readable, or the server refuses the question.
    Refused,
    /// The server cannot be reached.
    Unreachable,
}

impl State {
    /// The name for programs.
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

/// Memory limit of a question that sets none.
const MEMORY_BYTES: u64 = 64 << 20;

/// A question to a source.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Name of the server; `None` = the only one.
    pub server: Option<String>,
    /// Name of the function.
    pub function: String,
    /// Arguments of the function. Times without an offset are in UTC.
    pub arguments: Arguments,
    /// True if the answer contains texts of queries.
    pub texts: bool,
    /// Maximum memory for making the answer, in bytes.
    pub memory_bytes: u64,
    /// Maximum number of threads that work on the answer.
    pub threads: usize,
}

impl Ask {
    /// A question for a program that processes the answer: it has no texts of
    /// queries, and times without an offset are in UTC.
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
