//! The routes of `/api/v1` and the layers around them.

use crate::desk::{Answer, Desk};
use crate::findings;
use crate::fleet;
use crate::guard::{self, Door};
use crate::lanes;
use crate::live::Live;
use crate::metrics::{self, Counters, Format};
use crate::openapi;
use crate::options::Options;
use crate::page;
use crate::problem::{Problem, put_error};
use crate::saved;
use crate::scrape::Scraper;
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
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::Arc;
use tacho_source::arguments::arguments;
use tacho_source::{Arguments, Ask, Server, Source, catalog, time};
use tacho_tape::query::json::{Object, array, quote};
use tacho_tape::query::{Argument, Field, Function, Kind, QueryError, QueryResult, Type};
use tokio::sync::Semaphore;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;

/// Most threads per question.
const THREADS: usize = 2;

/// Longest body of a request.
const BODY_BYTES: usize = 16 << 10;
/// Media type of bodies.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// State that the routes share.
pub struct Api {
    desk: Desk,
    door: Door,
    counters: Counters,
    scraper: Scraper,
    texts: bool,
    live: Arc<Live>,
    /// A permit per client of `/api/v1/live`.
    listeners: Arc<Semaphore>,
    /// A permit per report that is being made.
    reports: Arc<Semaphore>,
    /// A permit per server that fleet requests are asking.
    fleets: Arc<Semaphore>,
}

impl Api {
    /// Creates it from the command line.
    pub fn new(options: &Options, source: Arc<dyn Source>, door: Door) -> Arc<Api> {
        let counters = Counters::default();
        let megabytes = options.memory_limit_mb;
        let desk = Desk::new(
            Arc::clone(&source),
            options.questions,
            megabytes,
            counters.clone(),
        );
        Arc::new(Api {
            desk,
            door,
            counters,
            scraper: Scraper::new(Arc::clone(&source)),
            texts: !options.hide_texts,
            live: Arc::new(Live::new(source)),
            listeners: Arc::new(Semaphore::new(options.listeners())),
            reports: Arc::new(Semaphore::new(saved::AT_ONCE)),
            fleets: Arc::new(Semaphore::new(fleet::at_once(options.questions))),
        })
    }

    /// Decides who may ask.
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// The live events of servers.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// A permit per client of `/api/v1/live`.
    pub fn listeners(&self) -> &Arc<Semaphore> {
        &self.listeners
    }

    /// A permit per report that is being made.
    pub fn reports(&self) -> &Arc<Semaphore> {
        &self.reports
    }

    /// A permit per server that fleet requests are asking.
    pub fn fleets(&self) -> &Arc<Semaphore> {
        &self.fleets
    }

    /// The desk, which answers questions.
    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// A question with the settings of this program.
    pub fn question(&self, function: &str, server: Option<String>, arguments: Arguments) -> Ask {
        Ask {
            server,
            function: function.to_string(),
            arguments,
            texts: self.texts,
            memory_bytes: 0,
            threads: THREADS,
        }
    }

    /// All routes; requests pass the door first.
    pub fn router(self: Arc<Api>) -> Router {
        Router::new()
            .route("/", get(page::index))
            .route("/tacho.svg", get(page::icon))
            .route("/assets/{name}", get(page::asset))
            .route("/api/v1/servers", get(servers))
            .route("/api/v1/functions", get(functions))
            .route("/api/v1/openapi.json", get(description))
            .route("/api/v1/live", get(stream::live))
            .route("/api/v1/fleet", get(fleet::fleet))
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
                Arc::clone(&self),
                guard::pass,
            ))
            .with_state(self)
    }
}

async fn nothing() -> Problem {
    let error = QueryError::undefined("there is nothing at this address");
    Problem::new(
        StatusCode::NOT_FOUND,
        error.hint("See / for what there is."),
    )
}

async fn not_so() -> Problem {
    let error = QueryError::new("0A000", "this address is only read");
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, error).header(header::ALLOW, "GET, HEAD")
}

/// A response with a body of JSON.
pub fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

async fn servers(State(api): State<Arc<Api>>) -> Response {
    let source = Arc::clone(api.desk.source());
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
    object.put("servers", &array(all.iter().map(member)));
    json(object.json() + "\n")
}

async fn description(State(api): State<Arc<Api>>) -> Response {
    json(openapi::describe(api.desk.source().functions()))
}

async fn functions(State(api): State<Arc<Api>>) -> Response {
    let functions = api.desk.source().functions().iter().map(function);
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
    let body = body(&api.desk.ask(ask, texts).await?);
    Ok(answered(body, over, &headers))
}

