//! `GET /api/v1/report.html`: a window as one file, the same that `tacho
//! report` writes. The writer of the page escapes all texts. A browser saves
//! the file and does not show it, so nothing in it runs here.

use crate::api::{Api, given};
use crate::problem::Problem;
use axum::extract::{RawQuery, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::tz::TimeZone;
use std::sync::Arc;
use tacho_source::report::{Report, page};
use tacho_source::time;
use tacho_tape::query::{QueryError, QueryResult, ReportRow, Taken};

/// Maximum size of a document that becomes a page, in bytes; the document of a busy server has 100
/// kB.
const DOCUMENT_BYTES: usize = 8 << 20;
/// Maximum number of characters of a server's name in a file name.
const NAME_CHARS: usize = 60;

/// Answers with the arguments of `report`.
pub async fn report(
    State(api): State<Arc<Api>>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let (server, arguments) = given(&query.unwrap_or_default()).map_err(Problem::of)?;
    let zone = arguments.get("tz").map_or("UTC", String::as_str);
    let zone = time::zone(zone).map_err(Problem::of)?;
    let name = server.clone().unwrap_or_default();
    // The turn comes first: a waiting request has no answer to keep.
    let turn = Arc::clone(api.reports()).acquire_owned().await;
    let ask = api.question("report", server, arguments);
    let rows = Taken::<ReportRow>::default();
    let rows = api.desk().ask_into(ask, rows).await?;
    let made = tokio::task::spawn_blocking(move || {
        // Held as long as the work lasts, even if the client has gone.
        let _turn = turn;
        let row = rows.into_iter().next().unwrap_or_default();
        let report = saved(&row, zone)?;
        Ok((page(&report), file_name(&name, row.period_start)))
    });
    let failed = |_| {
        Err(QueryError::new(
            "XX000",
            "writing the report was interrupted",
        ))
    };
    let (text, file) = made.await.unwrap_or_else(failed).map_err(Problem::of)?;
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_string()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{file}\""),
        ),
    ];
    Ok((headers, text).into_response())
}

/// The report in the only row.
fn saved(row: &ReportRow, zone: TimeZone) -> QueryResult<Report> {
    let text = row.report.as_deref().unwrap_or("{}");
    if text.len() > DOCUMENT_BYTES {
        let megabytes = DOCUMENT_BYTES >> 20;
        let error = QueryError::new("53200", "report is too large");
        return Err(error
            .detail(format!("The limit is {megabytes} MB."))
            .hint("Ask for a shorter window or a filter."));
    }
    Report::new(text, zone)
}

/// The name of the file: `tacho-shop-20260301T105500Z.html`. Other characters
/// of the server's name become `-`, so that the file name is one word
/// everywhere.
fn file_name(server: &str, start: Option<i64>) -> String {
    let start = start.map_or_else(String::new, |us| time::timestamp(us).to_string());
    let start: String = start.chars().filter(|c| !":-".contains(*c)).collect();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let word = |text: &str| text.chars().take(NAME_CHARS).map(plain).collect::<String>();
    let parts = ["tacho".to_string(), word(server), word(&start)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("-") + ".html"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(report: &str) -> ReportRow {
        ReportRow {
            report: Some(report.to_string().into()),
            ..ReportRow::default()
        }
    }

    #[test]
    fn a_file_has_the_name_of_its_server_and_begin_and_no_other_sign() {
        let name = |server: &str| file_name(server, Some(1_772_362_500_000_000));
        assert_eq!(name("shop"), "tacho-shop-20260301T105500Z.html");
        assert_eq!(name(""), "tacho-20260301T105500Z.html");
        assert_eq!(
            name("a/..\"\r\nx:ü"),
            "tacho-a------x---20260301T105500Z.html"
        );
        assert_eq!(
            name(&"x".repeat(1000)).len(),
            "tacho--20260301T105500Z.html".len() + NAME_CHARS
        );
    }

    #[test]
    fn a_document_beyond_its_limit_is_refused() {
        let saved = |document: &str| saved(&row(document), TimeZone::UTC);
        let error = saved(&" ".repeat(DOCUMENT_BYTES + 1)).err().unwrap();
        assert_eq!(
            (error.sqlstate, error.message.as_str()),
            ("53200", "report is too large")
        );
        assert!(saved(r#"{"a": 1}"#).is_ok());
    }
}
