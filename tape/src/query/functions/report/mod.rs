//! `report`: one document about the database at a point in time or in a window.
//!
//! - `value.rs`: the document as a value, for all programs that show it
//! - `exact.rs`: its figures and times in JSON
//! - `build.rs`: asks the other functions for its parts
//! - `compat.rs`: the part with the keys of pg_ash's report

mod build;
mod compat;
mod exact;
pub mod value;
#[cfg(test)]
mod value_tests;

use super::{aas, blocking};
use crate::query::ask::context::Run;
use crate::query::ask::request::{Emit, request};
use crate::query::ask::row::row;
use crate::query::rows::parse::Window;
use crate::query::value::error::QueryResult;

row! {
    /// A row of `report`.
    ReportRow of "report": FIELDS {
        period_start: Time,
        period_end: Time,
        report: Text,
    }
}

request! {
    /// What the database was doing, and what had changed, in one document
    Report of report: ReportRow {
        node,
        at("Point in time, such as 03:12: half an hour around it", None),
        since,
        until,
        n("Most waits, queries, blockers, …, or all", Some("5")),
        scope,
        by_leader,
        filters,
    }
}

/// Half the length of the window around a point in time, in µs.
const AROUND: i64 = 15 * aas::MINUTE;

fn answer(asked: &Report, run: Run, emit: Emit<ReportRow>) -> QueryResult<()> {
    let window = window(asked, run)?;
    let document = build::document(asked, run, window)?;
    emit(ReportRow {
        period_start: Some(window.since),
        period_end: Some(window.until),
        report: Some(document.json()?.into()),
    })
}

/// The window of a report, or the window around its point in time.
fn window(asked: &Report, run: Run) -> QueryResult<Window> {
    blocking::check_moment(asked.at, asked.since, asked.until)?;
    let (since, until) = match asked.at {
        None => (asked.since, asked.until),
        Some(at) => (
            Some(at.saturating_sub(AROUND)),
            Some(at.saturating_add(AROUND)),
        ),
    };
    Window::of(run.context, since, until)
}
