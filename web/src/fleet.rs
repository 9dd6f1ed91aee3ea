//! `GET /api/v1/fleet`: the load of every server of the source in a window. Servers with
//! an error come first, then those with the highest load per CPU. One request covers all
//! servers. All such requests together query only a few servers at once, when there is a
//! place, so that they do not crowd out other questions.

use crate::api::{Api, check_names, given, json};
use crate::problem::Problem;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use std::cmp::Ordering;
use std::sync::Arc;
use tacho_source::{Arguments, Server, State as Known};
use tacho_tape::query::json::{Object, array, numeric, quote};
use tacho_tape::query::{AasRow, Numeric, QueryError, Row, TimelineRow};
use tokio::task::JoinSet;

/// Maximum number of servers in an answer. A notice has the number of the others.
pub const SERVERS: usize = 256;
/// Arguments of the two functions, `aas` and `timeline`.
pub const ARGUMENTS: [&str; 4] = ["since", "until", "bucket", "tz"];

/// A server and its load.
struct Line {
    server: Server,
    whole: AasRow,
    /// Load by bucket.
    loads: Vec<Option<Numeric>>,
    problem: Option<QueryError>,
}

/// Answers with a row for each server.
pub async fn fleet(
    State(api): State<Arc<Api>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let (server, arguments) = given(&query.unwrap_or_default()).map_err(Problem::of)?;
    let server = server.map(|_| "server");
    let names = arguments.keys().map(String::as_str).chain(server);
    check_names("fleet", &ARGUMENTS, names).map_err(Problem::of)?;
    let source = Arc::clone(api.desk().source());
    let servers = tokio::task::spawn_blocking(move || source.servers()).await;
    let mut servers = servers.unwrap_or_default();
    // Servers without history are left out first.
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

/// Asks all servers. If the client leaves, running questions end. Fails if no server
/// accepts the arguments; other errors of a server stand in its row.
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
        let failed = |_| {
            Problem::of(QueryError::new(
                "XX000",
                "question to a server was interrupted",
            ))
        };
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

/// Asks one server. The second value is its refusal of arguments, if any.
async fn one(api: &Api, server: Server, arguments: Arguments) -> (Line, Option<Problem>) {
    let mut line = Line {
        server,
        whole: AasRow::default(),
        loads: Vec::new(),
        problem: None,
    };
    if line.server.state != Known::Recorded {
        return (line, None);
    }
    let mut whole = arguments.clone();
    whole.remove("bucket");
    let answers = match rows(api, &line.server, whole).await {
        Ok(whole) => rows(api, &line.server, arguments)
            .await
            .map(|steps| (whole, steps)),
        Err(problem) => Err(problem),
    };
    match answers {
        Ok((whole, steps)) => {
            let steps: Vec<TimelineRow> = steps;
            line.whole = whole.into_iter().next().unwrap_or_default();
            line.loads = steps.into_iter().map(|row| row.avg_aas).collect();
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
async fn rows<R: Row + Send + 'static>(
    api: &Api,
    server: &Server,
    arguments: Arguments,
) -> Result<Vec<R>, Problem> {
    let ask = api.question(R::FUNCTION, Some(server.name.clone()), arguments);
    api.desk().ask_in_turn(ask).await
}

impl Line {
    /// The place of the server in the answer: 0 for servers with an error, 1 for observed ones, 2
    /// for the others.
    fn rank(&self) -> u8 {
        let known = matches!(
            self.server.state,
            Known::Recorded | Known::Empty | Known::Missing
        );
        match self.whole.avg_aas {
            _ if !known || self.problem.is_some() => 0,
            Some(_) => 1,
            None => 2,
        }
    }

    /// Load per CPU; if the CPUs are unknown, the load itself.
    fn strain(&self) -> f64 {
        let cpus = self.whole.vcpus.map(Numeric::to_f64);
        let load = self.whole.avg_aas.map_or(0.0, Numeric::to_f64);
        load / cpus.filter(|cpus| *cpus > 0.0).unwrap_or(1.0)
    }

    fn json(&self) -> String {
        let mut object = Object::default();
        object
            .put("server", &quote(&self.server.name))
            .put("state", &quote(self.server.state.name()));
        let null = || "null".to_string();
        let figure = |number: Option<Numeric>| number.map_or_else(null, |n| numeric(n.0));
        let peak = self.whole.peak_sessions;
        object
            .put("avg_aas", &figure(self.whole.avg_aas))
            .put("peak_sessions", &peak.map_or_else(null, |n| n.to_string()))
            .put("vcpus", &figure(self.whole.vcpus))
            .put("coverage_pct", &figure(self.whole.coverage_pct))
            .put("loads", &array(self.loads.iter().copied().map(figure)));
        let message = self.problem.as_ref().map(|error| quote(&error.message));
        object.put("problem", message.as_deref().unwrap_or("null"));
        object.json()
    }
}

/// Servers with an error come first, then by load per CPU, then by name.
fn worse(a: &Line, b: &Line) -> Ordering {
    let by_rank = a.rank().cmp(&b.rank());
    by_rank
        .then_with(|| b.strain().total_cmp(&a.strain()))
        .then_with(|| a.server.name.cmp(&b.server.name))
}
