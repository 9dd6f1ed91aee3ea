//! `GET /api/v1/findings`: the first things to know of a window, in the sentences of the report:
//! crashes, the queues in which others waited longest, and causes of a changed load.

use crate::api::{Api, answered, check_names, given, is_over};
use crate::problem::Problem;
use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::Timestamp;
use std::sync::Arc;
use tacho_source::report::{Facts, Finding, findings};
use tacho_source::{Arguments, time};
use tacho_tape::query::json::{Object, array, quote, value};
use tacho_tape::query::report::{Blocker, Explanation, Load, Marker};
use tacho_tape::query::{
    AasRow, BlockingRow, ChangesRow, LONGEST_WITH_CAUSES, MarkersRow, Row, Value,
};

/// Arguments that all three functions take.
pub const ARGUMENTS: [&str; 3] = ["since", "until", "tz"];
/// Maximum number of queues: as many as the page shows, so that one question answers both.
const HEADS: &str = "10";
/// Length of a window without a begin, in µs: an hour.
const HOUR: i64 = 3_600_000_000;

/// Answers with a row for each finding, the most urgent first.
pub async fn of_window(
    State(api): State<Arc<Api>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (server, arguments) = given(&query.unwrap_or_default()).map_err(Problem::of)?;
    let names = arguments.keys().map(String::as_str);
    check_names("findings", &ARGUMENTS, names).map_err(Problem::of)?;
    let now = Timestamp::now().as_microsecond();
    let zone = time::zone(arguments.get("tz").map_or("UTC", String::as_str));
    let zone = zone.map_err(Problem::of)?;
    let moment = |name: &str| {
        let text = arguments.get(name);
        text.map(|text| time::moment(text, now, &zone)).transpose()
    };
    let end = moment("until").map_err(Problem::of)?.unwrap_or(now);
    let begin = moment("since").map_err(Problem::of)?;
    let begin = begin.unwrap_or_else(|| end.saturating_sub(HOUR));
    let asked = Asked {
        api,
        server,
        arguments,
    };
    let changes = asked.changes(end.saturating_sub(begin));
    let (blockers, markers, load, changes) = tokio::try_join!(
        asked.rows::<BlockingRow, Blocker>(Some(HEADS)),
        asked.rows::<MarkersRow, Marker>(None),
        asked.rows::<AasRow, Load>(None),
        async { Ok(changes.await) },
    )?;
    let found = findings(&Facts {
        blockers: &blockers,
        markers: &markers,
        changes: &changes,
        backend_seconds: load.first().and_then(|load| load.backend_seconds),
        window: (begin, end),
        zone: &zone,
    });
    let mut object = Object::default();
    object
        .put("rows", &array(found.iter().map(json)))
        .put("notices", "[]");
    let over = is_over(&asked.arguments, now);
    Ok(answered(object.json() + "\n", over, &headers))
}

/// A window of a server.
struct Asked {
    api: Arc<Api>,
    server: Option<String>,
    arguments: Arguments,
}

impl Asked {
    /// The answer of `changes`. A source that lacks it, or fails, has no causes; the panel with
    /// this answer says why.
    async fn changes(&self, length: i64) -> Vec<Explanation> {
        match length <= LONGEST_WITH_CAUSES {
            true => self.rows::<ChangesRow, _>(None).await.unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// The rows of a function, at most `n`.
    async fn rows<R, T>(&self, n: Option<&str>) -> Result<Vec<T>, Problem>
    where
        R: Row,
        T: From<R>,
    {
        let n = n.map(|n| ("n".to_string(), n.to_string()));
        let arguments = self.arguments.clone().into_iter().chain(n).collect();
        let ask = self
            .api
            .question(R::FUNCTION, self.server.clone(), arguments);
        let rows: Vec<R> = self.api.desk().share(ask).await?;
        Ok(rows.into_iter().map(T::from).collect())
    }
}

fn json(finding: &Finding) -> String {
    let time = |us: Option<i64>| value(&us.map_or(Value::Null, Value::Time));
    let mut object = Object::default();
    object
        .put("kind", &quote(finding.kind))
        .put("since", &time(Some(finding.since)))
        .put("until", &time(finding.until))
        .put("pid", &value(&Value::int(finding.pid)))
        .put(
            "explains",
            &finding.explains.as_deref().map_or("null".into(), quote),
        )
        .put("text", &quote(&finding.text));
    object.json()
}
