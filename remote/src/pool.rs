//! Connections to one server: a few, kept for a while, and opened again after
//! the server was down.

use crate::edition::{Edition, FIND_EDITION};
use crate::error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tacho_dsn::{Connection, Limit, Options};
use tacho_tape::query::{QueryError, QueryResult};

/// Maximum number of connections to one server.
const MOST: usize = 4;
/// SQLSTATE of an error of the pool: all connections are in use. A server that takes no more connections
/// sends another one, 53300. The readers of tacho on the server have this one for their own limit.
pub const IN_USE: &str = "53400";
/// A connection that was unused for this time is closed.
const IDLE: Duration = Duration::from_secs(60);
/// After a failed attempt the server is not tried again for this time.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval at which a thread that waits for a connection checks for cancellation.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A connection, and the edition in its database.
pub struct Session {
    pub connection: Connection,
    pub edition: Arc<Edition>,
    /// True until the first question on the connection.
    pub is_new: bool,
}

/// Connections to one server.
pub struct Pool {
    options: Options,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    /// Unused connections, each with the time since which it is unused.
    idle: Vec<(Session, Instant)>,
    /// Number of open connections, used or not.
    open: usize,
    /// Time and reason of the last failed attempt to connect.
    failed: Option<(Instant, QueryError)>,
}

/// A lent session; it goes back when dropped.
pub struct PooledSession<'a> {
    pool: &'a Pool,
    session: Option<Session>,
}

impl Pool {
    /// Creates a pool without connections.
    pub fn new(mut options: Options) -> Pool {
        options.client_encoding = Some("UTF8".to_string());
        Pool {
            options,
            state: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a connection, at most `patience`.
    ///
    /// # Errors
    /// - The server cannot be reached (class `08`), or the database has no tacho (`42704`).
    /// - All connections are in use ([`IN_USE`]), or the wait was cancelled (`57014`).
    pub fn take(&self, patience: Duration, cancel: &AtomicBool) -> QueryResult<PooledSession<'_>> {
        let begun = Instant::now();
        let mut state = self.state();
        loop {
            state.close_old();
            if let Some((session, _)) = state.idle.pop() {
                return Ok(self.lend(session));
            }
            if let Some((at, error)) = &state.failed
                && at.elapsed() < PAUSE
            {
                return Err(error.clone());
            }
            if state.open < MOST {
                state.open += 1;
                drop(state);
                return self.connect(patience.saturating_sub(begun.elapsed()), cancel);
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(QueryError::canceled());
            }
            if begun.elapsed() >= patience {
                let message = "all connections to the server are in use";
                return Err(QueryError::new(IN_USE, message).hint("Ask again in a moment."));
            }
            let waited = self.freed.wait_timeout(state, LOOK_AGAIN);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lend(&self, session: Session) -> PooledSession<'_> {
        PooledSession {
            pool: self,
            session: Some(session),
        }
    }

    /// Opens a connection. The caller has counted it in `open` already.
    fn connect(&self, patience: Duration, cancel: &AtomicBool) -> QueryResult<PooledSession<'_>> {
        let opened = open(&self.options, patience, cancel);
        let mut state = self.state();
        state.failed = None;
        match opened {
            Ok(session) => Ok(self.lend(session)),
            Err(error) => {
                state.open -= 1;
                if error.sqlstate.starts_with("08") {
                    state.failed = Some((Instant::now(), error.clone()));
                }
                self.freed.notify_one();
                Err(error)
            }
        }
    }

    /// Closes all unused connections, because their server is gone.
    pub fn close_idle(&self) {
        let mut state = self.state();
        let closed = std::mem::take(&mut state.idle);
        state.open -= closed.len();
    }
}

impl State {
    fn close_old(&mut self) {
        let before = self.idle.len();
        self.idle.retain(|(_, since)| since.elapsed() < IDLE);
        self.open -= before - self.idle.len();
    }
}

impl PooledSession<'_> {
    /// The lent session; an error (`08003`) after [`PooledSession::close`].
    pub fn session(&mut self) -> QueryResult<&mut Session> {
        let gone = || QueryError::new("08003", "not connected to the server");
        self.session.as_mut().ok_or_else(gone)
    }

    /// Closes the session: the database may have changed.
    pub fn close(&mut self) {
        self.session = None;
    }
}

impl Drop for PooledSession<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        match self.session.take().filter(|s| s.connection.is_open()) {
            Some(session) => state.idle.push((session, Instant::now())),
            None => state.open -= 1,
        }
        self.pool.freed.notify_one();
    }
}

/// Connects, and finds the edition.
fn open(options: &Options, patience: Duration, cancel: &AtomicBool) -> QueryResult<Session> {
    let limit = Limit::within(patience, cancel);
    let failed = |error| error::of_connection(error, cancel.load(Ordering::Relaxed));
    let mut connection = Connection::open(options, limit).map_err(failed)?;
    let found = connection.query(FIND_EDITION, limit).map_err(failed)?;
    let edition = found.last().and_then(Edition::of);
    let edition = edition.ok_or_else(|| not_installed(&options.describe()))?;
    Ok(Session {
        connection,
        edition: Arc::new(edition),
        is_new: true,
    })
}

/// The error for a database with neither the extension nor the SQL edition.
fn not_installed(place: &str) -> QueryError {
    QueryError::undefined("tacho is not installed in the database")
        .detail(format!("The connection is {place}."))
        .hint("Run CREATE EXTENSION tacho there, or sql/tacho.sql if no extension can be installed, or specify the database that has tacho.")
}
