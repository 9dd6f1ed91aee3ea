//! A question that may take long. A thread asks it over a connection of its own, so that no tick
//! waits for it. The connection stays open for a minute, for the next question.

use crate::Stop;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};
use tacho_dsn::{Answer, Connection, Limit, Options, Result};

/// Maximum time to connect, for all hosts of the connection string together.
const CONNECT: Duration = Duration::from_secs(60);
/// An unused connection is closed after this time.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// At the end, a thread has this time to cancel its question on the server.
const CANCEL_WAIT: Duration = Duration::from_secs(2);

/// Result of a question.
pub struct Outcome {
    pub answers: Result<Vec<Answer>>,
    /// Duration of the question, without the time to connect.
    pub took: Duration,
    connection: Option<Connection>,
}

/// Asks questions that may take long, one at a time.
#[derive(Default)]
pub struct BackgroundQuestion {
    asked: Option<Receiver<Outcome>>,
    /// The connection that waits for the next question, and the time since which it is unused.
    kept: Option<(Connection, Instant)>,
}

impl BackgroundQuestion {
    /// True while an answer is outstanding.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Sends `sql` from a thread, which waits at most `limit` for the answer.
    pub fn ask(&mut self, target: &Options, sql: String, limit: Duration, stop: &Stop) {
        let (give, take) = channel();
        let (target, stop) = (target.clone(), stop.clone());
        let kept = self.kept.take().map(|kept| kept.0);
        let thread = std::thread::Builder::new().name("aside".to_string());
        // If no thread can be started, there is no answer.
        let _ = thread.spawn(move || {
            let outcome = ask_kept(kept, &target, &sql, limit, &stop);
            // The receiver is gone if the question was dropped.
            let _ = give.send(outcome);
        });
        self.asked = Some(take);
    }

    /// Returns the answer, once; `None` while it is outstanding, or without a question.
    pub fn take(&mut self) -> Option<Outcome> {
        self.kept.take_if(|kept| kept.1.elapsed() > IDLE_LIMIT);
        match self.asked.as_ref()?.try_recv() {
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.asked = None;
                None
            }
            Ok(mut outcome) => {
                self.asked = None;
                let open = outcome.connection.take().filter(Connection::is_open);
                self.kept = open.map(|connection| (connection, Instant::now()));
                Some(outcome)
            }
        }
    }

    /// Drops the question, because another server is recorded now.
    pub fn forget(&mut self) {
        *self = BackgroundQuestion::default();
    }

    /// Waits until the thread has ended its question on the server, at most `CANCEL_WAIT`.
    pub fn finish(&mut self) {
        if let Some(asked) = self.asked.take() {
            let _ = asked.recv_timeout(CANCEL_WAIT);
        }
    }
}

/// Asks over the kept connection, or over a new one if that is lost.
fn ask_kept(
    kept: Option<Connection>,
    target: &Options,
    sql: &str,
    limit: Duration,
    stop: &Stop,
) -> Outcome {
    if let Some(connection) = kept {
        let outcome = ask_on(Ok(connection), sql, limit, stop);
        let is_lost = matches!(&outcome.answers, Err(error) if error.code == "08006");
        if !is_lost {
            return outcome;
        }
    }
    let connection = Connection::open(target, Limit::within(CONNECT, stop.flag()));
    ask_on(connection, sql, limit, stop)
}

fn ask_on(connection: Result<Connection>, sql: &str, limit: Duration, stop: &Stop) -> Outcome {
    let begin = Instant::now();
    let mut connection = match connection {
        Ok(connection) => connection,
        Err(error) => {
            return Outcome {
                answers: Err(error),
                took: Duration::ZERO,
                connection: None,
            };
        }
    };
    Outcome {
        answers: connection.query(sql, Limit::within(limit, stop.flag())),
        took: begin.elapsed(),
        connection: Some(connection),
    }
}
