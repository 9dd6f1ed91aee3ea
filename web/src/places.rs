//! Places of connections, so many at once. When all are taken and somebody comes,
//! the connection that has been idle longest ends: nothing was asked on it, or not
//! yet in full, and all that was answered has been taken. Where none is idle, one
//! whose client has been behind for too long ends: ever since, something was
//! answered that it had not taken. All others are busy, and whoever comes waits.
//!
//! A connection is not idle before it was looked at once: who says at once what it
//! wants is answered, however many come after it.

use crate::desk::lock;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// One in so many gives its place up at once where one is needed: the next who
/// come need not wait until somebody has gone.
const AT_ONCE: usize = 16;

/// All places.
pub struct Places {
    limit: usize,
    /// Time that a client may be behind.
    patience: Duration,
    taken: Mutex<Vec<Arc<Seat>>>,
    /// A place is free, or somebody on one may have become idle or behind.
    changed: Arc<Notify>,
}

impl Places {
    /// So many, all of them free.
    pub fn new(limit: usize, patience: Duration) -> Arc<Places> {
        Arc::new(Places {
            limit,
            patience,
            taken: Mutex::default(),
            changed: Arc::default(),
        })
    }

    /// A place, as soon as there is one. Only one may wait for it.
    pub async fn take(self: &Arc<Places>) -> Place {
        loop {
            match self.seat() {
                Ok(place) => return place,
                Err(None) => self.changed.notified().await,
                Err(Some(later)) => tokio::select! {
                    () = self.changed.notified() => (),
                    () = sleep_until(later) => (),
                },
            }
        }
    }

    /// A free place, else who has to leave is told so, and when to look again.
    fn seat(self: &Arc<Places>) -> Result<Place, Option<Instant>> {
        let mut taken = lock(&self.taken);
        if taken.len() < self.limit {
            let seat = Arc::new(Seat::new(Arc::clone(&self.changed)));
            taken.push(Arc::clone(&seat));
            let places = Arc::clone(self);
            return Ok(Place { places, seat });
        }
        let leaves = |seat: &Arc<Seat>| Some((seat.leaves(self.patience)?, Arc::clone(seat)));
        let mut others: Vec<_> = taken.iter().filter_map(leaves).collect();
        others.sort_by_key(|(when, _)| *when);
        let Some(((_, when), first)) = others.first() else {
            return Err(None);
        };
        if *when > Instant::now() {
            return Err(Some(*when));
        }
        first.leave.notify_one();
        let idle = others.iter().take_while(|((is_behind, _), _)| !is_behind);
        let more = idle.skip(1).take(self.limit / AT_ONCE);
        more.for_each(|(_, seat)| seat.leave.notify_one());
        Err(None)
    }
}

/// The place of a connection, free again when it is dropped.
pub struct Place {
    places: Arc<Places>,
    seat: Arc<Seat>,
}

impl Place {
    /// What is known of its connection.
    pub fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// Serves a connection until it ends, or until somebody else needs the place and
    /// it does not.
    pub async fn serve(self, connection: impl Future) {
        let (mut connection, mut needed) = (pin!(connection), pin!(self.needed()));
        poll_fn(|context| {
            // What it was asked meanwhile is looked at first.
            if connection.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            self.seat.rests();
            needed.as_mut().poll(context)
        })
        .await;
    }

    async fn needed(&self) {
        loop {
            self.seat.leave.notified().await;
            let when = self.seat.leaves(self.places.patience);
            if when.is_some_and(|(_, when)| when <= Instant::now()) {
                return;
            }
            self.places.changed.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.places.taken).retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        self.places.changed.notify_one();
    }
}

/// Whether a connection is idle, busy or behind.
pub struct Seat {
    state: Mutex<State>,
    leave: Notify,
    changed: Arc<Notify>,
}

struct State {
    /// Questions whose answers are made or sent.
    open: usize,
    /// An answer does not end: whoever has all of it that there is has it all.
    endless: bool,
    /// When the last answer was made, or the connection.
    last: Instant,
    /// All that was there was taken.
    flushed: bool,
    /// Nothing is on its way.
    idle: bool,
    /// Since when the client has not had all that was there for it.
    behind: Option<Instant>,
}

impl Seat {
    fn new(changed: Arc<Notify>) -> Seat {
        let state = State {
            open: 0,
            endless: false,
            last: Instant::now(),
            flushed: true,
            idle: false,
            behind: None,
        };
        Seat {
            state: Mutex::new(state),
            leave: Notify::new(),
            changed,
        }
    }

    /// Something is asked.
    pub fn asked(self: &Arc<Seat>) -> Turn {
        let mut state = lock(&self.state);
        state.open += 1;
        state.idle = false;
        Turn(Arc::clone(self))
    }

    /// The client takes no more at this moment.
    pub fn stuck(&self) {
        let mut state = lock(&self.state);
        state.flushed = false;
        if state.behind.is_none() {
            state.behind = Some(Instant::now());
            self.changed.notify_one();
        }
    }

    /// The client has taken all that was there; more may be asked already.
    pub fn flushed(&self) {
        let mut state = lock(&self.state);
        state.flushed = true;
        if state.endless {
            state.behind = None;
        }
    }

    /// Everything that was there to do on the connection was done.
    fn rests(&self) {
        let mut state = lock(&self.state);
        if state.open == 0 && state.flushed && !state.idle {
            state.idle = true;
            state.behind = None;
            self.changed.notify_one();
        }
    }

    /// When it may be ended for another, those who are idle before those who are
    /// behind; never while it is busy.
    fn leaves(&self, patience: Duration) -> Option<(bool, Instant)> {
        let state = lock(&self.state);
        match (state.open, state.behind) {
            // Its own task knows whether all is done: who was answered before another
            // is also chosen before it.
            (0, None) => Some((false, state.last)),
            (_, Some(since)) => Some((true, since + patience)),
            (_, None) => None,
        }
    }
}

/// A question that is open, until its answer is made.
pub struct Turn(Arc<Seat>);

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.open -= 1;
        state.endless = false;
        state.last = Instant::now();
    }
}

/// The body of an answer, with its turn.
pub struct Held {
    body: Body,
    _turn: Turn,
}

impl Held {
    /// The turn ends with the body.
    pub fn answer(answer: Response, turn: Turn) -> Response<Held> {
        lock(&turn.0.state).endless = is_endless(answer.headers());
        answer.map(|body| Held { body, _turn: turn })
    }
}

/// Events are told as long as somebody listens.
fn is_endless(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind == "text/event-stream")
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
