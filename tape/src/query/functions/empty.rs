//! What is said with an answer that has no rows: how much of its period was
//! observed. Nothing happened, and nobody looked, are different answers.

use super::{Call, Function, blocking};
use crate::format::part::Part;
use crate::query::bucket::Buckets;
use crate::query::civil::time_text;
use crate::query::error::{QueryError, QueryResult};
use crate::query::parse::{Window, nodes};
use crate::query::ticks::{Observed, Ticks};

/// SQLSTATE of a notice.
const SUCCESS: &str = "00000";

/// The notice for an empty answer of a function about a period.
pub fn notice(function: &Function, call: &Call) -> QueryResult<Option<QueryError>> {
    let Some(window) = period(function, call)? else {
        return Ok(None);
    };
    let observed = observed(call, window)?;
    let percent = observed
        .total()
        .percent(window.length())
        .map(|p| p.round4());
    let notice = match percent {
        Some(percent) if observed.total().observed_ms > 0 => QueryError::new(
            SUCCESS,
            format!(
                "no rows: {}.{:04} % of the period was observed",
                percent / 10_000,
                percent % 10_000
            ),
        ),
        _ => QueryError::new(SUCCESS, "no rows: nothing of the period was observed")
            .hint("See status for the times that the history has."),
    };
    Ok(Some(notice.detail(format!(
        "The period is {} to {}.",
        time_text(window.since),
        time_text(window.until)
    ))))
}

/// The period that an answer is about; `None` where the function has none.
pub fn period(function: &Function, call: &Call) -> QueryResult<Option<Window>> {
    let begins = ["at", "since", "since_2"];
    if !begins.iter().any(|name| function.takes(name)) {
        return Ok(None);
    }
    match call.spec.at_us {
        Some(at) => Ok(Some(Window {
            since: at.saturating_sub(blocking::NEAR),
            until: at.saturating_add(1),
        })),
        None => Window::of(call.spec).map(Some),
    }
}

/// The parts of the history that meet a window, but those that are damaged.
pub fn parts<'a>(call: &Call<'a>, window: Window) -> QueryResult<Vec<&'a Part>> {
    let mut found = Vec::new();
    for node in nodes(call.spec, call.store)? {
        let parts = call.store.parts(node).filter(|part| window.meets(part));
        found.extend(parts.filter(|part| !call.spec.damage.has_left_out(part)));
    }
    Ok(found)
}

/// The ticks of a window.
fn observed(call: &Call, window: Window) -> QueryResult<Observed> {
    let buckets = Buckets::whole(window.since, window.until);
    let mut observed = Observed::default();
    for part in parts(call, window)? {
        let read = Ticks::read(part, &buckets, &mut observed);
        call.spec.damage.leave(part, read)?;
    }
    Ok(observed)
}
