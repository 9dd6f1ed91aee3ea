//! `report`: what the database was doing at a moment or in a window, in one
//! document.
//!
//! - `value.rs`: the document as a value, which whoever shows it reads
//! - `exact.rs`: its figures and times in JSON
//! - `build.rs`: asks the other functions for its parts
//! - `compat.rs`: the part with the keys of pg_ash's report

mod build;
mod compat;
mod exact;
pub mod value;
#[cfg(test)]
mod value_tests;

use super::{Call, aas};
use crate::query::error::QueryResult;
use crate::query::parse::{Window, moment};
use crate::query::request::request;
use crate::query::row::row;
use crate::query::spec::{Sink, Spec, Value};

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
        at("A moment, such as 03:12: half an hour around it", None),
        since,
        until,
        n("Most waits, queries, blockers, …, or all", Some("5")),
        scope,
        by_leader,
        filters,
    }
}

/// How far the window of a moment reaches to each side.
const AROUND: i64 = 15 * aas::MINUTE;

fn run(call: &Call, sink: &mut dyn Sink) -> QueryResult<()> {
    let at = moment(call.spec)?;
    let window = match at {
        None => Window::of(call.spec)?,
        Some(at) => Window::of(&Spec {
            since_us: Some(at.saturating_sub(AROUND)),
            until_us: Some(at.saturating_add(AROUND)),
            ..call.spec.clone()
        })?,
    };
    let document = build::document(call, window, at)?;
    sink.begin(FIELDS)?;
    sink.row(vec![
        Value::Time(window.since),
        Value::Time(window.until),
        Value::Text(document.json()?.into()),
    ])
}
