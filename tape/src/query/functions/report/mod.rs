//! `report`: one document about the database at a point in time or in a window.
//!
//! - `value.rs`: the document as a value, for all programs that show it
//! - `exact.rs`: its figures and times in JSON
//! - `build.rs`: asks the other functions for its parts
//! - `alarms.rs`: what the measurements of the server say is bad
//! - `compat.rs`: the part with the keys of pg_ash's report

mod alarms;
mod build;
mod compat;
mod exact;
pub mod value;
#[cfg(test)]
mod value_tests;

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
    /// One document about the database: what it was doing, and what had changed
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

fn answer(asked: &Report, run: Run, emit: Emit<ReportRow>) -> QueryResult<()> {
    let window = Window::at_or_of(run.context, asked.at, asked.since, asked.until)?;
    let document = build::document(asked, run, window)?;
    emit(ReportRow {
        period_start: Some(window.since),
        period_end: Some(window.until),
        report: Some(document.json()?.into()),
    })
}
