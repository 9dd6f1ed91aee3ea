//! One server, asked through connections.

use crate::call::{Call, TABLE_RULES};
use crate::error;
use crate::pool::{self, Pool, PooledSession, Session};
use crate::value;
use serde_json::Value as Json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tacho_dsn::{Answer, Limit, Options};
use tacho_source::{Ask, State, arguments};
use tacho_tape::query::{
    self, CANCELED, Field, Function, INSUFFICIENT_PRIVILEGE, QueryError, QueryResult, Sink, Value,
};

/// Longest time to connect, or to wait for a free connection of the pool.
const CONNECT: Duration = Duration::from_secs(15);
/// Longest time of a question; the server ends it a little earlier.
const ANSWER: Duration = Duration::from_secs(125);
/// Longest time to find out the server's state.
const CHECK: Duration = Duration::from_secs(3);
/// Time for which the server's state is remembered.
const STATE_TTL: Duration = Duration::from_secs(1);

/// Settings of one question: behind a pooler others may have the connection
/// between two questions. The last statement returns the server's clock, µs since
/// 1970.
const BEGIN: &str = "\
begin read only;
set local search_path = pg_catalog, pg_temp;
set local timezone = 'UTC';
set local client_min_messages = notice;
set local statement_timeout = '120s';
set local lock_timeout = '30s';
set local idle_in_transaction_session_timeout = '60s';
select (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint";

/// A server, asked through connections.
pub struct Remote {
    conninfo: String,
    pool: Pool,
    known: Mutex<Option<(State, Instant)>>,
}

impl Remote {
    /// Creates it without a connection. `options` are the options of `conninfo`,
    /// which has no password.
    pub fn new(conninfo: &str, options: Options) -> Remote {
        Remote {
            conninfo: conninfo.to_string(),
            pool: Pool::new(options),
            known: Mutex::default(),
        }
    }

    /// The connection string as given; it has no password.
    pub fn conninfo(&self) -> &str {
        &self.conninfo
    }

    /// The state of the server. Connects to it, unless the state was found less than [`STATE_TTL`]
    /// ago.
    pub fn state(&self) -> State {
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known {
            Some((state, at)) if at.elapsed() < STATE_TTL => state,
            _ => {
                let cancel = AtomicBool::new(false);
                let begun = self.begin(CHECK, &cancel);
                let ended = begun.and_then(|(mut pooled, _)| end(&mut pooled, CHECK));
                self.set_state(&ended)
            }
        }
    }

    /// The last state, however old.
    fn known_state(&self) -> Option<State> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.map(|(state, _)| state)
    }

    /// Keeps the server's state, which follows from the result of a question, and returns it.
    fn set_state<T>(&self, answer: &QueryResult<T>) -> State {
        let state = match answer {
            Ok(_) => State::Recorded,
            Err(error) => match error.sqlstate {
                INSUFFICIENT_PRIVILEGE => State::Refused,
                "42704" => State::Empty,
                code if is_gone(code) => State::Unreachable,
                // The question did not reach the server.
                pool::IN_USE | "57014" => return self.known_state().unwrap_or(State::Recorded),
                _ => State::Recorded,
            },
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((state, Instant::now()));
        state
    }

    /// Asks a function, as [`tacho_source::Source::ask`].
    ///
    /// # Errors
    /// The errors of [`tacho_source::Source::ask`]; the server's errors keep their texts.
    pub fn ask(&self, ask: &Ask, cancel: &AtomicBool, sink: &mut dyn Sink) -> QueryResult<()> {
        let function = query::find(&ask.function)?;
        arguments::check(function, ask.arguments.keys().map(String::as_str))?;
        let shows_texts = MIXED.iter().find(|(name, _)| *name == function.name);
        if let (false, Some((name, instead))) = (ask.texts, shows_texts) {
            let message = format!("{name}() through a connection would show query texts");
            let error = QueryError::new(INSUFFICIENT_PRIVILEGE, message);
            return Err(error.hint(*instead));
        }
        let begun = self.begin(CONNECT, cancel);
        let (mut pooled, now_us) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                self.set_state::<()>(&Err(error.clone()));
                return Err(error);
            }
        };
        let answered = answer(&mut pooled, function, ask, now_us, cancel, sink);
        // If the transaction does not end, its connection is closed; it may be
        // lost already.
        let _ = end(&mut pooled, CHECK);
        match &answered {
            // Another version may have been installed meanwhile.
            Err(error) if ["42883", "3F000"].contains(&error.sqlstate) => pooled.close(),
            Err(error) if !is_gone(error.sqlstate) => (),
            answered => {
                self.set_state(answered);
            }
        }
        answered
    }

    /// Begins a question and returns the server's clock. Replaces a connection
    /// that was lost since its last use.
    fn begin(
        &self,
        patience: Duration,
        cancel: &AtomicBool,
    ) -> QueryResult<(PooledSession<'_>, i64)> {
        loop {
            let mut pooled = self.pool.take(patience, cancel)?;
            let session = pooled.session()?;
            if !session.edition.may_ask {
                let error = QueryError::new(INSUFFICIENT_PRIVILEGE, "permission denied for tacho");
                let error = error.detail(session.edition.described());
                let error = error.hint(session.edition.grant());
                // The right may be granted before the next attempt.
                pooled.close();
                return Err(error);
            }
            let was_used = !std::mem::replace(&mut session.is_new, false);
            let limit = Limit::within(patience, cancel);
            let begun = session.connection.query(BEGIN, limit);
            let error = match begun {
                Ok(answers) => {
                    let now = answers.last().and_then(|answer| answer.number(0, 0));
                    let unknown =
                        || QueryError::new("08P01", "could not read the clock of the server");
                    return Ok((pooled, now.ok_or_else(unknown)?));
                }
                Err(error) => error::of_connection(error, cancel.load(Ordering::Relaxed)),
            };
            pooled.close();
            drop(pooled);
            if !(was_used && is_gone(error.sqlstate)) {
                return Err(error);
            }
            self.pool.close_idle();
        }
    }
}

