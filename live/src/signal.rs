//! Cancels queries and ends sessions through a connection, only after
//! confirmation. A session is identified by its process and begin, so that a
//! reused PID is never hit; a query also by its own begin.

use tacho_dsn::{Connection, Error, Limit, Options};

use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Maximum time for connecting, and again for a question.
const LONGEST: Duration = Duration::from_secs(15);
/// Maximum number of characters of a query's text.
const TEXT: u32 = 1_000;
static NEVER: AtomicBool = AtomicBool::new(false);

/// Action on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Cancels the query of the session.
    Cancel,
    /// Ends the session.
    End,
}

/// A session in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub pid: i64,
    /// Begin of the session, µs since 1970, exact to the millisecond; `None` if it was not
    /// recorded.
    pub begin: Option<i64>,
}

/// A session on the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    pub pid: i64,
    /// Begin of the session, µs since 1970.
    pub begin: i64,
    /// Begin of the session's query, µs since 1970.
    pub query_begin: Option<i64>,
    pub user: String,
    pub database: String,
    pub application: String,
    pub state: String,
    pub query: String,
}

/// A request to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Find a session that was recorded until this time, µs since 1970.
    Look(Act, Target, i64),
    Do(Act, Session),
}

/// Reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A session to confirm.
    Found(Act, Session),
    /// A message.
    Said(String),
}

/// Asks the server; may take long.
pub fn answer(options: &Options, request: &Request) -> Reply {
    match request {
        Request::Look(act, target, seen) => look(options, *act, target, *seen)
            .unwrap_or_else(|error| Reply::Said(format!("no signal was sent: {}", words(&error)))),
        Request::Do(act, session) => Reply::Said(done(options, *act, session)),
    }
}

/// Rows of a statement that uses only PostgreSQL's own objects.
fn ask(options: &Options, sql: &str) -> Result<tacho_dsn::Answer, Error> {
    let mut connection = Connection::open(options, Limit::within(LONGEST, &NEVER))?;
    let sql = format!("SET LOCAL search_path = pg_catalog, pg_temp; {sql}");
    let mut answers = connection.query(&sql, Limit::within(LONGEST, &NEVER))?;
    Ok(answers.remove(0))
}

/// SQL expression of a time column in µs since 1970.
fn us(column: &str) -> String {
    format!("(extract(epoch FROM {column}) * 1000000)::bigint")
}

fn look(options: &Options, act: Act, target: &Target, seen: i64) -> Result<Reply, Error> {
    let pid = target.pid;
    let sql = format!(
        "SELECT {}, {}, usename, datname, application_name, state, left(query, {TEXT}), \
         current_user FROM pg_stat_activity WHERE pid = {pid}",
        us("backend_start"),
        us("query_start")
    );
    let rows = ask(options, &sql)?;
    if rows.rows() == 0 {
        return Ok(Reply::Said(format!("session {pid} has ended")));
    }
    let text = |column| {
        let bytes = rows.bytes(0, column).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    let Some(begin) = rows.number(0, 0) else {
        return Ok(Reply::Said(format!(
            "no signal was sent: role \"{}\" cannot see session {pid}. Grant it \
             pg_read_all_stats and pg_signal_backend.",
            text(7)
        )));
    };
    if !is_same(target, seen, begin) {
        return Ok(Reply::Said(format!(
            "session {pid} has ended, and its process ID is in use by another one"
        )));
    }
    let session = Session {
        pid,
        begin,
        query_begin: rows.number(0, 1),
        user: text(2),
        database: text(3),
        application: text(4),
        state: text(5),
        query: text(6),
    };
    if act == Act::Cancel && session.state != "active" {
        let state = match session.state.as_str() {
            "" => "not a client session",
            state => state,
        };
        return Ok(Reply::Said(format!(
            "no signal was sent: session {pid} runs no query ({state}); K terminates a session"
        )));
    }
    Ok(Reply::Found(act, session))
}

/// True if a session with this begin is the recorded one. Without a recorded begin it is, if it
/// began before the process was last seen (`seen`).
fn is_same(target: &Target, seen: i64, begin: i64) -> bool {
    match target.begin {
        Some(recorded) => recorded.div_euclid(1_000) == begin.div_euclid(1_000),
        None => begin <= seen,
    }
}

/// Signals a session, if it is still the confirmed one.
fn done(options: &Options, act: Act, session: &Session) -> String {
    let pid = session.pid;
    let is_it = format!(
        "pid = {pid} AND {} = {}",
        us("backend_start"),
        session.begin
    );
    let sql = match act {
        Act::Cancel => {
            let begin = session
                .query_begin
                .map_or("NULL".into(), |at| at.to_string());
            let begun = us("query_start");
            format!(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {is_it} \
                 AND state = 'active' AND {begun} = {begin}"
            )
        }
        Act::End => {
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {is_it}")
        }
    };
    let rows = match ask(options, &sql) {
        Ok(rows) => rows,
        Err(error) if matches!(error.code.as_str(), "08006" | "57014") => {
            return format!("cannot tell whether the signal was sent: {}", words(&error));
        }
        Err(error) => return format!("no signal was sent: {}", words(&error)),
    };
    let signalled = (rows.rows() > 0).then(|| rows.text(0, 0) == Some("t"));
    match (act, signalled) {
        (Act::Cancel, None) => {
            format!("no signal was sent: session {pid} no longer runs that query")
        }
        (Act::End, None) => format!("no signal was sent: session {pid} has ended"),
        (_, Some(false)) => {
            format!("no signal was sent: the server could not signal process {pid}")
        }
        (Act::Cancel, Some(true)) => format!("the query of session {pid} was canceled"),
        (Act::End, Some(true)) => format!("session {pid} was sent a termination signal"),
    }
}

/// An error on one line.
fn words(error: &Error) -> String {
    let line = error.line();
    match &error.hint {
        Some(hint) => format!("{line}. {hint}"),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_number_that_is_used_again_is_another_session() {
        let target = |begin| Target { pid: 7, begin };
        let at = 1_767_225_600_123_000;
        // The begin was recorded to the millisecond.
        assert!(is_same(&target(Some(at)), 0, at + 999));
        assert!(!is_same(&target(Some(at)), i64::MAX, at + 1_000));
        assert!(!is_same(&target(Some(at)), i64::MAX, at - 1));
        // The begin was not recorded. The session is the same one if it began before the process
        // was last seen.
        assert!(is_same(&target(None), at, at));
        assert!(!is_same(&target(None), at, at + 1));
    }
}
