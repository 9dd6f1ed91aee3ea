//! The routes of the server and the layers around them. This module has the handlers of routes
//! that have no module of their own.

use crate::alarms;
use crate::api::{Api, FORM, answered, given, is_over, json, notices};
use crate::desk::Answer;
use crate::findings;
use crate::fleet;
use crate::guard;
use crate::lanes;
use crate::metrics::{self, Format};
use crate::openapi;
use crate::page;
use crate::problem::Problem;
use crate::saved;
use crate::stream;
use crate::texts::Texts;
use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use std::error::Error;
use std::io;
use std::sync::Arc;
use tacho_source::arguments::arguments;
use tacho_source::{Server, catalog};
use tacho_tape::query::json::{Object, array, quote};
use tacho_tape::query::{
    Argument, Field, Function, Kind, LONGEST_WITH_CAUSES, QueryError, QueryResult, Type,
};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

/// Longest body of a request.
const BODY_BYTES: usize = 16 << 10;

/// All routes of the server. Requests pass the door first.
pub fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/", get(page::index))
        .route("/tacho.svg", get(page::icon))
        .route("/assets/{name}", get(page::asset))
        .route("/api/v1/servers", get(servers))
        .route("/api/v1/functions", get(functions))
        .route("/api/v1/openapi.json", get(description))
        .route("/api/v1/live", get(stream::live))
        .route("/api/v1/fleet", get(fleet::fleet))
        .route("/api/v1/alarms", get(alarms::of_window))
        .route("/api/v1/findings", get(findings::of_window))
        .route("/api/v1/lanes", get(lanes::lanes))
        .route("/api/v1/report.html", get(saved::report))
        .route("/api/v1/{function}", get(answer).post(mark))
        .route("/metrics", get(metrics))
        .fallback(nothing)
        .method_not_allowed_fallback(not_so)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        // Slower levels take more time than they save in transfer.
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(middleware::from_fn_with_state(
            Arc::clone(api.door()),
            guard::pass,
        ))
        .with_state(api)
}

async fn nothing() -> Problem {
    let error = QueryError::undefined("path not found");
    Problem::new(
        StatusCode::NOT_FOUND,
        error.hint("See / for the available paths."),
    )
}

async fn not_so() -> Problem {
    let error = QueryError::new("0A000", "method not allowed");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, error).header(header::ALLOW, "GET, HEAD")
}

async fn servers(State(api): State<Arc<Api>>) -> Response {
    let source = Arc::clone(api.desk().source());
    let asked = Arc::clone(&source);
    let servers = tokio::task::spawn_blocking(move || asked.servers()).await;
    let member = |server: &Server| {
        let mut object = Object::default();
        object.put("name", &quote(&server.name));
        object.put("state", &quote(server.state.name()));
        object.put("marks", &source.marks(&server.name).to_string());
        object.json()
    };
    let mut object = Object::default();
    let all = servers.unwrap_or_default();
    let longest_s = LONGEST_WITH_CAUSES / 1_000_000;
    object
        .put("servers", &array(all.iter().map(member)))
        .put("longest_with_causes_s", &longest_s.to_string());
    json(object.json() + "\n")
}

async fn description(State(api): State<Arc<Api>>) -> Response {
    json(openapi::describe(api.desk().source().functions()))
}

async fn functions(State(api): State<Arc<Api>>) -> Response {
    let functions = api.desk().source().functions().iter().map(function);
    let dimension = |(name, about): &(&str, &str)| {
        let mut object = Object::default();
        object.put("name", &quote(name)).put("about", &quote(about));
        object.json()
    };
    let mut object = Object::default();
    object.put("functions", &array(functions)).put(
        "dimensions",
        &array(catalog::dimensions().iter().map(dimension)),
    );
    json(object.json() + "\n")
}

fn function(function: &Function) -> String {
    let mut object = Object::default();
    object
        .put("name", &quote(function.name))
        .put("about", &quote(function.about))
        .put(
            "arguments",
            &array(arguments(function, true).iter().map(argument)),
        )
        .put("columns", &columns(&function.columns(catalog::schema())));
    object.json()
}

fn argument(argument: &Argument) -> String {
    let mut object = Object::default();
    object
        .put("name", &quote(argument.name))
        .put("type", &quote(&argument.kind.name().to_ascii_lowercase()))
        .put("about", &quote(argument.help));
    let default = match (argument.kind, argument.default) {
        // The catalog's default names the zone of the command line's user. Here it
        // is UTC.
        (Kind::Zone, _) => Some("UTC"),
        (Kind::Switch, _) => Some("false"),
        (_, default) => default,
    };
    if let Some(default) = default {
        object.put("default", &quote(default));
    }
    object.json()
}