/// Functions whose rows mix texts of queries with other texts, and what to use instead.
const MIXED: [(&str, &str); 2] = [
    ("summary", "Use top, which omits them here."),
    ("plan", "Use plans, which has only the ids of plans here."),
];
/// A column with a document that contains texts of queries.
const DOCUMENT: &str = "report";

/// True if there is no connection, or the server has ended it.
fn is_gone(sqlstate: &str) -> bool {
    sqlstate.starts_with("08") || sqlstate.starts_with("57P") || sqlstate == "53300"
}

/// Ends a transaction, whether it failed or not.
fn end(pooled: &mut PooledSession<'_>, patience: Duration) -> QueryResult<()> {
    let cancel = AtomicBool::new(false);
    let session = pooled.session()?;
    let ended = session
        .connection
        .query("commit", Limit::within(patience, &cancel));
    ended.map(drop).map_err(error::to_query_error)
}

/// Asks within a transaction. The rows go to the sink, then the notices.
fn answer(
    pooled: &mut PooledSession<'_>,
    function: &'static Function,
    ask: &Ask,
    now_us: i64,
    cancel: &AtomicBool,
    sink: &mut dyn Sink,
) -> QueryResult<()> {
    let Session {
        connection,
        edition,
        ..
    } = pooled.session()?;
    let call = Call::new(function, ask, edition, now_us)?;
    let mut rows = Rows {
        fields: call.fields,
        texts: ask.texts,
        left: usize::try_from(ask.memory_bytes).unwrap_or(usize::MAX),
        limit: ask.memory_bytes,
        has_begun: false,
        sink,
    };
    let limit = Limit::within(ANSWER, cancel);
    let asked = connection.rows::<Failed>(&call.sql, &call.values, limit, &mut |answer| {
        rows.take(answer).map_err(Failed::Here)
    });
    match asked {
        Ok(()) => rows.begin()?,
        Err(Failed::Here(error)) => return Err(error),
        Err(Failed::There(error)) => {
            let error = error::of_question(error, cancel.load(Ordering::Relaxed));
            return Err(explained(error, || edition.grant()));
        }
    }
    for notice in connection.take_notices() {
        sink.notice(error::to_query_error(notice));
    }
    Ok(())
}

/// Adds a hint to an error of the server that has none.
fn explained(error: QueryError, grant: impl Fn() -> String) -> QueryError {
    let hint = match error.sqlstate {
        INSUFFICIENT_PRIVILEGE => grant(),
        CANCELED => "Use a shorter window, a wider bucket or a filter.".to_string(),
        _ => return error,
    };
    match error.hint {
        None => error.hint(hint),
        Some(_) => error,
    }
}

/// Origin of an error.
enum Failed {
    /// The sink failed, or a value of the answer is invalid.
    Here(QueryError),
    /// The server reported an error, or the connection was lost.
    There(tacho_dsn::Error),
}

impl From<tacho_dsn::Error> for Failed {
    fn from(error: tacho_dsn::Error) -> Failed {
        Failed::There(error)
    }
}

/// Takes rows of the server, up to the memory limit.
struct Rows<'a> {
    fields: Vec<Field<'static>>,
    texts: bool,
    /// Number of bytes that the answer may still have.
    left: usize,
    limit: u64,
    has_begun: bool,
    sink: &'a mut dyn Sink,
}

