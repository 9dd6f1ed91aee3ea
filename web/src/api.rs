//! State that all routes share, and the form of requests and responses.

use crate::desk::Desk;
use crate::guard::Door;
use crate::live::Live;
use crate::metrics::Counters;
use crate::options::Options;
use crate::problem::put_error;
use crate::scrape::Scraper;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use tacho_source::{Arguments, Ask, Source, time};
use tacho_tape::query::json::{Object, array, quote};
use tacho_tape::query::{QueryError, QueryResult};
use tokio::sync::Semaphore;

/// Maximum number of threads of a question.
const THREADS: usize = 2;

/// Maximum number of reports that are made at once; others wait for a turn.
const REPORTS: usize = 2;
/// Maximum number of servers that all fleet requests together ask at once.
const FLEET_SERVERS: u16 = 4;
/// Media type of bodies.
pub const FORM: &str = "application/x-www-form-urlencoded";

/// State that the routes share.
pub struct Api {
    desk: Desk,
    door: Arc<Door>,
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
    /// Creates the state from the command line.
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
            door: Arc::new(door),
            counters,
            scraper: Scraper::new(Arc::clone(&source)),
            texts: !options.hide_texts,
            live: Arc::new(Live::new(source)),
            listeners: Arc::new(Semaphore::new(options.listeners())),
            reports: Arc::new(Semaphore::new(REPORTS)),
            fleets: Arc::new(Semaphore::new(fleet_servers(options.questions))),
        })
    }

    /// The rules that decide who may ask.
    pub fn door(&self) -> &Arc<Door> {
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

    /// The counters of this program.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Collects the metrics of servers.
    pub fn scraper(&self) -> &Scraper {
        &self.scraper
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
}

/// Maximum number of servers that all fleet requests together ask at once: half of the `questions`
/// that may run at once, but from 1 to `FLEET_SERVERS`.
fn fleet_servers(questions: u16) -> usize {
    (questions / 2).clamp(1, FLEET_SERVERS).into()
}

/// A response with a body of JSON.
pub fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
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
                "argument \"{name}\" is specified more than once"
            )));
        }
    }
    Ok((all.remove("server"), all))
}

/// True if the window ends before the present. False for invalid arguments, which the question
/// refuses.
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
