//! Events, as the body of an endless answer.

use crate::api::{Api, given};
use crate::live::Listener;
use crate::problem::Problem;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use jiff::tz::TimeZone;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tacho_source::time;
use tacho_tape::query::{QueryError, QueryResult};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Receiver;

/// The header with the last event that a browser has.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Events, and the listener's place.
struct Events {
    before: Option<Bytes>,
    events: Receiver<Bytes>,
    _place: OwnedSemaphorePermit,
}

impl HttpBody for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(before) = self.before.take() {
            return Poll::Ready(Some(Ok(Frame::data(before))));
        }
        let next = self.events.poll_recv(context);
        next.map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}

/// Answers `GET /api/v1/live`: an endless stream of events about a server.
pub async fn live(
    State(api): State<Arc<Api>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (server, since) = asked(&query.unwrap_or_default(), &headers).map_err(Problem::of)?;
    let Ok(place) = Arc::clone(api.listeners()).try_acquire_owned() else {
        let error =
            QueryError::new("53300", "too many clients of live events").hint("Retry in a moment.");
        let busy = Problem::new(StatusCode::TOO_MANY_REQUESTS, error);
        return Err(busy.header(header::RETRY_AFTER, "1"));
    };
    let live = Arc::clone(api.live());
    let listening = move || live.listen(server.as_deref(), since);
    let listened = tokio::task::spawn_blocking(listening).await;
    let failed = |_| Err(QueryError::new("XX000", "live events were interrupted"));
    let Listener { before, events } = listened.unwrap_or_else(failed).map_err(Problem::of)?;
    let body = Body::new(Events {
        before: Some(before),
        events,
        _place: place,
    });
    let kind = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((kind, body).into_response())
}

/// The server, and where a client continues, µs since 1970.
fn asked(query: &str, headers: &HeaderMap) -> QueryResult<(Option<String>, Option<i64>)> {
    let (server, mut arguments) = given(query)?;
    let given = arguments.remove("since");
    if let Some(name) = arguments.keys().next() {
        let message = format!("\"live\" has no argument \"{name}\"");
        return Err(QueryError::invalid(message).hint("Available are server, since."));
    }
    let last = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok());
    let since = last.or(given.as_deref()).map(|text| {
        let now = jiff::Timestamp::now().as_microsecond();
        time::moment(text, now, &TimeZone::UTC)
    });
    Ok((server, since.transpose()?))
}
