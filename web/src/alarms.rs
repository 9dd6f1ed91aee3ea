//! `GET /api/v1/alarms`: what the measurements of the server say is bad in a window.

use crate::api::{Api, answered, check_names, given, is_over};
use crate::findings::ARGUMENTS;
use crate::problem::Problem;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::Timestamp;
use std::sync::Arc;
use tacho_tape::query::ServerHistoryRow;
use tacho_tape::query::json::{Object, array, quote};
use tacho_tape::query::report::{Alarm, METRICS, alarms};

/// Answers with a row for each alarm, the most urgent first.
pub async fn of_window(
    State(api): State<Arc<Api>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (server, arguments) = given(&query.unwrap_or_default()).map_err(Problem::of)?;
    let names = arguments.keys().map(String::as_str);
    check_names("alarms", &ARGUMENTS, names).map_err(Problem::of)?;
    let over = is_over(&arguments, Timestamp::now().as_microsecond());
    let mut narrow = arguments.clone();
    narrow.insert("metric".to_string(), METRICS.join(","));
    let ask = api.question("server_history", server.clone(), narrow);
    let rows: Vec<ServerHistoryRow> = match api.desk().share(ask).await {
        Ok(rows) => rows,
        // An older server refuses a metric that it does not know.
        Err(_) => {
            let ask = api.question("server_history", server, arguments);
            api.desk().share(ask).await?
        }
    };
    let mut object = Object::default();
    object
        .put("rows", &array(alarms(&rows).iter().map(json)))
        .put("notices", "[]");
    Ok(answered(object.json() + "\n", over, &headers))
}

fn json(alarm: &Alarm) -> String {
    let mut object = Object::default();
    object
        .put("severity", &quote(alarm.severity.name()))
        .put("metric", &quote(alarm.metric))
        .put("text", &quote(&alarm.text));
    object.json()
}
