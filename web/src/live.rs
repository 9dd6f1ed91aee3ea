//! Live events, as server-sent events. Each server has one follower, which tells
//! all listeners what is new and ends with the last of them. A listener that
//! reads too slowly is dropped. When it comes back, it continues after the last
//! event it has.

use crate::follower::{Follower, REPLAY, reset, ticks};
use crate::lock::lock;
use axum::body::Bytes;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use tacho_source::Source;
use tacho_source::rows::Status;
use tacho_tape::query::{QueryError, QueryResult};
use tokio::sync::mpsc::{Receiver, channel};

/// Maximum number of messages that wait for a slow reader. With more, the reader is dropped.
const QUEUE: usize = 64;

type Followers = BTreeMap<String, Arc<Mutex<Follower>>>;

/// Followers by server.
pub struct Live {
    source: Arc<dyn Source>,
    followers: Arc<Mutex<Followers>>,
}

/// Events for a listener: first those it missed, then new ones.
pub struct Listener {
    /// Missed events.
    pub before: Bytes,
    /// New events. The channel ends if the reader was too slow.
    pub events: Receiver<Bytes>,
}

impl Live {
    /// Creates it without listeners.
    pub fn new(source: Arc<dyn Source>) -> Live {
        let followers = Arc::default();
        Live { source, followers }
    }

    /// Number of listeners of all servers.
    pub fn listeners(&self) -> usize {
        let followers: Vec<_> = lock(&self.followers).values().cloned().collect();
        let open = |entry: &Arc<Mutex<Follower>>| {
            let follower = lock(entry);
            follower.listeners.iter().filter(|l| !l.is_closed()).count()
        };
        followers.iter().map(open).sum()
    }

    /// Listens to a server, on this thread. `since` is where a client continues.
    ///
    /// # Errors
    /// The server does not exist, or a thread could not be started.
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
                follower.look(&*self.source);
                self.start(&entry, &server)?;
                // This is set last: after an error above, the next listener
                // begins again.
                follower.has_begun = true;
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

    /// The name of the server: as given, or the only one.
    fn server(&self, server: Option<&str>) -> QueryResult<String> {
        let all = self.source.servers();
        let name = match (server, &all[..]) {
            (Some(name), _) => name,
            (None, [only]) => &only.name,
            (None, _) => return Err(QueryError::undefined("no server specified")),
        };
        if all.iter().any(|server| server.name == name) {
            return Ok(name.to_string());
        }
        // If the source does not list the server, its own error about the server
        // is the best message.
        let asked = Status::ask(&*self.source, name);
        let unknown = || QueryError::undefined(format!("server \"{name}\" does not exist"));
        Err(asked.err().unwrap_or_else(unknown))
    }

    /// Starts a thread that looks for news as long as there are listeners.
    fn start(&self, entry: &Arc<Mutex<Follower>>, server: &str) -> QueryResult<()> {
        let (source, followers) = (Arc::clone(&self.source), Arc::clone(&self.followers));
        let (entry, server) = (Arc::clone(entry), server.to_string());
        let run = move || {
            let mut last = false;
            while !last {
                std::thread::sleep(source.pace(&server));
                last = !look(&entry, &*source);
                if last {
                    let mut followers = lock(&followers);
                    let mut follower = lock(&entry);
                    // Another listener may have connected meanwhile.
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

    /// Adds the ticks from `since` up to those that the follower tells. If they
    /// are too many, adds a `reset` instead.
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

/// Sends news to the listeners; false without listeners. After a panic it is unknown which events
/// were sent: all listeners are dropped and connect again.
fn look(entry: &Mutex<Follower>, source: &dyn Source) -> bool {
    let mut follower = lock(entry);
    let looked = catch_unwind(AssertUnwindSafe(|| follower.look(source)));
    looked.unwrap_or_else(|_| {
        follower.listeners.clear();
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::resume_unwind;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;
    use tacho_source::{Ask, Server, State};
    use tacho_tape::query::{Function, Sink};

    /// A source that answers no question, and panics at some.
    struct Panics {
        asked: AtomicUsize,
        at: &'static [usize],
    }

    impl Source for Panics {
        fn servers(&self) -> Vec<Server> {
            vec![Server {
                name: "main".into(),
                state: State::Recorded,
                paused_ms: None,
            }]
        }

        fn functions(&self) -> &'static [Function] {
            &[]
        }

        fn ask(&self, _: &Ask, _: &AtomicBool, _: &mut dyn Sink) -> QueryResult<()> {
            let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            if self.at.contains(&number) {
                // This panic skips the panic hook, because other tests count its
                // calls.
                resume_unwind(Box::new("a planted panic"));
            }
            Err(QueryError::undefined("nothing"))
        }

        fn pace(&self, _: &str) -> Duration {
            Duration::from_millis(1)
        }
    }

    fn live(at: &'static [usize]) -> (Arc<Panics>, Live) {
        let asked = AtomicUsize::new(0);
        let source = Arc::new(Panics { asked, at });
        (Arc::clone(&source), Live::new(source))
    }

    fn wait_until(is_so: impl Fn() -> bool) -> bool {
        let mut waits = (0..10_000).map(|_| std::thread::sleep(Duration::from_millis(1)));
        is_so() || waits.any(|()| is_so())
    }

    #[test]
    fn a_panicking_follower_drops_its_listeners_and_the_next_one_starts_fresh() {
        let (source, live) = live(&[3]);
        let _listener = live.listen(None, None).unwrap();
        assert!(wait_until(|| live.listeners() == 0));
        let _next = live.listen(None, None).unwrap();
        assert!(wait_until(|| source.asked.load(Ordering::SeqCst) > 9));
        assert_eq!(live.listeners(), 1);
    }

    #[test]
    fn after_a_panic_at_the_first_look_the_next_listener_gets_a_follower() {
        let (source, live) = live(&[1]);
        let first = std::thread::scope(|scope| {
            let listens = || drop(live.listen(None, None));
            scope.spawn(listens).join()
        });
        assert!(first.is_err());
        let _next = live.listen(None, None).unwrap();
        assert!(wait_until(|| source.asked.load(Ordering::SeqCst) > 9));
    }
}
