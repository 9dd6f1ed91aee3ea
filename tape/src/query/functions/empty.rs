//! What is said with an answer that has no rows: how much of its period was
//! observed. Nothing happened, and nobody looked, are different answers.

use super::{Call, Function, blocking};
use crate::query::bucket::Buckets;
use crate::query::civil::time_text;
use crate::query::error::{QueryError, QueryResult};
use crate::query::parse::{Window, nodes};
use crate::query::ticks::{Observed, Ticks};

/// SQLSTATE of a notice.
const SUCCESS: &str = "00000";

/// The notice for an empty answer of a function about a period.
pub fn notice(function: &Function, call: &Call) -> QueryResult<Option<QueryError>> {
    let begins = ["at", "since", "since_2"];
    if !begins.iter().any(|name| function.takes(name)) {
        return Ok(None);
    }
    let window = match call.spec.at_us {
        Some(at) => Window {
            since: at.saturating_sub(blocking::NEAR),
            until: at.saturating_add(1),
        },
        None => Window::of(call.spec)?,
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

/// The ticks of a window.
fn observed(call: &Call, window: Window) -> QueryResult<Observed> {
    let buckets = Buckets::whole(window.since, window.until);
    let mut observed = Observed::default();
    for node in nodes(call.spec, call.store)? {
        let parts = call.store.parts(node).filter(|part| window.meets(part));
        for part in parts.filter(|part| !call.spec.damage.has_left_out(part)) {
            let read = Ticks::read(part, &buckets, &mut observed);
            call.spec.damage.leave(part, read)?;
        }
    }
    Ok(observed)
}
