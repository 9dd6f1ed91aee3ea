//! `GET /api/v1/fleet`: the load of every server of the source in a window, the
//! one in most trouble first. One request asks them all. All such requests together
//! ask a few at once, when there is a place for them, so they do not crowd out
//! what others ask.

use crate::api::{Api, given, json};
use crate::problem::Problem;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;
use std::cmp::Ordering;
use std::sync::Arc;
use tacho_source::{Arguments, Server, State as Known};
use tacho_tape::query::QueryError;
use tacho_tape::query::json::{Object, array, quote};
use tokio::task::JoinSet;

/// Most servers that are asked; others are left out, and it is said how many.
pub const SERVERS: usize = 256;
/// Most servers that are asked at once.
const AT_ONCE: u16 = 4;
/// Arguments of the two functions that are asked.
pub const ARGUMENTS: [&str; 4] = ["since", "until", "bucket", "tz"];

/// A server, and what is known of its load.
struct Line {
    server: Server,
    /// A row of `aas`.
    whole: Value,
    /// Load by bucket.
    loads: Vec<Value>,
    problem: Option<QueryError>,
}

/// Servers that all requests together ask at once: half of the places for
/// questions, at least one.
pub fn at_once(questions: u16) -> usize {
    (questions / 2).clamp(1, AT_ONCE).into()
}

/// Answers with a row for each server.
pub async fn fleet(
    State(api): State<Arc<Api>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let (server, arguments) = given(&query.unwrap_or_default()).map_err(Problem::of)?;
    let server = server.map(|_| "server");
    let unknown = arguments.keys().map(String::as_str).chain(server);
    if let Some(name) = unknown.into_iter().find(|name| !ARGUMENTS.contains(name)) {
        let error = QueryError::invalid(format!("fleet has no argument \"{name}\""));
        return Err(Problem::of(
            error.hint("Available are since, until, bucket, tz."),
        ));
    }
    let source = Arc::clone(api.desk().source());
    let servers = tokio::task::spawn_blocking(move || source.servers()).await;
    let mut servers = servers.unwrap_or_default();
    // Where some are left out, they are those without an answer.
    servers.sort_by_key(|server| server.state != Known::Recorded);
    let left_out = servers.len().saturating_sub(SERVERS);
    let mut lines = asked(&api, servers, &arguments).await?;
    lines.sort_by(worse);
    let mut object = Object::default();
    object.put("rows", &array(lines.iter().map(Line::json)));
    let notice = |message: String| {
        let mut notice = Object::default();
        notice
            .put("severity", "\"NOTICE\"")
            .put("message", &quote(&message));
        notice.json()
    };
    let notices = (left_out > 0).then(|| notice(format!("{left_out} servers are left out")));
    object.put("notices", &array(notices));
    Ok(json(object.json() + "\n"))
}

/// Asks all; who gives up ends what is still asked. An argument that makes sense
/// to none of them is refused, and no trouble of a server.
async fn asked(
    api: &Arc<Api>,
    servers: Vec<Server>,
    arguments: &Arguments,
) -> Result<Vec<Line>, Problem> {
    let mut tasks = JoinSet::new();
    for server in servers.into_iter().take(SERVERS) {
        let (api, arguments) = (Arc::clone(api), arguments.clone());
        tasks.spawn(async move {
            let _turn = api.fleets().acquire().await;
            one(&api, server, arguments).await
        });
    }
    let (mut lines, mut refusal, mut understood) = (Vec::new(), None, false);
    while let Some(line) = tasks.join_next().await {
        let failed = |_| Problem::of(QueryError::new("XX000", "asking a server ended"));
        let (line, refused) = line.map_err(failed)?;
        understood |= line.server.state == Known::Recorded && refused.is_none();
        refusal = refused.or(refusal);
        lines.push(line);
    }
    match refusal {
        Some(problem) if !understood => Err(problem),
        _ => Ok(lines),
    }
}

/// A server, and what it says of arguments that make no sense to it.
async fn one(api: &Api, server: Server, arguments: Arguments) -> (Line, Option<Problem>) {
    let mut line = Line {
        server,
        whole: Value::Null,
        loads: Vec::new(),
        problem: None,
    };
    if line.server.state != Known::Recorded {
        return (line, None);
    }
    let mut whole = arguments.clone();
    whole.remove("bucket");
    let answers = match rows(api, "aas", &line.server, whole).await {
        Ok(whole) => rows(api, "timeline", &line.server, arguments)
            .await
            .map(|steps| (whole, steps)),
        Err(problem) => Err(problem),
    };
    match answers {
        Ok((mut whole, steps)) => {
            line.whole = whole[0].take();
            let steps = steps.as_array().into_iter().flatten();
            line.loads = steps.map(|row| row["avg_aas"].clone()).collect();
        }
        Err(problem) => {
            let is_refused = problem.status() == StatusCode::BAD_REQUEST;
            let error = problem.into_error();
            line.problem = Some(error.clone());
            return (line, is_refused.then(|| Problem::of(error)));
        }
    }
    (line, None)
}

/// Rows of an answer.
async fn rows(
    api: &Api,
    function: &str,
    server: &Server,
    arguments: Arguments,
) -> Result<Value, Problem> {
    let ask = api.question(function, Some(server.name.clone()), arguments);
    let answer = api.desk().ask_in_turn(ask).await?;
    Ok(serde_json::from_slice(&answer.rows).unwrap_or_default())
}

impl Line {
    fn number(&self, name: &str) -> Option<f64> {
        self.whole[name].as_f64()
    }

    /// 0 cannot be asked, 1 was observed, 2 was not.
    fn rank(&self) -> u8 {
        let known = matches!(
            self.server.state,
            Known::Recorded | Known::Empty | Known::Missing
        );
        match self.number("avg_aas") {
            _ if !known || self.problem.is_some() => 0,
            Some(_) => 1,
            None => 2,
        }
    }

    /// Load of each CPU; where these are not known, of one.
    fn strain(&self) -> f64 {
        let cpus = self.number("vcpus").filter(|cpus| *cpus > 0.0);
        self.number("avg_aas").unwrap_or(0.0) / cpus.unwrap_or(1.0)
    }

    fn json(&self) -> String {
        let mut object = Object::default();
        object
            .put("server", &quote(&self.server.name))
            .put("state", &quote(self.server.state.name()));
        for name in ["avg_aas", "peak_sessions", "vcpus", "coverage_pct"] {
            object.put(name, &self.whole[name].to_string());
        }
        let loads = self.loads.iter().map(Value::to_string);
        object.put("loads", &array(loads));
        let message = self.problem.as_ref().map(|error| quote(&error.message));
        object.put("problem", message.as_deref().unwrap_or("null"));
        object.json()
    }
}

/// Those that cannot be asked first, then by load of a CPU, then by name.
fn worse(a: &Line, b: &Line) -> Ordering {
    let by_rank = a.rank().cmp(&b.rank());
    by_rank
        .then_with(|| b.strain().total_cmp(&a.strain()))
        .then_with(|| a.server.name.cmp(&b.server.name))
}
