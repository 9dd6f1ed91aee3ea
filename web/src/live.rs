//! What is recorded at this moment, as server-sent events. One follower a
//! server asks for what is new and tells it to all who listen; it ends with the
//! last of them. Whoever reads too slowly is sent away, and goes on behind the
//! last event it has when it comes back.

use crate::desk::lock;
use crate::follower::{Follower, SECOND, event, ticks};
use axum::body::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tacho_source::Source;
use tacho_source::rows::Rows;
use tacho_tape::query::json::{Object, quote};
use tacho_tape::query::{QueryError, QueryResult};
use tokio::sync::mpsc::{Receiver, channel};

/// What is told at once waits for a slow reader so often; beyond that it is sent
/// away.
const QUEUE: usize = 64;
/// How much of what was recorded while a client was away it is told.
pub const REPLAY: i64 = 600 * SECOND;

type Followers = BTreeMap<String, Arc<Mutex<Follower>>>;

/// Followers by server.
pub struct Live {
    source: Arc<dyn Source>,
    followers: Arc<Mutex<Followers>>,
}

/// What a listener gets: first what it missed, then what comes.
pub struct Listener {
    /// Events that are there already.
    pub before: Bytes,
    /// Those that come; the end means that the reader was too slow.
    pub events: Receiver<Bytes>,
}

impl Live {
    /// Nobody listens yet.
    pub fn new(source: Arc<dyn Source>) -> Live {
        let followers = Arc::default();
        Live { source, followers }
    }

    /// Those who listen, to all servers.
    pub fn listeners(&self) -> usize {
        let followers: Vec<_> = lock(&self.followers).values().cloned().collect();
        let open = |entry: &Arc<Mutex<Follower>>| {
            let follower = lock(entry);
            follower.listeners.iter().filter(|l| !l.is_closed()).count()
        };
        followers.iter().map(open).sum()
    }

    /// Listens to a server, on this thread; `since` is where a client goes on.
    ///
    /// # Errors
    /// There is no such server, or no thread.
    pub fn listen(&self, server: Option<&str>, since: Option<i64>) -> QueryResult<Listener> {
        let server = self.server(server)?;
        let (sender, events) = channel(QUEUE);
        let (told_until, health) = loop {
            let entry = lock(&self.followers)
                .entry(server.clone())
                .or_insert_with(|| Arc::new(Mutex::new(Follower::of(&server))))
                .clone();
            let mut follower = lock(&entry);
            if follower.has_ended {
                continue;
            }
            follower.listeners.push(sender);
            if !follower.has_begun {
                follower.has_begun = true;
                follower.look(&*self.source);
                self.start(&entry, &server)?;
            }
            break (follower.told_until, follower.event_of_health());
        };
        let mut before = b"retry: 1000\n\n".to_vec();
        before.extend_from_slice(&health);
        if let Some(since) = since {
            self.replay(&server, since, told_until, &mut before);
        }
        Ok(Listener {
            before: before.into(),
            events,
        })
    }

    /// The name of the server that is meant.
    fn server(&self, server: Option<&str>) -> QueryResult<String> {
        let all = self.source.servers();
        let name = match (server, &all[..]) {
            (Some(name), _) => name,
            (None, [only]) => &only.name,
            (None, _) => return Err(QueryError::undefined("which server is not said")),
        };
        if all.iter().any(|server| server.name == name) {
            return Ok(name.to_string());
        }
        // Who answers says it best.
        let asked = Rows::ask(&*self.source, name, "status", &[]);
        let unknown = || QueryError::undefined(format!("server \"{name}\" does not exist"));
        Err(asked.err().unwrap_or_else(unknown))
    }

    /// Looks again and again, as long as somebody listens.
    fn start(&self, entry: &Arc<Mutex<Follower>>, server: &str) -> QueryResult<()> {
        let (source, followers) = (Arc::clone(&self.source), Arc::clone(&self.followers));
        let (entry, server) = (Arc::clone(entry), server.to_string());
        let run = move || {
            let mut last = false;
            while !last {
                std::thread::sleep(source.pace(&server));
                last = !lock(&entry).look(&*source);
                if last {
                    let mut followers = lock(&followers);
                    let mut follower = lock(&entry);
                    // Somebody may have come meanwhile.
                    last = follower.listeners.is_empty();
                    follower.has_ended = last;
                    if last {
                        followers.remove(&server);
                    }
                }
            }
        };
        let started = std::thread::Builder::new().spawn(run).map(drop);
        started.map_err(|e| QueryError::new("53000", format!("could not start a thread: {e}")))
    }

    /// Tells the ticks from `since` until the follower tells them, as far as
    /// they are told; else that there were more.
    fn replay(&self, server: &str, since: i64, until: Option<i64>, out: &mut Vec<u8>) {
        let until = until.unwrap_or(since);
        let is_long = until - since > REPLAY || since > until + REPLAY;
        let asked = match is_long {
            false if since < until => ticks(&*self.source, server, since, until),
            false => Ok(Vec::new()),
            true => Err(QueryError::undefined("too long ago")),
        };
        match asked {
            Ok(ticks) => ticks.iter().for_each(|t| out.extend_from_slice(&t.told())),
            Err(_) => out.extend_from_slice(&reset(server)),
        }
        let mut missed = Follower::of(server);
        if let Ok(markers) = missed.new_markers(&*self.source) {
            markers.iter().for_each(|m| out.extend_from_slice(m));
        }
    }
}

/// A client is told that it does not get everything.
pub fn reset(server: &str) -> Bytes {
    let mut data = Object::default();
    data.put("server", &quote(server));
    event("reset", None, &data.json())
}
