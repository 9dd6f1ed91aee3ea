//! A limited number of places for connections. If all are taken and another client
//! connects, the connection that has been idle longest ends. A connection is idle if it
//! has no complete request (the body may be missing), and all its answers were taken.
//! One connection ends for each new client; the new client does not wait for that end.
//! If no connection is idle, one ends whose client has been behind for too long: in all
//! that time there was something that it had not taken. Otherwise all are busy, and the
//! new client waits.
//!
//! A connection becomes idle only after it was polled once. A client that asks at once
//! is answered, however many connect after it.

use crate::lock::lock;
use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::response::Response;
use hyper::body::{Frame, Incoming, SizeHint};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// For each 16 places, one new connection may begin before an old one has ended. Example: with 64
/// places, up to 68 connections exist while the old ones are ending. Otherwise each of many new
/// clients would wait until one more connection has ended.
const ABOUT_TO_END: usize = 16;

/// Places for the connections of clients. If all are taken, an old connection ends for a new one.
pub struct Places {
    limit: usize,
    /// Longest time for a client to be behind.
    patience: Duration,
    taken: Mutex<Taken>,
    /// A place became free, or a connection may have become idle or behind.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Taken {
    seats: Vec<Arc<Seat>>,
    /// True if a new client waits for a place.
    wanted: bool,
}

impl Taken {
    /// Tells one more connection to end. If none may end now, the error is the time at which the
    /// first one may, if that time is known.
    fn tell(&self, patience: Duration) -> Result<(), Option<Instant>> {
        let leaves = |seat: &Arc<Seat>| Some((seat.leaves(patience)?, Arc::clone(seat)));
        let others = self.seats.iter().filter_map(leaves);
        match others.min_by_key(|(when, _)| *when) {
            Some(((_, when), first)) if when <= Instant::now() => first.tell(),
            Some(((_, when), _)) => return Err(Some(when)),
            None => return Err(None),
        }
        Ok(())
    }
}

impl Places {
    /// Creates `limit` free places.
    pub fn new(limit: usize, patience: Duration) -> Arc<Places> {
        Arc::new(Places {
            limit,
            patience,
            taken: Mutex::default(),
            changed: Arc::default(),
        })
    }

    /// Waits for a place. Only one task may wait.
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

    /// A free place. Otherwise tells a connection to end; the error is the time at which to try
    /// again, or `None` to wait for `changed`.
    fn seat(self: &Arc<Places>) -> Result<Place, Option<Instant>> {
        let mut taken = lock(&self.taken);
        let over = taken.seats.len().checked_sub(self.limit);
        taken.wanted = over.is_some();
        if let Some(over) = over {
            let told = taken.seats.iter().filter(|seat| seat.is_told()).count();
            if told <= over {
                taken.tell(self.patience)?;
            }
            if over >= self.limit / ABOUT_TO_END {
                return Err(None);
            }
        }
        taken.wanted = false;
        let seat = Arc::new(Seat::new(Arc::clone(&self.changed)));
        taken.seats.push(Arc::clone(&seat));
        let places = Arc::clone(self);
        Ok(Place { places, seat })
    }

    /// True if more places are taken than exist, or a client waits for one.
    fn is_full(&self) -> bool {
        let taken = lock(&self.taken);
        taken.seats.len() >= self.limit + usize::from(!taken.wanted)
    }
}

/// The place of a connection; dropping it frees the place.
pub struct Place {
    places: Arc<Places>,
    seat: Arc<Seat>,
}

