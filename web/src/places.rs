//! Places of connections, so many at once. When all are taken and somebody comes,
//! the connection that has been idle longest ends: nothing was asked on it, or not
//! yet in full (a body is not there), and all that was answered has been taken. One
//! ends for one who comes, who does not wait until it has ended. Where none is idle, one
//! whose client has been behind for too long ends: ever since, something was
//! answered that it had not taken. All others are busy, and whoever comes waits.
//!
//! A connection is not idle before it was looked at once: who says at once what it
//! wants is answered, however many come after it.

use crate::desk::lock;
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

/// One in so many may be about to end while somebody else has its place already: who
/// come in numbers do not wait for each of them.
const ABOUT_TO_END: usize = 16;

/// All places.
pub struct Places {
    limit: usize,
    /// Time that a client may be behind.
    patience: Duration,
    taken: Mutex<Taken>,
    /// A place is free, or somebody on one may have become idle or behind.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Taken {
    seats: Vec<Arc<Seat>>,
    /// Somebody waits for a place.
    wanted: bool,
}

impl Taken {
    /// Tells one more that it has to end, else when to look again.
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

    /// More have a place than there are, or somebody waits for one.
    fn is_full(&self) -> bool {
        let taken = lock(&self.taken);
        taken.seats.len() >= self.limit + usize::from(!taken.wanted)
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
    /// It is about to end for another.
    told: bool,
    /// Since when the rest of a question is not there.
    half: Option<Instant>,
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

    /// More of a question is waited for, or not any more.
    fn waits(&self, waits: bool) {
        let mut state = lock(&self.state);
        if waits == state.half.is_none() {
            state.half = waits.then(Instant::now);
            self.changed.notify_one();
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

    fn is_told(&self) -> bool {
        lock(&self.state).told
    }

    /// It has to end, unless something comes in between.
    fn tell(&self) {
        lock(&self.state).told = true;
        self.leave.notify_one();
    }

    /// Nothing came in between.
    fn may_end(&self, patience: Duration) -> bool {
        let when = lock(&self.state).leaves(patience);
        when.is_some_and(|(_, when)| when <= Instant::now())
    }

    /// When it may be ended for another, unless it was told already.
    fn leaves(&self, patience: Duration) -> Option<(bool, Instant)> {
        let state = lock(&self.state);
        (!state.told).then(|| state.leaves(patience)).flatten()
    }
}

impl State {
    /// When it may be ended for another, those who are idle before those who are
    /// behind; never while it is busy.
    fn leaves(&self, patience: Duration) -> Option<(bool, Instant)> {
        match (self.open, self.behind, self.half) {
            (_, None, Some(since)) => Some((false, since)),
            // Its own task knows whether all is done: who was answered before another
            // is also chosen before it.
            (0, None, None) => Some((false, self.last)),
            (_, Some(since), _) => Some((true, since + patience)),
            (_, None, None) => None,
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

/// The body of a request, for all of which there is so much time. Until it is there,
/// nothing was asked in full.
pub struct Awaited {
    body: Incoming,
    seat: Arc<Seat>,
    patience: Duration,
    /// Since the first wait.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Awaited {
    /// A body that comes to a seat.
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