/// A response with a body of JSON. If its window is over, it has an entity tag, and a
/// client that has the same tag gets 304.
pub fn answered(body: String, over: bool, headers: &HeaderMap) -> Response {
    if !over {
        return json(body);
    }
    let tag = entity_tag(&body);
    let cached = [
        (header::ETAG, tag.clone()),
        (header::CACHE_CONTROL, "private, no-cache".to_string()),
    ];
    match is_known(headers, &tag) {
        true => (StatusCode::NOT_MODIFIED, cached).into_response(),
        false => (cached, json(body)).into_response(),
    }
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
        let message = format!("the body of a marker is {FORM}");
        return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let body = body.map_err(|e| match is_late(&e) {
        true => Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            QueryError::new("08006", "the body did not come in time"),
        ),
        false => refused(e.status(), e.body_text()),
    })?;
    let (server, text) = marked(&body).map_err(Problem::of)?;
    let source = Arc::clone(api.desk.source());
    let left = tokio::task::spawn_blocking(move || source.mark(server.as_deref(), &text)).await;
    let failed = |_| Err(QueryError::new("XX000", "writing ended"));
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
    let text = text.ok_or_else(|| QueryError::invalid("the text of a marker is not given"))?;
    Ok((server, text))
}

/// Checks that an answer has all arguments with these names.
///
/// # Errors
/// It lacks one.
pub fn check_names<'a>(
    answer: &str,
    known: &[&str],
    names: impl IntoIterator<Item = &'a str>,
) -> QueryResult<()> {
    match names.into_iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let error = QueryError::invalid(format!("{answer} has no argument \"{name}\""));
            Err(error.hint(format!("Available are {}.", known.join(", "))))
        }
    }
}

/// Server and arguments of a function; each may be given once.
///
/// # Errors
/// An argument is given twice.
pub fn given(query: &str) -> QueryResult<(Option<String>, Arguments)> {
    let mut all = Arguments::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let again = all.insert(name.to_string(), value.into_owned());
        if again.is_some() {
            return Err(QueryError::invalid(format!(
                "argument \"{name}\" is given twice"
            )));
        }
    }
    Ok((all.remove("server"), all))
}

/// Whether the window ends before the present. False for invalid arguments, which the
/// question refuses.
pub fn is_over(arguments: &Arguments, now_us: i64) -> bool {
    let zone = arguments.get("tz").map_or("UTC", String::as_str);
    let end = ["until", "until_2", "at"]
        .iter()
        .find_map(|name| arguments.get(*name));
    let (Some(end), Ok(zone)) = (end, time::zone(zone)) else {
        return false;
    };
    time::moment(end, now_us, &zone).is_ok_and(|end| end <= now_us)
}

/// `{"columns": […], "rows": […], "notices": […]}`, plus `"shortened": […]` if
/// texts may be shortened
fn body(answer: &Answer) -> String {
    let rows = String::from_utf8_lossy(&answer.rows);
    let mut object = Object::default();
    object
        .put("columns", &columns(&answer.fields))
        .put("rows", rows.trim_end())
        .put("notices", &notices(&answer.notices));
    if let Some(shortened) = &answer.shortened {
        object.put("shortened", shortened);
    }
    object.json() + "\n"
}

/// The notices of an answer.
pub fn notices(all: &[QueryError]) -> String {
    array(all.iter().map(|notice| {
        let mut object = Object::default();
        object.put("severity", &quote(notice.severity()));
        put_error(&mut object, notice);
        object.json()
    }))
}

/// A weak tag, because the sent body may be compressed.
fn entity_tag(body: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(body.as_bytes());
    format!("W/\"{:x}-{:016x}\"", body.len(), hasher.finish())
}

fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let given = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = given
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    tags.any(|known| known.trim() == tag)
}

async fn metrics(State(api): State<Arc<Api>>, headers: HeaderMap) -> Result<Response, Problem> {
    let format = Format::wanted(&headers);
    let asked = Arc::clone(&api);
    let servers = tokio::task::spawn_blocking(move || asked.scraper.scrape()).await;
    let now = (api.desk.running(), api.live.listeners());
    let servers = servers.unwrap_or_default();
    let text = metrics::encode(&api.counters, now, &servers, format).map_err(|e| {
        let error = QueryError::new("XX000", format!("could not write metrics: {e}"));
        Problem::of(error)
    })?;
    let kind = [
        (header::CONTENT_TYPE, format.content_type()),
        (header::VARY, "accept"),
    ];
    Ok((kind, text).into_response())
}