impl Place {
    /// State of the connection.
    pub fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// Serves a connection until it ends, or until another client needs the place of an
    /// idle one.
    pub async fn serve(self, connection: impl Future) {
        let (mut connection, mut needed) = (pin!(connection), pin!(self.needed()));
        poll_fn(|context| {
            // A request that came meanwhile is handled first.
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
            if self.places.is_full() && self.seat.may_end(self.places.patience) {
                return;
            }
            lock(&self.seat.state).told = false;
            self.places.changed.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.places.taken);
        taken.seats.retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        drop(taken);
        self.places.changed.notify_one();
    }
}

/// State of a connection, from which follows whether it is idle, busy or behind.
pub struct Seat {
    state: Mutex<State>,
    leave: Notify,
    changed: Arc<Notify>,
}

struct State {
    /// Number of open turns: requests whose answers are not completely made.
    open: usize,
    /// True if the answer is endless: a client that has taken everything sent so far is not behind.
    endless: bool,
    /// True if the connection has to end for another client.
    told: bool,
    /// Time since which the rest of a request is missing; `None` if none is.
    half: Option<Instant>,
    /// Time when the last answer was made; before the first one, the time when the connection was
    /// made.
    last: Instant,
    /// True if the client has taken everything that was written.
    flushed: bool,
    /// True if no request and no answer is in progress.
    idle: bool,
    /// Time since which the client has always had bytes to take.
    behind: Option<Instant>,
}

impl Seat {
    fn new(changed: Arc<Notify>) -> Seat {
        let state = State {
            open: 0,
            endless: false,
            told: false,
            half: None,
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

    /// Notes that a request has begun; it is open until the turn is dropped.
    pub fn asked(self: &Arc<Seat>) -> Turn {
        let mut state = lock(&self.state);
        state.open += 1;
        state.idle = false;
        Turn(Arc::clone(self))
    }

    /// Notes that the client takes no bytes at this moment.
    pub fn stuck(&self) {
        let mut state = lock(&self.state);
        state.flushed = false;
        if state.behind.is_none() {
            state.behind = Some(Instant::now());
            self.changed.notify_one();
        }
    }

    /// Notes that the client has taken all bytes; it may have sent another request already.
    pub fn flushed(&self) {
        let mut state = lock(&self.state);
        state.flushed = true;
        if state.endless {
            state.behind = None;
        }
    }

    /// Notes whether the connection waits for the rest of a request.
    fn waits(&self, waits: bool) {
        let mut state = lock(&self.state);
        if waits == state.half.is_none() {
            state.half = waits.then(Instant::now);
            self.changed.notify_one();
        }
    }

    /// Notes that the connection's task has nothing left to do.
    fn rests(&self) {
        let mut state = lock(&self.state);
        if state.open == 0 && state.flushed && !state.idle {
            state.idle = true;
            state.behind = None;
            self.changed.notify_one();
        }
    }

    fn is_told(&self) -> bool {
        lock(&self.state).told
    }

    /// Asks the connection to end, unless it becomes busy first.
    fn tell(&self) {
        lock(&self.state).told = true;
        self.leave.notify_one();
    }

    /// True if the connection may still end, because it has not become busy since [`Seat::tell`].
    fn may_end(&self, patience: Duration) -> bool {
        let when = lock(&self.state).leaves(patience);
        when.is_some_and(|(_, when)| when <= Instant::now())
    }

    /// Time at which the connection may end for another client, preceded by true if its client is
    /// behind. `None` if it is busy, or has to end already.
    fn leaves(&self, patience: Duration) -> Option<(bool, Instant)> {
        let state = lock(&self.state);
        (!state.told).then(|| state.leaves(patience)).flatten()
    }
}

impl State {
    /// The time at which it may end for another client, preceded by false if it is idle and true if
    /// it is behind: idle connections end first. `None` if it is busy.
    fn leaves(&self, patience: Duration) -> Option<(bool, Instant)> {
        match (self.open, self.behind, self.half) {
            (_, None, Some(since)) => Some((false, since)),
            // `idle` does not matter here: only the connection's task knows whether
            // everything is done. The order is the order of the last answers.
            (0, None, None) => Some((false, self.last)),
            (_, Some(since), _) => Some((true, since + patience)),
            (_, None, None) => None,
        }
    }
}

/// An open request, until its answer is made.
pub struct Turn(Arc<Seat>);

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.open -= 1;
        state.endless = false;
        state.last = Instant::now();
    }
}

/// The body of a request, which must arrive within `patience`. Until then the request is
/// not complete.
pub struct Awaited {
    body: Incoming,
    seat: Arc<Seat>,
    patience: Duration,
    /// Timer since the first wait.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Awaited {
    /// The body of a request on a seat.
    pub fn new(body: Incoming, patience: Duration, seat: Arc<Seat>) -> Awaited {
        Awaited {
            body,
            seat,
            patience,
            waiting: None,
        }
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.seat.waits(false);
    }
}

impl HttpBody for Awaited {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.seat.waits(polled.is_pending());
        if let Poll::Ready(frame) = polled {
            return Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)));
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        let late = || Some(Err(io::Error::from(io::ErrorKind::TimedOut).into()));
        waiting.as_mut().poll(context).map(|()| late())
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer, with its turn.
pub struct Held {
    body: Body,
    _turn: Turn,
}

impl Held {
    /// Ties a turn to the body of an answer.
    pub fn answer(answer: Response, turn: Turn) -> Response<Held> {
        lock(&turn.0.state).endless = is_endless(answer.headers());
        answer.map(|body| Held { body, _turn: turn })
    }
}

/// True if the answer is an event stream, which lasts as long as the client listens.
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