impl Rows<'_> {
    fn begin(&mut self) -> QueryResult<()> {
        match std::mem::replace(&mut self.has_begun, true) {
            true => Ok(()),
            false => self.sink.begin(&self.fields),
        }
    }

    fn take(&mut self, answer: &Answer) -> QueryResult<()> {
        self.begin()?;
        let columns = 0..self.fields.len();
        let bytes = columns.map(|column| answer.bytes(0, column).map_or(0, <[u8]>::len));
        let left = self.left.checked_sub(bytes.sum());
        self.left = left.ok_or_else(|| QueryError::out_of_memory(self.limit))?;
        let fields = self.fields.iter().enumerate();
        let values = fields.map(|(column, field)| {
            let value = value::parse(field, answer.bytes(0, column))?;
            match value {
                Value::Text(text) if field.0 == DOCUMENT && !self.texts => {
                    without_texts(&text).map(|text| Value::Text(text.into()))
                }
                value => Ok(value),
            }
        });
        let values = values.collect::<QueryResult<Vec<Value>>>()?;
        self.sink.row(values)
    }
}

/// A document without texts of queries and names of locked tables.
fn without_texts(document: &str) -> QueryResult<String> {
    fn remove(value: &mut Json) {
        match value {
            Json::Array(items) => items.iter_mut().for_each(remove),
            Json::Object(members) => {
                let object = numbered(members);
                let is_named = has_names(members);
                for (name, member) in members {
                    match (name.as_str(), &object) {
                        ("query_text", _) | ("relation", Some(_)) => *member = Json::Null,
                        ("object", Some(object)) => *member = object.as_str().into(),
                        ("key" | "explanation", _) if is_named => *member = Json::Null,
                        _ => remove(member),
                    }
                }
            }
            _ => (),
        }
    }
    let parsed = serde_json::from_str(document);
    let mut parsed =
        parsed.map_err(|e| QueryError::new("22032", format!("invalid document: {e}")))?;
    remove(&mut parsed);
    Ok(parsed.to_string())
}

/// True for a cause of `changes` that names a table.
fn has_names(members: &serde_json::Map<String, Json>) -> bool {
    let rule = members.get("rule").and_then(Json::as_str);
    rule.is_some_and(|rule| TABLE_RULES.contains(&rule))
}

/// The locked object of a row with the numbers of its table, as a tape without texts has it:
/// `tuple 5/16400 (0,1)` instead of `tuple public.t (0,1)`. `None` if it is of no table.
fn numbered(members: &serde_json::Map<String, Json>) -> Option<String> {
    let number = |name: &str| members.get(name)?.as_i64();
    let (database, relation) = (number("lock_database")?, number("lock_relation")?);
    let (kind, named) = members.get("object")?.as_str()?.split_once(' ')?;
    let place = match kind {
        "page" => named.rfind(" block ").map_or("", |at| &named[at..]),
        "tuple" => named.rfind(" (").map_or("", |at| &named[at..]),
        _ => "",
    };
    Some(format!("{kind} {database}/{relation}{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_did_not_reach_the_server_leaves_its_state() {
        let options = Options::from_argument("host=/nowhere", "test").unwrap();
        let server = Remote::new("host=/nowhere", options);
        let after = |sqlstate: &'static str| {
            server.set_state::<()>(&Err(QueryError::new(sqlstate, "an error")))
        };
        assert_eq!(after("08006"), State::Unreachable);
        assert_eq!(after("57014"), State::Unreachable);
        assert_eq!(after(pool::IN_USE), State::Unreachable);
        assert_eq!(server.set_state(&Ok(())), State::Recorded);
        assert_eq!(after(pool::IN_USE), State::Recorded);
        assert_eq!(after("53300"), State::Unreachable);
    }

    #[test]
    fn a_document_without_texts_has_numbers_of_locked_tables() {
        for (object, expected) in [
            ("relation public.t", "relation 5/7"),
            ("relation public.a (1,2)", "relation 5/7"),
            ("tuple public.t (0,1)", "tuple 5/7 (0,1)"),
            ("page public.t block 3", "page 5/7 block 3"),
        ] {
            let document = serde_json::json!({"tree": [{"lock_database": 5, "lock_relation": 7,
                "object": object, "relation": "public.t"}]});
            let found: Json =
                serde_json::from_str(&without_texts(&document.to_string()).unwrap()).unwrap();
            assert_eq!(found["tree"][0]["object"], expected);
            assert_eq!(found["tree"][0]["relation"], Json::Null);
        }
        let other = r#"{"lock_database":null,"lock_relation":null,"object":"transactionid 9"}"#;
        assert_eq!(without_texts(other).unwrap(), other);
    }

    #[test]
    fn a_document_loses_its_texts_and_nothing_else() {
        let document = r#"{"n": 1.5000, "queries": [{"key": "7", "query_text": "select 1", "waits": [{"query_text": "b"}]}]}"#;
        let without = r#"{"n":1.5000,"queries":[{"key":"7","query_text":null,"waits":[{"query_text":null}]}]}"#;
        assert_eq!(without_texts(document).unwrap(), without);
        assert_eq!(without_texts("{").unwrap_err().sqlstate, "22032");
    }
}