fn columns(fields: &[Field]) -> String {
    array(fields.iter().map(|(name, kind)| {
        let mut object = Object::default();
        object
            .put("name", &quote(name))
            .put("type", &quote(type_name(*kind)));
        object.json()
    }))
}

/// SQL name of a type. A `bigint` that is an id is a string in JSON.
fn type_name(kind: Type) -> &'static str {
    match kind {
        Type::Text => "text",
        Type::Int | Type::Id => "bigint",
        Type::Bool => "boolean",
        Type::Numeric => "numeric",
        Type::Time => "timestamptz",
        Type::Interval => "interval",
    }
}

async fn answer(
    State(api): State<Arc<Api>>,
    Path(function): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (server, mut arguments) = given(&query.unwrap_or_default()).map_err(Problem::of)?;
    let texts = Texts::taken(&mut arguments).map_err(Problem::of)?;
    let over = is_over(&arguments, Timestamp::now().as_microsecond());
    let ask = api.question(&function, server, arguments);
    let body = body(&api.desk().ask(ask, texts).await?);
    Ok(answered(body, over, &headers))
}

/// `POST /api/v1/markers` writes a marker; nothing else is written.
async fn mark(
    State(api): State<Arc<Api>>,
    Path(function): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, Problem> {
    if function != "markers" {
        return Err(not_so().await);
    }
    let refused = |status, message| Problem::new(status, QueryError::invalid(message));
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some(FORM) {
        let message = format!("content type of a marker must be {FORM}");
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let body = body.map_err(|e| match is_late(&e) {
        true => Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            QueryError::new("08006", "request body was not received in time"),
        ),
        false => refused(e.status(), e.body_text()),
    })?;
    let (server, text) = marked(&body).map_err(Problem::of)?;
    let source = Arc::clone(api.desk().source());
    let left = tokio::task::spawn_blocking(move || source.mark(server.as_deref(), &text)).await;
    let failed = |_| {
        Err(QueryError::new(
            "XX000",
            "writing the marker was interrupted",
        ))
    };
    left.unwrap_or_else(failed).map_err(Problem::of)?;
    Ok(StatusCode::ACCEPTED)
}

/// Whether the body took too long.
fn is_late(rejection: &BytesRejection) -> bool {
    let mut cause: Option<&dyn Error> = Some(rejection);
    while let Some(error) = cause {
        let of_system = error.downcast_ref::<io::Error>();
        if of_system.is_some_and(|e| e.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The server and the text of a marker.
fn marked(body: &[u8]) -> QueryResult<(Option<String>, String)> {
    let body = std::str::from_utf8(body);
    let body = body.map_err(|_| QueryError::invalid("the body is not valid UTF-8"))?;
    let (server, mut given) = given(body)?;
    let text = given.remove("text");
    if let Some(name) = given.keys().next() {
        let message = format!("a marker has no argument \"{name}\"");
        return Err(QueryError::invalid(message).hint("Available are server, text."));
    }
    let text = text.ok_or_else(|| QueryError::invalid("text of the marker is missing"))?;
    Ok((server, text))
}

/// `{"columns": […], "rows": […], "notices": […]}`, plus `"shortened": […]` if
/// texts may be shortened
fn body(answer: &Answer) -> String {
    let rows = String::from_utf8_lossy(&answer.rows);
    let mut object = Object::default();
    object
        .put("columns", &columns(&answer.fields.list()))
        .put("rows", rows.trim_end())
        .put("notices", &notices(&answer.notices));
    if let Some(shortened) = &answer.shortened {
        object.put("shortened", shortened);
    }
    object.json() + "\n"
}

async fn metrics(State(api): State<Arc<Api>>, headers: HeaderMap) -> Result<Response, Problem> {
    let format = Format::wanted(&headers);
    let asked = Arc::clone(&api);
    // Counting listeners waits for followers, which may be reading a history.
    let blocking = move || (asked.live().listeners(), asked.scraper().scrape());
    let found = tokio::task::spawn_blocking(blocking).await;
    let (listeners, servers) = found.unwrap_or_default();
    let now = (api.desk().running(), listeners);
    let text = metrics::encode(api.counters(), now, &servers, format).map_err(|e| {
        let error = QueryError::new("XX000", format!("could not write metrics: {e}"));
        Problem::of(error)
    })?;
    let kind = [
        (header::CONTENT_TYPE, format.content_type()),
        (header::VARY, "accept"),
    ];
    Ok((kind, text).into_response())
}
